//! A layer with time, and its workload: vouchers that expire.
//!
//! A voucher is valid for a number of versions. The read version of a transaction is the clock: all clients
//! share it, a wrong clock of one machine does not matter, and the model knows it.
//!
//! ```text
//! ("voucher", number) = the last version at which the voucher is valid, eight bytes, little-endian
//! ```

use foundationdb_tuple::Subspace;
use shaketable::prelude::*;
use std::collections::BTreeMap;

shaketable_tx::refusals! {
    /// Why a voucher cannot be redeemed.
    pub enum Refusal {
        Absent = "there is no such voucher",
        Expired = "the voucher has expired",
        Foreign = "a key is none of a voucher",
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

/// About the version with which a simulated cluster begins.
const FIRST_VERSION: i64 = 100_000_000;

/// Few, so that clients redeem the same ones.
const VOUCHERS: u32 = 3;

/// From a hundredth of a second to a second: some expire before they are redeemed, and some do not.
const LIFETIMES: [i64; 3] = [10_000, 100_000, 1_000_000];

/// The clients: only their calls are drawn.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Vouchers;

/// Vouchers are issued, expire, and are redeemed once.
#[shaketable::workload(name = "vouchers", model = Valid, planted)]
impl Vouchers {
    #[draws(voucher)]
    fn voucher() -> impl Strategy<Value = u32> {
        0..VOUCHERS
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        (0..VOUCHERS).map(key).collect()
    }

    #[write(at)]
    async fn issue(
        &self,
        tx: &Tx,
        voucher: u32,
        #[draw(select(&LIFETIMES))] lifetime: i64,
    ) -> Result<(), Refusal> {
        issue(tx, voucher, lifetime).await
    }

    #[write(at)]
    async fn redeem(&self, tx: &Tx, voucher: u32) -> Result<(), Refusal> {
        redeem(tx, voucher).await
    }

    #[stored]
    async fn stored(&self, tx: &Tx) -> Result<Valid, Refusal> {
        let rows = tx.get_range_all(RangeOption::from(space().range()), Serializable).await?;
        let pair = |row: &tx::KeyValue| {
            let voucher = space().unpack(&row.key).map_err(|_| Refusal::Foreign)?;
            Ok((voucher, version(&row.value)))
        };
        rows.iter().map(pair).collect::<Result<_, _>>().map(Valid)
    }
}

/// The model: the last version at which each voucher is valid. The version at which an operation reads is
/// its time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Valid(BTreeMap<u32, i64>);

impl Valid {
    fn issue(&mut self, voucher: u32, lifetime: i64, at: &At) -> Result<(), Refusal> {
        self.0.insert(voucher, at.read_version.unwrap_or_default() + lifetime);
        Ok(())
    }

    fn redeem(&mut self, voucher: u32, at: &At) -> Result<(), Refusal> {
        let last = *self.0.get(&voucher).ok_or(Refusal::Absent)?;
        if last < at.read_version.unwrap_or_default() {
            return Err(Refusal::Expired);
        }
        self.0.remove(&voucher);
        Ok(())
    }
}

#[shaketable::planted]
impl Vouchers {
    /// A client takes the time from the clock of its machine.
    ///
    /// As if each version were a microsecond of this machine's clock.
    #[bug(redeem, "a time to live that is compared with the time of day")]
    async fn own_clock(&self, tx: &Tx, env: &Env, voucher: u32) -> Result<(), Refusal> {
        let tx = &tx.writing().await;
        redeem_at(tx, voucher, FIRST_VERSION + env.now().as_micros() as i64).await
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
        for bug in Vouchers::bugs() {
            Shake::<Mounted<Vouchers>>::new().bug(bug.name).assert_caught();
        }
    }
}
