//! Planted bugs: directories implemented or used wrongly.

use super::{Answer, Directory, Op, client::path};
use foundationdb_tuple::Bytes as TupleBytes;
use shaketable::{
    specimen::{INTERLEAVED, UNRECORDED},
    weakened::{Flaw, flawed, only, weakened},
};
use shaketable_layers::directory::{CandidateSeed, Directories, Error};
use shaketable_tx::{
    Env,
    Isolation::{Serializable, Snapshot},
    Transaction, Turns, Tx,
};

shaketable::planted_bugs! {
    Interleaved = INTERLEAVED, "a move and a removal that run side by side in one transaction find the same directory", "two futures in one transaction";
    Unrecorded = UNRECORDED, "a create is retried after an unknown result, and finds its own directory", "a create that fails because it succeeded";
    CandidateAtSnapshot = "candidate-at-snapshot", "the allocator reads a candidate's mark at snapshot", "an allocator without isolation";
    SilentCandidate = "silent-candidate", "the allocator marks a candidate without a write conflict", "an allocator that does not declare its choice";
    ParallelCreate = "parallel-create", "two calls of one transaction both find the path free", "a known issue of the node.js and Python bindings";
    PathAtSnapshot = "path-at-snapshot", "whether the path is free is read at snapshot", "a check without isolation";
    IntoItself = "into-itself", "a directory is moved below itself", "a tree that becomes a ring";
    AcrossPartitions = "across-partitions", "a directory moves into another partition without its content", "a move of the name alone";
    MissingParent = "missing-parent", "a move creates the directories on the way", "the behaviour of create";
    TagLeftBehind = "tag-left-behind", "a moved directory loses its layer tag", "a node written anew";
    StaleHandle = "stale-handle", "a handle from an earlier transaction is used unchecked", "the hazard that the documentation warns of";
    ListAtSnapshot = "list-at-snapshot", "a list is read at snapshot, whatever isolation was requested", "a dropped conflict range";
    ParentsFirst = "parents-first", "the parents of a directory are created before its prefix is checked", "a refusal that comes too late";
    NamesEnd = "names-end", "the names below a directory are listed up to U+FFFF", "a range that ends at a constant";
}

/// Performs a call that the bug changes; `None` for every other call.
pub async fn perform(
    planted: Planted,
    workload: &Directory,
    tx: &Tx,
    env: &Env,
    op: &Op,
) -> Result<Option<Answer>, Error> {
    let all = workload.directories();
    Ok(Some(match (planted, op) {
        (Planted::ListAtSnapshot, Op::List(_)) => workload.perform_right(tx, env, op, Snapshot).await?,
        (Planted::PathAtSnapshot, Op::Create(..) | Op::CreateOrOpen(..)) => {
            let names = [all.nodes().root().children().range()];
            workload.perform_right(&weakened(tx.clone(), names), env, op, Serializable).await?
        }
        (
            Planted::CandidateAtSnapshot | Planted::SilentCandidate,
            Op::Create(_, _, None, _) | Op::CreateOrOpen(..),
        ) => {
            let (nodes, content) = workload.subspaces();
            let node = |candidate: i64| only(nodes.pack(&TupleBytes::from(content.pack(&candidate))));
            // What is checked about nodes would conflict with another allocation of the candidate as well.
            let tx = weakened(tx.clone(), (0..64).map(node).collect::<Vec<_>>());
            let marks = [(all.nodes().allocator().mark(0), all.nodes().allocator().mark(i64::MAX))];
            let tx = match planted {
                Planted::CandidateAtSnapshot => weakened(tx, marks),
                _ => flawed(&tx, Flaw::Undeclared, marks),
            };
            workload.perform_right(&tx, env, op, Serializable).await?
        }
        (Planted::ParentsFirst, Op::Create(names, _, Some(_), chance)) => {
            if let [above @ .., _] = &path(names)[..]
                && !above.is_empty()
            {
                all.create_or_open(tx, above, b"", *chance).await?;
            }
            workload.perform_right(tx, env, op, Serializable).await?
        }
        (Planted::NamesEnd, Op::List(names)) => {
            let names = all.list(tx, &path(names), Serializable).await?;
            Answer::Names(names.into_iter().filter(|name| &name[..] < "a\u{ffff}").collect())
        }
        (Planted::ParallelCreate, Op::Both([one, other], chances)) => {
            let (one, other) = (path(one), path(other));
            // Neither waits for the other's turn.
            let apart = [(); 2].map(|()| tx.with_turns(Turns::default()));
            let one = all.create_or_open(&apart[0], &one, b"", chances[0]);
            let other = all.create_or_open(&apart[1], &other, b"", chances[1]);
            let (one, other) = futures::join!(one, other);
            one.and(other)?;
            Answer::Done
        }
        (_, Op::Rename(from, to)) => rename(planted, &all, tx, &path(from), &path(to)).await?,
        _ => return Ok(None),
    }))
}

/// Moves a directory with the bug.
async fn rename(
    planted: Planted,
    all: &Directories,
    tx: &Tx,
    from: &[&str],
    to: &[&str],
) -> Result<Answer, Error> {
    match (planted, all.rename(tx, from, to).await) {
        (Planted::TagLeftBehind, Ok(moved)) if !moved.is_partition() => {
            tx.set(&moved.siblings().nodes().of(moved.prefix()).tag(), b"");
        }
        (Planted::MissingParent, Err(Error::NoParent(_))) => {
            all.create_or_open(tx, &to[..to.len() - 1], b"", CandidateSeed(7)).await?;
            all.rename(tx, from, to).await?;
        }
        (Planted::IntoItself, Err(refusal @ Error::BelowItself { .. }))
        | (Planted::AcrossPartitions, Err(refusal @ Error::BetweenPartitions { .. })) => {
            relink(all, tx, from, to).await?.ok_or(refusal)?;
        }
        (_, moved) => drop(moved?),
    }
    Ok(Answer::Done)
}

/// Makes the new name lead to the directory, and removes the old one, without any check. `None` if that
/// cannot be done.
async fn relink(all: &Directories, tx: &Tx, from: &[&str], to: &[&str]) -> Result<Option<()>, Error> {
    let ([old], [above @ .., new]) = (from, to) else { return Ok(None) };
    let there = all.exists(tx, from, Serializable).await? && all.exists(tx, above, Serializable).await?;
    if !there || all.exists(tx, to, Serializable).await? {
        return Ok(None);
    }
    let (moved, above) = (all.open(tx, from, b"").await?, all.open(tx, above, b"").await?);
    let nodes = above.below().nodes().clone();
    let target = if above.is_partition() { nodes.root() } else { nodes.of(above.prefix()) };
    tx.set(&target.child(new), moved.prefix());
    tx.set(&nodes.of(moved.prefix()).tag(), moved.tag());
    tx.clear(&all.nodes().root().child(old));
    Ok(Some(()))
}
