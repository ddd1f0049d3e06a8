//! Serializable: every attempt read the state at its read version, and each committed transaction
//! read serializably what the state just before it holds; own writes included, in the order of the
//! calls.

use super::{
    ClusterJudge, Evidence,
    keyspace::{Keyspace, Undo},
    show,
};
use shaketable_layers::tx::{Isolation, KeySelector, MutationType};
use shaketable_sim::{
    history::{Attempt, AttemptId, Call},
    proto::{Mutation, Version},
};

/// The judge.
pub const JUDGE: ClusterJudge = ClusterJudge {
    name: "serializable",
    claim: "in commit order, each committed transaction read what the state just before it holds",
    judge,
};

fn judge(evidence: &Evidence<'_>) -> Result<(), String> {
    let attempts = &evidence.history.attempts;
    let mut by_version: Vec<(Version, AttemptId)> = attempts
        .iter()
        .enumerate()
        .filter_map(|(i, a)| Some((a.as_ref()?.read_version?, AttemptId(i as u32))))
        .collect();
    by_version.sort();
    let mut readers = by_version.into_iter().peekable();
    let mut state = Keyspace::default();
    let mut undo = Undo::new();
    let get = |id: AttemptId| attempts[id.0 as usize].as_ref();
    for entry in &evidence.truth.entries {
        while let Some((version, id)) = readers.next_if(|(version, _)| *version < entry.version) {
            if let Some(attempt) = get(id) {
                check(attempt, &mut state, &mut undo, false)
                    .map_err(|why| format!("{} read at version {version}: {why}", who(id, attempt)))?;
            }
        }
        for tx in &entry.transactions {
            if let Some((id, attempt)) = tx.attempt.and_then(|id| Some((id, get(id)?))) {
                // Nothing in between: what was right at the read version is right here.
                let moved = attempt.read_version.is_none_or(|v| v < entry.previous)
                    || entry.transactions.first().map(|t| t.batch_index) != Some(tx.batch_index);
                if moved {
                    check(attempt, &mut state, &mut undo, true).map_err(|why| {
                        format!("{} committed at version {}: {why}", who(id, attempt), entry.version)
                    })?;
                }
            }
            for mutation in &tx.mutations {
                state.apply(mutation, None);
            }
        }
    }
    for (version, id) in readers {
        if let Some(attempt) = get(id) {
            check(attempt, &mut state, &mut undo, false)
                .map_err(|why| format!("{} read at version {version}: {why}", who(id, attempt)))?;
        }
    }
    Ok(())
}

fn who(id: AttemptId, attempt: &Attempt) -> String {
    let op = attempt.operation.map_or_else(|| "no operation".to_owned(), |op| format!("operation {op}"));
    format!("attempt {} (client {}, {op})", id.0, attempt.client.0)
}

/// Replays an attempt's calls on `state` and takes its writes back. With `serializable_only`,
/// snapshot reads are passed over: they need not hold at the commit.
fn check(
    attempt: &Attempt,
    state: &mut Keyspace,
    undo: &mut Undo,
    serializable_only: bool,
) -> Result<(), String> {
    let mut written = Vec::new();
    let mut wrong = Ok(());
    for call in &attempt.calls {
        let isolation = match call {
            Call::Write(mutation) => {
                state.apply(mutation, Some(undo));
                written.push(mutation);
                continue;
            }
            Call::Get { isolation, .. }
            | Call::GetKey { isolation, .. }
            | Call::GetRange { isolation, .. } => *isolation,
        };
        if serializable_only && isolation == Isolation::Snapshot {
            continue;
        }
        let sees_own = attempt.read_your_writes
            && (isolation == Isolation::Serializable || attempt.snapshot_read_your_writes);
        if !sees_own {
            state.take_back(undo);
        }
        if !(sees_own && counts_emptied_keys(call, &written)) {
            wrong = compare(call, state);
        }
        if !sees_own {
            written.iter().for_each(|mutation| state.apply(mutation, Some(undo)));
        }
        if wrong.is_err() {
            break;
        }
    }
    state.take_back(undo);
    wrong
}

/// FoundationDB's client counts a key that the transaction itself has emptied by `CompareAndClear` as
/// one that is there when it resolves a selector (`resolveKeySelectorFromCache` looks at the kind of
/// the write, not at its result), and so does the simulated one. What a selector names then is not
/// what the state says.
fn counts_emptied_keys(call: &Call, written: &[&Mutation]) -> bool {
    let plain = |s: &KeySelector| s.offset == 1 && !s.or_equal;
    let resolves = match call {
        Call::GetKey { .. } => true,
        Call::GetRange { begin, end, .. } => !plain(begin) || !plain(end),
        _ => false,
    };
    resolves && written.iter().any(|m| matches!(m, Mutation::Atomic(_, _, MutationType::CompareAndClear)))
}

fn compare(call: &Call, state: &Keyspace) -> Result<(), String> {
    match call {
        Call::Get { key, answer: Some(answer), .. } if !is_system(key) => {
            let holds = state.get(key);
            if holds != answer.as_ref() {
                let value = |v: Option<&bytes::Bytes>| v.map_or("nothing".to_owned(), |v| show(v));
                return Err(format!(
                    "get {} answered {}, the state holds {}",
                    show(key),
                    value(answer.as_ref()),
                    value(holds)
                ));
            }
        }
        Call::GetKey { selector, answer: Some(answer), .. } if !is_system(&selector.key) => {
            let key = state.resolve(selector);
            if key != answer {
                return Err(format!(
                    "get_key {selector:?} answered {}, the state resolves it to {}",
                    show(answer),
                    show(&key)
                ));
            }
        }
        Call::GetRange { begin, end, limit, reverse, answer: Some((rows, more)), .. }
            if !is_system(&begin.key) && !is_system(&end.key) =>
        {
            let mut expected = state.range(begin, end, *reverse);
            for row in rows.iter() {
                match expected.next() {
                    Some((key, value)) if *key == row.key && *value == row.value => {}
                    other => {
                        let holds = other.map_or("no further row".to_owned(), |(k, v)| {
                            format!("{} = {}", show(k), show(v))
                        });
                        return Err(format!(
                            "range {} to {} answered {} = {} where the state has {holds}",
                            show(&begin.key),
                            show(&end.key),
                            show(&row.key),
                            show(&row.value)
                        ));
                    }
                }
            }
            if *limit > 0 && rows.len() > *limit {
                return Err(format!("a range of limit {limit} answered {} rows", rows.len()));
            }
            if !more
                && (*limit == 0 || rows.len() < *limit)
                && let Some((key, _)) = expected.next()
            {
                return Err(format!(
                    "range {} to {} ended after {} rows and missed {}",
                    show(&begin.key),
                    show(&end.key),
                    rows.len(),
                    show(key)
                ));
            }
        }
        _ => {}
    }
    Ok(())
}

/// System and special keys are not part of the state that the log replays.
fn is_system(key: &[u8]) -> bool {
    key.len() > 1 && key[0] == 0xff
}
