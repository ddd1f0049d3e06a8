//! `cycle`: a ring of keys that transactions rotate, the classic FoundationDB workload.
//!
//! Each key stores the number of the next node. An operation follows three links and exchanges the second
//! node with the third. If rotations are serializable, the ring remains one ring over all its nodes at every
//! version, however many clients rotate it. If a link is read at the wrong version, or half a rotation is
//! written, the ring falls apart into several.
//!
//! A rotation that is retried after an unknown result may happen twice. That is harmless, because two
//! rotations keep the ring as one does: the workload has no layer and no operation record, and also serves as
//! the benchmark.

mod model;
mod planted;

pub use model::{Ring, not_one_ring};

use bytes::Bytes;
use planted::{BUGS, Planted};
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit,
    workload::{Bug, Outcome, Step},
};
use shaketable_sim::seed::Stream;
use shaketable_tx::{Database, Db, Error, Isolation, RangeOption, Result, Transaction, Tx};
use std::{
    ops::{Range, RangeInclusive},
    sync::Arc,
};

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cycle {
    nodes: u32,
    clients: usize,
    operations: Range<usize>,
    planted: Option<Planted>,
}

/// The state of a client: the database, and the keys, which are built once.
pub struct Client {
    db: Db,
    keys: Arc<[Bytes]>,
}

impl Cycle {
    /// A ring of this many nodes (at least 3), with this many clients and this many operations for each: the
    /// configuration of the benchmark.
    pub fn sized(nodes: u32, clients: usize, operations: usize) -> Cycle {
        Cycle { nodes: nodes.max(3), clients, operations: operations..operations + 1, planted: None }
    }
}

/// ```text
/// "cycle/" node (4 bytes, big-endian)  =  the node after it (4 bytes, big-endian)
/// ```
fn key(node: u32) -> Bytes {
    [&b"cycle/"[..], &node.to_be_bytes()].concat().into()
}

fn whole() -> RangeOption {
    RangeOption::new("cycle/", "cycle0")
}

/// The node to which a key leads. A link that is missing or damaged leads to a number that is no node.
fn link(value: Option<&Bytes>) -> u32 {
    value.and_then(|v| v.as_ref().try_into().ok()).map_or(u32::MAX, u32::from_be_bytes)
}

async fn follow(tx: &Tx, keys: &[Bytes], node: u32, isolation: Isolation) -> Result<u32> {
    match keys.get(node as usize) {
        Some(key) => Ok(link(tx.get(key, isolation).await?.as_ref())),
        None => Ok(u32::MAX),
    }
}

/// Writes a link, unless one of the two nodes does not exist: the audit reports damage.
fn lead(tx: &Tx, keys: &[Bytes], node: u32, to: u32) {
    if let Some(key) = keys.get(node as usize) {
        tx.set(key, &to.to_be_bytes());
    }
}

async fn rotate(tx: &Tx, keys: &[Bytes], first: u32, last: Isolation) -> Result<()> {
    let second = follow(tx, keys, first, Isolation::Serializable).await?;
    let third = follow(tx, keys, second, Isolation::Serializable).await?;
    let fourth = follow(tx, keys, third, last).await?;
    lead(tx, keys, first, third);
    lead(tx, keys, second, fourth);
    lead(tx, keys, third, second);
    Ok(())
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Cycle>()
}

/// A ring of keys that transactions rotate stays one ring.
#[shaketable::workload(name = "cycle", session = Client, answer = (), model = Ring)]
impl Cycle {
    /// Rotates the links from this node on.
    #[write]
    async fn rotate(&self, client: &mut Client, #[draw(0..self.nodes)] first: u32) -> Outcome<()> {
        let (db, keys) = (&client.db, &client.keys);
        let ran = match self.planted {
            None => {
                db.run(|tx, _| async move { rotate(&tx, keys, first, Isolation::Serializable).await }).await
            }
            Some(planted) => planted::perform_wrong(planted, db, keys, first).await,
        };
        match ran {
            Ok(()) => Outcome::Answered(()),
            Err(e) if e.maybe_committed => Outcome::Unknown(e.error),
            Err(e) => Outcome::Failed(e.error),
        }
    }

    /// A rotation that is retried after an unknown result may be done again, and the ring stays one.
    fn effects(&self, _: &CycleOp) -> RangeInclusive<usize> {
        0..=usize::MAX
    }

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Cycle {
        // In small rings all rotations conflict; large ones span shards and resolvers.
        let nodes = if rng.chance(0.5) { rng.range(3..9) } else { rng.range(9..200) };
        let most = rng.range(8..40) as usize;
        Cycle {
            nodes: nodes as u32,
            clients: rng.range(2..9) as usize,
            operations: most / 2..most,
            planted: bug.and_then(Planted::named),
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        (0..self.nodes).step_by(self.nodes as usize / 16 + 1).map(key).collect()
    }

    fn describe_key(&self, key: &[u8]) -> Option<String> {
        let node = key.strip_prefix(b"cycle/")?.try_into().ok()?;
        Some(format!("node {}", u32::from_be_bytes(node)))
    }

    fn describe_value(&self, _key: &[u8], value: &[u8]) -> Option<String> {
        Some(u32::from_be_bytes(value.try_into().ok()?).to_string())
    }

    async fn setup(&self, db: &Db) -> Result<()> {
        let ring = Ring::new(self.nodes);
        let ring = &ring;
        db.run(|tx, _| async move {
            for node in 0..self.nodes {
                tx.set(&key(node), &ring.next(node).to_be_bytes());
            }
            Ok::<_, Error>(())
        })
        .await
        .map_err(|e| e.error)
    }

    async fn open(&self, db: &Db, _: usize) -> Result<Client> {
        Ok(Client { db: db.clone(), keys: (0..self.nodes).map(key).collect() })
    }

    fn model(&self) -> Ring {
        Ring::new(self.nodes)
    }

    fn step(&self, ring: &mut Ring, step: &Step<'_, Self>) -> Result<(), Misfit> {
        if step.committed {
            let CycleOp::rotate { first } = step.op;
            ring.rotate(*first);
        }
        Ok(())
    }

    async fn audit(&self, tx: &Tx) -> Result<Result<(), Misfit>> {
        let links = links(tx).await?;
        Ok(match not_one_ring(&links) {
            Some(broken) => Err(broken.into()),
            None if links.len() != self.nodes as usize => {
                Err(format!("{} of {} nodes", links.len(), self.nodes).into())
            }
            None => Ok(()),
        })
    }

    async fn check(&self, db: &Db, ring: &Ring) -> Result<Result<(), Misfit>> {
        let links = db.run(|tx, _| async move { links(&tx).await }).await.map_err(|e| e.error)?;
        let differs = (0..).zip(ring.links()).zip(&links).find(|((_, model), found)| model != found);
        Ok(match differs {
            Some(((node, model), found)) => Err(format!(
                "node {node} leads to {found}; after the committed rotations it should lead to {model}"
            )
            .into()),
            None => Ok(()),
        })
    }
}

async fn links(tx: &Tx) -> Result<Vec<u32>> {
    let rows = tx.get_range_all(whole(), Isolation::Serializable).await?;
    Ok(rows.iter().map(|row| link(Some(&row.value))).collect())
}
