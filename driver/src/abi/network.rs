//! The version of the API, the network thread and its options.
//!
//! The network thread runs the simulated cluster, with the first database that is created, or delivers the
//! answers of a server. A network runs once.

use super::{
    errors::{
        API_VERSION_ALREADY_SET, API_VERSION_INVALID, API_VERSION_NOT_SUPPORTED, CONNECTION_STRING_INVALID,
        ENVIRONMENT_FAILED, NETWORK_ALREADY_SETUP, NETWORK_CANNOT_BE_RESTARTED, NETWORK_NOT_SETUP,
        PLATFORM_ERROR, SUCCESS,
    },
    fork,
    memory::copy_option,
    network_option,
    selected::{self, require_api_version},
    time,
    types::{CompletionHook, fdb_error_t},
    versions::{is_eight, network_option_set},
};

use parking_lot::{Condvar, Mutex};
use shaketable_session::{
    ClusterName, Host, Session,
    address::Address,
    journal::Journal,
    output,
    remote::Remote,
    report::{self, ACCUSED},
    settings::{Environment, Settings},
};
use shaketable_sim::{rt, seed::Seed};
use shaketable_tx::{Error, Result};
use std::{
    ffi::{c_char, c_int, c_void},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// The newest version of the API.
const MAX_API_VERSION: c_int = 800;
/// The oldest version of the API that this library speaks.
const MIN_API_VERSION: c_int = 200;

/// How long the end of a process waits for a network thread that does not get on. One that judges a long run
/// does.
const LONGEST_END: Duration = Duration::from_secs(10);

/// How often the end of a process looks whether the network thread gets on.
const GLANCE: Duration = Duration::from_millis(50);

/// The network, once it is set up.
static NETWORK: OnceLock<Network> = OnceLock::new();

/// What is set up once in a process.
pub struct Network {
    host: Arc<Host>,
    /// The session with a server, if the first database is behind one. The host has no cluster then.
    remote: OnceLock<Option<Arc<Remote>>>,
    environment: Environment,
    /// The seed of the first cluster file that names one.
    seed: Mutex<Option<Seed>>,
    hooks: Mutex<Vec<Hook>>,
    has_run: AtomicBool,
    is_over: Mutex<bool>,
    ended: Condvar,
}

struct Hook(unsafe extern "C" fn(*mut c_void), *mut c_void);

// SAFETY: the parameter is handed back to its function and to nothing else, on the thread on which whoever
// added the hook expects it.
unsafe impl Send for Hook {}

impl Network {
    /// The network, or 2008 before it is set up.
    pub fn get() -> Result<&'static Network> {
        fork::check()?;
        NETWORK.get().ok_or(Error::from_code(NETWORK_NOT_SETUP))
    }

    /// The session of the process. The first database decides whether its cluster is that of a server, which
    /// the environment or the cluster file names. Another server is refused with 2104, as are more clusters
    /// than a session has, and a server if the program is to see virtual time.
    pub fn session(&self, server: Option<Address>, cluster: &ClusterName) -> Result<Arc<dyn Session>> {
        let server = self.environment.server.clone().or(server.filter(|_| !self.environment.is_own));
        if server.is_some() && self.environment.time {
            output::complain(time::SERVED);
            return Err(CONNECTION_STRING_INVALID);
        }
        let chosen = self.remote.get_or_init(|| {
            let server = server.clone()?;
            if (Environment { server: None, ..self.environment.clone() }) != Environment::default() {
                output::complain(&format!(
                    "the server at {server} has its own settings: those here have no effect"
                ));
            }
            Some(Arc::new(Remote::new(server)))
        });
        match chosen {
            None if server.is_none() => match self.host.admit(cluster) {
                Ok(()) => {
                    self.settings().journal.iter().for_each(|path| Journal::mark(path));
                    Ok(self.host.clone())
                }
                Err(line) => {
                    output::complain(&line);
                    Err(CONNECTION_STRING_INVALID)
                }
            },
            Some(remote) if server.as_ref() == Some(remote.address()) => {
                // The network thread now finds the remote session.
                self.host.stop();
                Ok(remote.clone())
            }
            _ => {
                output::complain(
                    "a process uses one server, or clusters of its own: its first database decided",
                );
                Err(CONNECTION_STRING_INVALID)
            }
        }
    }

    /// A cluster file names a seed, which is that of the run if it is the first. Other files are those of
    /// further clusters.
    pub fn name_seed(&self, seed: Seed) {
        self.seed.lock().get_or_insert(seed);
    }

    /// The session of a cluster of this process; none if that of a server is used.
    pub fn own_host(&self) -> Option<&Host> {
        (!matches!(self.remote.get(), Some(Some(_)))).then_some(&*self.host)
    }

    /// How busy the network thread is, from 0 to 1; 0 if it only delivers the answers of a server.
    pub fn busyness(&self) -> f64 {
        self.host.busyness()
    }

    fn settings(&self) -> Settings {
        self.environment.settings(*self.seed.lock())
    }

    /// Runs the cluster until the network is stopped, and reports.
    fn run(&self) -> fdb_error_t {
        if self.has_run.swap(true, Ordering::SeqCst) {
            return NETWORK_CANNOT_BE_RESTARTED;
        }
        let (report, code) = match self.host.run(|| self.settings()) {
            Ok(None) => (None, self.run_remote()),
            Ok(Some(report)) => {
                if let Some(path) = &self.environment.events {
                    output::write_events(path, &report);
                }
                // Nobody may have asked for the report.
                for objection in report.clusters().flat_map(|(_, report)| &report.objections) {
                    output::complain(&format!("{ACCUSED}{objection}"));
                }
                (Some(report.to_string()), SUCCESS)
            }
            Err(panic) => {
                let settings = self.settings();
                output::complain(&format!(
                    "the simulated cluster with seed {} failed: {panic}",
                    settings.seed.0
                ));
                (Some(report::of_panic(&settings, &panic)), Error::INTERNAL_ERROR.code())
            }
        };
        if let (Some(report), Some(to)) = (report, &self.environment.report) {
            output::write(to, &report);
        }
        for Hook(function, parameter) in std::mem::take(&mut *self.hooks.lock()) {
            // SAFETY: function and parameter belong together, as whoever added the hook promised.
            unsafe { function(parameter) };
        }
        *self.is_over.lock() = true;
        self.ended.notify_all();
        code
    }

    /// Delivers the answers of a server until the network is stopped, if there is a server.
    fn run_remote(&self) -> fdb_error_t {
        let Some(Some(remote)) = self.remote.get() else { return SUCCESS };
        remote.run(output::complain);
        // As with an unreachable cluster, what ends with an error are the calls.
        SUCCESS
    }

    fn stop(&self) {
        // Once the network has stopped, no database is the first.
        if let Some(remote) = self.remote.get_or_init(|| None) {
            remote.stop();
        }
        self.host.stop();
    }

    /// Stops the network and waits for its report, unless this is the network thread. A callback that never
    /// returns does not keep the process from ending.
    fn finish(&self) {
        self.stop();
        if self.has_run.load(Ordering::SeqCst) && !self.host.is_here() {
            let mut is_over = self.is_over.lock();
            while !*is_over && self.host.heartbeat().stalled_for() < LONGEST_END {
                self.ended.wait_for(&mut is_over, GLANCE);
            }
        }
    }
}

/// Selects the version of the API, from 200 to 800; once.
#[unsafe(no_mangle)]
pub extern "C" fn fdb_select_api_version_impl(runtime: c_int, header: c_int) -> fdb_error_t {
    if selected::is_selected() {
        return API_VERSION_ALREADY_SET;
    }
    if runtime > header {
        return API_VERSION_INVALID;
    }
    if header > MAX_API_VERSION || runtime < MIN_API_VERSION {
        return API_VERSION_NOT_SUPPORTED;
    }
    match selected::select(runtime, header) {
        true => SUCCESS,
        false => API_VERSION_ALREADY_SET,
    }
}

/// 800.
#[unsafe(no_mangle)]
pub extern "C" fn fdb_get_max_api_version() -> c_int {
    MAX_API_VERSION
}

/// The version of the client that this library stands for, its source and its protocol, separated by commas:
/// 8.0 from version 800 on. Aborts before the version of the API is selected.
#[unsafe(no_mangle)]
pub extern "C" fn fdb_get_client_version() -> *const c_char {
    require_api_version("fdb_get_client_version");
    let version =
        if is_eight() { c"8.0.0,shaketable,fdb00b080000000" } else { c"7.4.0,shaketable,fdb00b074000000" };
    version.as_ptr()
}

/// Sets an option of the network. They have no effect on the simulated cluster, but their codes (2007),
/// values (2006) and order (2007, 4100) are checked. Before the version of the API is selected, this aborts
/// for an option of the client itself; the options by which it chooses between libraries are taken.
///
/// # Safety
///
/// `value` is null or readable for `value_length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_network_set_option(
    option: c_int,
    value: *const u8,
    value_length: c_int,
) -> fdb_error_t {
    if network_option::is_of_the_client(option) {
        require_api_version("fdb_network_set_option");
    }
    // SAFETY: readable, as the caller promises.
    let value = unsafe { copy_option(value, value_length) };
    let checked = network_option::check(option, value.as_deref(), NETWORK.get().is_some());
    if checked.is_ok() {
        network_option_set(option);
    }
    super::future::code(checked)
}

/// Reads the environment and sets up the network; once, and not within a simulation (2000). Aborts before the
/// version of the API is selected.
#[unsafe(no_mangle)]
pub extern "C" fn fdb_setup_network() -> fdb_error_t {
    require_api_version("fdb_setup_network");
    if rt::is_simulating() {
        output::complain("a simulation has no network thread: call boot() before it, or not at all");
        return Error::CLIENT_INVALID_OPERATION.code();
    }
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    let read = match Environment::misspelt(names) {
        Some(line) => Err(line),
        None => Environment::read(|name| std::env::var(name).ok()),
    };
    let environment = match read {
        Ok(environment) => environment,
        Err(line) => {
            output::complain(&line);
            return ENVIRONMENT_FAILED;
        }
    };
    let attach = time::find().filter(|_| environment.time);
    if environment.time && attach.is_none() {
        output::complain(time::NOT_PRELOADED);
        return ENVIRONMENT_FAILED;
    }
    let Ok(host) = Host::new() else { return PLATFORM_ERROR };
    if environment.one_at_a_time {
        host.take_turns();
    }
    let network = Network {
        host: Arc::new(host),
        remote: OnceLock::new(),
        environment,
        seed: Mutex::default(),
        hooks: Mutex::default(),
        has_run: AtomicBool::new(false),
        is_over: Mutex::new(false),
        ended: Condvar::new(),
    };
    let reports = network.environment.report.is_some() || network.environment.events.is_some();
    if NETWORK.set(network).is_err() {
        return NETWORK_ALREADY_SETUP;
    }
    if let Err(error) = fork::watch() {
        return error;
    }
    if let (Some(attach), Some(network)) = (attach, NETWORK.get()) {
        attach(&network.host);
    }
    if reports {
        // SAFETY: the function takes nothing and may be called at any time after this.
        unsafe { libc::atexit(report_at_exit) };
    }
    SUCCESS
}

/// A program that ends without stopping the network has a report all the same.
extern "C" fn report_at_exit() {
    if let Some(network) = NETWORK.get().filter(|_| !fork::is_child()) {
        network.finish();
    }
}

/// Makes this thread the network thread, until the network is stopped. A thread that runs a simulation cannot
/// be it (2000).
#[unsafe(no_mangle)]
pub extern "C" fn fdb_run_network() -> fdb_error_t {
    match rt::is_simulating() {
        true => Error::CLIENT_INVALID_OPERATION.code(),
        false => Network::get().map_or_else(Error::code, Network::run),
    }
}

/// Stops the network: [`fdb_run_network`] reports and returns. What is outstanding ends with 1101.
#[unsafe(no_mangle)]
pub extern "C" fn fdb_stop_network() -> fdb_error_t {
    super::future::code(Network::get().map(Network::stop))
}

/// Calls a function on the network thread when it is about to return.
///
/// # Safety
///
/// `hook` may be called with `parameter` on the network thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_add_network_thread_completion_hook(
    hook: CompletionHook,
    parameter: *mut c_void,
) -> fdb_error_t {
    let network = match Network::get() {
        Ok(network) => network,
        Err(error) => return error.code(),
    };
    let Some(function) = hook else { return Error::CLIENT_INVALID_OPERATION.code() };
    network.hooks.lock().push(Hook(function, parameter));
    SUCCESS
}
