//! The C client's network thread: started once in a process, stopped before it ends.

use super::raw;
use crate::fdb::NetworkOption;
use foundationdb::api::{self, FdbApiBuilder, NetworkAutoStop};
use std::sync::atomic::{AtomicBool, Ordering};

/// The running network. It stops when this is dropped, and cannot be started again in this process: a
/// restriction of the C client.
pub struct Network {
    _running: NetworkAutoStop,
}

/// Faults that the client itself injects: each is switched on with one probability for the whole process,
/// and then fires with another each time the client comes to it. Of a process that switches on less than
/// all, nothing follows about the faults that it has not met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buggify {
    /// Whether a section of the client is switched on, percent.
    pub activated: u8,
    /// Whether one that is switched on fires, percent.
    pub fired: u8,
}

/// Why the network did not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// It was started before.
    #[error("the FoundationDB client's network was started in this process before, and starts only once")]
    Again,
    /// The C library is older than what this was built for.
    #[error(
        "the FoundationDB client library speaks API version {library} at most; this was built for {wanted}"
    )]
    TooOld {
        /// What the library speaks.
        library: i32,
        /// What is needed.
        wanted: i32,
    },
    /// The client refused.
    #[error("the FoundationDB client's network does not start: {0}")]
    Refused(crate::tx::Error),
}

static STARTED: AtomicBool = AtomicBool::new(false);

impl Network {
    /// Starts the network, with faults of the client's own or without.
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

    /// Starts the network with these options, set in this order.
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
        for option in options {
            let (code, value) = option.raw();
            raw::set_network_option(code, value.as_deref()).map_err(refused)?;
        }
        #[allow(unsafe_code, reason = "what it returns is dropped with this, and `Network` says so")]
        // SAFETY: dropping the answer stops the network; a process that ends without it aborts nothing of
        // ours, for every run has ended by then.
        let running = unsafe { network.boot() }.map_err(refused)?;
        Ok(Network { _running: running })
    }
}
