//! Durable: every acknowledged commit is in the log once, with the versionstamp that was reported, and the final
//! keyspace is the replay of the log.

use super::{Evidence, Keyspace, show};
use shaketable_sim::history::Reported;
use std::collections::BTreeSet;

/// Claims that every acknowledged commit is in the log, and that the final keyspace is the replay of the log.
pub fn judge(evidence: &Evidence<'_>) -> Result<(), String> {
    if let Some((generation, version, log)) = evidence.history.disagreements.first() {
        return Err(format!(
            "log {} has different contents for version {version} of generation {generation}",
            log.0
        ));
    }
    if let Some(attempt) = evidence.truth.twice() {
        return Err(format!("attempt {} is in the log twice", attempt.0));
    }
    let mut stamps = BTreeSet::new();
    let mut state = Keyspace::default();
    for entry in &evidence.truth.entries {
        for tx in &entry.transactions {
            if !stamps.insert((entry.version, tx.batch_index)) {
                return Err(format!(
                    "two transactions have the versionstamp of version {} and order {}",
                    entry.version, tx.batch_index
                ));
            }
            tx.mutations.iter().for_each(|mutation| state.apply(mutation, None));
        }
    }
    for (i, attempt) in evidence.history.attempts.iter().enumerate() {
        let Some(attempt) = attempt else { continue };
        if let Reported::Committed { version, batch_index } = attempt.reported {
            let place = evidence.truth.place(shaketable_sim::history::AttemptId(i as u32));
            if place != Some((version, batch_index)) {
                let found = match place {
                    Some((v, b)) => format!("the log contains it at version {v}, order {b}"),
                    None => "the log does not contain it".to_owned(),
                };
                return Err(format!(
                    "attempt {i} of client {} was reported as committed at version {version}, order \
                     {batch_index}, but {found}",
                    attempt.client.0
                ));
            }
        }
    }
    for replica in evidence.replicas {
        let mut expected = state.0.range(replica.range.begin.clone()..replica.range.end.clone());
        let mut rows = replica.rows.iter();
        loop {
            match (expected.next(), rows.next()) {
                (None, None) => break,
                (Some((key, value)), Some((k, v))) if key == k && value == v => {}
                (expected, found) => {
                    let row = |row: Option<(&bytes::Bytes, &bytes::Bytes)>| {
                        row.map_or("nothing".to_owned(), |(k, v)| format!("{} = {}", show(k), show(v)))
                    };
                    return Err(format!(
                        "{} has {} where the replay of the log has {}",
                        replica.server,
                        row(found.map(|(k, v)| (k, v))),
                        row(expected)
                    ));
                }
            }
        }
    }
    Ok(())
}
