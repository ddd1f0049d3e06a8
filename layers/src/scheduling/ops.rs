//! Operations of class scheduling: within a transaction, in which they can be combined and see each other's
//! writes.

use super::{
    catalogue,
    error::{Error, Refusal},
    keys::{self, Keys},
};
use crate::{
    once::{self, Answer},
    reachable, read, sometimes,
    tx::{self, Isolation::Serializable, KeySelector, RangeOption, Transaction},
};
use bytes::{Bytes, BytesMut};
use foundationdb_tuple::Subspace;
use futures::future::{self, try_join_all};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The maximum number of classes that a student may take at once.
pub const MAX_CLASSES: usize = 5;

/// Whether an operation that may have nothing to do changed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Change {
    /// The state was changed.
    Made,
    /// The state was already as requested; nothing was written.
    Unneeded,
}

impl Answer for Change {
    fn encode(&self, out: &mut BytesMut) -> Result<Option<usize>, once::Error> {
        (*self == Change::Made).encode(out)
    }
    fn decode(bytes: Bytes) -> Option<Change> {
        bool::decode(bytes).map(|made| if made { Change::Made } else { Change::Unneeded })
    }
}

/// The maximum number of classes for one call of [`Scheduling::init`]: about 2 MB of a transaction's 10 MB
/// with names of maximum length.
pub const MAX_INIT: usize = 2_000;

/// A page of a list of classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The classes of the page, in the order of their names.
    pub classes: Vec<String>,
    /// The class after which the next page begins; `None` if this is the last page.
    pub next: Option<String>,
}

/// One scheduling application.
///
/// The functions take the transaction in which they run, so that several of them form one step. A refusal
/// changes nothing, even if the caller continues with the transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduling {
    keys: Keys,
}

impl Scheduling {
    /// The application with its data in `root`.
    pub fn new(root: &Subspace) -> Scheduling {
        Scheduling { keys: Keys::new(root) }
    }

    /// The key schema.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Offers `class` with `seats` seats, unless it is already offered: a class with sign-ups keeps its seats
    /// left.
    pub async fn add_class<T: Transaction>(&self, tx: &T, class: &str, seats: u32) -> Result<Change, Error> {
        let tx = &tx.writing().await;
        keys::check_name(class)?;
        let key = self.keys.course(class);
        if tx.get(&key, Serializable).await?.is_some() {
            return Ok(Change::Unneeded);
        }
        tx.set(&key, &keys::pack_seats(seats));
        Ok(Change::Made)
    }

    /// Calls [`add_class`](Scheduling::add_class) for each of `classes` that is not offered yet, with one
    /// range read for all of them; returns the number of added classes. Since classes are created only if
    /// absent, the call can be repeated: add a larger catalogue in several transactions.
    ///
    /// More than [`MAX_INIT`] classes are refused with [`Refusal::TooManyAtOnce`]. Reads as many rows as
    /// there are `classes`, and reads those after them one by one.
    pub async fn init<T, C>(&self, tx: &T, classes: C, seats: u32) -> Result<usize, Error>
    where
        T: Transaction,
        C: IntoIterator + Send,
        C::Item: AsRef<str>,
    {
        let tx = &tx.writing().await;
        let mut missing = BTreeSet::new();
        for class in classes {
            keys::check_name(class.as_ref())?;
            missing.insert(self.keys.course(class.as_ref()));
            if missing.len() > MAX_INIT {
                return Err(Refusal::TooManyAtOnce.into());
            }
        }
        let (Some(first), Some(last)) = (missing.first(), missing.last()) else {
            return Ok(0);
        };
        let asked = RangeOption::new(first.clone(), tx::key_after(last)).limit(missing.len());
        let rows = read::all::<_, Error>(tx, asked, Serializable).await?;
        let unread = match rows.last() {
            Some(row) if rows.len() == missing.len() => missing.split_off(row.key.as_ref()),
            _ => BTreeSet::new(),
        };
        sometimes!(unread.len() > 1, "scheduling: other classes lie between those of a catalogue");
        let there = try_join_all(unread.iter().map(|key| tx.get(key, Serializable))).await?;
        missing
            .extend(unread.into_iter().zip(there).filter(|(_, class)| class.is_none()).map(|(key, _)| key));
        for row in rows {
            missing.remove(row.key.as_ref());
        }
        let value = keys::pack_seats(seats);
        for key in &missing {
            tx.set(key, &value);
        }
        Ok(missing.len())
    }

    /// Adds the tutorial's catalogue: [`init`](Scheduling::init) with 1,620 classes of 100 seats.
    pub async fn init_catalogue<T: Transaction>(&self, tx: &T) -> Result<usize, Error> {
        self.init(tx, catalogue::class_names().collect::<Vec<_>>(), catalogue::SEATS).await
    }

    /// The classes with seats left among the next `most` classes (at least one) after the class `after`, or
    /// from the first one. Reads no further than necessary, so that a change of a later class does not
    /// conflict.
    ///
    /// A page without available classes is not necessarily the last one. A page of more than
    /// [`READ_LIMIT`](crate::limits::READ_LIMIT) bytes is refused.
    pub async fn available_classes<T: Transaction>(
        &self,
        tx: &T,
        after: Option<&str>,
        most: usize,
    ) -> Result<Page, Error> {
        let tx = &tx.reading().await;
        let mut range = self.keys.courses().limit(most.max(1));
        if let Some(after) = after {
            range.begin = KeySelector::first_greater_than(self.keys.course(after));
        }
        let rows = read::all::<_, Error>(tx, range, Serializable).await?;
        let mut page = Page { classes: Vec::new(), next: None };
        for row in &rows {
            if keys::unpack_seats(&row.key, &row.value)? > 0 {
                page.classes.push(self.keys.class_of_course(&row.key)?);
            }
        }
        if let Some(last) = rows.last()
            && rows.len() == most.max(1)
        {
            page.next = Some(self.keys.class_of_course(&last.key)?);
        }
        Ok(page)
    }

    /// The seats left in `class`, or `None` if it is not offered.
    pub async fn seats_left<T: Transaction>(&self, tx: &T, class: &str) -> Result<Option<u32>, Error> {
        let tx = &tx.reading().await;
        let key = self.keys.course(class);
        match tx.get(&key, Serializable).await? {
            Some(value) => Ok(Some(keys::unpack_seats(&key, &value)?)),
            None => Ok(None),
        }
    }

    /// The classes that `student` takes, in the order of their names.
    pub async fn classes_of<T: Transaction>(&self, tx: &T, student: &str) -> Result<Vec<String>, Error> {
        let tx = &tx.reading().await;
        let rows = read::all::<_, Error>(tx, self.keys.attendances_of(student), Serializable).await?;
        rows.iter().map(|row| Ok(self.keys.student_and_class(&row.key)?.1)).collect()
    }

    /// Signs `student` up for `class`: one seat less, one class more. Does nothing if the student takes it
    /// already. Refused with [`Refusal::UnknownClass`], [`Refusal::NoRemainingSeats`] and
    /// [`Refusal::TooManyClasses`], in this order of precedence.
    pub async fn signup<T: Transaction>(&self, tx: &T, student: &str, class: &str) -> Result<Change, Error> {
        let tx = &tx.writing().await;
        keys::check_name(student)?;
        keys::check_name(class)?;
        let attendance = self.keys.attendance(student, class);
        // One range read determines both whether the student takes the class and how many others.
        let taken = self.keys.attendances_of(student).limit(MAX_CLASSES);
        let (taken, seats) =
            future::try_join(read::all::<_, Error>(tx, taken, Serializable), self.seats_left(tx, class))
                .await?;
        if taken.iter().any(|row| row.key == attendance) {
            return Ok(Change::Unneeded);
        }
        let Some(left) = seats.ok_or(Refusal::UnknownClass)?.checked_sub(1) else {
            reachable!("scheduling: a class is full");
            return Err(Refusal::NoRemainingSeats.into());
        };
        if taken.len() >= MAX_CLASSES {
            reachable!("scheduling: a sixth class is refused");
            return Err(Refusal::TooManyClasses.into());
        }
        sometimes!(left == 0, "scheduling: the last seat is taken");
        tx.set(&self.keys.course(class), &keys::pack_seats(left));
        tx.set(&attendance, b"");
        Ok(Change::Made)
    }

    /// Removes `student` from `class`: one seat more, one class less. Does nothing if the student does not
    /// take it, or if the class does not exist.
    pub async fn drop<T: Transaction>(&self, tx: &T, student: &str, class: &str) -> Result<Change, Error> {
        let tx = &tx.writing().await;
        let attendance = self.keys.attendance(student, class);
        if tx.get(&attendance, Serializable).await?.is_none() {
            return Ok(Change::Unneeded);
        }
        let seats = self.seats_left(tx, class).await?.ok_or_else(|| Error::corrupt(&attendance))?;
        let seats = seats.checked_add(1).ok_or_else(|| Error::corrupt(&self.keys.course(class)))?;
        tx.set(&self.keys.course(class), &keys::pack_seats(seats));
        tx.clear(&attendance);
        Ok(Change::Made)
    }

    /// [`drop`](Scheduling::drop) of `old` and [`signup`](Scheduling::signup) for `new`, as one step.
    ///
    /// The number of classes that the student takes does not change: `old` must be taken
    /// ([`Refusal::NotTakingOld`]), `new` must not be ([`Refusal::AlreadyTakingNew`]), and the two must
    /// differ ([`Refusal::SameClass`]). If the sign-up for `new` is refused, `old` is kept.
    pub async fn switch<T: Transaction>(
        &self,
        tx: &T,
        student: &str,
        old: &str,
        new: &str,
    ) -> Result<(), Error> {
        let tx = &tx.writing().await;
        if old == new {
            return Err(Refusal::SameClass.into());
        }
        if self.drop(tx, student, old).await? == Change::Unneeded {
            return Err(Refusal::NotTakingOld.into());
        }
        let refusal = match self.signup(tx, student, new).await {
            Ok(Change::Made) => return Ok(()),
            Ok(Change::Unneeded) => Refusal::AlreadyTakingNew,
            Err(Error::Refused(refusal)) => refusal,
            Err(failure) => return Err(failure),
        };
        reachable!("scheduling: a refused switch keeps the old class");
        // The seat that was just given up is free in this transaction, regardless of other clients.
        self.signup(tx, student, old).await?;
        Err(refusal.into())
    }
}
