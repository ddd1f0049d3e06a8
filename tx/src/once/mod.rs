//! Exactly once: the mechanism by which every layer handles a commit whose result is unknown.
//!
//! # Promise
//!
//! A client owns one *slot*, a single key that records the fate of its last operation. An operation's
//! transaction reads the slot serializably, does its work, and writes its own id and its answer (the
//! operation's result) into the slot. Two attempts of one operation therefore conflict with each other,
//! regardless of which process made them and how late they arrive, and an attempt that finds its id recorded
//! returns the recorded answer instead of repeating the work. This has the following consequences:
//!
//! * [`Session::apply`] takes effect once or not at all. It returns [`Outcome::Refused`] only if nothing was
//!   applied and nothing ever will be, and [`Outcome::Unknown`] if it cannot determine the result.
//! * [`resolve`] determines the result of an unknown operation, from any process that has its [`OpId`]: it
//!   finds the answer, or *fences* the operation by writing the slot, so that an attempt still in flight can
//!   only conflict.
//! * [`Session::open`] starts a new incarnation of a client. Once it has succeeded, no attempt of an earlier
//!   incarnation can commit, and [`Session::last`] returns the fate of the last operation.
//! * The future of every function in this module may be dropped at any await, as a request timeout or
//!   `select!` does. An operation in progress is then applied once or not at all. The session begins no other
//!   operation until the fate of this one has been requested ([`Session::unresolved`], [`Session::resolve`]).
//! * An answer may contain the versionstamp of its own transaction ([`Answer`]): it is recorded with a
//!   versionstamped value, so that a retry returns the same answer.
//!
//! The transaction's body is the layer's own code over [`Transaction`](crate::Transaction), and may call
//! several layers: one record covers all of them. [`check`] and [`record`] provide the same for callers with
//! their own retry loop.
//!
//! # What it does not do
//!
//! * It does not run operations of one client concurrently: a slot records one operation. A process that
//!   needs several operations in flight opens several sessions, each with its own client number.
//! * It does not let two operations of one slot share a transaction: [`check`] does not see another one that
//!   is not [recorded](record) yet. A [`Session`] runs one operation at a time.
//! * It does not make refusals repeatable. A refused operation leaves no record; resolving it returns
//!   [`Fate::NotApplied`].
//! * It does not keep records forever: the next operation overwrites the record, and resolving an older one
//!   returns [`Fate::Forgotten`]. A session settles its own unknown operation before it starts another, and
//!   keeps its fate ([`Session::settled`]).
//! * It does not remove slots. A slot takes about a hundred bytes, and its client number can be reused by
//!   opening it again; clearing the slot would allow an old incarnation's epoch to be used again.
//! * It does not distinguish two processes with the same client number, except that the later `open` wins and
//!   the earlier session's operations are refused with [`Error::Superseded`].
//!
//! # What it costs
//!
//! An operation reads and writes its client's slot: one key, and the bytes of the answer (at most
//! [`MAX_ANSWER_BYTES`]). Slots of different clients never conflict. [`resolve`] reads the slot, and writes
//! it if it has to fence the operation.
//!
//! ```
//! use shaketable_tx::{
//!     Database, MutationType, Transaction,
//!     once::{Error, Outcome, Session},
//! };
//!
//! // Counted once, however often the result of a commit is unknown.
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

pub use answer::{Answer, Packed, decode_headed, encode_headed};
pub use error::Error;
pub use keys::{MAX_ANSWER_BYTES, OpId, Slots};
pub use ops::{Check, Fate, PendingAnswer, Permit, check, record, resolve};
pub use session::{Outcome, Session, Unfinished, converging};
