//! Planted bugs: meta-data that is changed before it is used, headers and meta-data that are read or written
//! wrongly.

use super::{
    Answer, Client, RecordEvolve, RecordEvolveOp,
    chain::Link,
    client::{Version, answered, do_acts, refused},
    layout::{meta_data_space, space, used_key},
    operations::ActAnswer,
};
use crate::record_shared::layout::{Header, header_key, part};
use foundationdb_tuple::pack;
use prost::Message;
use shaketable::{specimen::Recorded, weakened::weakened, workload::Outcome};
use shaketable_record::{
    error::Error,
    metadata::{Index, RecordMetaData},
};
use shaketable_tx::{Database, Isolation::Serializable, Transaction, Tx};
use std::sync::Arc;

shaketable::planted_bugs! {
    HeaderAtSnapshot = "header-at-snapshot", "R25: the header and the states of the indexes are read at snapshot", "a change of the meta-data that is missed";
    OlderClaimsLatest = "older-claims-latest", "R25: a client whose meta-data is refused opens the store with the same under the store's version", "a version that is raised by hand";
    HeaderApart = "header-apart", "R25: the header gets the later version in a transaction of its own, before the indexes are looked at", "an upgrade that an unknown result divides";
    ChangeUnnoticed = "change-unnoticed", "R26: the meta-data does not say when an index was changed", "an index with entries of its older form";
    FormerForgotten = "former-forgotten", "R26: the meta-data does not say which indexes were removed", "rows of an index that nobody maintains";
    EvolvedApart = "evolved-apart", "R34: the next version of the meta-data is found in an earlier transaction than it is saved in", "a version that two clients give";
}

/// The meta-data of a version with which a client opens the store.
pub fn changed(
    planted: Option<Planted>,
    link: &Link,
    meta_data: &Arc<RecordMetaData>,
) -> Arc<RecordMetaData> {
    let builder = match planted {
        Some(Planted::ChangeUnnoticed) => link.rebuilt(|_, (index, types)| {
            Some((Index { last_modified_version: index.added_version, ..index }, types))
        }),
        Some(Planted::FormerForgotten) => link.rebuilt(|_, placed| Some(placed)),
        _ => return meta_data.clone(),
    };
    Arc::new(builder.build().expect("valid meta-data"))
}

/// The store's header.
async fn read_header(tx: &Tx) -> Result<Option<Header>, Error> {
    let stored = tx.get(&header_key(&space()), Serializable).await?;
    Ok(stored.and_then(|value| Header::decode(value).ok()))
}

/// Performs an operation that the bug changes; `None` for every other operation.
pub async fn apply(
    planted: Planted,
    workload: &RecordEvolve,
    client: &mut Client,
    op: &RecordEvolveOp,
) -> Option<Outcome<Answer>> {
    let (db, number, links) = (&client.session.database().clone(), client.number, &workload.chain());
    let (own, meta_data_store) = (&client.own, &client.meta_data_store);
    let header = header_key(&space());
    match (planted, op) {
        (Planted::HeaderAtSnapshot, RecordEvolveOp::use_own { acts }) if !client.is_stale => {
            let end = [&header[..], b"\x00"].concat();
            let spans = &vec![(header, end), space().subspace(&(part::STATES,)).range()];
            let used = client.session.apply(|tx| async move {
                let tx = weakened(tx, spans.clone());
                workload.use_store(tx, number, own, acts).await
            });
            Some(answered(own.place, used.await))
        }
        (Planted::OlderClaimsLatest, RecordEvolveOp::use_own { acts }) => {
            let used = client.session.apply(|tx| async move {
                let stored = read_header(&tx).await?.and_then(|header| header.meta_data);
                let version = own.meta_data.version().max(stored.unwrap_or_default());
                let mut builder = own.meta_data.to_builder();
                let claimed = Arc::new(builder.set_version(version).build()?);
                let place = workload.version(claimed.clone())?.place;
                let version = Version { place, meta_data: claimed };
                let store = workload.open_store(tx, number, &version).await?;
                do_acts(store, &links[own.place], place, acts).await
            });
            Some(answered(own.place, used.await))
        }
        (Planted::HeaderApart, RecordEvolveOp::use_own { acts }) if !client.is_stale => {
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
                return Some(refused(own.place, e.error));
            }
            let used =
                client.session.apply(|tx| async move { workload.use_store(tx, number, own, acts).await });
            Some(answered(own.place, used.await))
        }
        (Planted::EvolvedApart, RecordEvolveOp::evolve {}) => {
            let latest = db.run(|tx, _| async move { meta_data_store.load(&tx).await }).await;
            let latest = match latest {
                Ok(latest) => workload.version(latest?).ok()?.place,
                Err(e) => return Some(refused(usize::MAX, e.error)),
            };
            let next = (latest + 1).min(links.len() - 1);
            let saved = client.session.apply(|tx| async move {
                let (begin, end) = meta_data_space().range();
                tx.clear_range(&begin, &end);
                meta_data_store.save_record_meta_data(&tx, &links[next].meta_data).await?;
                Ok::<_, Error>(Recorded(vec![ActAnswer::Latest(next)]))
            });
            Some(answered(own.place, saved.await))
        }
        _ => None,
    }
}
