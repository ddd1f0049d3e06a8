//! The C client's network thread: started once in a process, and stopped before the process ends.

use super::{ClusterFile, FdbDatabase, NetworkOption, raw};
use foundationdb::api::{self, FdbApiBuilder, NetworkAutoStop};
use shaketable_tx::{
    Db,
    real::{self, Buggify, StartError},
};
use std::sync::atomic::{AtomicBool, Ordering};

/// FoundationDB's C client.
#[derive(Clone, Copy, Debug)]
pub struct Client;

impl real::Client for Client {
    fn start(&self, buggify: Option<Buggify>) -> Result<Box<dyn real::Network>, StartError> {
        Ok(Box::new(Network::start(buggify)?))
    }
}

impl real::Network for Network {
    fn open(&self, cluster: &ClusterFile) -> shaketable_tx::Result<Db> {
        FdbDatabase::open(self, cluster).map(Db::new)
    }
    fn is_simulated(&self) -> bool {
        is_simulated()
    }
}

/// The running network. It stops when this value is dropped, and cannot be started again in this process: a
/// restriction of the C client.
pub struct Network {
    _running: NetworkAutoStop,
}

/// The environment variable that permits shaketable's own library, so that this backend can be tested without
/// a cluster.
const PERMITS_SIMULATED: &str = "SHAKETABLE_PERMIT_SIMULATED";

/// Whether the C library is shaketable's own, whose cluster is simulated. Must be called after a [`Network`]
/// was started.
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
        // FoundationDB's library has a version only once the version of the API is selected: before, this
        // crashes.
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
