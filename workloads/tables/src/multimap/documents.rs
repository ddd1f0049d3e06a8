//! Multimaps: the classes in which students are enrolled.

use crate::shared::cluster::on_cluster;
use foundationdb_tuple::{Subspace, pack};
use shaketable_layers::{
    label::Label,
    multimap::{Error, Multimap},
};
use shaketable_tx::{Database, Isolation::Serializable, Transaction, Tx};

fn enroll() -> Multimap {
    Multimap::new(Subspace::from("enroll"))
}

async fn add_class(tx: &Tx, student: &str, class: &str) -> Result<(), Error> {
    enroll().add(tx, &student.into(), &class.into()).await
}

async fn get_classes(tx: &Tx, student: &str) -> Result<Vec<Label>, Error> {
    enroll().get(tx, &student.into(), None, 100, Serializable).await
}

#[test]
fn a_student_has_the_classes_that_were_added_each_once() {
    on_cluster(|db| async move {
        let added = db.run(|tx, _| async move {
            add_class(&tx, "ada", "2:00 film 101").await?;
            add_class(&tx, "ada", "10:00 bio seminar").await?;
            add_class(&tx, "ada", "2:00 film 101").await?;
            add_class(&tx, "adam", "9:00 chem lab").await
        });
        added.await.expect("classes");
        let read = db.run(|tx, _| async move {
            let classes = get_classes(&tx, "ada").await?;
            let takes =
                enroll().is_element(&tx, &"ada".into(), &"2:00 film 101".into(), Serializable).await?;
            let stored = tx.get(&pack(&("enroll", "adam", "9:00 chem lab")), Serializable).await?;
            Ok::<_, Error>((classes, takes, stored))
        });
        let (classes, takes, stored) = read.await.expect("a look");
        assert_eq!(classes, ["10:00 bio seminar".into(), "2:00 film 101".into()]);
        assert!(takes);
        assert_eq!(stored.as_deref(), Some(&b""[..]));
    });
}
