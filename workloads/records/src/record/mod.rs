//! `record`: records of two types in one store of the Record Layer, with indexes of all kinds.
//!
//! Clients save, insert, update and delete records whose primary keys they share: a record replaces one of
//! the other type, unless primary keys begin with the type. Records are deleted one by one, by the first
//! columns of their primary keys, and all at once; a few are so large that they take several rows. They are
//! loaded, and listed by their primary keys and by each index, in pages of any size, and aggregates of
//! several groups are evaluated. Indexes are disabled, and the store is opened with later meta-data, which
//! removes one index and adds another. The keys of unique indexes have nulls, and some nulls are compared and
//! others not.
//!
//! Several calls are done in one transaction, some in one record context, others each in its own, and with an
//! operation record. At every version each index must be the projection of the records, computed here from
//! plain records; the unique indexes must be unique; the header and the states of indexes must be what they
//! should be; and there must be no other row. The version of a record must be the versionstamp of its last
//! write.

mod answers;
mod calls;
mod custom;
mod faulty;
mod indexes;
mod layout;
mod model;
mod plain;
mod planted;
mod ranked;
mod refusals;
mod scans;
mod schema;
mod span;
mod stored;

pub use model::Model;

use crate::{beside, record_shared::layout::part, shared::isolation};
use answers::{Listed, Returned, listed};
use calls::{Check, Ending, Who, Within, returned};
use indexes::{Definition, definitions};
use model::{State, own_version};
use plain::{Body, COLORS, Fields, Part, Place, Record};
use proptest::option;
use schema::{Schema, tuple};
use shaketable::{prelude::*, real::key_room, specimen::Answer, strategies};
use shaketable_record::{
    cursor::Spent,
    error::Error,
    store::{RecordContext, SaveVersion, describe_key, describe_value},
    version::RecordVersion,
};
use span::{Span, pages, span};
use std::ops::Range;

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Records {
    schema: Schema,
    /// The version of the application, in the store's header.
    user: Option<i32>,
    /// Whether some open the store without a version of the application.
    forgets: bool,
    /// Whether there is a store from the beginning.
    created: bool,
    /// How many shelves, numbers on them and skus are used.
    shelves: usize,
    ids: usize,
    skus: usize,
    /// Whether some records take several rows.
    large: bool,
    /// Whether indexes are disabled, and whether the store is opened with later meta-data.
    disables: bool,
    upgrades: bool,
    /// Whether all records are often deleted at once.
    wipes: bool,
    /// Whether records are saved as messages with a descriptor.
    dynamic: bool,
    /// Whether the calls of a transaction are done in one context, and whether each of them opens the store
    /// again there.
    shares: bool,
    reopens: bool,
    /// Whether a transaction that opens the store for each of its calls does so before the first of them.
    opens_first: bool,
    ending: Ending,
    /// The weight of inserts among saves.
    inserts: u32,
    /// The weights of saves, deletions, looks and scans.
    mix: [u32; 4],
    /// Where the next call finds the store; no part of what is drawn.
    #[serde(skip)]
    within: Within,
}

/// A record's type, by its key, and its place. The type counts only if primary keys begin with it.
type Target = (i64, Place);

/// Records of two types in one store: each index is the projection of the records, unique ones are unique.
#[shaketable::workload(name = "record", model = Model, planted, promises(turns, limits))]
impl Records {
    /// A save changes fifteen indexes: fewer transactions take as long as those of other workloads.
    const TRANSACTIONS: Range<u64> = 8..30;

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Records {
        let typed = rng.chance(0.3);
        let versions = rng.chance(0.5);
        let mut drawn = Records {
            schema: Schema {
                typed,
                prefix: rng.range(0..if typed { 3 } else { 2 }) as usize,
                versions,
                splits: rng.chance(0.9),
                indexed: rng.chance(0.9),
                mistake: None,
            },
            user: *rng.pick(&[None, Some(0), Some(300)]),
            forgets: false,
            created: rng.chance(0.8),
            shelves: rng.range(1..5) as usize,
            ids: rng.range(1..5) as usize,
            skus: rng.range(1..6) as usize,
            large: rng.chance(0.3),
            disables: rng.chance(0.2),
            upgrades: rng.chance(0.3),
            wipes: rng.chance(0.2),
            dynamic: rng.chance(0.5),
            shares: rng.chance(0.5),
            reopens: rng.chance(0.5),
            opens_first: rng.chance(0.5),
            ending: *rng.pick(&[Ending::Flush, Ending::Close, Ending::Drop]),
            inserts: *rng.pick(&[1, 3, 30]),
            mix: [rng.range(2..8), rng.range(1..4), rng.range(1..5), rng.range(1..5)].map(|w| w as u32),
            within: Within::default(),
        };
        // Who creates a store gives it its version.
        drawn.forgets = rng.chance(0.5) && drawn.created && drawn.user.is_some();
        if let Some(bug) = bug {
            drawn.suit(bug);
        }
        // Nothing is disabled, removed or added then.
        drawn.disables &= drawn.schema.indexed;
        drawn.upgrades &= drawn.schema.indexed;
        drawn
    }

    fn points() -> &'static [&'static str] {
        &[
            "record: a record is split over several rows",
            "record: a record of another type is replaced",
            "record: a store is opened with later meta-data",
            "record: a unique index refuses a key",
            "record: the entry of an incomplete version is taken back",
            "record: the rows of the old record are not all overwritten",
        ]
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        let parts = [part::RECORDS, part::INDEXES].map(|number| layout::part_of(number).into_bytes());
        let indexes = definitions(&self.schema);
        parts
            .into_iter()
            .chain(indexes.iter().map(|index| layout::index(index.number).into_bytes()))
            .collect()
    }

    fn describe_key(&self, key: &[u8]) -> Option<String> {
        describe_key(&layout::store(), &self.schema.meta_data()[1], key)
    }

    fn describe_value(&self, key: &[u8], value: &[u8]) -> Option<String> {
        describe_value(&layout::store(), &self.schema.meta_data()[1], key, value)
    }

    /// The keys of rows beside the store.
    fn beside(&self) -> Vec<Vec<u8>> {
        // The first one is in the subspace, where a new store refuses to be created.
        beside::of(layout::store().bytes()).split_off(1)
    }

    async fn setup(&self, db: &Db) -> tx::Result<()> {
        beside::plant(db, &self.beside()).await?;
        if !self.created {
            return Ok(());
        }
        let [first, _] = &self.stores(self.user);
        let created = db.run(|tx, _| async move { first.create(&RecordContext::within(tx)).await.map(drop) });
        created.await.map_err(|e| e.error.fdb().unwrap_or(tx::Error::INTERNAL_ERROR))
    }

    fn text(&self, most: usize) -> BoxedStrategy<String> {
        let texts = &strategies::CONFUSED_TEXT[..most.min(strategies::CONFUSED_TEXT.len())];
        select(texts.to_vec()).prop_map(str::to_owned).boxed()
    }

    fn place(&self) -> BoxedStrategy<Place> {
        let ids = [-1, 0, 1, 255, 256, i64::MAX][..self.ids].to_vec();
        (self.text(self.shelves), select(ids)).prop_map(|(shelf, id)| Place { shelf, id }).boxed()
    }

    #[draws(record, like)]
    fn record(&self) -> BoxedStrategy<Record> {
        let item = (
            option::weighted(0.7, self.text(2)),
            option::weighted(0.5, select(vec![0, 1, 300])),
            vec(
                (option::of(self.text(2)), option::of(select(vec![0, -1, 256])))
                    .prop_map(|(kind, size)| Part { kind, size }),
                0..3,
            ),
        );
        let code = select(strategies::CONFUSED[..4].to_vec()).prop_map(<[u8]>::to_vec);
        let note = (option::of(any::<bool>()), option::of(select(COLORS.to_vec())), option::of(code));
        let fields = prop_oneof![
            item.prop_map(|(owner, slot, parts)| Fields::Item { owner, slot, parts }),
            note.prop_map(|(flag, color, code)| Fields::Note { flag, color, code }),
        ];
        let rank = select(vec![-256, -1, 0, 1, 5, 65_536]);
        let common = (
            self.place(),
            option::weighted(0.6, self.text(self.skus)),
            vec(self.text(3), 0..4),
            option::weighted(0.8, rank),
        );
        let large = self.large;
        (common, fields, 0..100u8)
            .prop_map(move |((place, sku, tags, rank), fields, odd)| {
                let record = Record { place, sku, tags, rank, body: None, fields };
                let body = |length| Some(Body { byte: odd, length });
                match odd {
                    0..2 => Record { sku: Some("k".repeat(9_970 - key_room())), ..record },
                    2..5 => Record { sku: Some("k".repeat(10_000)), ..record },
                    5..7 => Record { tags: vec!["t".repeat(10_000)], ..record },
                    7..14 if large => Record { body: body(250_000), ..record },
                    14..16 if large => record.sized(100_000),
                    16..18 if large => record.sized(100_001),
                    18..25 => Record { body: Some(Body { byte: 0, length: 0 }), ..record },
                    25..50 => Record { body: body(usize::from(odd)), ..record },
                    _ => record,
                }
            })
            .boxed()
    }

    #[draws(check)]
    fn check(&self) -> BoxedStrategy<Check> {
        prop_oneof![
            6 => Just(Check::Any),
            self.inserts => Just(Check::Absent),
            1 => Just(Check::Present),
            1 => Just(Check::SameType),
            3 => Just(Check::Update),
        ]
        .boxed()
    }

    #[draws(target)]
    fn target(&self) -> BoxedStrategy<Target> {
        (1..3i64, self.place()).boxed()
    }

    /// How many columns of a key are meant: up to one more than a primary key has.
    #[draws(columns)]
    fn columns() -> impl Strategy<Value = usize> {
        0..5usize
    }

    /// Whether a look is at snapshot. The store is opened serializably in any case.
    #[draws(snapshot)]
    fn snapshot() -> impl Strategy<Value = bool> {
        any::<bool>()
    }

    /// The name of an index, which is drawn only if there are any.
    fn name_of(&self, is: fn(&Definition) -> bool) -> BoxedStrategy<String> {
        let all = definitions(&Schema { indexed: true, ..self.schema });
        let names = all.into_iter().filter(is).map(|index| index.name.to_owned());
        select(names.collect::<Vec<_>>()).boxed()
    }

    #[draws(index)]
    fn any_index(&self) -> BoxedStrategy<String> {
        self.name_of(|_| true)
    }

    /// The weight of scans of indexes.
    fn index_scans(&self) -> u32 {
        if self.schema.indexed { self.mix[3] } else { 0 }
    }

    #[write(weight = 16 * self.mix[0], at, composed)]
    async fn save(&self, tx: &Tx, record: &Record, check: Check) -> Result<Option<Returned>, Error> {
        self.on_store(tx, Who::Saver, |store| async move {
            self.put(&store, record, check, SaveVersion::Next).await
        })
        .await
    }

    /// Saves a record with a version of the client's own, made of a number.
    #[write(weight = if self.schema.versions { self.mix[0] } else { 0 }, at, composed)]
    async fn save_as(
        &self,
        tx: &Tx,
        record: &Record,
        #[draw(any::<u8>())] own: u8,
    ) -> Result<Option<Returned>, Error> {
        let version = SaveVersion::Own(RecordVersion::from_bytes(own_version(own)));
        self.on_store(
            tx,
            Who::Writer,
            |store| async move { self.put(&store, record, Check::Any, version).await },
        )
        .await
    }

    #[write(weight = 6 * self.mix[1], at, composed)]
    async fn delete(&self, tx: &Tx, target: &Target) -> Result<bool, Error> {
        let key = tuple(&self.schema.key_at(target));
        self.on_store(tx, Who::Writer, |store| async move { store.delete_record(&key).await }).await
    }

    /// Deletes the records whose primary keys begin with this many columns of a target's, or, with one more
    /// than these are, none.
    #[write(weight = self.mix[1], at, composed)]
    async fn delete_where(&self, tx: &Tx, target: &Target, columns: usize) -> Result<(), Error> {
        let prefix = tuple(&self.schema.prefix(target, columns));
        self.on_store(tx, Who::Writer, |store| async move { store.delete_where(&prefix).await }).await
    }

    #[write(weight = if self.wipes { 3 * self.mix[1] } else { 1 }, at, composed)]
    async fn delete_all(&self, tx: &Tx) -> Result<(), Error> {
        self.on_store(tx, Who::Writer, |store| async move { store.delete_all_records().await }).await
    }

    #[read(weight = 2 * self.mix[2], at, composed)]
    async fn load(&self, tx: &Tx, target: &Target, snapshot: bool) -> Result<Option<Returned>, Error> {
        let key = tuple(&self.schema.key_at(target));
        self.on_store(tx, Who::Reader, |store| async move {
            let found = match snapshot {
                true => store.load_record_at(&key, Snapshot).await?,
                false => store.load_record(&key).await?,
            };
            Ok(found.as_ref().and_then(returned))
        })
        .await
    }

    #[read(weight = self.mix[2], at, composed)]
    async fn exists(&self, tx: &Tx, target: &Target, snapshot: bool) -> Result<bool, Error> {
        let key = tuple(&self.schema.key_at(target));
        self.on_store(
            tx,
            Who::Reader,
            |store| async move { store.record_exists(&key, isolation(snapshot)).await },
        )
        .await
    }

    #[read(weight = self.mix[2], at, composed)]
    async fn version(&self, tx: &Tx, target: &Target) -> Result<Option<[u8; 12]>, Error> {
        let key = tuple(&self.schema.key_at(target));
        self.on_store(tx, Who::Reader, |store| async move {
            Ok(store.load_record_version(&key).await?.map(|version| *version.as_bytes()))
        })
        .await
    }

    /// The records in a range.
    #[read(weight = 2 * self.mix[3], at, composed)]
    async fn scan(
        &self,
        tx: &Tx,
        env: &Env,
        #[draw(span(self.target()))] span: &Span<Target>,
    ) -> Result<Listed, Error> {
        let range = span.range(|target| self.schema.key_at(target));
        self.on_store(tx, Who::Reader, |store| async move {
            let scan = |from, spent: &Spent| store.scan_records(range.clone(), span.reverse, from, spent);
            Ok(listed(pages(span, env, scan).await?.iter().map(returned)))
        })
        .await
    }

    /// The entries or groups of an index in a range.
    #[read(weight = 4 * self.index_scans(), at, composed)]
    async fn scan_index(
        &self,
        tx: &Tx,
        env: &Env,
        index: &str,
        #[draw(span(self.record()))] span: &Span<Record>,
    ) -> Result<Listed, Error> {
        Ok(listed(self.rows(tx, env, (index, span), |column| column).await?))
    }

    /// What an index aggregates, over the groups that begin with this many columns of a record's: of the
    /// records of the index's types, or of those of the record's type.
    #[read(weight = 2 * self.index_scans(), at, composed)]
    async fn aggregate(
        &self,
        tx: &Tx,
        #[draw(self.name_of(|index| index.aggregate().is_some()))] index: &str,
        like: &Record,
        columns: usize,
        #[draw(any::<bool>())] of_one: bool,
    ) -> Result<Option<Vec<u8>>, Error> {
        let types = of_one.then_some(like.type_name());
        self.on_store(tx, Who::Reader, |store| async move {
            self.evaluated(&store, index, like, columns, types).await
        })
        .await
    }

    /// The names of all indexes, and whether they are disabled.
    #[read(at, composed)]
    async fn states(&self, tx: &Tx) -> Result<Listed, Error> {
        self.on_store(tx, Who::Reader, |store| async move {
            let mut states = Vec::new();
            for index in store.meta_data().indexes() {
                states.push((&*index.name, !store.is_readable(&index.name)?));
            }
            Ok(listed(states))
        })
        .await
    }

    #[write(weight = 2 * u32::from(self.disables), at, composed)]
    async fn disable(&self, tx: &Tx, index: &str) -> Result<(), Error> {
        self.on_store(
            tx,
            Who::Writer,
            |store| async move { store.mark_index_disabled(index).await.map(drop) },
        )
        .await
    }

    /// Opens the store with the later meta-data, which everybody has to use from then on. The answer has the
    /// versions of the meta-data and of the application with which it was opened before.
    #[write(weight = 4 * u32::from(self.upgrades), at, composed)]
    async fn upgrade(&self, tx: &Tx) -> Result<Option<(i32, Option<i32>)>, Error> {
        self.on_store(tx, Who::Upgrader, |store| async move {
            Ok(store.previous_versions().map(|before| (before.meta_data, before.user)))
        })
        .await
    }

    async fn apply(
        &self,
        bug: Option<&str>,
        session: &mut Session<Db>,
        ops: &[RecordsOp],
    ) -> Option<Outcome<Answer<RecordsAnswer>>> {
        self.applied(bug, session, ops).await
    }

    #[stored]
    async fn stored(&self, tx: &Tx) -> tx::Result<Result<Model, String>> {
        self.read(tx).await
    }

    fn model(&self) -> Model {
        Model::new(self.schema, self.user, State { created: self.created, ..State::default() })
    }
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Mounted<Records>>()
}
