//! Class scheduling: students, classes with a limited number of seats, at most five classes each.
//!
//! The application of FoundationDB's class scheduling tutorial. [`Scheduling`] holds its functions
//! inside a transaction, where they compose ([`switch`](Scheduling::switch) is a drop and a sign-up
//! in one step), and beside them the forms that run exactly once through a session of
//! [`once`](crate::once), such as [`signup_once`](Scheduling::signup_once).
//!
//! Promises, at every version: a class has as many seats left as it was added with, less its
//! sign-ups; never fewer than none; no student takes more than [`MAX_CLASSES`] classes. Every read
//! that a decision rests on is serializable: of two students who go for the last seat one gets it.
//!
//! It differs from the tutorial's text where that is not safe to retry. A class is *created if
//! absent*: adding it again, after a commit whose result was unknown, takes back no seat and no
//! sign-up, and initialising clears nothing. A switch needs its old class to be held and its new
//! one not to be, and leaves nothing half done when it is refused.
//!
//! It does not reserve seats, keep waiting lists, or remove classes. A list of available classes is
//! true at its version only: a sign-up decides for itself.

pub mod catalogue;
pub mod error;
pub mod keys;
mod ops;

pub use error::{Error, Refusal};
pub use keys::Keys;
pub use ops::{Change, MAX_CLASSES, Scheduling};
