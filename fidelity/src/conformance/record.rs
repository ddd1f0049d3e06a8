//! Recording: scripts performed on a database, with their results, in the format that is checked.

use super::{Case, Replayed, replay, replay::record as record_case};
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

/// Performs each script, a case without its results, twice on `db`, using its whole user keyspace.
pub async fn record<D: Database>(db: &D, scripts: Vec<Case>) -> Result<Recorded> {
    let mut recorded = Recorded::default();
    for script in scripts {
        let case = record_case(db, script).await?;
        match replay(db, &case).await? {
            Replayed::Equal => recorded.cases.push(case),
            Replayed::Different(_) => recorded.unstable += 1,
        }
    }
    Ok(recorded)
}
