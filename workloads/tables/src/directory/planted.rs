//! Planted bugs: directories implemented or used wrongly.

use super::{Directory, DirectoryOp, Ended, Names, Opened, path};
use crate::shared::in_order;
use foundationdb_tuple::Bytes as TupleBytes;
use futures::TryFutureExt;
use shaketable::{
    prelude::*,
    specimen::{Recorded, concluded},
    weakened::{Flaw, flawed, only, weakened},
};
use shaketable_layers::directory::{CandidateSeed, Error};
use shaketable_tx::Turns;

#[shaketable::planted]
impl Directory {
    /// The allocator reads a candidate's mark at snapshot.
    #[bug(*, "an allocator without isolation")]
    async fn candidate_at_snapshot(&self, session: &mut Session<Db>, ops: &[DirectoryOp]) -> Ended {
        self.allocating(session, ops, Flaw::AtSnapshot).await
    }

    /// The allocator marks a candidate without a write conflict.
    #[bug(*, "an allocator that does not declare its choice")]
    async fn silent_candidate(&self, session: &mut Session<Db>, ops: &[DirectoryOp]) -> Ended {
        self.allocating(session, ops, Flaw::Undeclared).await
    }

    /// Two calls of one transaction both find the path free.
    #[bug(both, "a known issue of the node.js and Python bindings")]
    async fn parallel_create(
        &self,
        tx: &Tx,
        paths: [Names; 2],
        chances: [CandidateSeed; 2],
    ) -> Result<(), Error> {
        let (all, [one, other]) = (self.directories(), [path(&paths[0]), path(&paths[1])]);
        // Neither waits for the other's turn.
        let apart = [(); 2].map(|()| tx.with_turns(Turns::default()));
        let one = all.create_or_open(&apart[0], &one, b"", chances[0]);
        let other = all.create_or_open(&apart[1], &other, b"", chances[1]);
        let (one, other) = futures::join!(one, other);
        one.and(other).map(drop)
    }

    /// Whether the path is free is read at snapshot.
    #[bug(*, "a check without isolation")]
    async fn path_at_snapshot(&self, session: &mut Session<Db>, ops: &[DirectoryOp]) -> Ended {
        let names = self.directories().nodes().root().children().range();
        let is_it = |op: &DirectoryOp| match op {
            DirectoryOp::create_with_prefix { .. } => true,
            op => allocates(op),
        };
        self.weakly(session, ops, is_it, |tx| weakened(tx.clone(), [names.clone()])).await
    }

    /// A directory is moved below itself.
    #[bug(rename, "a tree that becomes a ring")]
    async fn into_itself(&self, tx: &Tx, paths: (Names, Names)) -> Result<(), Error> {
        match self.rename(tx, paths.clone()).await {
            Err(refusal @ Error::BelowItself { .. }) => self.relink(tx, &paths).await?.ok_or(refusal),
            done => done,
        }
    }

    /// A directory moves into another partition without its content.
    #[bug(rename, "a move of the name alone")]
    async fn across_partitions(&self, tx: &Tx, paths: (Names, Names)) -> Result<(), Error> {
        match self.rename(tx, paths.clone()).await {
            Err(refusal @ Error::BetweenPartitions { .. }) => self.relink(tx, &paths).await?.ok_or(refusal),
            done => done,
        }
    }

    /// A move creates the directories on the way.
    #[bug(rename, "the behaviour of create")]
    async fn missing_parent(&self, tx: &Tx, paths: (Names, Names)) -> Result<(), Error> {
        match self.rename(tx, paths.clone()).await {
            Err(Error::NoParent(_)) => {
                let above = &path(&paths.1)[..paths.1.len() - 1];
                self.directories().create_or_open(tx, above, b"", CandidateSeed(7)).await?;
                self.rename(tx, paths).await
            }
            done => done,
        }
    }

    /// A moved directory loses its layer tag.
    #[bug(rename, "a node written anew")]
    async fn tag_left_behind(&self, tx: &Tx, paths: (Names, Names)) -> Result<(), Error> {
        let moved = self.directories().rename(tx, &path(&paths.0), &path(&paths.1)).await?;
        if !moved.is_partition() {
            tx.set(&moved.siblings().nodes().of(moved.prefix()).tag(), b"");
        }
        Ok(())
    }

    /// A handle from an earlier transaction is used unchecked.
    #[bug(*, "the hazard that the documentation warns of")]
    async fn stale_handle(&self, session: &mut Session<Db>, ops: &[DirectoryOp]) -> Ended {
        self.put_through_handle(session, ops, false).await
    }

    /// A list is read at snapshot, whatever isolation was requested.
    #[bug(list, "a dropped conflict range")]
    async fn list_at_snapshot(&self, tx: &Tx, names: &[String]) -> Result<Names, Error> {
        self.list(tx, Snapshot, names).await
    }

    /// The parents of a directory are created before its prefix is checked.
    #[bug(create_with_prefix, "a refusal that comes too late")]
    async fn parents_first(
        &self,
        tx: &Tx,
        names: &[String],
        tag: &[u8],
        prefix: &[u8],
        chance: CandidateSeed,
    ) -> Result<Opened, Error> {
        if let [above @ .., _] = &path(names)[..]
            && !above.is_empty()
        {
            self.directories().create_or_open(tx, above, b"", chance).await?;
        }
        self.create_with_prefix(tx, names, tag, prefix, chance).await
    }

    /// The names below a directory are listed up to U+FFFF.
    #[bug(list, "a range that ends at a constant")]
    async fn names_end(&self, tx: &Tx, isolation: Isolation, names: &[String]) -> Result<Names, Error> {
        let mut found = self.list(tx, isolation, names).await?;
        found.retain(|name| &name[..] < "a\u{ffff}");
        Ok(found)
    }

    /// Does the calls of a transaction, those that allocate a directory's prefix with this flaw of the marks
    /// of candidates.
    async fn allocating(&self, session: &mut Session<Db>, ops: &[DirectoryOp], flaw: Flaw) -> Ended {
        let (nodes, content) = self.spaces();
        let node = |candidate: i64| only(nodes.pack(&TupleBytes::from(content.pack(&candidate))));
        // What is checked about nodes would conflict with another allocation of the candidate as well.
        let nodes: Vec<_> = (0..64).map(node).collect();
        let allocator = self.directories().nodes().allocator();
        let marks = (allocator.mark(0), allocator.mark(i64::MAX));
        let weaken = |tx: &Tx| flawed(&weakened(tx.clone(), nodes.clone()), flaw, [marks.clone()]);
        self.weakly(session, ops, allocates, weaken).await
    }

    /// Does the calls of a transaction one after the other, some in a transaction with a flaw. `None` if
    /// there is no such call.
    async fn weakly(
        &self,
        session: &mut Session<Db>,
        ops: &[DirectoryOp],
        is_weak: fn(&DirectoryOp) -> bool,
        weaken: impl Fn(&Tx) -> Tx + Send + Sync,
    ) -> Ended {
        if !ops.iter().any(is_weak) {
            return None;
        }
        let db = session.database().clone();
        let (env, weaken) = (db.env(), &weaken);
        let calls = |tx: Tx| async move {
            let call = |op| {
                let within = if is_weak(op) { weaken(&tx) } else { tx.clone() };
                async move { self.perform(&within, env, op, Serializable).await }
            };
            in_order(ops, call).await
        };
        Some(concluded(session.apply(|tx| calls(tx).map_ok(Recorded)).await))
    }

    /// Makes the new name lead to the directory, and removes the old one, without any check. `None` if that
    /// cannot be done.
    async fn relink(&self, tx: &Tx, (from, to): &(Names, Names)) -> Result<Option<()>, Error> {
        let (all, from, to) = (self.directories(), &path(from)[..], &path(to)[..]);
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
}

/// Whether a call may allocate the prefix of a directory that it is for.
fn allocates(op: &DirectoryOp) -> bool {
    matches!(op, DirectoryOp::create { .. } | DirectoryOp::create_or_open { .. })
}
