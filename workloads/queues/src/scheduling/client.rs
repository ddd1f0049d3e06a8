//! How one call is performed in a transaction.

use super::{Answer, Op, Signups, operations::student};
use crate::shared::{came_back, one_call};
use foundationdb_tuple::{Subspace, pack};
use shaketable::specimen::Content;
use shaketable_layers::scheduling::{self, Error, Scheduling};
use shaketable_tx::{Isolation::Serializable, KeyValue, Transaction, Tx};

pub(super) fn scheduling() -> Scheduling {
    Scheduling::new(&Subspace::from("scheduling"))
}

pub(super) fn page(classes: &[String], next: Option<&String>) -> Answer {
    Answer::Page(classes.len(), Content::from(&pack(&classes.to_vec())), next.map(Content::from))
}

pub(super) fn contents(names: &[String]) -> Answer {
    Answer::Classes(names.iter().map(Content::from).collect())
}

impl Signups {
    /// Performs a call correctly.
    pub(super) async fn call(&self, tx: &Tx, op: &Op) -> Result<Answer, Error> {
        let scheduling = scheduling();
        Ok(match op {
            Op::AddClass(class, seats) => {
                Answer::Change(came_back(scheduling.add_class(tx, &self.class(*class), *seats).await?))
            }
            Op::InitMany(0) => Answer::Added(scheduling.init_catalogue(tx).await?),
            Op::Init | Op::InitSome(_) | Op::InitMany(_) => {
                Answer::Added(scheduling.init(tx, &self.initialised(op), self.seats).await?)
            }
            Op::Signup(s, class) => {
                Answer::Change(came_back(scheduling.signup(tx, &student(*s), &self.class(*class)).await?))
            }
            Op::Drop(s, class) => {
                Answer::Change(came_back(scheduling.drop(tx, &student(*s), &self.class(*class)).await?))
            }
            Op::Switch(s, old, new) => {
                scheduling.switch(tx, &student(*s), &self.class(*old), &self.class(*new)).await?;
                Answer::Switched
            }
            Op::Available(after, most) => {
                let after = after.map(|class| self.class(class));
                let scheduling::Page { classes, next } =
                    scheduling.available_classes(tx, after.as_deref(), *most).await?;
                page(&classes, next.as_ref())
            }
            Op::ClassesOf(s) => contents(&scheduling.classes_of(tx, &student(*s)).await?),
            Op::SeatsLeft(class) => Answer::Seats(scheduling.seats_left(tx, &self.class(*class)).await?),
            Op::SignUps(most) => {
                let range = scheduling.keys().attendances().limit((*most).max(1));
                let rows = one_call(tx, true).await.get_range_all(range, Serializable).await?;
                let sign_up = |row: &KeyValue| {
                    let (student, class) = scheduling.keys().student_and_class(&row.key)?;
                    Ok((Content::from(&student), Content::from(&class)))
                };
                Answer::SignUps(rows.iter().map(sign_up).collect::<Result<_, Error>>()?)
            }
            // The caller handles refusals.
            Op::Anyway(op) => Box::pin(self.call(tx, op)).await?,
        })
    }
}
