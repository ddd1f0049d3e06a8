//! Recording: scripts performed on a database, with their results, in the format that is checked.

use super::{Case, Replayed, prepare, replay, replay::record as record_case, scripts};
use shaketable::calm;
use shaketable_sim::seed::Seed;
use shaketable_tx::{Database, Result};

/// Cases for which a database returns the same results each time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// The cases with their results.
    pub cases: Vec<Case>,
    /// The number of cases with different results in a second run, which are omitted: a cluster may be
    /// disturbed at any time.
    pub unstable: usize,
}

/// Draws scripts of one kind and performs each twice on `db`, using its whole user keyspace.
pub async fn record<D: Database>(db: &D, seed: Seed, kind: &str, count: usize) -> Result<Recorded> {
    let mut recorded = Recorded::default();
    for script in scripts(seed, kind, count) {
        let case = record_case(db, script).await?;
        match replay(db, &case).await? {
            Replayed::Equal => recorded.cases.push(case),
            Replayed::Different(_) => recorded.unstable += 1,
        }
    }
    Ok(recorded)
}

/// Like [`record`], on a calm simulated cluster.
pub fn record_simulated(seed: Seed, kind: &'static str, count: usize) -> Result<Recorded> {
    calm::simulate(move |db| async move {
        prepare(&db).await?;
        record(&db, seed, kind, count).await
    })
}
