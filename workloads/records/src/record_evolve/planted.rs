//! Planted bugs: meta-data that is changed before it is used, headers and meta-data that are read or written
//! wrongly.

use super::{
    Answer, Client, Op, RecordEvolve,
    chain::{Link, place_of},
    client::{Version, answered, do_acts},
    layout::{meta_data_space, space, used_key},
    operations::{Act, ActAnswer, Wrong},
};
use crate::{
    record_build::plain::{FIELDS, INLINE},
    record_shared::layout::{Header, header_key, part, state},
    shared,
};
use foundationdb_tuple::pack;
use prost::Message;
use shaketable::{specimen::Recorded, weakened::weakened, workload::Outcome};
use shaketable_record::{
    error::Error,
    metadata::{Index, MetaDataProvider, RecordMetaData, RecordMetaDataBuilder},
};
use shaketable_tx::{Database, Isolation::Serializable, KeyValue, Transaction};
use std::{collections::BTreeMap, sync::Arc};

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
    UniquenessKept = "uniqueness-kept", "an index that is no longer unique keeps its violations, and is not readable for their sake", "a setting that is taken back";
    NewTypeDisabled = "new-type-disabled", "R26: an index that comes with its record type is disabled, although no record can lack its entries", "a new index that waits for a build";
    RenamedInTurn = "renamed-in-turn", "of record types that exchange their names, or pass them on, one is renamed after the other in the lists of the indexes", "an exchange without a third place";
    IndexedTwice = "indexed-twice", "a record type that was renamed gets the index that its field declares a second time, under its new name", "an index that is known by its name";
    InlineLess = "inline-less", "indexes of as many records as may be built where the store is opened are not built", "a limit that is not reached";
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

/// The meta-data with which a client opens the store: that of the last of these versions, with the bug.
pub fn changed(
    planted: Option<Planted>,
    chain: &[Link],
    meta_data: &Arc<RecordMetaData>,
) -> Arc<RecordMetaData> {
    let link = chain.last().expect("there is a first version");
    let builder = match planted {
        Some(Planted::ChangeUnnoticed) => link.rebuilt(|_, (index, types)| {
            Some((Index { last_modified_version: index.added_version, ..index }, types))
        }),
        Some(Planted::FormerForgotten) => link.rebuilt(|_, placed| Some(placed)),
        Some(Planted::RenamedInTurn) => {
            let types = renamed_in_turn(chain);
            link.rebuilt(|_, (index, _)| {
                let types = types.get(&index.subspace_key).cloned();
                Some((index, types))
            })
        }
        Some(Planted::IndexedTwice) => indexed_twice(link),
        _ => return meta_data.clone(),
    };
    Arc::new(builder.build().expect("valid meta-data"))
}

/// The types of the indexes that are not on all of them, by the numbers of the indexes, if of several types
/// that get other names one is renamed after the other.
fn renamed_in_turn(chain: &[Link]) -> BTreeMap<i64, Vec<String>> {
    let mut types: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    for (at, link) in chain.iter().enumerate() {
        let renamed = if at > 0 { chain[at - 1].renamed(link) } else { BTreeMap::new() };
        for (old, new) in renamed {
            let names = types.values_mut().flatten().filter(|name| *name == old);
            names.for_each(|name| *name = new.to_owned());
        }
        for index in link.definitions.iter().filter(|index| !index.types.is_empty()) {
            let name = |of: &u32| link.shape.names[*of as usize - 1].to_owned();
            types.entry(index.number).or_insert_with(|| index.types.iter().map(name).collect());
        }
    }
    types
}

/// Meta-data with a second index of the fields that declare one, if their types have been renamed.
fn indexed_twice(link: &Link) -> RecordMetaDataBuilder {
    let mut builder = link.meta_data.to_builder();
    for of in &link.shape.indexed {
        let (name, field) = (link.shape.names[*of as usize - 1], FIELDS[INLINE]);
        let index = format!("{name}${field}");
        if link.meta_data.index(&index).is_none() {
            let version = link.meta_data.version();
            let index = Index { last_modified_version: version, ..Index::new(index, field) };
            builder.add_index(Some(name), index).expect("the index is valid");
        }
    }
    builder
}

/// Opens the store, and, if it was opened with earlier meta-data before, undoes what becomes of indexes then:
/// those that came with their types are disabled, or those that are no longer unique keep what they had.
async fn use_upgraded<T: Transaction>(
    planted: Planted,
    workload: &RecordEvolve,
    tx: T,
    client: usize,
    version: &Version,
    acts: &[Act],
) -> Result<Recorded<ActAnswer>, Error> {
    let stored = read_header(&tx).await?.and_then(|header| header.meta_data);
    let before = stored.and_then(|stored| place_of(&workload.chain(), stored));
    if let Some(before) = before.filter(|before| *before < version.place) {
        let (chain, kept) = (workload.chain(), rows_of_indexes(&tx).await?);
        let [old, new] = [before, version.place].map(|place| &chain[place]);
        workload.open_store(tx.clone(), client, version).await?;
        for index in &new.definitions {
            let same = old.definitions.iter().find(|old| old.number == index.number);
            let state = space().pack(&(part::STATES, &index.name));
            match same {
                None if planted == Planted::NewTypeDisabled && new.born.contains(&index.name) => {
                    tx.set(&state, &pack(&(state::DISABLED,)));
                }
                Some(same) if planted == Planted::UniquenessKept && same.kind != index.kind => {
                    let violations = space().subspace(&(part::VIOLATIONS, index.number));
                    let is_its = |key: &[u8]| key == state || violations.is_start_of(key);
                    let rows = kept.iter().filter(|row| is_its(&row.key));
                    rows.for_each(|row| tx.set(&row.key, &row.value));
                }
                _ => {}
            }
        }
    }
    workload.use_store(tx, client, version, acts).await
}

/// The states and violations of all indexes.
async fn rows_of_indexes<T: Transaction>(tx: &T) -> Result<Vec<KeyValue>, Error> {
    let mut all = Vec::new();
    for part in [part::STATES, part::VIOLATIONS] {
        all.extend(shared::rows(tx, &space().subspace(&(part,))).await?);
    }
    Ok(all)
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
    let own = &workload.version(client.own.clone()).ok()?;
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
            Some(answered(own.place, used.await))
        }
        (Planted::OlderClaimsLatest, Op::Use(acts)) => {
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
            Some(answered(own.place, used.await))
        }
        (Planted::HeaderRewritten, Op::Use(acts)) => {
            let own_header = Header::of(own.meta_data.version());
            let (key, value) = (&header, &own_header.encode_to_vec());
            let used = client.session.apply(|tx| async move {
                tx.set(key, value);
                workload.use_store(tx, number, own, acts).await
            });
            Some(answered(own.place, used.await))
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
            Some(answered(own.place, used.await))
        }
        (Planted::NewTypeDisabled | Planted::UniquenessKept, Op::Use(acts)) if !client.is_stale => {
            let used = client
                .session
                .apply(|tx| async move { use_upgraded(planted, workload, tx, number, own, acts).await });
            Some(answered(own.place, used.await))
        }
        (Planted::NewTypeDisabled | Planted::UniquenessKept, Op::UseLatest(acts)) => {
            let used = client.session.apply(|tx| async move {
                let latest = workload.version(meta_data_store.meta_data(&tx).await?)?;
                use_upgraded(planted, workload, tx, number, &latest, acts).await
            });
            Some(answered(usize::MAX, used.await))
        }
        (Planted::OlderOverwrites, Op::SaveOwn) => {
            let saved = client.session.apply(|tx| async move {
                let (begin, end) = meta_data_space().range();
                tx.clear_range(&begin, &end);
                meta_data_store.save_record_meta_data(&tx, &own.meta_data).await?;
                Ok::<_, Error>(Recorded(vec![ActAnswer::Own(own.place, true)]))
            });
            Some(answered(own.place, saved.await))
        }
        (planted, Op::SaveWrong(wrong)) if planted.admits() == Some(*wrong) => {
            let saved = client.session.apply(|tx| async move {
                let latest = workload.version(meta_data_store.meta_data(&tx).await?)?.place;
                let (begin, end) = meta_data_space().range();
                tx.clear_range(&begin, &end);
                meta_data_store.save_record_meta_data(&tx, &links[latest].wrong(*wrong)).await?;
                Ok::<_, Error>(Recorded(vec![ActAnswer::Own(latest, true)]))
            });
            Some(answered(usize::MAX, saved.await))
        }
        (Planted::CacheStale, Op::Refresh) => {
            Some(Outcome::Answered(Answer::Told(vec![ActAnswer::Latest(own.place)])))
        }
        (Planted::EvolvedApart, Op::Evolve) => {
            let latest = db.run(|tx, _| async move { meta_data_store.load(&tx).await }).await;
            let latest = match latest {
                Ok(latest) => workload.version(latest?).ok()?.place,
                Err(e) => return Some(super::client::refused(usize::MAX, e.error)),
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
