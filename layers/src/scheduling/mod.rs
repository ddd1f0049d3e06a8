//! Class scheduling: students, classes with a limited number of seats, at most five classes each.
//!
//! The application of FoundationDB's class scheduling tutorial. [`Scheduling`] holds its functions
//! inside a transaction, where they compose ([`switch`](Scheduling::switch) is a drop and a sign-up
//! in one step). Through a session of [`once`](crate::once) they take effect exactly once.
//!
//! # Promise
//!
//! At every version a class has as many seats left as it was added with, less its sign-ups; never fewer
//! than none; no student takes more than [`MAX_CLASSES`] classes. Every read that a decision rests on is
//! serializable: of two students who go for the last seat one gets it. The key schema is drawn in [`keys`].
//!
//! It differs from the tutorial's text where that is not safe to retry. A class is *created if
//! absent*: adding it again, after a commit whose result was unknown, takes back no seat and no
//! sign-up, and initialising clears nothing. A switch needs its old class to be held and its new
//! one not to be, and leaves nothing half done when it is refused.
//!
//! # What it does not do
//!
//! It does not reserve seats, keep waiting lists, or remove classes. A list of available classes is
//! true at its version only: a sign-up decides for itself.
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
//! use shaketable_layers::{scheduling::{Change, Error, Refusal, Scheduling}, tx::Transaction};
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
