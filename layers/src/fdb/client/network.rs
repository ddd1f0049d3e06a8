//! The C client's network thread: started once in a process, and stopped before the process ends.

use super::raw;
use crate::fdb::NetworkOption;
use foundationdb::api::{self, FdbApiBuilder, NetworkAutoStop};
use std::sync::atomic::{AtomicBool, Ordering};

/// The running network. It stops when this value is dropped, and cannot be started again in this process: a
/// restriction of the C client.
pub struct Network {
    _running: NetworkAutoStop,
}

/// Fault injection of the client itself: each section of its code is switched on with one probability for the
/// whole process, and a section that is switched on then fires with another probability each time it is
/// executed. If a process switches on only some of the sections, nothing can be concluded about faults that
/// did not occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buggify {
    /// The probability that a section of the client is switched on, in percent.
    pub activated: u8,
    /// The probability that a section that is switched on fires, in percent.
    pub fired: u8,
}

/// Why the network did not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// It was started before.
    #[error("the FoundationDB client's network was started in this process before, and starts only once")]
    Again,
    /// The C library is older than the version that this crate was built for.
    #[error(
        "the FoundationDB client library supports API version {library} at most; this program requires {wanted}"
    )]
    TooOld {
        /// The highest API version that the library supports.
        library: i32,
        /// The API version that is required.
        wanted: i32,
    },
    /// The C library is shaketable's driver, whose cluster is simulated. Cargo puts the folder of its own build first on
    /// the path of libraries, so that the driver can be found there in place of FoundationDB's library. The environment
    /// variable `SHAKETABLE_PERMIT_SIMULATED` permits it, for tests of this backend.
    #[error(
        "the FoundationDB client library is shaketable's simulated one: remove libfdb_c.so from cargo's target folder"
    )]
    Simulated,
    /// The client returned an error.
    #[error("the FoundationDB client's network does not start: {0}")]
    Refused(crate::tx::Error),
}

/// The environment variable that permits shaketable's own library, so that this backend can be tested without a cluster.
const PERMITS_SIMULATED: &str = "SHAKETABLE_PERMIT_SIMULATED";

/// Whether the C library is shaketable's own, whose cluster is simulated. Must be called after a [`Network`] was started.
pub fn is_simulated() -> bool {
    raw::client_version().contains("shaketable")
}

static STARTED: AtomicBool = AtomicBool::new(false);

impl Network {
    /// Starts the network, with or without the client's own fault injection.
    pub fn start(buggify: Option<Buggify>) -> Result<Network, StartError> {
        let options = buggify.map(|buggify| {
            [
                NetworkOption::ClientBuggifyEnable,
                NetworkOption::ClientBuggifySectionActivatedProbability(buggify.activated.into()),
                NetworkOption::ClientBuggifySectionFiredProbability(buggify.fired.into()),
            ]
        });
        Network::start_with(options.as_ref().map_or(&[], |options| options))
    }

    /// Starts the network with these options, which are set in this order.
    pub fn start_with(options: &[NetworkOption]) -> Result<Network, StartError> {
        let builder = FdbApiBuilder::default();
        let (wanted, library) = (builder.runtime_version(), api::get_max_api_version());
        if library < wanted {
            return Err(StartError::TooOld { library, wanted });
        }
        if STARTED.swap(true, Ordering::AcqRel) {
            return Err(StartError::Again);
        }
        let refused = |e| StartError::Refused(super::transaction::error(e));
        let network = builder.build().map_err(refused)?;
        // FoundationDB's library has a version only once the version of the API is selected: before, this crashes.
        if is_simulated() && std::env::var_os(PERMITS_SIMULATED).is_none() {
            return Err(StartError::Simulated);
        }
        for option in options {
            let (code, value) = option.raw();
            raw::set_network_option(code, value.as_deref()).map_err(refused)?;
        }
        #[allow(unsafe_code, reason = "the result is dropped with `Network`, as documented there")]
        // SAFETY: dropping the result stops the network. If the process ends without dropping it, none of
        // this crate's work is aborted, because every run has ended by then.
        let running = unsafe { network.boot() }.map_err(refused)?;
        Ok(Network { _running: running })
    }
}
