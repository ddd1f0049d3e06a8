//! `contract`: whatever has happened to the cluster, its clients keep FoundationDB's promises afterwards.
//!
//! Clients write while faults strike. After that, a quarter of the cases of the contract suite
//! ([`shaketable_fidelity::contract`]) is run on the healed cluster, whose shards and resolvers share the
//! keys of every case. Each seed draws which quarter. A real cluster is asked with the command `contract`
//! instead: there a run has only a part of the keyspace, where some promises do not hold.

use bytes::Bytes;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit,
    workload::{Outcome, Step},
};
use shaketable_fidelity::contract;
use shaketable_sim::{client::SimDatabase, config::ClusterBug, seed::Stream};
use shaketable_tx::{Database, Db, Error, Result, Transaction, Tx, downcast};
use std::ops::{Range, RangeInclusive};

/// The prefix of the cases' keys.
const PREFIX: &[u8] = b"contract/";

/// A run asks for every case whose number leaves a given rest when divided by this.
const PARTS: usize = 4;

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Contract {
    clients: usize,
    operations: Range<usize>,
    /// Which part of the cases is run.
    part: usize,
}

fn key(n: u8) -> Bytes {
    format!("written/{n}").into()
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Contract>()
}

/// Clients keep FoundationDB's promises, whatever has happened to the cluster.
#[shaketable::workload(name = "contract", session = Db, answer = (), model = ())]
impl Contract {
    /// Sets a key of a few to a value.
    #[write]
    async fn set(&self, db: &mut Db, #[draw(0..8u8)] n: u8, #[draw(any::<u8>())] value: u8) -> Outcome<()> {
        let written = db.run(|tx, _| async move {
            tx.set(&key(n), &[value]);
            Ok::<_, Error>(())
        });
        match written.await {
            Ok(()) => Outcome::Answered(()),
            Err(e) if e.maybe_committed => Outcome::Unknown(e.error),
            Err(e) => Outcome::Failed(e.error),
        }
    }

    /// A promise of the contract takes as many transactions as it needs.
    fn effects(&self, _: &ContractOp) -> RangeInclusive<usize> {
        0..=usize::MAX
    }

    fn cluster_bugs() -> &'static [ClusterBug] {
        use ClusterBug::*;
        &[
            ResolverTakesOld,
            StorageAppendsLess,
            StorageHidesMore,
            StorageCountsEqual,
            StorageCutsReverse,
            ClientKeepsVersion,
            ClientKeepsOptions,
            ClientLosesOptions,
            ClientKeepsReads,
            ClientCountsWatches,
            ClientSizeLimit,
            ClientKeyLimit,
            ClientValueLimit,
            ClientCachesStale,
            ClientForgetsReads,
            ClientCutsConflict,
            ClientCutsSelector,
            ClientTrustsAtomics,
            ClientSeesOwnAtSnapshot,
            ClientSendsLast,
            ClientForgetsRanges,
            ClientWaivesAll,
            ClientBelievesBatches,
            ClientMiscountsClears,
            ClientRetriesOnceMore,
            ClientStampsLate,
            ClientMergesComparisons,
            ResolverMergesNewer,
        ]
    }

    fn draw(rng: &mut Stream, _: Option<&str>) -> Contract {
        let most = rng.range(2..10) as usize;
        Contract { clients: rng.range(1..4) as usize, operations: most / 2..most, part: rng.index(PARTS) }
    }

    fn keys(&self) -> Vec<Bytes> {
        // Before "d", a batch of a mapped range would end where the shard does.
        ["d", "d\0", "e", "m", "~"].map(|suffix| Bytes::from(format!("contract/000.0/{suffix}"))).into()
    }

    async fn open(&self, db: &Db, _: usize) -> Result<Db> {
        Ok(db.clone())
    }

    fn step(&self, (): &mut (), _: &Step<'_, Self>) -> Result<(), Misfit> {
        Ok(())
    }

    async fn audit(&self, _: &Tx) -> Result<Result<(), Misfit>> {
        Ok(Ok(()))
    }

    async fn check(&self, db: &Db, (): &()) -> Result<Result<(), Misfit>> {
        let Some(db) = downcast::<SimDatabase>(db) else { return Ok(Ok(())) };
        let results = contract::run_part(db, PREFIX, |number| number % PARTS == self.part).await;
        let broken = results.iter().find_map(|case| Some((case, case.result.as_ref().err()?)));
        Ok(match broken {
            None => Ok(()),
            Some((case, why)) => Err(Misfit::from(format!("{} {why}", case.promise)).named(&case.name)),
        })
    }
}
