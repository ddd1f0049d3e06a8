//! The protocol between a client program and a server.
//!
//! Each side begins with a [greeting]. Frames follow: the length of a body, four bytes, little-endian, and
//! the body, a [`Request`] or a [`Response`] in the encoding of postcard. A frame that is longer than the
//! receiver announced, or whose body is not exactly one message, ends the connection: the server says why
//! with [`Response::Refused`].
//!
//! A client numbers its databases, transactions and calls as it likes. Requests of a connection are performed
//! in their order. Nothing is negotiated: both sides speak the same [`VERSION`], or the connection ends.

pub mod frames;
pub mod greeting;
pub mod outbox;
pub mod wire;

use crate::{Action, Call, CallId, ClusterName, Command, DatabaseId, Reply, TransactionId};
use bytes::Bytes;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use shaketable_tx::{KeySelector, RangeOption, Result};

/// The version of the protocol. A change of a message, or of a type in it, is another version.
pub const VERSION: u16 = 4;

/// The longest body of a request, in bytes.
pub const LONGEST_REQUEST: u32 = 16 << 20;

/// The longest body of a response, in bytes.
pub const LONGEST_RESPONSE: u32 = 128 << 20;

/// The longest text in a request: the rest is cut off. All are keys, values, operands or options, which the
/// client behind the server refuses, or cuts itself, at a fraction of this.
const LONGEST_TEXT: usize = 4 << 20;

/// What a client asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Opens a database of a cluster.
    Open(DatabaseId, ClusterName),
    /// Performs a command.
    Command(DatabaseId, Command),
    /// Performs a call.
    Call(CallId, DatabaseId, TransactionId, Call),
    /// Something waits for the answer of a call.
    Want(CallId),
    /// Ends a call with 1101, unless it was answered.
    Cancel(CallId),
}

/// What a server answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Response {
    /// The connection ends, and why: one line. The first variant in every version.
    Refused(String),
    /// The answer of a call.
    Answer(CallId, Result<Reply>),
}

/// The body of a message; `None` if it has no encoding.
pub fn encode<T: Serialize>(message: &T) -> Option<Vec<u8>> {
    postcard::to_stdvec(message).ok()
}

/// The message of a body; `None` unless the body is exactly one message.
pub fn decode<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    postcard::take_from_bytes(body).ok().filter(|(_, rest)| rest.is_empty()).map(|(message, _)| message)
}

impl Request {
    /// The request with no text longer than a frame has room for.
    pub fn cut(mut self) -> Request {
        match &mut self {
            Request::Command(_, command) => cut_command(command),
            Request::Call(_, _, _, call) => cut_call(call),
            Request::Open(..) | Request::Want(_) | Request::Cancel(_) => {}
        }
        self
    }

    /// Whether it has effects only together with a later request, so that it may wait for one.
    pub fn can_wait(&self) -> bool {
        use Action::{Cancel, Destroy};
        match self {
            Request::Command(_, Command::Transaction(_, Cancel | Destroy)) => false,
            Request::Open(..) | Request::Command(..) => true,
            Request::Call(..) | Request::Want(_) | Request::Cancel(_) => false,
        }
    }
}

fn cut<'a>(texts: impl IntoIterator<Item = &'a mut Bytes>) {
    texts.into_iter().for_each(|text| text.truncate(LONGEST_TEXT));
}

fn cut_command(command: &mut Command) {
    match command {
        Command::SetDatabaseOption { value, .. } => cut(value),
        Command::Create(_) | Command::Close => {}
        Command::Transaction(_, action) => match action {
            Action::SetOption { value, .. } => cut(value),
            Action::Clear(key) => cut([key]),
            Action::Set(key, text) | Action::Atomic { key, operand: text, .. } => cut([key, text]),
            Action::ClearRange(begin, end) | Action::AddConflictRange(begin, end, _) => cut([begin, end]),
            Action::SetReadVersion(_) | Action::Reset | Action::Cancel | Action::Destroy => {}
        },
    }
}

fn cut_call(call: &mut Call) {
    fn keys(range: &mut RangeOption) -> [&mut Bytes; 2] {
        [&mut range.begin.key, &mut range.end.key]
    }
    match call {
        Call::Get(key, _)
        | Call::GetKey(KeySelector { key, .. }, _)
        | Call::Watch(key)
        | Call::GetAddresses(key) => cut([key]),
        Call::GetRange(range, ..) => cut(keys(range)),
        Call::GetMappedRange(range, mapper, ..) => cut(keys(range).into_iter().chain([mapper])),
        Call::GetEstimatedRangeSize(begin, end) | Call::GetRangeSplitPoints(begin, end, _) => {
            cut([begin, end]);
        }
        Call::GetReadVersion
        | Call::Commit
        | Call::OnError(_)
        | Call::GetVersionstamp
        | Call::GetApproximateSize
        | Call::GetTagThrottledDuration
        | Call::GetTotalCost
        | Call::Recover => {}
    }
}

#[cfg(test)]
mod tests;
