//! The auditor of a run: it reads the invariants repeatedly while the clients work.

use super::{Host, phase};
use crate::{
    describe::erased::AnyWorkload,
    judge::finding::{Finding, Kind as Accuser},
    judge::panics,
};
use futures::FutureExt;
use parking_lot::Mutex;
use shaketable_reports::Scale;
use shaketable_sim::{
    judges::Said,
    proto::Version,
    rt::{MILLISECOND, Nanos},
    trace::Kind,
};
use shaketable_tx::{
    Database, DatabaseOption, Transaction,
    points::{self, Part},
};
use std::{panic::AssertUnwindSafe, sync::Arc};

/// The pause between two audits of a run that is as long as usual, nanoseconds. In a longer run it is longer:
/// an audit reads all data, which grow with the run.
const AUDIT_PAUSE: Nanos = 100 * MILLISECOND;

/// The results of the auditor.
#[derive(Default)]
pub(crate) struct Audits {
    /// The number of audits evaluated.
    pub(crate) evaluated: u64,
    /// The first broken invariant.
    pub(crate) broken: Option<Broken>,
}

/// A broken invariant.
pub(crate) struct Broken {
    /// The version at which it is broken.
    pub(crate) version: Version,
    why: String,
    said: Said,
}

impl Broken {
    /// The finding.
    pub(crate) fn finding(&self) -> Finding {
        let message = format!("at version {}: {}", self.version, self.why);
        Finding::new(Accuser::Audit, message).saying(self.said.clone())
    }
}

/// Audits the cluster repeatedly until an invariant is broken.
pub(crate) async fn audit<H: Host>(host: H, workload: AnyWorkload, scale: Scale, audits: Arc<Mutex<Audits>>) {
    let db = host.database();
    // If the auditor cannot read, it skips this audit and continues with the next one.
    if db.set_option(DatabaseOption::TransactionRetryLimit(20)).is_err() {
        return;
    }
    while audits.lock().broken.is_none() {
        host.sleep(AUDIT_PAUSE * Nanos::from(u32::from(scale))).await;
        let Ok(tx) = db.create_transaction() else { return };
        let verdict = loop {
            let audit = AssertUnwindSafe(phase::judge_task(workload.audit(&tx, None))).catch_unwind();
            let part = || Part { operation: None, moment: Some(host.now()) };
            match points::in_part(part, audit).await {
                Ok(Ok(verdict)) => break Some(verdict.map_err(|why| (why.to_string(), why.said()))),
                Err(panic) => {
                    let panicked = panics::caught(&*panic);
                    break Some(Err((format!("the audit panicked: {panicked}"), Said::from(&panicked))));
                }
                Ok(Err(error)) => {
                    if tx.on_error(error).await.is_err() {
                        break None;
                    }
                }
            }
        };
        let Some(verdict) = verdict else { continue };
        let version = tx.get_read_version().await.unwrap_or_default();
        host.event(Kind::Audit, version as u64, u64::from(verdict.is_err()));
        let mut audits = audits.lock();
        audits.evaluated += 1;
        audits.broken = verdict.err().map(|(why, said)| Broken { version, why, said });
    }
}
