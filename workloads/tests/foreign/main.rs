//! Data that a layer did not write: every layer is given its own data, damaged, and data that other programs
//! may have written in its subspace. Each of its functions must then end with a result or with the layer's
//! own error. No function may panic, run endlessly, or allocate memory for data that is only claimed to
//! exist.
//!
//! A case is drawn from its number. `SHAKETABLE_SEEDS=17..18 cargo test --test foreign vector` repeats one.
//! Each runs on its own thread, whose name identifies the case in which a stack overflowed.

mod allocations;
mod bytes;
mod calls;
#[path = "../surface/mod.rs"]
mod surface;

mod array;
mod blob;
mod bulk;
mod counter;
mod directory;
mod document;
mod encoding;
mod entity;
mod graph;
mod hierarchy;
mod index;
mod leased_queue;
mod list;
mod log;
mod multimap;
mod once;
mod priority_queue;
mod queue;
mod record;
mod scheduling;
mod staged_queue;
mod table;
mod vector;

use self::bytes::Damages;
use ::bytes::Bytes;
use calls::Calls;
use foundationdb_tuple::Subspace;
use parking_lot::Mutex;
use shaketable::{seeds, shake::SEEDS_VARIABLE};
use shaketable_sim::{client::SimDatabase, faults::FaultPlan, seed::Seed};
use shaketable_tx::{
    self as tx, Database, Isolation, KeyValue, RangeOption, Transaction,
    once::{Session, Slots},
};
use shaketable_workloads_shared::cluster;
use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// A layer, and how it is used.
pub trait Layer: Send + Sync + 'static {
    /// Its folder of `layers/src`.
    const NAME: &'static str;

    /// Whether values with several parts are tuples.
    const HAS_TUPLES: bool = true;

    /// The layer in [`space`].
    fn new() -> Self;

    /// Writes data with the layer's functions: a row of each kind.
    fn write(&self, db: &SimDatabase) -> impl Future<Output = ()>;

    /// Calls all of its functions, with names that [`write`](Layer::write) has used and with others.
    fn call(&self, calls: &mut Calls) -> impl Future<Output = ()>;

    /// The prefixes of the keys that it writes; a tuple follows.
    fn spaces(&self) -> Vec<Bytes> {
        vec![space().into_bytes().into()]
    }
}

/// The subspace of every layer.
pub fn space() -> Subspace {
    Subspace::from("foreign")
}

/// Runs the writes of a layer, and commits them.
pub async fn written<A, E, F>(
    db: &SimDatabase,
    body: impl Fn(<SimDatabase as Database>::Transaction) -> F + Send + Sync,
) -> A
where
    F: Future<Output = Result<A, E>> + Send,
    A: Send,
    E: tx::RetryError + std::fmt::Debug + Send,
{
    let body = &body;
    db.run(|tx, _| async move { body(tx).await }).await.expect("a calm cluster takes what a layer writes")
}

/// The session of a client whose slot is not among the damaged data.
pub async fn session(db: &SimDatabase) -> Session<SimDatabase> {
    Session::open(db, &Slots::new(Subspace::from("sessions")), 0).await.expect("a calm cluster answers")
}

/// The rows written by a layer.
fn rows<L: Layer>() -> Vec<KeyValue> {
    let rows = Arc::new(Mutex::new(Vec::new()));
    let found = rows.clone();
    cluster::under(FaultPlan::default(), move |machine| {
        let found = found.clone();
        async move {
            let db = machine.open();
            L::new().write(&db).await;
            let all = db.run(|tx, _| async move {
                tx.get_range_all(RangeOption::new("", &b"\xff"[..]), Isolation::Snapshot).await
            });
            let mine = |row: &KeyValue| L::new().spaces().iter().any(|space| row.key.starts_with(space));
            let all = all.await.expect("a calm cluster answers");
            found.lock().extend(all.into_iter().filter(mine));
        }
    });
    std::mem::take(&mut *rows.lock())
}

/// The failure of a case: the function, the case, and the bytes.
fn wrong<L: Layer>(rows: &[KeyValue], damages: &Damages, case: u64) -> Option<String> {
    let mut draws = Seed(case).stream(L::NAME);
    let writes = damages.of(case, &mut draws);
    let state: Arc<Vec<(Bytes, Option<Bytes>)>> = Arc::new(
        rows.iter()
            .map(|row| (row.key.clone(), Some(row.value.clone())))
            .chain(writes.iter().map(|write| (write.key.clone(), write.value.clone())))
            .collect(),
    );
    let ran = std::thread::Builder::new().name(format!("{}, case {case}", L::NAME)).spawn(move || {
        let ran = catch_unwind(AssertUnwindSafe(|| {
            cluster::under(FaultPlan::default(), move |machine| {
                let (state, draws) = (state.clone(), draws.clone());
                async move {
                    let db = machine.open();
                    let tx = db.create_transaction().expect("a transaction");
                    for (key, value) in &*state {
                        match value {
                            Some(value) => tx.set(key, value),
                            None => tx.clear(key),
                        }
                    }
                    tx.commit().await.expect("a calm cluster takes any bytes");
                    let version = tx.get_committed_version().expect("it has committed");
                    L::new().call(&mut Calls::new(db, version, draws)).await;
                }
            });
        }));
        let payload = ran.err()?;
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        Some(format!("{}: {text}", allocations::last_activity()))
    });
    let wrong = ran.expect("a thread").join().expect("a thread ends")?;
    let writes: String = writes.iter().map(|write| format!("\n    {write}")).collect();
    Some(format!("{wrong}, where{writes}"))
}

/// Tests a layer with data that it did not write.
fn check_layer<L: Layer>() {
    let chosen = std::env::var(SEEDS_VARIABLE).ok();
    let is_whole = chosen.is_none();
    let rows = rows::<L>();
    assert!(!rows.is_empty(), "it writes nothing");
    let damages = Damages::new(&rows, L::new().spaces(), L::HAS_TUPLES);
    let cases = match chosen {
        Some(text) => seeds::range(&text).expect("a range of cases"),
        None => damages.cases(),
    };
    let wrong: Vec<String> = cases.filter_map(|case| wrong::<L>(&rows, &damages, case)).take(5).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let offered = surface::functions().into_iter().filter(|f| f.layer == L::NAME && f.takes_database);
    let uncalled = surface::missing(&offered.collect());
    assert!(!is_whole || uncalled.is_empty(), "these are not called: {uncalled:?}");
}

macro_rules! layers {
    ($($name:ident: $layer:ty,)*) => {
        $(
            #[test]
            fn $name() {
                check_layer::<$layer>();
            }
        )*

        #[test]
        fn every_layer_is_listed() {
            assert_eq!(surface::layers().into_keys().collect::<Vec<_>>(), [$(stringify!($name)),*]);
        }
    };
}

/// It is a crate of its own, which the list of the others' folders does not have.
#[test]
fn record() {
    check_layer::<record::Records>();
}

layers! {
    array: array::Arrays,
    blob: blob::AllBlobs,
    bulk: bulk::Bulk,
    counter: counter::Counters,
    directory: directory::AllDirectories,
    document: document::AllDocuments,
    encoding: encoding::Encodings,
    entity: entity::AllEntities,
    graph: graph::Graphs,
    hierarchy: hierarchy::Hierarchies,
    index: index::Indexes,
    leased_queue: leased_queue::LeasedQueues,
    list: list::Lists,
    log: log::Logs,
    multimap: multimap::Multimaps,
    once: once::AllSlots,
    priority_queue: priority_queue::PriorityQueues,
    queue: queue::Queues,
    scheduling: scheduling::Schedulings,
    staged_queue: staged_queue::StagedQueues,
    table: table::Tables,
    vector: vector::Vectors,
}
