//! Class scheduling.

use crate::{Layer, calls::Calls, space, written};
use shaketable_layers::scheduling::{Error, Scheduling, keys};
use shaketable_sim::client::{SimDatabase, SimTransaction};
use shaketable_tx::{Isolation::Serializable, Transaction};

pub struct Schedulings(Scheduling);

const CLASSES: [&str; 4] = ["chem", "", "film\0", "missing"];

const STUDENTS: [&str; 3] = ["s1", "s\0", "nobody"];

impl Layer for Schedulings {
    const NAME: &'static str = "scheduling";

    fn new() -> Schedulings {
        Schedulings(Scheduling::new(&space()))
    }

    async fn write(&self, db: &SimDatabase) {
        let Schedulings(scheduling) = self;
        written(db, |tx| async move {
            scheduling.init(&tx, &CLASSES[..3], 2).await?;
            for (student, class) in [("s1", "chem"), ("s1", ""), ("s\0", "chem")] {
                scheduling.signup(&tx, student, class).await?;
            }
            scheduling.add_class(&tx, "full", 0).await
        })
        .await;
    }

    async fn call(&self, calls: &mut Calls) {
        let Schedulings(scheduling) = self;
        for class in CLASSES {
            for student in STUDENTS {
                calls
                    .tx(
                        "Scheduling::signup",
                        |tx| async move { scheduling.signup(&tx, student, class).await },
                    )
                    .await;
                calls
                    .tx("Scheduling::drop", |tx| async move { scheduling.drop(&tx, student, class).await })
                    .await;
                let switch = |tx| async move { scheduling.switch(&tx, student, "chem", class).await };
                calls.tx("Scheduling::switch", switch).await;
            }
            calls
                .tx("Scheduling::add_class", |tx| async move { scheduling.add_class(&tx, class, 9).await })
                .await;
            calls
                .tx("Scheduling::seats_left", |tx| async move { scheduling.seats_left(&tx, class).await })
                .await;
        }
        for student in STUDENTS {
            let classes = |tx| async move { scheduling.classes_of(&tx, student).await };
            calls.tx("Scheduling::classes_of", classes).await;
        }
        calls.tx("Scheduling::init", |tx| async move { scheduling.init(&tx, CLASSES, 5).await }).await;
        if calls.seldom() {
            let catalogue = |tx| async move { scheduling.init_catalogue(&tx).await };
            calls.tx("Scheduling::init_catalogue", catalogue).await;
        }
        calls
            .pages("Scheduling::available_classes", async |tx, after: Option<String>| {
                scheduling.available_classes(&tx, after.as_deref(), 1).await.map(|page| page.next)
            })
            .await;
        let rows = |tx: SimTransaction| async move {
            let keys = scheduling.keys();
            for row in tx.get_range_all(keys.courses(), Serializable).await? {
                keys.class_of_course(&row.key)?;
                keys::unpack_seats(&row.key, &row.value)?;
            }
            for row in tx.get_range_all(keys.attendances(), Serializable).await? {
                keys.student_and_class(&row.key)?;
            }
            Ok::<_, Error>(())
        };
        calls.tx("Keys::student_and_class", rows).await;
    }
}
