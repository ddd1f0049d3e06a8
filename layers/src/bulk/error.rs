//! Errors of jobs and workspaces.

use super::BuildId;

layer_error! {
    /// Why an operation on a job or a workspace failed; nothing was changed.
    pub enum Error {
        /// The key is not in the job's range: the job never reaches it.
        #[error("the key \"{}\" is not in the job's range", .key.escape_ascii())]
        OutsideRange {
            /// The key.
            key: bytes::Bytes,
        },
        /// The build is not in progress: it was never begun, is published, or was discarded.
        #[error("no build {0} is under way")]
        NoBuild(BuildId),
        /// The build is not, or no longer, the current one.
        #[error("the current build is {}, not {expected}", .found.map_or("none".into(), |b| b.to_string()))]
        Swapped {
            /// The requested build.
            expected: BuildId,
            /// The current one.
            found: Option<BuildId>,
        },
        /// Another build has been published since this one began.
        #[error("another build has been published since {0} began")]
        Outdated(BuildId),
    }
}
