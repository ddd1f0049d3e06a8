//! Indexed tables: users, and records whose ids may be anything.

use crate::{Layer, calls::Calls, space, written};
use foundationdb_tuple::pack;
use shaketable_layers::{
    index::{
        Index, Record, Table, covers_nothing,
        users::{User, Users},
    },
    label::Label,
};
use shaketable_sim::client::SimDatabase;
use shaketable_tx::Isolation::Serializable;

pub struct Indexes {
    users: Users,
    things: Table<Thing>,
}

/// A record that is indexed by its own bytes.
#[derive(Clone, Debug)]
struct Thing {
    id: Label,
    bytes: Vec<u8>,
}

impl Record for Thing {
    type Id = Label;

    const INDEXES: &'static [Index<Thing>] =
        &[Index { name: "bytes", key: |thing| Some(pack(&thing.bytes)), covers: covers_nothing }];

    fn id(&self) -> &Label {
        &self.id
    }

    fn encode(&self) -> Vec<u8> {
        self.bytes.clone()
    }

    fn decode(id: Label, bytes: &[u8]) -> Option<Thing> {
        Some(Thing { id, bytes: bytes.to_vec() })
    }
}

fn user(id: &str, zipcode: Option<&str>) -> User {
    User { id: id.into(), name: format!("name of {id}"), zipcode: zipcode.map(Into::into) }
}

impl Layer for Indexes {
    const NAME: &'static str = "index";

    fn new() -> Indexes {
        Indexes {
            users: Users::new(&space().subspace(&"users")),
            things: Table::new(&space().subspace(&"things")),
        }
    }

    async fn write(&self, db: &SimDatabase) {
        written(db, |tx| async move {
            self.users.set_user(&tx, &user("smith", Some("94110"))).await?;
            self.users.set_user(&tx, &user("jones", None)).await?;
            self.users.set_user(&tx, &user("", Some("94110"))).await?;
            self.things.set(&tx, &Thing { id: 7.into(), bytes: b"thing".to_vec() }).await?;
            let nested = Label::tuple(&[Label::nil(), "x".into()]);
            self.things.set(&tx, &Thing { id: nested, bytes: b"".to_vec() }).await
        })
        .await;
    }

    async fn call(&self, calls: &mut Calls) {
        let Indexes { users, things } = self;
        for id in ["smith", "jones", "", "nobody"] {
            calls.tx("Users::get_user", |tx| async move { users.get_user(&tx, id).await }).await;
            let moved = |tx| async move { users.set_user(&tx, &user(id, Some("10000"))).await };
            calls.tx("Users::set_user", moved).await;
            calls.tx("Users::delete_user", |tx| async move { users.delete_user(&tx, id).await }).await;
            let by_name = |tx| async move { users.get_user_ids_by_name(&tx, &format!("name of {id}")).await };
            calls.tx("Users::get_user_ids_by_name", by_name).await;
        }
        for zipcode in ["94110", "", "\u{10ffff}"] {
            let ids = |tx| async move { users.get_user_ids_in_region(&tx, zipcode).await };
            calls.tx("Users::get_user_ids_in_region", ids).await;
            let found = |tx| async move { users.get_users_in_region(&tx, zipcode).await };
            calls.tx("Users::get_users_in_region", found).await;
            let between = |tx| async move { users.get_user_ids_in_regions(&tx, "", zipcode).await };
            calls.tx("Users::get_user_ids_in_regions", between).await;
        }
        calls.tx("Users::table", |tx| async move { users.table().records(&tx, Serializable).await }).await;
        for id in [&Label::from(7), &Label::tuple(&[Label::nil(), "x".into()]), &Label::nil()] {
            calls.tx("Table::get", |tx| async move { things.get(&tx, id, Serializable).await }).await;
            let thing = &Thing { id: id.clone(), bytes: b"new".to_vec() };
            calls.tx("Table::set", |tx| async move { things.set(&tx, thing).await }).await;
            calls.tx("Table::delete", |tx| async move { things.delete(&tx, id).await }).await;
        }
        let find = |tx| async move { things.find(&tx, "bytes", &&b"thing"[..], Serializable).await };
        calls.tx("Table::find", find).await;
        let covered = |tx| async move { things.find_covered(&tx, "bytes", &&b""[..], Serializable).await };
        calls.tx("Table::find_covered", covered).await;
        calls
            .tx("Table::find_between", |tx| async move {
                things.find_between::<_, Label>(&tx, "bytes", .., Serializable).await
            })
            .await;
        calls
            .pages("Table::find_page", async |tx, after: Option<Label>| {
                let key = &&b"thing"[..];
                let page = things.find_page(&tx, "bytes", key, after.as_ref(), 1, Serializable).await;
                page.map(|page| page.into_iter().last().map(|(id, _)| id))
            })
            .await;
        calls.tx("Table::records", |tx| async move { things.records(&tx, Serializable).await }).await;
        calls
            .pages("Table::records_page", async |tx, after: Option<Label>| {
                let page = things.records_page(&tx, after.as_ref(), 1, Serializable).await;
                page.map(|page| page.into_iter().last().map(|thing| thing.id))
            })
            .await;
        calls.tx("Table::find", |tx| async move { things.find(&tx, "none", &1, Serializable).await }).await;
    }
}
