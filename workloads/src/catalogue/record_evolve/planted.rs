//! Planted bugs: meta-data that is changed before it is used, headers and meta-data that are read or written wrongly.

use super::{
    Answer, Client, Op, RecordEvolve,
    chain::Link,
    client::{Version, do_acts, told},
    layout::{meta_data_space, space, used_key},
    operations::{Told, Wrong},
};
use crate::catalogue::{
    record_build::plain,
    record_shared::layout::{Header, header_key, part},
};
use foundationdb_tuple::pack;
use prost::Message;
use shaketable::{specimen::Recorded, weakened::weakened, workload::Outcome};
use shaketable_layers::tx::{Database, Isolation::Serializable, Transaction};
use shaketable_record::{
    error::Error,
    metadata::{MetaDataProvider, RecordMetaData},
};
use std::sync::Arc;

shaketable::planted_bugs! {
    HeaderAtSnapshot = "header-at-snapshot", "R25: the header and the states of the indexes are read at snapshot", "a change of the meta-data that is missed";
    OlderClaimsLatest = "older-claims-latest", "R25: a client whose meta-data is refused opens the store with the same under the store's version", "a version that is raised by hand";
    HeaderApart = "header-apart", "R25: the header gets the later version in a transaction of its own, before the indexes are looked at", "an upgrade that an unknown result divides";
    HeaderRewritten = "header-rewritten", "R25: every client writes the version of its own meta-data to the header before it opens the store", "a header that goes back";
    IndexReadable = "index-readable", "R26: an index that is new, or was changed, is readable at once", "a new index on a store with records";
    ChangeUnnoticed = "change-unnoticed", "R26: the meta-data does not say when an index was changed", "an index with entries of its older form";
    FormerForgotten = "former-forgotten", "R26: the meta-data does not say which indexes were removed", "rows of an index that nobody maintains";
    OlderOverwrites = "older-overwrites", "R34: older meta-data is saved over newer", "a save without a comparison";
    CacheStale = "cache-stale", "R34: a client that has loaded the meta-data does not ask again whether it is still the one that is saved", "a cache that no transaction checks";
    NarrowedAdmitted = "narrowed-admitted", "meta-data is saved in which a field has fewer bits than before", "records that can no longer be read";
    TypeTakenAdmitted = "type-taken-admitted", "meta-data is saved in which an index has lost a record type without having been changed", "entries that nobody maintains";
    ShorterAdmitted = "shorter-admitted", "meta-data is saved without an index that it had", "rows that nobody clears";
    AlteredAdmitted = "altered-admitted", "meta-data is saved in which an index has another expression without having been changed", "an index with entries of its older form";
    UnraisedAdmitted = "unraised-admitted", "other meta-data is saved under the version that is saved", "two kinds of meta-data with one version";
    EvolvedApart = "evolved-apart", "R34: the next version of the meta-data is found in an earlier transaction than it is saved in", "a version that two clients give";
}

impl Planted {
    /// What is saved although it cannot follow what was saved before.
    fn admits(self) -> Option<Wrong> {
        Some(match self {
            Planted::NarrowedAdmitted => Wrong::Narrowed,
            Planted::TypeTakenAdmitted => Wrong::TypeTaken,
            Planted::ShorterAdmitted => Wrong::Shorter,
            Planted::AlteredAdmitted => Wrong::Altered,
            Planted::UnraisedAdmitted => Wrong::Unraised,
            _ => return None,
        })
    }
}

/// The meta-data with which a client opens the store.
pub fn changed(
    planted: Option<Planted>,
    link: &Link,
    meta_data: &Arc<RecordMetaData>,
) -> Arc<RecordMetaData> {
    match planted {
        Some(planted @ (Planted::ChangeUnnoticed | Planted::FormerForgotten)) => {
            Arc::new(forgetful(planted, link, meta_data))
        }
        _ => meta_data.clone(),
    }
}

/// Meta-data that does not say when an index was changed, or which indexes were removed.
fn forgetful(planted: Planted, link: &Link, meta_data: &RecordMetaData) -> RecordMetaData {
    let mut builder = plain::meta_data(link.types, link.fields, &[]);
    for index in meta_data.indexes() {
        let mut index = (**index).clone();
        if planted == Planted::ChangeUnnoticed {
            index.last_modified_version = index.added_version;
        }
        let types: Option<Vec<&str>> =
            meta_data.types_of(&index).map(|types| types.iter().map(|name| &**name).collect());
        let added = match types {
            Some(types) => builder.add_multi_type_index(types, index),
            None => builder.add_index(None, index),
        };
        added.expect("the index is valid");
    }
    builder.set_version(meta_data.version()).build().expect("valid meta-data")
}

/// The store's header.
async fn read_header<T: Transaction>(tx: &T) -> Result<Option<Header>, Error> {
    let stored = tx.get(&header_key(&space()), Serializable).await?;
    Ok(stored.and_then(|value| Header::decode(value).ok()))
}

/// Performs an operation that the bug changes; `None` for every other operation.
pub async fn apply<D: Database>(
    planted: Planted,
    workload: &RecordEvolve,
    client: &mut Client<D>,
    op: &Op,
) -> Option<Outcome<Answer>> {
    let (db, number, chain) = (&client.session.database().clone(), client.number, workload.chain());
    let own = &workload.version(client.own.clone());
    let (links, meta_data_store) = (&chain[..], &client.meta_data_store.clone());
    let header = header_key(&space());
    match (planted, op) {
        (Planted::HeaderAtSnapshot, Op::Use(acts)) if !client.is_stale => {
            let end = [&header[..], b"\x00"].concat();
            let spans = &vec![(header, end), space().subspace(&(part::STATES,)).range()];
            let used = client.session.apply(|tx| async move {
                let tx = weakened(tx, spans.clone());
                workload.use_store(tx, number, own, acts).await
            });
            Some(told(own.place, used.await))
        }
        (Planted::OlderClaimsLatest, Op::Use(acts)) => {
            let used = client.session.apply(|tx| async move {
                let stored = read_header(&tx).await?.and_then(|header| header.meta_data);
                let version = own.meta_data.version().max(stored.unwrap_or_default());
                let mut builder = own.meta_data.to_builder();
                let claimed = Arc::new(builder.set_version(version).build()?);
                let place = workload.version(claimed.clone()).place;
                let version = Version { place, meta_data: claimed };
                let store = workload.open_store(tx, number, &version).await?;
                do_acts(store, &links[own.place], place, acts).await
            });
            Some(told(own.place, used.await))
        }
        (Planted::HeaderApart, Op::Use(acts)) if !client.is_stale => {
            let version = own.meta_data.version();
            let raised = db.run(|tx, _| {
                let header = &header;
                async move {
                    if let Some(stored) =
                        read_header(&tx).await?.filter(|stored| stored.meta_data < Some(version))
                    {
                        let raised = Header { meta_data: Some(version), ..stored };
                        tx.set(&used_key(number), &pack(&(own.place as i64,)));
                        tx.set(header, &raised.encode_to_vec());
                    }
                    Ok::<_, Error>(())
                }
            });
            if let Err(e) = raised.await {
                return Some(super::client::refused(own.place, e.error));
            }
            let used =
                client.session.apply(|tx| async move { workload.use_store(tx, number, own, acts).await });
            Some(told(own.place, used.await))
        }
        (Planted::HeaderRewritten, Op::Use(acts)) => {
            let own_header = Header::of(own.meta_data.version());
            let (key, value) = (&header, &own_header.encode_to_vec());
            let used = client.session.apply(|tx| async move {
                tx.set(key, value);
                workload.use_store(tx, number, own, acts).await
            });
            Some(told(own.place, used.await))
        }
        (Planted::IndexReadable, Op::Use(acts)) if !client.is_stale => {
            let used = client.session.apply(|tx| async move {
                let stored = read_header(&tx).await?.and_then(|header| header.meta_data);
                if stored < Some(own.meta_data.version()) {
                    workload.open_store(tx.clone(), number, own).await?;
                    let (begin, end) = space().subspace(&(part::STATES,)).range();
                    tx.clear_range(&begin, &end);
                }
                workload.use_store(tx, number, own, acts).await
            });
            Some(told(own.place, used.await))
        }
        (Planted::OlderOverwrites, Op::SaveOwn) => {
            let saved = client.session.apply(|tx| async move {
                let (begin, end) = meta_data_space().range();
                tx.clear_range(&begin, &end);
                meta_data_store.save_record_meta_data(&tx, &own.meta_data).await?;
                Ok::<_, Error>(Recorded(vec![Told::Own(own.place, true)]))
            });
            Some(told(own.place, saved.await))
        }
        (planted, Op::SaveWrong(wrong)) if planted.admits() == Some(*wrong) => {
            let saved = client.session.apply(|tx| async move {
                let latest = workload.version(meta_data_store.meta_data(&tx).await?).place;
                let (begin, end) = meta_data_space().range();
                tx.clear_range(&begin, &end);
                meta_data_store.save_record_meta_data(&tx, &links[latest].wrong(*wrong)).await?;
                Ok::<_, Error>(Recorded(vec![Told::Own(latest, true)]))
            });
            Some(told(usize::MAX, saved.await))
        }
        (Planted::CacheStale, Op::Refresh) => {
            Some(Outcome::Answered(Answer::Told(vec![Told::Latest(own.place)])))
        }
        (Planted::EvolvedApart, Op::Evolve) => {
            let latest = db.run(|tx, _| async move { meta_data_store.load(&tx).await }).await;
            let latest = match latest {
                Ok(latest) => workload.version(latest?).place,
                Err(e) => return Some(super::client::refused(usize::MAX, e.error)),
            };
            let next = (latest + 1).min(links.len() - 1);
            let saved = client.session.apply(|tx| async move {
                let (begin, end) = meta_data_space().range();
                tx.clear_range(&begin, &end);
                meta_data_store.save_record_meta_data(&tx, &links[next].meta_data).await?;
                Ok::<_, Error>(Recorded(vec![Told::Latest(next)]))
            });
            Some(told(own.place, saved.await))
        }
        _ => None,
    }
}
