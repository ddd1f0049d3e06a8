//! A layer with time, and its workload: vouchers that expire.
//!
//! A voucher is valid for a number of versions. The read version of a transaction is the clock: all clients
//! share it, a wrong clock of one machine does not matter, and the model knows it.
//!
//! ```text
//! ("voucher", number) = the last version at which the voucher is valid, eight bytes, little-endian
//! ```

use foundationdb_tuple::Subspace;
use shaketable::{planted_bugs, prelude::*, specimen::UNRECORDED};
use std::collections::BTreeMap;

shaketable_tx::refusals! {
    /// Why a voucher cannot be redeemed.
    pub enum Refusal {
        Absent = "there is no such voucher",
        Expired = "the voucher has expired",
    }
}

fn space() -> Subspace {
    Subspace::from("voucher")
}

fn key(voucher: u32) -> Vec<u8> {
    space().pack(&voucher)
}

fn version(value: &[u8]) -> i64 {
    value.try_into().map_or(0, i64::from_le_bytes)
}

/// Issues a voucher that is valid for so many versions: FoundationDB counts about a million a second.
pub async fn issue<T: Transaction>(tx: &T, voucher: u32, lifetime: i64) -> Result<(), Refusal> {
    let tx = tx.writing().await;
    let last = tx.get_read_version().await? + lifetime;
    tx.set(&key(voucher), &last.to_le_bytes());
    Ok(())
}

/// Redeems a voucher: once, and not after it has expired.
pub async fn redeem<T: Transaction>(tx: &T, voucher: u32) -> Result<(), Refusal> {
    let tx = &tx.writing().await;
    let now = tx.get_read_version().await?;
    redeem_at(tx, voucher, now).await
}

async fn redeem_at<T: Transaction>(tx: &T, voucher: u32, now: i64) -> Result<(), Refusal> {
    let last = tx.get(&key(voucher), Serializable).await?.ok_or(Refusal::Absent)?;
    if version(&last) < now {
        return Err(Refusal::Expired);
    }
    tx.clear(&key(voucher));
    Ok(())
}

planted_bugs! {
    OwnClock = "own-clock", "a client takes the time from the clock of its machine", "a time to live that is compared with the time of day";
    Unrecorded = UNRECORDED, "an operation is retried after an unknown result without a record", "the retry loop of every binding";
}

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Vouchers {
    planted: Option<Planted>,
}

/// One call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Op {
    Issue { voucher: u32, lifetime: i64 },
    Redeem { voucher: u32 },
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    Issued,
    Redeemed,
}

/// About the version with which a simulated cluster begins.
const FIRST_VERSION: i64 = 100_000_000;

/// Few, so that clients redeem the same ones.
const VOUCHERS: u32 = 3;

impl Specimen for Vouchers {
    type Op = Op;
    type Answer = Answer;
    type Error = Refusal;
    /// The last version at which each voucher is valid.
    type Model = BTreeMap<u32, i64>;

    const NAME: &'static str = "vouchers";
    const ABOUT: &'static str = "vouchers are issued, expire, and are redeemed once";

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn draw(_: &mut Stream, bug: Option<&str>) -> Vouchers {
        Vouchers { planted: bug.and_then(Planted::named) }
    }

    fn keys(&self) -> Vec<Bytes> {
        (0..VOUCHERS).map(|voucher| key(voucher).into()).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        // From a hundredth of a second to a second: some expire before they are redeemed, and some do not.
        let issue = (0..VOUCHERS, prop_oneof![Just(10_000), Just(100_000), Just(1_000_000)])
            .prop_map(|(voucher, lifetime)| Op::Issue { voucher, lifetime });
        prop_oneof![issue, (0..VOUCHERS).prop_map(|voucher| Op::Redeem { voucher })].boxed()
    }

    fn is_read_only(_: &Op) -> bool {
        false
    }

    async fn perform<T: Transaction>(
        &self,
        tx: &T,
        env: &Env,
        op: &Op,
        _: Isolation,
    ) -> Result<Answer, Refusal> {
        match *op {
            // As if each version were a microsecond of this machine's clock.
            Op::Redeem { voucher } if self.planted == Some(Planted::OwnClock) => {
                let tx = &tx.writing().await;
                let now = FIRST_VERSION + env.now().as_micros() as i64;
                redeem_at(tx, voucher, now).await.map(|()| Answer::Redeemed)
            }
            Op::Issue { voucher, lifetime } => issue(tx, voucher, lifetime).await.map(|()| Answer::Issued),
            Op::Redeem { voucher } => redeem(tx, voucher).await.map(|()| Answer::Redeemed),
        }
    }

    fn model(&self) -> BTreeMap<u32, i64> {
        BTreeMap::new()
    }

    fn replay(&self, vouchers: &mut BTreeMap<u32, i64>, op: &Op, at: &At) -> Result<Answer, Refusal> {
        // The version at which the operation read: its time.
        let now = at.read_version.unwrap_or_default();
        match *op {
            Op::Issue { voucher, lifetime } => {
                vouchers.insert(voucher, now + lifetime);
                Ok(Answer::Issued)
            }
            Op::Redeem { voucher } => match vouchers.get(&voucher) {
                None => Err(Refusal::Absent),
                Some(last) if *last < now => Err(Refusal::Expired),
                Some(_) => {
                    vouchers.remove(&voucher);
                    Ok(Answer::Redeemed)
                }
            },
        }
    }

    async fn read_model<T: Transaction>(&self, tx: &T) -> tx::Result<Result<BTreeMap<u32, i64>, String>> {
        let rows = tx.get_range_all(RangeOption::from(space().range()), Serializable).await?;
        let pair = |row: &tx::KeyValue| {
            let voucher = space().unpack(&row.key).map_err(|_| format!("a foreign key: {row:?}"))?;
            Ok((voucher, version(&row.value)))
        };
        Ok(rows.iter().map(pair).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vouchers_are_redeemed_once_and_in_time() {
        Shake::<Mounted<Vouchers>>::new().check_determinism().assert();
    }

    #[test]
    fn planted_bugs_are_caught() {
        for bug in BUGS {
            Shake::<Mounted<Vouchers>>::new().bug(bug.name).assert_caught();
        }
    }
}
