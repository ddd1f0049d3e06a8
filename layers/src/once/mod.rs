//! Exactly once: the one mechanism by which every layer survives a commit whose result is unknown.
//!
//! # Promise
//!
//! A client owns one *slot*, a single key that holds the fate of its last operation. An operation's
//! transaction reads the slot serializably, does its work, and writes its own id and its answer into
//! the slot. Two attempts of one operation therefore conflict with each other, whoever made them and
//! however late they arrive, and an attempt that finds its id recorded returns the recorded answer
//! instead of working again. From this follows:
//!
//! * [`Session::apply`] has its effect once or not at all. It says [`Outcome::Refused`] only when
//!   nothing was applied and nothing ever will be, and [`Outcome::Unknown`] when it cannot tell.
//! * [`resolve`] turns an unknown operation into a certain one, from any process that has its
//!   [`OpId`]: it finds the answer, or *fences* the operation by writing the slot, so that an attempt
//!   still under way can only conflict.
//! * [`Session::open`] starts a new incarnation of a client. Once it has succeeded no attempt of an
//!   earlier incarnation can land, and [`Session::last`] tells the fate of the last operation.
//! * The future of every function here may be dropped at any await, as a request's time-out or `select!` does
//!   it. The operation that was under way is applied once or not at all. The session begins no other one until
//!   somebody has asked what became of it ([`Session::unread`], [`Session::resolve`]).
//! * An answer may contain the versionstamp of its own transaction ([`Answer`]): it is recorded with
//!   a versionstamped value, so a retry answers the same.
//!
//! The transaction's body is the layer's own code over [`Transaction`](crate::tx::Transaction), and
//! may call several layers: all of them are covered by the one record. [`check`] and [`record`] are
//! the same thing for callers with a retry loop of their own.
//!
//! # What it does not do
//!
//! * It does not run operations of one client side by side: a slot remembers one operation. A process
//!   that wants several in flight opens several sessions, each with a client number of its own.
//! * It does not make refusals repeatable. An operation that was refused leaves no record; resolving it
//!   says [`Fate::NotApplied`].
//! * It does not remember for ever: the next operation overwrites the record, and asking for an older
//!   one says [`Fate::Forgotten`]. A session settles its own unknown operation before it starts another, and keeps
//!   its fate ([`Session::settled`]).
//! * It does not remove slots. A slot is about a hundred bytes and its client number can be reused by
//!   opening it again; clearing it would let an old incarnation's epoch come back.
//! * It does not tell two processes with one client number apart, except that the later `open` wins and
//!   the earlier session's operations are refused with [`Error::Superseded`].
//!
//! # What it costs
//!
//! An operation reads its client's slot and writes it: one key, and the answer's bytes
//! ([`MAX_ANSWER_BYTES`] at most). Slots of different clients never conflict. [`resolve`] reads the slot, and writes it
//! when it has to fence.
//!
//! ```
//! use shaketable_layers::{
//!     once::{Error, Outcome, Session},
//!     tx::{Database, MutationType, Transaction},
//! };
//!
//! // However often its commit's result is unknown, one more is counted once.
//! async fn count<D: Database>(session: &mut Session<D>) -> Outcome<(), Error> {
//!     session
//!         .apply(|tx| async move {
//!             tx.atomic_op(b"visits", &1u64.to_le_bytes(), MutationType::Add);
//!             Ok(())
//!         })
//!         .await
//! }
//! ```

mod answer;
mod error;
mod keys;
mod ops;
mod session;

pub use answer::{Answer, Packed};
pub(crate) use answer::{decode_headed, encode_headed};
pub use error::Error;
pub use keys::{MAX_ANSWER_BYTES, OpId, Slots};
pub use ops::{Check, Fate, Landing, Permit, check, record, resolve};
pub use session::{Outcome, Session, converging};
