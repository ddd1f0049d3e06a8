//! How one call is performed in a transaction.

use super::{
    Answer, Key, Listed, Op, Span, Thing,
    operations::{listed, old_thing, old_user, region, told_thing, told_user},
    records::{things, users},
};
use crate::shared::{came_back, isolation, one_call, paged};
use bytes::Bytes;
use shaketable::specimen::Content;
use shaketable_layers::{
    id::Id,
    index::{Error, Old, users::User},
};
use shaketable_tx::{Isolation::Serializable, Tx};
use std::fmt::Debug;

/// The number of records on a page.
const PAGE: usize = 3;

/// Performs one call correctly.
pub(super) async fn right(tx: &Tx, op: &Op) -> Result<Answer, Error> {
    let (users, things) = (users(), things());
    let tx = &match op {
        Op::Swap(..) => one_call(tx, false).await,
        Op::InRegion(_, true) | Op::Find(..) | Op::Pages(..) | Op::Things(_) => one_call(tx, true).await,
        _ => tx.clone(),
    };
    Ok(match op {
        Op::SetUser(user) => replaced_user(came_back(users.set_user(tx, user).await?.map(Old))),
        Op::DeleteUser(id) => replaced_user(came_back(users.delete_user(tx, id).await?.map(Old))),
        Op::Swap(one, other) => {
            let one = users.get_user(tx, one).await?;
            let other = users.get_user(tx, other).await?;
            let (Some(one), Some(other)) = (one, other) else { return Ok(Answer::Swapped(false)) };
            users.set_user(tx, &User { zipcode: other.zipcode.clone(), ..one.clone() }).await?;
            users.set_user(tx, &User { zipcode: one.zipcode, ..other }).await?;
            Answer::Swapped(true)
        }
        Op::GetUser(id) => old_user(users.get_user(tx, id).await?),
        Op::InRegion(zip, covered) => {
            let ids = users.get_user_ids_in_region(tx, zip).await?;
            match covered {
                true => region(&ids, Some(&users.get_users_in_region(tx, zip).await?)),
                false => region(&ids, None),
            }
        }
        Op::InRegions(from, to) => {
            Answer::Found(vec![listed(users.get_user_ids_in_regions(tx, from, to).await?)])
        }
        Op::ByName(name) => Answer::Found(vec![listed(users.get_user_ids_by_name(tx, name).await?)]),
        Op::Users(snapshot) => {
            let all = users.table().records(tx, isolation(*snapshot)).await?;
            Answer::Found(vec![listed(all.iter().map(told_user))])
        }
        Op::Set(thing) => replaced_thing(came_back(things.set(tx, thing).await?.map(Old))),
        Op::Delete(id) => replaced_thing(came_back(things.delete(tx, id).await?.map(Old))),
        Op::Get(id, snapshot) => old_thing(things.get(tx, id, isolation(*snapshot)).await?),
        Op::Find(key, snapshot) => {
            let isolation = isolation(*snapshot);
            let (ids, covered) = match key {
                Key::Tag(tag) => (
                    things.find(tx, "tag", tag, isolation).await?,
                    things.find_covered(tx, "tag", tag, isolation).await?,
                ),
                Key::TagRank(tag, rank) => (
                    things.find(tx, "tag_rank", &(tag, *rank), isolation).await?,
                    things.find_covered(tx, "tag_rank", &(tag, *rank), isolation).await?,
                ),
                Key::Rank(rank) => (
                    things.find(tx, "rank", rank, isolation).await?,
                    things.find_covered(tx, "rank", rank, isolation).await?,
                ),
            };
            let covered = covered.iter().map(|(id, bytes)| (id, Content::from(bytes)));
            Answer::Found(vec![listed(&ids), listed(covered)])
        }
        Op::Pages(key, snapshot, most) => {
            let (things, isolation) = (&things, isolation(*snapshot));
            let page = |last: Option<&(Id, Bytes)>| {
                let after = last.map(|(id, _)| id.clone());
                async move {
                    let after = after.as_ref();
                    match key {
                        Key::Tag(tag) => things.find_page(tx, "tag", tag, after, *most, isolation).await,
                        Key::TagRank(tag, rank) => {
                            things.find_page(tx, "tag_rank", &(tag, *rank), after, *most, isolation).await
                        }
                        Key::Rank(rank) => things.find_page(tx, "rank", rank, after, *most, isolation).await,
                    }
                }
            };
            let found = paged(*most, page).await?;
            Answer::Found(vec![
                listed(found.iter().map(|(id, _)| id)),
                listed(found.iter().map(|(id, bytes)| (id, Content::from(bytes)))),
            ])
        }
        Op::Things(snapshot) => {
            let things = &things;
            let page = |last: Option<&Thing>| {
                let after = last.map(|thing| thing.id.clone());
                async move { things.records_page(tx, after.as_ref(), PAGE, isolation(*snapshot)).await }
            };
            Answer::Found(vec![listed(paged(PAGE, page).await?.iter().map(told_thing))])
        }
        Op::Between(span, snapshot) => {
            let isolation = isolation(*snapshot);
            Answer::Found(vec![match span {
                Span::Tag(from, to) => {
                    let range = (from.clone(), to.clone());
                    listed_span(things.find_between::<_, Id>(tx, "tag", range, isolation).await?)
                }
                Span::TagRank(from, to) => {
                    let range = (from.clone(), to.clone());
                    listed_span(things.find_between::<_, (Id, i64)>(tx, "tag_rank", range, isolation).await?)
                }
                Span::Rank(from, to) => {
                    let range = (*from, *to);
                    listed_span(things.find_between::<_, i64>(tx, "rank", range, isolation).await?)
                }
            }])
        }
        Op::Undeclared(true) => Answer::Found(vec![listed(things.find(tx, "body", &1, Serializable).await?)]),
        Op::Undeclared(false) => {
            Answer::Found(vec![listed_span(things.find_between(tx, "body", 1..2, Serializable).await?)])
        }
    })
}

fn listed_span<K: Debug>(found: Vec<(K, Id, Bytes)>) -> Listed {
    listed(found.into_iter().map(|(key, id, covered)| (key, id, Content::from(&covered))))
}

pub(super) fn replaced_user(old: Option<Old<User>>) -> Answer {
    old_user(old.map(|Old(user)| user))
}

pub(super) fn replaced_thing(old: Option<Old<Thing>>) -> Answer {
    old_thing(old.map(|Old(thing)| thing))
}
