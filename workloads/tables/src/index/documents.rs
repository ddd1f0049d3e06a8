//! The data modeling guide, "Indexes", and the simple index recipe: users by region.

use crate::shared::cluster::{begin, on_cluster};
use foundationdb_tuple::Subspace;
use shaketable_layers::index::{
    Error,
    users::{User, Users},
};
use shaketable_tx::{Database, Isolation::Serializable, RangeOption, Transaction, Tx};

fn users() -> Users {
    Users::new(&Subspace::from("user"))
}

fn user(id: &str, name: &str, region: Option<&str>) -> User {
    User { id: id.into(), name: name.into(), zipcode: region.map(Into::into) }
}

async fn add_users(tx: &Tx) -> Result<(), Error> {
    for (id, name, region) in [
        ("jones", "Jones", Some("north")),
        ("ali", "Ali", Some("north")),
        ("wu", "Wu", Some("south")),
        ("nobody", "", None),
        ("rim", "Rim", Some("northern")),
    ] {
        users().set_user(tx, &user(id, name, region)).await?;
    }
    Ok(())
}

#[test]
fn users_are_found_by_their_region() {
    on_cluster(|db| async move {
        db.run(|tx, _| async move { add_users(&tx).await }).await.expect("they fit");
        let tx = begin(&db);
        let (ali, jones) = (("ali".to_owned(), "Ali".to_owned()), ("jones".to_owned(), "Jones".to_owned()));
        assert_eq!(
            users().get_user_ids_in_region(&tx, "north").await,
            Ok(vec!["ali".into(), "jones".into()])
        );
        assert_eq!(users().get_users_in_region(&tx, "north").await, Ok(vec![ali, jones]));
        assert_eq!(users().get_user_ids_in_region(&tx, "east").await, Ok(vec![]));
        let from_north = users().get_user_ids_in_regions(&tx, "north", "s").await.expect("a range");
        let regions: Vec<_> = from_north.iter().map(|(region, id)| (&region[..], &id[..])).collect();
        assert_eq!(regions, [("north", "ali"), ("north", "jones"), ("northern", "rim")]);
        assert_eq!(users().get_user_ids_by_name(&tx, "").await, Ok(vec!["nobody".into()]));
    });
}

#[test]
fn a_user_who_moves_is_found_in_the_new_region_only_and_is_one_user_still() {
    on_cluster(|db| async move {
        db.run(|tx, _| async move {
            add_users(&tx).await?;
            let before = users().set_user(&tx, &user("ali", "Ali", Some("south"))).await?;
            assert_eq!(before, Some(user("ali", "Ali", Some("north"))));
            assert_eq!(users().delete_user(&tx, "wu").await?, Some(user("wu", "Wu", Some("south"))));
            Ok::<_, Error>(())
        })
        .await
        .expect("they fit");
        let tx = begin(&db);
        assert_eq!(users().get_user_ids_in_region(&tx, "north").await, Ok(vec!["jones".into()]));
        assert_eq!(users().get_user_ids_in_region(&tx, "south").await, Ok(vec!["ali".into()]));
        let all = users().table().records(&tx, Serializable).await.expect("all of them");
        let ids: Vec<_> = all.iter().map(|user| &user.id[..]).collect();
        assert_eq!(ids, ["ali", "jones", "nobody", "rim"]);
        // One record each, two entries for each region and one for each name, and no old entries.
        let everything = tx.get_range_all(RangeOption::new(&b""[..], &b"\xff"[..]), Serializable).await;
        assert_eq!(everything.expect("rows").len(), 4 + 2 * 3 + 4);
    });
}
