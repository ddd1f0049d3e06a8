//! The numbers by which machines, inboxes, clients, attempts and generations are known.

/// The number of a machine, dense from 0 (the supervisor).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u16);

/// The destination of messages: an inbox on a machine. A newly recruited role gets a new token, so that
/// messages for its predecessor break instead of reaching it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    /// The machine.
    pub node: NodeId,
    /// The inbox; never reused in a run.
    pub token: u32,
}

/// An attempt's number in the history, dense from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttemptId(pub u32);

/// A client's number, dense from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct ClientId(pub u16);

/// A generation of the transaction system; each recovery starts a new one.
pub type Generation = u64;
