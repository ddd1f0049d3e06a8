//! Options of the C client's network, with the numeric codes of FoundationDB 7.4: traces, TLS, other client
//! libraries.

use bytes::Bytes;

/// An option of the network thread, which all databases of a process share; must be set before the network
/// starts. Options that are deprecated, or that the client sets itself, are available only in raw form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NetworkOption {
    /// 30: writes traces to this directory (the empty path is the working directory).
    TraceEnable(String),
    /// 31: the maximum size of a trace file in bytes; 0 is unlimited.
    TraceRollSize(i64),
    /// 32: the maximum size of all trace files in bytes; 0 is unlimited.
    TraceMaxLogsSize(i64),
    /// 33: the `LogGroup` attribute of each event.
    TraceLogGroup(String),
    /// 34: `xml` or `json`.
    TraceFormat(String),
    /// 35: `now` or `realtime`.
    TraceClockSource(String),
    /// 36: replaces port and process in the names of trace files.
    TraceFileIdentifier(String),
    /// 37: client threads write to files with the same base name.
    TraceShareAmongClientThreads,
    /// 38: starts tracing when the network starts rather than when the first database is opened.
    TraceInitializeOnSetup,
    /// 39: the suffix of incomplete trace files.
    TracePartialFileSuffix(String),
    /// 40: a knob, as `name=value`.
    Knob(String),
    /// 42: the certificate chain.
    TlsCertBytes(Bytes),
    /// 43: the file with the certificate chain.
    TlsCertPath(String),
    /// 45: the private key.
    TlsKeyBytes(Bytes),
    /// 46: the file with the private key.
    TlsKeyPath(String),
    /// 47: the requirements for a peer's certificate.
    TlsVerifyPeers(Bytes),
    /// 52: the certificate authorities.
    TlsCaBytes(Bytes),
    /// 53: the file with the certificate authorities.
    TlsCaPath(String),
    /// 54: the passphrase of the private key; must be set before the key.
    TlsPassword(String),
    /// 55: allows no connection without TLS.
    TlsDisablePlaintextConnection,
    /// 60: uses the linked client library directly.
    DisableMultiVersionClientApi,
    /// 61: callbacks may come from threads of external clients.
    CallbacksOnExternalThreads,
    /// 62: an additional client library, for clusters of another version.
    ExternalClientLibrary(String),
    /// 63: a directory of such libraries.
    ExternalClientDirectory(String),
    /// 64: only external clients are used to connect.
    DisableLocalClient,
    /// 65: the number of threads of each version's client.
    ClientThreadsPerVersion(i64),
    /// 66: a client library of a future version, for tests.
    FutureVersionClientLibrary(String),
    /// 67: keeps copies of external libraries.
    RetainClientLibraryCopies,
    /// 68: ignores external clients that fail to load.
    IgnoreExternalClientFailures,
    /// 69: reports an error if no client is compatible with the cluster.
    FailIncompatibleClient,
    /// 70: omits client statistics from traces.
    DisableClientStatisticsLogging,
    /// 71: profiles the network thread's run loop.
    EnableRunLoopProfiling,
    /// 72: keeps the multi-version client even without external clients; the cache of read versions
    /// (transaction option 1101) requires it.
    DisableClientBypass,
    /// 80: enables fault injection in the client.
    ClientBuggifyEnable,
    /// 81: disables fault injection in the client.
    ClientBuggifyDisable,
    /// 82: the probability that a fault-injection section is active, in percent.
    ClientBuggifySectionActivatedProbability(i64),
    /// 83: the probability that an active section injects a fault, in percent.
    ClientBuggifySectionFiredProbability(i64),
    /// 90: `none`, `log_file` or `network_lossy`.
    DistributedClientTracer(String),
    /// 91: the directory for copies of client libraries.
    ClientTmpDir(String),
    /// Any option by its code, with its value in the form that the C API takes (integers in eight bytes,
    /// little-endian).
    Raw(i32, Option<Bytes>),
}

impl NetworkOption {
    /// FoundationDB's numeric code, and the value in the form that the C API takes.
    pub fn raw(&self) -> (i32, Option<Bytes>) {
        use NetworkOption::*;
        let text = |text: &String| Some(Bytes::copy_from_slice(text.as_bytes()));
        let number = |n: &i64| Some(Bytes::copy_from_slice(&n.to_le_bytes()));
        match self {
            TraceEnable(v) => (30, text(v)),
            TraceRollSize(v) => (31, number(v)),
            TraceMaxLogsSize(v) => (32, number(v)),
            TraceLogGroup(v) => (33, text(v)),
            TraceFormat(v) => (34, text(v)),
            TraceClockSource(v) => (35, text(v)),
            TraceFileIdentifier(v) => (36, text(v)),
            TraceShareAmongClientThreads => (37, None),
            TraceInitializeOnSetup => (38, None),
            TracePartialFileSuffix(v) => (39, text(v)),
            Knob(v) => (40, text(v)),
            TlsCertBytes(v) => (42, Some(v.clone())),
            TlsCertPath(v) => (43, text(v)),
            TlsKeyBytes(v) => (45, Some(v.clone())),
            TlsKeyPath(v) => (46, text(v)),
            TlsVerifyPeers(v) => (47, Some(v.clone())),
            TlsCaBytes(v) => (52, Some(v.clone())),
            TlsCaPath(v) => (53, text(v)),
            TlsPassword(v) => (54, text(v)),
            TlsDisablePlaintextConnection => (55, None),
            DisableMultiVersionClientApi => (60, None),
            CallbacksOnExternalThreads => (61, None),
            ExternalClientLibrary(v) => (62, text(v)),
            ExternalClientDirectory(v) => (63, text(v)),
            DisableLocalClient => (64, None),
            ClientThreadsPerVersion(v) => (65, number(v)),
            FutureVersionClientLibrary(v) => (66, text(v)),
            RetainClientLibraryCopies => (67, None),
            IgnoreExternalClientFailures => (68, None),
            FailIncompatibleClient => (69, None),
            DisableClientStatisticsLogging => (70, None),
            EnableRunLoopProfiling => (71, None),
            DisableClientBypass => (72, None),
            ClientBuggifyEnable => (80, None),
            ClientBuggifyDisable => (81, None),
            ClientBuggifySectionActivatedProbability(v) => (82, number(v)),
            ClientBuggifySectionFiredProbability(v) => (83, number(v)),
            DistributedClientTracer(v) => (90, text(v)),
            ClientTmpDir(v) => (91, text(v)),
            Raw(code, value) => (*code, value.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_what_the_c_api_takes() {
        let raw = |option: NetworkOption| option.raw();
        assert_eq!(raw(NetworkOption::TraceFormat("json".into())), (34, Some("json".into())));
        let size = Bytes::from_static(&[0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(raw(NetworkOption::TraceRollSize(256)), (31, Some(size.clone())));
        assert_eq!(raw(NetworkOption::DisableClientBypass), (72, None));
        assert_eq!(raw(NetworkOption::TlsCertBytes("chain".into())), (42, Some("chain".into())));
        assert_eq!(raw(NetworkOption::Raw(31, Some(size.clone()))), (31, Some(size)));
    }
}
