//! Class scheduling, the application of FoundationDB's tutorial: students, and classes with a limited number
//! of seats, at most five classes per student.
//!
//! The functions of [`Scheduling`] run within a transaction and can be combined
//! ([`switch`](Scheduling::switch) is a drop and a sign-up in one step). Through a session of
//! [`once`](crate::once) they take effect exactly once.
//!
//! # Promise
//!
//! At every version, the seats left in a class are the seats with which it was added minus its sign-ups, and
//! never negative; no student takes more than [`MAX_CLASSES`] classes. Every read on which a decision depends
//! is serializable: if two students sign up for the last seat, one of them gets it. The key schema is
//! described in [`keys`].
//!
//! It differs from the text of the tutorial where that is not safe to retry. A class is *created if absent*:
//! adding it again, after a commit whose result was unknown, undoes no seat change and no sign-up, and
//! initialising clears nothing. A switch requires that the student takes the old class and not the new one,
//! and changes nothing if it is refused.
//!
//! # What it does not do
//!
//! It does not reserve seats, keep waiting lists, or remove classes. A list of available classes is correct
//! only at its version: each sign-up checks for itself.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | add_class | the class | one key | changes of the class |
//! | init | the range from the first class to the last | one key for each class added | changes of any of them |
//! | signup | the class, the student's sign-ups | two keys | changes of these |
//! | drop | the sign-up, the class | two keys | changes of these |
//! | switch | both classes, the student's sign-ups | four keys | changes of these |
//! | available_classes | the classes of the page | – | every sign-up and drop of these |
//! | seats_left, classes_of | the class; the student's sign-ups | – | changes of these |
//!
//! ```
//! use shaketable_layers::scheduling::{Change, Error, Refusal, Scheduling};
//! use shaketable_tx::Transaction;
//!
//! // The first of several classes that has a seat left.
//! async fn any_of<T: Transaction>(
//!     tx: &T,
//!     scheduling: &Scheduling,
//!     student: &str,
//!     classes: &[&str],
//! ) -> Result<Option<Change>, Error> {
//!     for class in classes {
//!         match scheduling.signup(tx, student, class).await {
//!             Err(Error::Refused(Refusal::NoRemainingSeats)) => {}
//!             signed => return signed.map(Some),
//!         }
//!     }
//!     Ok(None)
//! }
//! ```

pub mod catalogue;
pub mod error;
pub mod keys;
mod ops;

pub use error::{Error, Refusal};
pub use keys::Keys;
pub use ops::{Change, MAX_CLASSES, MAX_INIT, Page, Scheduling};
