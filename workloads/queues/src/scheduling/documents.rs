//! The class scheduling tutorial: 1,620 classes of a hundred seats, and students who take at most five.

use crate::shared::cluster::{begin, on_cluster, session};
use foundationdb_tuple::Subspace;
use shaketable_layers::scheduling::{
    Change, Error, MAX_INIT, Refusal, Scheduling, catalogue, keys::pack_seats,
};
use shaketable_tx::{
    Database, Transaction,
    once::{Fate, OpId, Outcome},
};
use std::collections::BTreeSet;

fn scheduling() -> Scheduling {
    Scheduling::new(&Subspace::from("scheduling"))
}

#[test]
fn the_1620_classes_are_available_until_their_seats_are_taken() {
    on_cluster(|db| async move {
        let init = || db.run(|tx, _| async move { scheduling().init_catalogue(&tx).await });
        assert_eq!(init().await.expect("they fit into one transaction"), 1_620);
        let available = async || {
            let read =
                db.run(|tx, _| async move { scheduling().available_classes(&tx, None, usize::MAX).await });
            read.await.expect("classes").classes
        };
        // Pages of any size contain each class once, in a catalogue that is read in batches.
        for most in [0, 100, 1_619, 1_620, 2_000] {
            let mut classes = Vec::new();
            let mut next = None;
            loop {
                let after: &Option<String> = &next;
                let page = db.run(|tx, _| async move {
                    scheduling().available_classes(&tx, after.as_deref(), most).await
                });
                let page = page.await.expect("a page");
                assert!(page.classes.len() <= most.max(1));
                classes.extend(page.classes);
                next = page.next;
                if next.is_none() || most == 0 {
                    break;
                }
            }
            assert_eq!(classes.len(), if most == 0 { 1 } else { 1_620 });
        }
        let names: BTreeSet<String> = catalogue::class_names().collect();
        assert_eq!(available().await.into_iter().collect::<BTreeSet<_>>(), names);
        let class = &catalogue::class_name(0);
        db.run(|tx, _| async move {
            for student in 0..catalogue::SEATS {
                let signed = scheduling().signup(&tx, &format!("s{student}"), class).await?;
                assert_eq!(signed, Change::Made);
            }
            Ok::<_, Error>(())
        })
        .await
        .expect("a hundred seats");
        assert!(!available().await.contains(class));
        let tx = begin(&db);
        let late = scheduling().signup(&tx, "late", class).await;
        assert_eq!(late, Err(Error::Refused(Refusal::NoRemainingSeats)));
        assert_eq!(scheduling().drop(&tx, "s7", class).await, Ok(Change::Made));
        assert_eq!(scheduling().signup(&tx, "late", class).await, Ok(Change::Made));
        // Initialising again clears nothing: the class is still full.
        assert_eq!(init().await.expect("they fit"), 0);
        assert!(!available().await.contains(class));
    });
}

#[test]
fn a_student_takes_five_classes_and_can_switch_one() {
    on_cluster(|db| async move {
        let tx = begin(&db);
        assert_eq!(scheduling().init_catalogue(&tx).await, Ok(1_620));
        let class = catalogue::class_name;
        for place in 0..5 {
            assert_eq!(scheduling().signup(&tx, "s", &class(place)).await, Ok(Change::Made));
        }
        assert_eq!(scheduling().signup(&tx, "s", &class(0)).await, Ok(Change::Unneeded));
        let sixth = scheduling().signup(&tx, "s", &class(5)).await;
        assert_eq!(sixth, Err(Error::Refused(Refusal::TooManyClasses)));
        assert_eq!(scheduling().switch(&tx, "s", &class(0), &class(5)).await, Ok(()));
        let taken: BTreeSet<_> = scheduling().classes_of(&tx, "s").await.expect("five").into_iter().collect();
        assert_eq!(taken, (1..6).map(class).collect());
        assert_eq!(scheduling().seats_left(&tx, &class(0)).await, Ok(Some(100)));
        assert_eq!(scheduling().seats_left(&tx, &class(5)).await, Ok(Some(99)));
        assert_eq!(scheduling().seats_left(&tx, "no such class").await, Ok(None));
    });
}

#[test]
fn whether_a_class_was_added_is_recorded() {
    on_cluster(|db| async move {
        let mut session = session(&db).await;
        for change in [Change::Made, Change::Unneeded] {
            let add = session.apply(|tx| async move { scheduling().add_class(&tx, "algebra", 3).await });
            assert_eq!(add.await, Outcome::Applied(change));
        }
        let last = OpId { client: 0, epoch: 1, seq: 2 };
        assert_eq!(session.resolve::<Change>(last).await, Ok(Fate::Applied(Change::Unneeded)));
        let add = session.apply(|tx| async move { scheduling().add_class(&tx, "biology", 3).await });
        assert_eq!(add.await, Outcome::Applied(Change::Made));
        let last = OpId { seq: 3, ..last };
        assert_eq!(session.resolve::<Change>(last).await, Ok(Fate::Applied(Change::Made)));
    });
}

#[test]
fn as_many_classes_are_added_at_once_as_is_said_and_no_more() {
    on_cluster(|db| async move {
        let names = |count: usize| (0..count).map(|number| format!("class {number}"));
        let tx = begin(&db);
        assert_eq!(scheduling().init(&tx, names(MAX_INIT), 1).await, Ok(MAX_INIT));
        let more = scheduling().init(&tx, names(MAX_INIT + 1), 1).await;
        assert_eq!(more, Err(Error::Refused(Refusal::TooManyAtOnce)));
    });
}

#[test]
fn a_seat_is_not_given_back_to_a_class_that_has_all_it_can_have() {
    on_cluster(|db| async move {
        let (tx, scheduling) = (begin(&db), scheduling());
        let class = scheduling.keys().course("algebra");
        // No sign-up leads to this state.
        tx.set(&class, &pack_seats(u32::MAX));
        tx.set(&scheduling.keys().attendance("s", "algebra"), b"");
        let dropped = scheduling.drop(&tx, "s", "algebra").await;
        assert_eq!(dropped, Err(Error::Corrupt { key: class.into() }));
    });
}
