//! Layers that break no promise in a run, and of which advice tells what they do wrongly; and one that keeps
//! versions in too few bits.

use proptest::{collection::vec, prelude::*};
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit, Shake, advice,
    entry::entry,
    finding::Kind,
    plan::Demands,
    planted_bugs,
    prelude::{Bug, Bytes, Outcome, Step, Stream, Workload},
};
use shaketable_sim::faults::Profile;
use shaketable_tx::{Database, Db, Error, Isolation, Isolation::Serializable, RangeOption, Transaction, Tx};
use std::{ops::RangeInclusive, time::Duration};

planted_bugs! {
    EarlierRead = "earlier-read", "a sum is made of what an earlier transaction read", "a lie";
    SnapshotRead = "snapshot-read", "a sum is made of what is read at snapshot", "a lie";
    LeavesTransactions = "leaves-transactions", "transactions that have read are kept", "a lie";
    LeavesWatches = "leaves-watches", "watches are kept", "a lie";
    Scans = "scans", "a row is found by reading all rows", "a lie";
    VersionU32 = "version-u32", "versions are kept in 32 bits", "a lie";
    VersionI32 = "version-i32", "versions are kept in 31 bits and a sign", "a lie";
}

/// Rows with sums, and a stamp: the version of the last transaction that put one.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Rows {
    planted: Option<Planted>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Op {
    /// Adds to a row.
    Add(u8),
    /// Reads a row.
    Find(u8),
    /// Watches a row for a while.
    Wait(u8),
    /// Puts the version of the transaction, unless a later one is there.
    Stamp,
}

/// The state of a client.
struct Client {
    db: Db,
    kept: Vec<Tx>,
    watches: Vec<futures::future::BoxFuture<'static, Result<(), Error>>>,
}

const ROWS: u8 = 20;
const STAMP: &[u8] = b"stamp";

fn row(n: u8) -> Vec<u8> {
    vec![b'r', n]
}

fn number(value: Option<&Bytes>) -> i64 {
    value.and_then(|value| value[..].try_into().ok()).map_or(0, i64::from_be_bytes)
}

fn ended<T>(ran: Result<T, shaketable_tx::RunError<Error>>) -> Result<T, Error> {
    ran.map_err(|e| e.error)
}

impl Rows {
    fn lies(&self, lie: Planted) -> bool {
        self.planted == Some(lie)
    }

    /// The sum of a row is read, and then written in another transaction, which sees whether it has changed.
    async fn add(&self, client: &Client, n: u8) -> Result<u64, Error> {
        let key = &row(n);
        let isolation = if self.lies(Planted::SnapshotRead) { Isolation::Snapshot } else { Serializable };
        loop {
            let hint = ended(client.db.run(|tx, _| async move { tx.get(key, Serializable).await }).await)?;
            client.db.env().sleep(Duration::from_millis(5)).await;
            let hint = hint.as_ref();
            let added = client.db.run(|tx, _| async move {
                let seen = match self.lies(Planted::EarlierRead) {
                    true => hint.cloned(),
                    false => tx.get(key, isolation).await?,
                };
                if isolation == Serializable && seen.as_ref() != hint {
                    return Ok(false);
                }
                tx.set(key, &(number(seen.as_ref()) + 1).to_be_bytes());
                Ok::<_, Error>(true)
            });
            if ended(added.await)? {
                return Ok(0);
            }
        }
    }

    async fn find(&self, client: &mut Client, n: u8) -> Result<u64, Error> {
        let (key, scans) = (&row(n), self.lies(Planted::Scans));
        let found = client.db.run(|tx, _| async move {
            let sum = if scans {
                let rows = tx.get_range_all(RangeOption::new(row(0), row(ROWS)), Serializable).await?;
                number(rows.iter().find(|row| row.key[..] == key[..]).map(|row| &row.value))
            } else {
                number(tx.get(key, Serializable).await?.as_ref())
            };
            Ok::<_, Error>(sum as u64)
        });
        let found = ended(found.await)?;
        if self.lies(Planted::LeavesTransactions) {
            let tx = client.db.create_transaction()?;
            tx.get(key, Serializable).await?;
            client.kept.push(tx);
        }
        Ok(found)
    }

    async fn wait(&self, client: &mut Client, n: u8) -> Result<u64, Error> {
        let tx = client.db.create_transaction()?;
        let watch = Box::pin(tx.watch(&row(n)));
        tx.commit().await?;
        client.db.env().sleep(Duration::from_millis(2)).await;
        if self.lies(Planted::LeavesWatches) {
            client.watches.push(watch);
        }
        Ok(0)
    }

    async fn stamp(&self, client: &Client) -> Result<u64, Error> {
        let kept = |version: i64| match self.planted {
            Some(Planted::VersionU32) => i64::from(version as u32),
            Some(Planted::VersionI32) => i64::from(version as i32),
            _ => version,
        };
        let put = client.db.run(|tx, _| async move {
            let version = kept(tx.get_read_version().await?);
            let last = tx.get(STAMP, Serializable).await?;
            if last.as_ref().is_none_or(|last| number(Some(last)) <= version) {
                tx.set(STAMP, &version.to_be_bytes());
            }
            Ok::<_, Error>(0)
        });
        ended(put.await)
    }
}

impl Workload for Rows {
    type Op = Op;
    type Answer = u64;
    type Session = Client;
    type Model = ();

    const NAME: &'static str = "rows";
    const ABOUT: &'static str = "rows with sums";

    fn effects(&self, _: &Op) -> RangeInclusive<usize> {
        0..=usize::MAX
    }

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn draw(_: &mut Stream, bug: Option<&str>) -> Rows {
        Rows { planted: bug.and_then(Planted::named) }
    }

    fn clients(&self) -> usize {
        4
    }

    fn keys(&self) -> Vec<Bytes> {
        vec![row(ROWS / 2).into(), STAMP.into()]
    }

    fn operations(&self, _: usize) -> BoxedStrategy<Vec<Op>> {
        let op = prop_oneof![
            (0..ROWS / 10).prop_map(Op::Add),
            (0..ROWS).prop_map(Op::Find),
            (0..ROWS).prop_map(Op::Wait),
            Just(Op::Stamp),
        ];
        vec(op, 20..40).boxed()
    }

    async fn setup(&self, db: &Db) -> Result<(), Error> {
        let filled = db.run(|tx, _| async move {
            (0..ROWS).for_each(|n| tx.set(&row(n), &0i64.to_be_bytes()));
            Ok::<_, Error>(())
        });
        ended(filled.await)
    }

    async fn open(&self, db: &Db, _: usize) -> Result<Client, Error> {
        Ok(Client { db: db.clone(), kept: Vec::new(), watches: Vec::new() })
    }

    async fn apply(&self, client: &mut Client, op: &Op) -> Outcome<u64> {
        let done = match op {
            Op::Add(n) => self.add(client, *n).await,
            Op::Find(n) => self.find(client, *n).await,
            Op::Wait(n) => self.wait(client, *n).await,
            Op::Stamp => self.stamp(client).await,
        };
        done.map_or_else(Outcome::Unknown, Outcome::Answered)
    }

    fn model(&self) {}

    fn step(&self, (): &mut (), step: &Step<'_, Self>) -> Result<(), Misfit> {
        match (step.op, step.answer) {
            (Op::Stamp, Some(_)) if !step.committed => Err("its stamp was not put".into()),
            _ => Ok(()),
        }
    }

    async fn audit(&self, _: &Tx) -> Result<Result<(), Misfit>, Error> {
        Ok(Ok(()))
    }

    async fn check(&self, _: &Db, (): &()) -> Result<Result<(), Misfit>, Error> {
        Ok(Ok(()))
    }
}

/// What advice says of a topic about the rows, with a lie or without one.
fn noted(lie: Option<Planted>, topic: &str) -> Vec<String> {
    let bug = lie.map(|lie| BUGS.iter().find(|bug| Planted::named(bug.name) == Some(lie)).expect("a bug"));
    let demands =
        Demands { profile: Profile::Calm, bug: bug.map(|bug| bug.name.to_owned()), ..Demands::default() };
    let asked = advice::Asked { seeds: 0..5, demands: &demands, jobs: 1, stop: &|| false };
    let advice = advice::advise(entry::<Rows>().as_ref(), &asked, &mut |_| ());
    advice.noted().filter(|entry| entry.topic == topic).map(|entry| entry.measured.clone()).collect()
}

/// Checks that advice says this of a lie, and nothing of the topic without it.
fn is_told(lie: Planted, topic: &str, why: &str) {
    assert_eq!(noted(None, topic), Vec::<String>::new(), "{topic}");
    let noted = noted(Some(lie), topic);
    assert!(noted.iter().any(|text| text.starts_with(why)), "{noted:?}");
}

#[test]
fn rows_that_are_right_pass() {
    Shake::<Rows>::new().seeds(0..100).assert();
    Shake::<Rows>::new().seeds(0..30).faults(Profile::Storm).assert();
}

#[test]
fn an_update_that_is_lost_is_told() {
    for lie in [Planted::EarlierRead, Planted::SnapshotRead] {
        is_told(lie, "lost updates", "Add overwrote ");
    }
}

#[test]
fn what_is_left_open_is_told() {
    is_told(
        Planted::LeavesTransactions,
        "left open",
        "Find leaves a transaction open at its end, in 100 % of ",
    );
    is_told(Planted::LeavesWatches, "left open", "Wait leaves a watch ");
}

#[test]
fn rows_that_are_read_for_one_are_told() {
    is_told(Planted::Scans, "rows for one", "Find reads ranges of 20 rows, on average, for an answer");
}

/// In some clusters the versions begin just below what 31 or 32 bits hold.
#[test]
fn versions_in_too_few_bits_are_found() {
    for lie in ["version-u32", "version-i32"] {
        let (_, result) = Shake::<Rows>::new().seeds(0..60).bug(lie).run().failed.expect(lie);
        let found = &result.findings[0];
        assert_eq!(
            (found.kind, found.message.contains("its stamp was not put")),
            (Kind::Model, true),
            "{found:?}"
        );
    }
}
