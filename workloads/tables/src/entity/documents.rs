//! The data modeling guide, "Entity-relationship models": users, their regions and their groups.

use crate::shared::cluster::{begin, on_cluster, session};
use foundationdb_tuple::Subspace;
use shaketable_layers::{
    entity::{
        Cardinality::{self, *},
        Direction::{Forward, Inverse},
        Entities, Error,
    },
    id::Id,
};
use shaketable_tx::{
    Isolation::Serializable,
    Transaction, Tx,
    once::Outcome::{Applied, Refused},
};
use std::collections::BTreeSet;

fn er() -> Entities {
    let relationships =
        [("belongs_to", ManyToMany), ("leads", OneToMany), ("member_of", ManyToOne), ("spouse", OneToOne)];
    Entities::new(Subspace::from("ER"), relationships)
}

async fn add_user_region(tx: &Tx, user: &Id, region: &str) -> Result<(), Error> {
    er().add_attribute_value(tx, user, "region", region.as_bytes()).await
}

async fn add_user_to_group(tx: &Tx, user: &Id, group: &str) -> Result<(), Error> {
    er().add_relationship(tx, "belongs_to", user, &group.into()).await
}

async fn get_users_groups(tx: &Tx, user: &Id) -> Result<BTreeSet<Id>, Error> {
    er().get_related_entities(tx, "belongs_to", Forward, user, Serializable).await
}

fn ids<const N: usize>(names: [&str; N]) -> BTreeSet<Id> {
    names.map(Id::from).into()
}

#[test]
fn a_users_region_is_an_attribute() {
    on_cluster(|db| async move {
        let (tx, user) = (begin(&db), Id::from(7));
        let region = async || er().get_attribute_value(&tx, &user, "region", Serializable).await.unwrap();
        assert_eq!(region().await, None);
        add_user_region(&tx, &user, "north").await.unwrap();
        assert_eq!(region().await.as_deref(), Some(&b"north"[..]));
        add_user_region(&tx, &user, "").await.unwrap();
        assert_eq!(region().await.as_deref(), Some(&b""[..]));
    });
}

#[test]
fn users_belong_to_groups() {
    on_cluster(|db| async move {
        let (tx, smith, jones) = (begin(&db), Id::from("smith"), Id::from("jones"));
        for (user, group) in [(&smith, "tennis"), (&smith, "chess"), (&jones, "chess"), (&smith, "chess")] {
            add_user_to_group(&tx, user, group).await.unwrap();
        }
        assert_eq!(get_users_groups(&tx, &smith).await, Ok(ids(["chess", "tennis"])));
        let chess = Id::from("chess");
        let members = er().get_related_entities(&tx, "belongs_to", Inverse, &chess, Serializable).await;
        assert_eq!(members, Ok(ids(["jones", "smith"])));
        let pairs = er().get_relationships(&tx, "belongs_to", Serializable).await;
        let expected = [("jones", "chess"), ("smith", "chess"), ("smith", "tennis")];
        assert_eq!(pairs, Ok(expected.map(|(user, group)| (user.into(), group.into())).into()));
        let is = async |user, group: &str| {
            er().is_related_entity(&tx, "belongs_to", user, &group.into(), Serializable).await
        };
        assert_eq!((is(&smith, "tennis").await, is(&jones, "tennis").await), (Ok(true), Ok(false)));
        er().remove_relationship(&tx, "belongs_to", &smith, &chess).await.unwrap();
        assert_eq!(get_users_groups(&tx, &smith).await, Ok(ids(["tennis"])));
    });
}

#[test]
fn deleting_a_group_leaves_no_dangling_relationship() {
    on_cluster(|db| async move {
        let (tx, smith, chess) = (begin(&db), Id::from("smith"), Id::from("chess"));
        add_user_to_group(&tx, &smith, "chess").await.unwrap();
        add_user_to_group(&tx, &smith, "tennis").await.unwrap();
        er().add_attribute_value(&tx, &chess, "room", b"4").await.unwrap();
        er().add_relationship(&tx, "leads", &chess, &smith).await.unwrap();
        assert_eq!(er().delete_entity(&tx, &chess).await, Ok(2));
        assert_eq!(get_users_groups(&tx, &smith).await, Ok(ids(["tennis"])));
        let rest = tx.get_range_all(Subspace::from("ER").range().into(), Serializable).await.unwrap();
        assert_eq!(rest.len(), 2, "one pair, seen from both sides: {rest:?}");
    });
}

#[test]
fn cardinalities_are_enforced() {
    on_cluster(|db| async move {
        let tx = begin(&db);
        let relate = async |relationship: &str, primary: &str, foreign: &str| {
            er().add_relationship(&tx, relationship, &primary.into(), &foreign.into()).await
        };
        let refused = |relationship: &str, cardinality: Cardinality, entity: &str, related: &str| {
            let (relationship, entity, related) = (relationship.into(), entity.into(), related.into());
            Err(Error::Cardinality { relationship, cardinality, entity, related })
        };
        // One leader has many groups; a group has one leader.
        assert_eq!(relate("leads", "smith", "chess").await, Ok(()));
        assert_eq!(relate("leads", "smith", "tennis").await, Ok(()));
        assert_eq!(relate("leads", "smith", "chess").await, Ok(()));
        assert_eq!(relate("leads", "jones", "chess").await, refused("leads", OneToMany, "chess", "smith"));
        // A user is a member of one club; a club has many.
        assert_eq!(relate("member_of", "smith", "north").await, Ok(()));
        assert_eq!(relate("member_of", "jones", "north").await, Ok(()));
        let second = relate("member_of", "smith", "south").await;
        assert_eq!(second, refused("member_of", ManyToOne, "smith", "north"));
        // Both sides have one.
        assert_eq!(relate("spouse", "smith", "jones").await, Ok(()));
        assert_eq!(relate("spouse", "smith", "baker").await, refused("spouse", OneToOne, "smith", "jones"));
        assert_eq!(relate("spouse", "baker", "jones").await, refused("spouse", OneToOne, "jones", "smith"));
        assert_eq!(relate("knows", "a", "b").await, Err(Error::UnknownRelationship("knows".into())));
    });
}

#[test]
fn a_group_is_joined_and_deleted_exactly_once() {
    on_cluster(|db| async move {
        let (mut session, smith, chess) = (session(&db).await, Id::from("smith"), Id::from("chess"));
        let (er, smith, chess) = (&er(), &smith, &chess);
        let joined = session.apply(|tx| async move {
            er.add_attribute_value(&tx, smith, "region", b"north").await?;
            er.add_relationship(&tx, "belongs_to", smith, chess).await
        });
        assert_eq!(joined.await, Applied(()));
        let relate = |tx| async move { er.add_relationship(&tx, "knows", smith, chess).await };
        assert_eq!(session.apply(relate).await, Refused(Error::UnknownRelationship("knows".into())));
        let deleted = session.apply(|tx| async move { er.delete_entity(&tx, chess).await }).await;
        assert_eq!(deleted, Applied(1));
        assert_eq!(get_users_groups(&begin(&db), smith).await, Ok(ids([])));
    });
}

#[test]
fn pairs_are_read_in_pages() {
    on_cluster(|db| async move {
        let (tx, er, all) = (begin(&db), &er(), "belongs_to");
        for (user, group) in [("a", "x"), ("a", "y"), ("b", "x"), ("c", "x")] {
            add_user_to_group(&tx, &user.into(), group).await.unwrap();
        }
        let pair = |user: &str, group: &str| (Id::from(user), Id::from(group));
        let first = er.get_relationships_page(&tx, all, None, 2, Serializable).await.unwrap();
        assert_eq!(first, [pair("a", "x"), pair("a", "y")]);
        let (user, group) = &first[1];
        let rest = er.get_relationships_page(&tx, all, Some((user, group)), 9, Serializable).await;
        assert_eq!(rest, Ok(vec![pair("b", "x"), pair("c", "x")]));
        let (a, b, x) = (Id::from("a"), Id::from("b"), Id::from("x"));
        let members = async |after, limit| {
            er.get_related_entities_page(&tx, all, (Inverse, &x), after, limit, Serializable).await
        };
        assert_eq!(members(None, 1).await, Ok(vec![a.clone()]));
        assert_eq!(members(Some(&a), 1).await, Ok(vec![b]));
        assert_eq!(members(Some(&a), 0).await, Ok(vec![]));
    });
}
