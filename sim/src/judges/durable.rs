//! Durable: every acknowledged commit is in the log once, with the versionstamp that was reported, none that
//! was reported as not committed is, and the final keyspace is the replay of the log.

use super::{
    Evidence, Judgement, Keyspace, Replica,
    writes::{END, Writes, written},
};
use super::{Objection, Witness};
use crate::{history::Reported, proto::Version};
use bytes::Bytes;
use shaketable_tx::show;
use std::collections::BTreeMap;

/// Claims that every acknowledged commit is in the log, and that the final keyspace is the replay of the log.
pub fn judge(evidence: &Evidence<'_>) -> Judgement {
    is_logged(evidence, Version::MAX)?;
    let mut state = Keyspace::default();
    let transactions = evidence.truth.entries.iter().flat_map(|entry| &entry.transactions);
    transactions.flat_map(|tx| &tx.mutations).for_each(|mutation| state.apply(mutation, None));
    is_kept(evidence, &state)
}

/// Claims that what was acknowledged up to a version is in the log, once.
pub fn is_logged(evidence: &Evidence<'_>, until: Version) -> Judgement {
    logs_agree(evidence)?;
    each_is_there_once(evidence)?;
    acknowledged_commits_are_logged(evidence, until)?;
    denied_commits_are_not(evidence)
}

/// Claims that the replicas are the replay of the log.
pub fn is_kept(evidence: &Evidence<'_>, state: &Keyspace) -> Judgement {
    evidence.replicas.iter().try_for_each(|replica| is_the_replay(evidence, state, replica))
}

fn objection(message: String, witness: Witness) -> Box<Objection> {
    Box::new(Objection { message, witness, ..Objection::default() })
}

fn logs_agree(evidence: &Evidence<'_>) -> Judgement {
    let Some((generation, version, log)) = evidence.history.disagreements.first() else { return Ok(()) };
    let message =
        format!("log {} has different contents for version {version} of generation {generation}", log.0);
    let first = evidence.history.logged.get(&(*generation, *version));
    let attempts = first.iter().flat_map(|entry| &entry.transactions).filter_map(|tx| tx.attempt).collect();
    Err(objection(message, Witness { attempts, ..Witness::default() }))
}

/// In the log each attempt and each versionstamp must be unique.
fn each_is_there_once(evidence: &Evidence<'_>) -> Judgement {
    if let Some(attempt) = evidence.truth.twice() {
        let keys = Writes::of(evidence.history, evidence.truth).by(attempt);
        let witness = Witness { attempts: vec![attempt], keys, ..Witness::default() };
        return Err(objection(format!("attempt {} is in the log twice", attempt.0), witness));
    }
    let mut stamps = BTreeMap::new();
    for entry in &evidence.truth.entries {
        for tx in &entry.transactions {
            if let Some(other) = stamps.insert((entry.version, tx.batch_index), tx.attempt) {
                let message = format!(
                    "two transactions have the versionstamp of version {} and order {}",
                    entry.version, tx.batch_index
                );
                let attempts = other.into_iter().chain(tx.attempt).collect();
                return Err(objection(message, Witness { attempts, ..Witness::default() }));
            }
        }
    }
    Ok(())
}

fn acknowledged_commits_are_logged(evidence: &Evidence<'_>, until: Version) -> Judgement {
    for (id, attempt) in evidence.history.numbered() {
        let Reported::Committed { version, batch_index } = attempt.reported else { continue };
        let place = evidence.truth.place(id);
        if version > until || place == Some((version, batch_index)) {
            continue;
        }
        let at = |(version, order): (Version, u16)| format!("version {version}, order {order}");
        let found = match place {
            Some(place) => format!("the log contains it at {}", at(place)),
            None => "the log does not contain it".to_owned(),
        };
        let message = format!(
            "attempt {} of client {} was reported as committed at {}, but {found}",
            id.0,
            attempt.client.0,
            at((version, batch_index)),
        );
        let witness = Witness {
            attempts: vec![id],
            keys: written(attempt),
            expected: Some(at((version, batch_index))),
            found: Some(place.map_or_else(|| "not in the log".to_owned(), at)),
            ..Witness::default()
        };
        return Err(objection(message, witness));
    }
    Ok(())
}

/// No attempt whose error says that it did not commit is in the log.
fn denied_commits_are_not(evidence: &Evidence<'_>) -> Judgement {
    for (id, attempt) in evidence.history.numbered() {
        let Reported::Failed(error) = attempt.reported else { continue };
        let (true, Some((version, order))) = (error.is_retryable_not_committed(), evidence.truth.place(id))
        else {
            continue;
        };
        let (i, client) = (id.0, attempt.client.0);
        let message = format!(
            "attempt {i} of client {client} was reported as {error}, but the log contains it at version {version}, \
             order {order}"
        );
        let witness = Witness {
            attempts: vec![id],
            keys: written(attempt),
            expected: Some("not in the log".to_owned()),
            found: Some(format!("version {version}, order {order}")),
            ..Witness::default()
        };
        return Err(objection(message, witness));
    }
    Ok(())
}

/// A key and its value.
type Row<'a> = (&'a Bytes, &'a Bytes);

fn is_the_replay(evidence: &Evidence<'_>, state: &Keyspace, replica: &Replica) -> Judgement {
    let mut expected = state.0.range(replica.range.begin.clone()..replica.range.end.clone());
    let mut rows = replica.rows.iter().map(|(key, value)| (key, value));
    loop {
        match (expected.next(), rows.next()) {
            (None, None) => return Ok(()),
            (expected, found) if expected == found => {}
            (expected, found) => return Err(differs(evidence, replica, expected, found)),
        }
    }
}

/// The objection to a row of a replica. The witness names only the first key that differs.
fn differs(
    evidence: &Evidence<'_>,
    replica: &Replica,
    expected: Option<Row<'_>>,
    found: Option<Row<'_>>,
) -> Box<Objection> {
    let row = |row: Option<Row<'_>>| {
        row.map_or("nothing".to_owned(), |(key, value)| {
            format!("{} = {}", show::key(key), show::value(value))
        })
    };
    let message =
        format!("{} has {} where the replay of the log has {}", replica.server, row(found), row(expected));
    let key = [expected, found].into_iter().flatten().map(|(key, _)| key.clone()).min();
    let writes = Writes::of(evidence.history, evidence.truth);
    let writer = key.as_ref().and_then(|key| writes.last(key, END)?.by);
    let witness = Witness {
        attempts: writer.into_iter().collect(),
        keys: key.into_iter().collect(),
        expected: Some(row(expected)),
        found: Some(row(found)),
        ..Witness::default()
    };
    objection(message, witness)
}
