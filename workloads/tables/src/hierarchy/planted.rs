//! Planted bugs: a hierarchy implemented or used wrongly.

use super::{Change, Hierarchy, layer, space};
use crate::models::json::{Shown, key, tuple};
use serde_json::{Map, Value};
use shaketable::prelude::*;
use shaketable_layers::hierarchy::{EMPTY_ARRAY, EMPTY_OBJECT, Error, Step};

#[shaketable::planted]
#[flaw(
    blind_insert,
    insert,
    Uncleared,
    "an insert writes its tuples in addition to whatever is stored",
    "the recipe's insert_hier"
)]
impl Hierarchy {
    /// The integers -2 and -1 are read as an empty object and an empty list.
    #[bug(get, "the recipe's markers, recognized by their first element")]
    async fn integer_markers(
        &self,
        tx: &Tx,
        isolation: Isolation,
        path: &[Step],
    ) -> Result<Option<Shown>, Error> {
        let read = layer().get(tx, path, isolation).await?;
        let marked = read.map(|value| match value.as_i64() {
            Some(EMPTY_OBJECT) => Map::new().into(),
            Some(EMPTY_ARRAY) => Vec::<Value>::new().into(),
            _ => value,
        });
        Ok(marked.as_ref().map(Shown::from))
    }

    /// A read by path returns the tree from the root on.
    #[bug(get, "the recipe's get_sub_hier")]
    async fn from_the_root(
        &self,
        tx: &Tx,
        isolation: Isolation,
        path: &[Step],
    ) -> Result<Option<Shown>, Error> {
        let read = layer().get(tx, path, isolation).await?;
        Ok(read.map(|value| Shown::from(&from_root(path, value))))
    }

    /// A missing value is read as an empty object.
    #[bug(get, "a published from_tuples")]
    async fn absent_is_empty(
        &self,
        tx: &Tx,
        isolation: Isolation,
        path: &[Step],
    ) -> Result<Option<Shown>, Error> {
        let read = layer().get(tx, path, isolation).await?;
        Ok(Some(Shown::from(&read.unwrap_or_else(|| Map::new().into()))))
    }

    /// 1.0 is stored as 1 and -0.0 as 0.
    #[bug(replace, "one type for all numbers")]
    async fn one_number(&self, tx: &Tx, change: &Change) -> Result<(), Error> {
        let (path, item) = change;
        layer().replace(tx, path, &one_number(item.value())).await
    }

    /// A leaf that is too long for a key is left out.
    #[bug(replace, "a limit that is discovered late")]
    async fn skips_long(&self, tx: &Tx, change: &Change) -> Result<(), Error> {
        match self.replace(tx, change).await {
            Err(Error::TooLarge(_)) => Ok(()),
            other => other,
        }
    }

    /// Tuples that are requested at snapshot are read serializably.
    #[bug(tuples, "an isolation that is not passed on")]
    async fn tuples_conflict(&self, tx: &Tx, path: &[Step]) -> Result<Option<Shown>, Error> {
        self.tuples(tx, Serializable, path).await
    }

    /// What is at a path is cleared before it is known whether the path can be written.
    #[bug(replace, "a refusal that comes too late")]
    async fn cleared_first(&self, tx: &Tx, change: &Change) -> Result<(), Error> {
        let replaced = self.replace(tx, change).await;
        if matches!(replaced, Err(Error::NotAnObject(_) | Error::NotAList(_) | Error::Gap { .. })) {
            let begin = key(space().bytes(), &tuple(&change.0));
            tx.clear_range(&[&begin[..], &[0]].concat(), &[&begin[..], &[0xff]].concat());
        }
        replaced
    }

    /// The members of an object are read up to the name U+FFFF.
    #[bug(get, "a range that ends at a constant")]
    async fn members_end(
        &self,
        tx: &Tx,
        isolation: Isolation,
        path: &[Step],
    ) -> Result<Option<Shown>, Error> {
        let read = layer().get(tx, path, isolation).await?;
        Ok(read.map(|value| Shown::from(&members_end(value))))
    }
}

/// An object without its members from the name U+FFFF on.
pub fn members_end(value: Value) -> Value {
    match value {
        Value::Object(members) => members.into_iter().filter(|(name, _)| &name[..] < "\u{ffff}").collect(),
        other => other,
    }
}

/// The value inside an object for each step of its path.
pub fn from_root(path: &[Step], value: Value) -> Value {
    path.iter().rev().fold(value, |inner, step| match step {
        Step::Key(name) => Value::Object([(name.clone(), inner)].into_iter().collect()),
        Step::Index(_) => Value::from(vec![inner]),
    })
}

/// The value, with every whole number as an integer.
pub fn one_number(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(x) if number.is_f64() && x.fract() == 0.0 && x.abs() < 1e15 => (x as i64).into(),
            _ => number.into(),
        },
        Value::Array(elements) => elements.into_iter().map(one_number).collect(),
        Value::Object(members) => members.into_iter().map(|(k, v)| (k, one_number(v))).collect(),
        other => other,
    }
}
