//! The regressions that a sweep replays before its seeds.

use super::{Folder, refuse_damaged, replay};
use crate::{
    command::{Refusal, choose, refuse, run::RunArguments, sweep::Sweep},
    search::entry::Entry,
};
use shaketable_reports::RegressionReport;
use std::path::PathBuf;

/// The regressions of a sweep.
#[derive(Default)]
pub(crate) struct Regressions {
    /// The folder, as the user named it.
    pub folder: Option<String>,
    /// Whether a regression that cannot be replayed fails the sweep.
    pub strict: bool,
    /// The files that are to be replayed, by workload.
    files: Vec<Vec<PathBuf>>,
}

impl Regressions {
    /// Finds the regressions: in the first shard those of the folder, and in a sweep that is continued those
    /// that the earlier part did not replay. A sweep with a planted bug, or on a real cluster, has none.
    pub(crate) fn choose(sweep: &Sweep, arguments: &RunArguments) -> Result<Regressions, Refusal> {
        let real = arguments.backend.is_real()?;
        if real && arguments.regressions.is_some() {
            refuse!("regressions are plans for simulated clusters: omit --regressions or --backend fdb");
        }
        let (folder, strict) = match &sweep.earlier {
            Some(earlier) => {
                let report = &earlier.report;
                let folder = report.regressions.as_ref().map(|path| Folder::choose(Some(path.as_ref())));
                (folder.transpose()?.flatten(), report.strict_regressions)
            }
            None if arguments.no_regressions || real || choose::planted(&sweep.demands).is_some() => {
                (None, false)
            }
            None => (Folder::choose(arguments.regressions.as_deref())?, arguments.strict_regressions),
        };
        let Some(folder) = folder else { return Ok(Regressions::default()) };
        let mut files = Vec::new();
        if sweep.shard.is_none_or(|(number, _)| number == 1) {
            files = folder.files(&sweep.entries)?;
            refuse_damaged(&files)?;
        }
        if let Some(earlier) = &sweep.earlier {
            for (files, report) in files.iter_mut().zip(&earlier.report.workloads) {
                let was_done = |file: &PathBuf| {
                    report.regressions.iter().any(|done| done.file == file.display().to_string())
                };
                files.retain(|file| !was_done(file));
            }
        }
        Ok(Regressions { folder: Some(folder.shown()), strict, files })
    }

    /// Replays them, and starts no further one once `stop` returns true.
    pub(crate) fn replay(
        &self,
        entries: &[Box<dyn Entry>],
        jobs: usize,
        stop: impl Fn() -> bool + Sync,
    ) -> Vec<Vec<RegressionReport>> {
        replay(entries, &self.files, self.strict, jobs, stop)
    }
}
