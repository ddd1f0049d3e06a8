//! Planted bugs: directories implemented or used wrongly.

use super::{
    Answer, Directory, Op,
    client::{opened, path},
    operations::BEYOND,
};
use bytes::Bytes;
use foundationdb_tuple::{pack, unpack};
use shaketable::specimen::{INTERLEAVED, UNRECORDED};
use shaketable_layers::directory::{
    self as layer, Allocator, CandidateSeed, Directories, Error, Node, VERSION,
};
use shaketable_tx::{
    Env,
    Isolation::{Serializable, Snapshot},
    MutationType, RangeOption, RetryError, Transaction, TransactionOption, strinc,
};

shaketable::planted_bugs! {
    Interleaved = INTERLEAVED, "a move and a removal that run side by side in one transaction find the same directory", "two futures in one transaction";
    Unrecorded = UNRECORDED, "a create is retried after an unknown result, and finds its own directory", "a create that fails because it succeeded";
    CandidateAtSnapshot = "candidate-at-snapshot", "the allocator reads a candidate's mark at snapshot", "an allocator without isolation";
    SilentCandidate = "silent-candidate", "the allocator marks a candidate without a write conflict", "an allocator that does not declare its choice";
    ParallelCreate = "parallel-create", "two calls of one transaction both find the path free", "a known issue of the node.js and Python bindings";
    PathAtSnapshot = "path-at-snapshot", "whether the path is free is read at snapshot", "a check without isolation";
    ClashUnseen = "clash-unseen", "the allocator does not check for manual prefixes", "an allocator that ignores manual prefixes";
    ClashAtSnapshot = "clash-at-snapshot", "the allocator checks for manual prefixes at snapshot only", "a check without isolation";
    EqualPrefix = "equal-prefix", "a manual prefix is only compared with others for equality", "a check that forgets nesting";
    IntoItself = "into-itself", "a directory is moved below itself", "a tree that becomes a ring";
    AcrossPartitions = "across-partitions", "a directory moves into another partition without its content", "a move of the name alone";
    MissingParent = "missing-parent", "a move creates the directories on the way", "the behaviour of create";
    TagLeftBehind = "tag-left-behind", "a moved directory loses its layer tag", "a node written anew";
    ContentLeft = "content-left", "a removal clears the node and not the content", "a removal of the metadata alone";
    BelowLeft = "below-left", "a removal leaves the directories below", "a removal that is not recursive";
    RemoveAtSnapshot = "remove-at-snapshot", "a removal reads the directories below at snapshot", "a removal that misses a new one";
    TagIgnored = "tag-ignored", "a directory is opened whatever its layer tag", "a check that was forgotten";
    VersionIgnored = "version-ignored", "a write ignores that a later version has written the directories", "a check that was forgotten";
    StaleHandle = "stale-handle", "a handle from an earlier transaction is used unchecked", "the hazard that the documentation warns of";
    ListAtSnapshot = "list-at-snapshot", "a list is read at snapshot, whatever isolation was requested", "a dropped conflict range";
    ContentEnd = "content-end", "a removal clears the content of a directory up to its prefix followed by 0xff", "a range that ends at a constant";
    ParentsFirst = "parents-first", "the parents of a directory are created before its prefix is checked", "a refusal that comes too late";
    OneCandidate = "one-candidate", "of two directories that are created side by side in one transaction, the second does not see the candidate of the first", "a mark that is written after an await";
    TagUnrecorded = "tag-unrecorded", "a directory that comes back from its record has no layer tag", "a field that is not encoded";
    NamesEnd = "names-end", "the names below a directory are listed up to U+FFFF", "a range that ends at a constant";
}

fn unrecorded_tag(directory: &layer::Directory) -> Answer {
    Answer::Opened(Vec::new(), Some(directory.prefix().to_vec()))
}

/// Performs a call that the bug changes; `None` for every other call.
pub async fn perform<T: Transaction>(
    planted: Planted,
    workload: &Directory,
    tx: &T,
    env: &Env,
    op: &Op,
) -> Result<Option<Answer>, Error> {
    let all = workload.directories();
    if planted == Planted::VersionIgnored {
        return version_ignored(workload, &all, (tx, env), op).await;
    }
    if let (Planted::ListAtSnapshot, Op::List(_)) = (planted, op) {
        return workload.perform_right(tx, env, op, Snapshot).await.map(Some);
    }
    // A later version is handled correctly.
    let version = tx.get(&all.nodes().version(), Serializable).await?;
    if version.is_some_and(|version| version != current()) {
        return Ok(None);
    }
    Ok(match op {
        Op::Create(names, _, Some(_), chance) if planted == Planted::ParentsFirst => {
            let created = workload.perform_right(tx, env, op, Serializable).await;
            if let (Err(e), [above @ .., _]) = (&created, &path(names)[..])
                && e.fdb().is_none()
                && !above.is_empty()
                && let Err(e) = all.create_or_open(tx, above, b"", *chance).await
                && e.fdb().is_some()
            {
                return Err(e);
            }
            Some(created?)
        }
        Op::Create(names, tag, None, chance) if planted == Planted::TagUnrecorded => {
            Some(unrecorded_tag(&all.create(tx, &path(names), tag, *chance).await?))
        }
        Op::CreateOrOpen(names, tag, chance) if planted == Planted::TagUnrecorded => {
            Some(unrecorded_tag(&all.create_or_open(tx, &path(names), tag, *chance).await?))
        }
        Op::List(names) if planted == Planted::NamesEnd => {
            let names = all.list(tx, &path(names), Serializable).await?;
            Some(Answer::Names(names.into_iter().filter(|name| &name[..] < "a\u{ffff}").collect()))
        }
        Op::Create(names, tag, prefix, chance) => {
            let wish = Wish { tag, prefix: prefix.as_deref(), chance: *chance };
            create(planted, &all, tx, &path(names), wish).await?
        }
        Op::CreateOrOpen(names, _, chance) if planted == Planted::TagIgnored => {
            let names = path(names);
            match !names.is_empty() && all.exists(tx, &names, Serializable).await? {
                true => Some(opened(&all.create_or_open(tx, &names, b"", *chance).await?)),
                false => None,
            }
        }
        Op::CreateOrOpen(names, tag, chance) => {
            let wish = Wish { tag, prefix: None, chance: *chance };
            create(planted, &all, tx, &path(names), wish).await?
        }
        Op::Both([one, other], chances) if planted == Planted::ParallelCreate => {
            let wish = |i: usize| Wish { tag: b"", prefix: None, chance: chances[i] };
            let (one, other) = (path(one), path(other));
            let (first, second) = futures::join!(
                create_or_open(planted, &all, tx, &one, wish(0)),
                create_or_open(planted, &all, tx, &other, wish(1)),
            );
            first.and(second)?;
            Some(Answer::Done)
        }
        Op::Open(names, _) if planted == Planted::TagIgnored => {
            Some(opened(&all.open(tx, &path(names), b"").await?))
        }
        Op::Rename(from, to) => rename(planted, &all, tx, &path(from), &path(to)).await?,
        Op::Remove(names) => remove(planted, &all, tx, &path(names)).await?.map(|()| Answer::Done),
        Op::RemoveIfExists(names) => {
            remove(planted, &all, tx, &path(names)).await?.map(|()| Answer::Is(true))
        }
        _ => None,
    })
}

fn current() -> Vec<u8> {
    VERSION.iter().flat_map(|n| n.to_le_bytes()).collect()
}

/// Writes as if the stored version were the current one.
async fn version_ignored<T: Transaction>(
    workload: &Directory,
    all: &Directories,
    (tx, env): (&T, &Env),
    op: &Op,
) -> Result<Option<Answer>, Error> {
    let key = all.nodes().version();
    let read_only = matches!(
        op,
        Op::Open(..) | Op::List(_) | Op::Pages(..) | Op::Exists(_) | Op::Read(_) | Op::Declare(_)
    );
    let Some(version) = tx.get(&key, Serializable).await? else { return Ok(None) };
    if read_only || version == current() {
        return Ok(None);
    }
    tx.set(&key, &current());
    let answer = workload.perform_right(tx, env, op, Serializable).await?;
    tx.set(&key, &version);
    Ok(Some(answer))
}

/// What a create is to make.
#[derive(Clone, Copy)]
struct Wish<'a> {
    tag: &'a [u8],
    prefix: Option<&'a [u8]>,
    chance: CandidateSeed,
}

/// The layer and the node that contain the last name of a path, created if necessary.
async fn parent<T: Transaction>(
    all: &Directories,
    tx: &T,
    names: &[&str],
    chance: CandidateSeed,
) -> Result<(Directories, Node), Error> {
    match names {
        [] | [_] => Ok((all.clone(), all.nodes().root())),
        [above @ .., _] => Ok(inside(&all.create_or_open(tx, above, b"", chance).await?)),
    }
}

/// The layer and the node that contain the names below a directory.
fn inside(directory: &layer::Directory) -> (Directories, Node) {
    let below = directory.below();
    let node = match directory.is_partition() {
        true => below.nodes().root(),
        false => below.nodes().of(directory.prefix()),
    };
    (below, node)
}

/// Creates a directory that does not exist; does not handle one that exists.
async fn create<T: Transaction>(
    planted: Planted,
    all: &Directories,
    tx: &T,
    names: &[&str],
    wish: Wish<'_>,
) -> Result<Option<Answer>, Error> {
    let touched = match planted {
        Planted::CandidateAtSnapshot
        | Planted::SilentCandidate
        | Planted::OneCandidate
        | Planted::PathAtSnapshot
        | Planted::ClashUnseen
        | Planted::ClashAtSnapshot => wish.prefix.is_none(),
        Planted::EqualPrefix => wish.prefix.is_some(),
        _ => false,
    };
    let isolation = if planted == Planted::PathAtSnapshot { Snapshot } else { Serializable };
    if !touched || names.is_empty() || all.exists(tx, names, isolation).await? {
        return Ok(None);
    }
    let Some(prefix) = wish.prefix else {
        let prefix = make(planted, all, tx, names, wish).await?;
        return Ok(Some(Answer::Opened(wish.tag.to_vec(), Some(prefix.to_vec()))));
    };
    // Only what is refused because of another directory is let through.
    match all.create_with_prefix(tx, names, wish.tag, prefix, wish.chance).await {
        Err(Error::PrefixInUse { .. }) if prefix.first().is_some_and(|first| *first < 0xfe) => {}
        right => return right.map(|directory| Some(opened(&directory))),
    }
    if tx.get(&all.nodes().of(prefix).tag(), Serializable).await?.is_some() {
        return Ok(None);
    }
    make(planted, all, tx, names, wish).await?;
    Ok(Some(Answer::Opened(wish.tag.to_vec(), Some(prefix.to_vec()))))
}

/// Creates a directory after finding that it does not exist, without regard to what others do meanwhile.
async fn create_or_open<T: Transaction>(
    planted: Planted,
    all: &Directories,
    tx: &T,
    names: &[&str],
    wish: Wish<'_>,
) -> Result<(), Error> {
    match names {
        [] => all.open(tx, names, b"").await.map(|_| ()),
        _ if all.exists(tx, names, Serializable).await? => Ok(()),
        _ => make(planted, all, tx, names, wish).await.map(|_| ()),
    }
}

/// Writes a directory that does not exist. Returns its prefix.
async fn make<T: Transaction>(
    planted: Planted,
    all: &Directories,
    tx: &T,
    names: &[&str],
    wish: Wish<'_>,
) -> Result<Bytes, Error> {
    let (place, node) = parent(all, tx, names, wish.chance).await?;
    let allocator = place.nodes().allocator();
    let allocated = match (planted, wish.prefix) {
        (_, Some(prefix)) => Bytes::copy_from_slice(prefix),
        (Planted::CandidateAtSnapshot | Planted::SilentCandidate | Planted::OneCandidate, None) => {
            let candidate = candidate(planted, &allocator, tx, wish.chance).await?;
            [&place.content()[..], &pack(&(candidate,))].concat().into()
        }
        (_, None) => {
            let allocated = allocator.allocate(tx, wish.chance).await?;
            [&place.content()[..], &allocated].concat().into()
        }
    };
    if planted == Planted::ClashAtSnapshot && wish.prefix.is_none() {
        clash(tx, place.nodes(), names, &allocated).await?;
    }
    let version = place.nodes().version();
    if tx.get(&version, Snapshot).await?.is_none() {
        tx.set(&version, &current());
    }
    if let Some(name) = names.last() {
        tx.set(&node.child(name), &allocated);
        tx.set(&place.nodes().of(&allocated).tag(), wish.tag);
    }
    Ok(allocated)
}

/// Refuses a prefix that clashes with a manual one, as far as a snapshot shows.
async fn clash<T: Transaction>(
    tx: &T,
    nodes: &layer::Nodes,
    names: &[&str],
    allocated: &Bytes,
) -> Result<(), Error> {
    let (path, prefix) = (layer::Path::from(names), allocated.clone());
    let range = (allocated.to_vec(), strinc(allocated).unwrap_or_default().to_vec());
    if !tx.get_range_all(range.into(), Snapshot).await?.is_empty() {
        return Err(Error::PrefixNotEmpty { path, prefix });
    }
    let longer = BEYOND.iter().map(|rest| [allocated, *rest].concat());
    for given in longer.chain([allocated[..allocated.len() - 1].to_vec()]) {
        if tx.get(&nodes.of(&given).tag(), Snapshot).await?.is_some() {
            return Err(Error::PrefixClash { path, prefix });
        }
    }
    Ok(())
}

/// A candidate of the current window, as the wrong allocator takes it.
async fn candidate<T: Transaction>(
    planted: Planted,
    allocator: &Allocator,
    tx: &T,
    chance: CandidateSeed,
) -> Result<i64, Error> {
    let isolation = if planted == Planted::CandidateAtSnapshot { Snapshot } else { Serializable };
    let range = RangeOption::new(allocator.counter(0), allocator.counter(i64::MAX));
    let windows = tx.get_range_all(range, Snapshot).await?;
    let skip = allocator.counter(0).len() - 1;
    let last = windows.last().and_then(|row| unpack::<i64>(&row.key[skip..]).ok());
    let start = last.unwrap_or(0);
    tx.atomic_op(&allocator.counter(start), &1i64.to_le_bytes(), MutationType::Add);
    for step in 0..64 {
        let candidate = start + (chance.0.wrapping_mul(25).wrapping_add(step) % 64) as i64;
        let mark = allocator.mark(candidate);
        let marked = tx.get(&mark, isolation).await?;
        if marked.is_none() {
            if planted == Planted::SilentCandidate {
                tx.set_option(TransactionOption::NextWriteNoWriteConflictRange)?;
            }
            tx.set(&mark, b"");
            return Ok(candidate);
        }
    }
    Ok(start)
}

/// Moves a directory wrongly; does not handle moves that the bug does not change.
async fn rename<T: Transaction>(
    planted: Planted,
    all: &Directories,
    tx: &T,
    from: &[&str],
    to: &[&str],
) -> Result<Option<Answer>, Error> {
    let touched = matches!(
        planted,
        Planted::IntoItself | Planted::AcrossPartitions | Planted::MissingParent | Planted::TagLeftBehind
    );
    if !touched {
        return Ok(None);
    }
    match (planted, all.rename(tx, from, to).await) {
        (Planted::TagLeftBehind, Ok(moved)) if !moved.is_partition() => {
            tx.set(&moved.siblings().nodes().of(moved.prefix()).tag(), b"");
        }
        (Planted::MissingParent, Err(Error::NoParent(_))) => {
            all.create_or_open(tx, &to[..to.len() - 1], b"", CandidateSeed(7)).await?;
            all.rename(tx, from, to).await?;
        }
        (Planted::IntoItself, Err(e @ Error::BelowItself { .. }))
        | (Planted::AcrossPartitions, Err(e @ Error::BetweenPartitions { .. })) => {
            return relink(all, tx, from, to, e).await.map(Some);
        }
        (_, right) => return right.map(|_| Some(Answer::Done)),
    }
    Ok(Some(Answer::Done))
}

/// Makes the new name lead to the directory, and removes the old one, without any check.
async fn relink<T: Transaction>(
    all: &Directories,
    tx: &T,
    from: &[&str],
    to: &[&str],
    refusal: Error,
) -> Result<Answer, Error> {
    let ([.., old], [.., new]) = (from, to) else { return Err(refusal) };
    let above = &to[..to.len() - 1];
    let there = all.exists(tx, from, Serializable).await? && all.exists(tx, above, Serializable).await?;
    if !there || all.exists(tx, to, Serializable).await? {
        return Err(refusal);
    }
    let moved = all.open(tx, from, b"").await?;
    let (_, source) = parent(all, tx, from, CandidateSeed(0)).await?;
    let (place, target) = parent(all, tx, to, CandidateSeed(0)).await?;
    tx.set(&target.child(new), moved.prefix());
    tx.set(&place.nodes().of(moved.prefix()).tag(), moved.tag());
    tx.clear(&source.child(old));
    Ok(Answer::Done)
}

/// Removes a directory that exists, but not everything that belongs to it; does not handle one that does not
/// exist.
async fn remove<T: Transaction>(
    planted: Planted,
    all: &Directories,
    tx: &T,
    names: &[&str],
) -> Result<Option<()>, Error> {
    let touched = matches!(
        planted,
        Planted::ContentLeft | Planted::ContentEnd | Planted::BelowLeft | Planted::RemoveAtSnapshot
    );
    let [.., name] = names else { return Ok(None) };
    if !touched || !all.exists(tx, names, Serializable).await? {
        return Ok(None);
    }
    let doomed = all.open(tx, names, b"").await?;
    let place = doomed.siblings();
    let (_, above) = parent(all, tx, names, CandidateSeed(0)).await?;
    let isolation = if planted == Planted::RemoveAtSnapshot { Snapshot } else { Serializable };
    let mut open = vec![place.nodes().of(doomed.prefix())];
    while let Some(node) = open.pop() {
        if planted != Planted::BelowLeft {
            let below = tx.get_range_all(node.children().range().into(), isolation).await?;
            open.extend(below.iter().map(|row| place.nodes().of(&row.value)));
        }
        if planted != Planted::ContentLeft {
            let end = match planted {
                Planted::ContentEnd => [node.prefix(), &b"\xff"[..]].concat().into(),
                _ => strinc(node.prefix()).unwrap_or_default(),
            };
            tx.clear_range(node.prefix(), &end);
        }
        let (begin, end) = node.range();
        tx.clear_range(&begin, &end);
    }
    tx.clear(&above.child(name));
    Ok(Some(()))
}
