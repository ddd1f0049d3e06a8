//! What several workloads of the catalogue share.

pub mod beside;
pub mod bounds;
pub mod cluster;

use bytes::{Bytes, BytesMut};
use foundationdb_tuple::{Subspace, Versionstamp};
use futures::{FutureExt, TryFutureExt, future::BoxFuture};
use imbl::{OrdMap, ordmap::DiffItem};
use proptest::{prelude::*, sample::select};
use serde::de::DeserializeOwned;
use shaketable::{
    Misfit,
    judge::Keyspace,
    real::key_room,
    sessions::slots,
    specimen::{self, At, Content, Recorded},
    strategies,
    workload::Outcome,
};
use shaketable_layers::{
    id::Id,
    queue::{ItemId, Position},
};
use shaketable_sim::{proto::Mutation, seed::Stream, trace::hash_bytes};
use shaketable_tx::{
    self as tx, Database, Db, Env,
    Isolation::{self, Serializable, Snapshot},
    KeyValue, RangeOption, RetryError, Transaction, Turns, Tx, always,
    limits::{READ_LIMIT, TooLarge},
    once,
};
use std::{
    collections::BTreeMap,
    fmt::{Debug, Display},
    future::Future,
    hash::{Hash, Hasher},
    time::Duration,
};

/// The outcome of an exactly-once operation: `answer` makes an answer of what it returned, and `refused`
/// decides about an error.
pub fn ended<A, B, E>(
    outcome: once::Outcome<A, E>,
    answer: impl FnOnce(A) -> B,
    refused: impl FnOnce(E) -> Outcome<B>,
) -> Outcome<B> {
    match outcome {
        once::Outcome::Applied(applied) => Outcome::Answered(answer(applied)),
        once::Outcome::Refused(error) => refused(error),
        once::Outcome::Unknown(_) => Outcome::Unknown(tx::Error::COMMIT_UNKNOWN_RESULT),
    }
}

/// The outcome of an operation that the layer may refuse: `answer` makes an answer of the text of the
/// refusal. An error of FoundationDB ends the operation.
pub fn refused<A>(error: &(impl RetryError + Display), answer: impl FnOnce(String) -> A) -> Outcome<A> {
    error.fdb().map_or_else(|| Outcome::Answered(answer(error.to_string())), Outcome::Failed)
}

/// The outcome of an operation that the layer must not refuse: its own errors are violations, and `fdb`
/// decides about an error of FoundationDB.
pub fn unexpected<A>(
    error: &(impl RetryError + Display),
    fdb: impl FnOnce(tx::Error) -> Outcome<A>,
) -> Outcome<A> {
    error.fdb().map_or_else(|| Outcome::Violated(error.to_string()), fdb)
}

/// The result of a check that an error ended: an error of the layer is what the check has found, an error of
/// FoundationDB is returned as it is.
pub fn check_ended<A, E: From<String>>(error: &(impl RetryError + Display)) -> tx::Result<Result<A, E>> {
    error.fdb().map_or_else(|| Ok(Err(error.to_string().into())), Err)
}

/// Compares what is stored with what the model expects.
pub fn compare<A: PartialEq + Debug>(stored: &A, expected: &A) -> Result<(), Misfit> {
    match stored == expected {
        true => Ok(()),
        false => {
            let (found, expected) = (format!("{stored:?}"), format!("{expected:?}"));
            let message = format!("the database holds {found}, should hold {expected}");
            Err(Misfit::new(message, expected, found))
        }
    }
}

/// Names an operation: its client, and its place in the client's list.
pub type Call = (usize, usize);

/// The first objection to what operations returned. `objection` judges one operation, given the whole
/// history.
pub fn objection<'a, A: 'a>(
    returned: impl IntoIterator<Item = (&'a Call, &'a A)>,
    objection: impl Fn(&Call, &A) -> Option<String>,
) -> Result<(), Misfit> {
    match returned.into_iter().find_map(|(call, answer)| objection(call, answer).map(|why| (call, why))) {
        Some(((client, index), why)) => {
            let message = format!("operation {index} of client {client} {why}");
            Err(Misfit::of_operation(*client, *index, message))
        }
        None => Ok(()),
    }
}

/// The isolation of a look that is at snapshot if true.
pub fn isolation(snapshot: bool) -> Isolation {
    if snapshot { Snapshot } else { Serializable }
}

/// All rows of a subspace.
pub async fn rows(tx: &Tx, space: &Subspace) -> tx::Result<Vec<KeyValue>> {
    tx.get_range_all(RangeOption::from(space.range()), Serializable).await
}

/// Everything that can be read page by page. `page` reads up to `most` entries after the last one that was
/// read.
pub async fn paged<A, E, F: Future<Output = Result<Vec<A>, E>>>(
    most: usize,
    page: impl Fn(Option<&A>) -> F,
) -> Result<Vec<A>, E> {
    let mut all = Vec::new();
    loop {
        let next = page(all.last()).await?;
        let ends = next.len() < most;
        all.extend(next);
        if ends {
            return Ok(all);
        }
    }
}

/// Texts at the ends of what is often taken for a range of texts: on both sides of the end of the basic
/// multilingual plane and at the last code point, alone and after a prefix.
const LAST_TEXTS: [&str; 6] =
    ["\u{ffff}", "\u{10000}", "\u{10ffff}", "a\u{ffff}", "a\u{10000}", "\u{10ffff}b"];

/// Texts of a run beside the usual ones: none in half of the runs. In the others they are few and beyond
/// ASCII, so that calls meet them again.
pub fn draw_edge_texts(rng: &mut Stream) -> Vec<String> {
    let all = [&LAST_TEXTS[..], &strategies::BEYOND_ASCII[..]];
    few(rng, |rng| {
        let of = *rng.pick(&all);
        (*rng.pick(of)).to_owned()
    })
}

/// Integers of a run beside the usual ones, as [`draw_edge_texts`]: numbers at which an encoding needs
/// another byte, and the ends of types.
pub fn draw_edge_numbers(rng: &mut Stream) -> Vec<u64> {
    few(rng, |rng| *rng.pick(&strategies::UNSIGNED))
}

/// Integers at which an encoding needs another byte or a sign, and the ends of types.
const EDGE_NUMBERS: [i64; 15] = [
    -1,
    127,
    128,
    -128,
    -129,
    255,
    256,
    -255,
    -256,
    65_535,
    65_536,
    1 << 31,
    u32::MAX as i64,
    i64::MIN,
    i64::MAX,
];

/// Ids of a run beside the usual ones, as [`draw_edge_texts`]: integers, texts, and texts and bytes of a
/// length that one byte can count, or not any more.
pub fn draw_edge_ids(rng: &mut Stream) -> Vec<Id> {
    few(rng, |rng| match rng.below(4) {
        0 => Id::from(*rng.pick(&EDGE_NUMBERS)),
        1 => Id::from(*rng.pick(&LAST_TEXTS)),
        2 => Id::from(*rng.pick(&strategies::BEYOND_ASCII)),
        _ => {
            let bytes = *rng.pick(&[127, 128, 255, 256, 257]);
            if rng.chance(0.5) { Id::from("p".repeat(bytes)) } else { Id::from(Bytes::from(vec![0; bytes])) }
        }
    })
}

/// One to four values in half of the runs; otherwise none.
fn few<T>(rng: &mut Stream, mut draw: impl FnMut(&mut Stream) -> T) -> Vec<T> {
    let count = if rng.chance(0.5) { rng.range(1..5) } else { 0 };
    (0..count).map(|_| draw(rng)).collect()
}

/// The sizes of pages that are drawn: of one entry, of a few, and more than most runs have.
pub fn page_sizes() -> BoxedStrategy<usize> {
    prop_oneof![4 => 1..6usize, 1 => select(&[6, 7, 8, 100][..])].boxed()
}

/// Ids that are rarely drawn, for [`strategies::mostly`]: numbers at the ends of types, text beyond ASCII,
/// and ids at the lengths that one byte can count.
pub fn edge_ids() -> BoxedStrategy<Id> {
    let long = select(&[255, 256, 257][..]);
    prop_oneof![
        2 => strategies::integers().prop_map(Id::from),
        2 => select(&strategies::BEYOND_ASCII[..]).prop_map(Id::from),
        1 => (long.clone(), any::<bool>()).prop_map(|(bytes, text)| match text {
            true => Id::from("p".repeat(bytes)),
            false => Id::from(Bytes::from(vec![0; bytes])),
        }),
    ]
    .boxed()
}

/// The mistake with which a workload plants the bug of this name, if it is one.
pub fn named<M: DeserializeOwned>(bug: &str) -> Option<M> {
    serde_json::from_value(bug.into()).ok()
}

/// What a session returns of an answer that it recorded: the answer, encoded and decoded. A call of the
/// workload that passes a layer's answers on through here meets their encoding each time, and not only after
/// an unknown result. An incomplete versionstamp becomes that of a made-up commit.
///
/// # Panics
///
/// If nothing can be decoded.
pub fn came_back<A: once::Answer + Debug>(answer: A) -> A {
    let mut encoded = BytesMut::new();
    let stamp = match once::Answer::encode(&answer, &mut encoded) {
        Ok(stamp) => stamp,
        Err(e) => panic!("{answer:?} cannot be recorded: {e}"),
    };
    if let Some(at) = stamp {
        encoded[at..at + 10].copy_from_slice(&[7; 10]);
    }
    A::decode(encoded.freeze()).unwrap_or_else(|| panic!("{answer:?} cannot be read from its record"))
}

/// Performs calls one after the other, up to the first one that is refused.
pub async fn in_order<'a, Op, A, E, F: Future<Output = Result<A, E>>>(
    ops: &'a [Op],
    perform: impl Fn(&'a Op) -> F,
) -> Result<Vec<A>, E> {
    let mut answers = Vec::with_capacity(ops.len());
    for op in ops {
        answers.push(perform(op).await?);
    }
    Ok(answers)
}

/// A handle for a call that makes several calls of the layer, which are to be one for calls that run beside
/// it.
pub async fn one_call(tx: &Tx, is_read_only: bool) -> Tx {
    match is_read_only {
        true => tx.reading().await,
        false => tx.writing().await,
    }
}

/// Performs the calls numbered up to `calls` in a transaction: one after the other, or, if a coin says so,
/// side by side. If they are to be interleaved, none waits for another one.
pub async fn in_turns<'a, A, E>(
    env: &Env,
    tx: &Tx,
    calls: usize,
    interleaved: bool,
    perform: impl Fn(usize, Tx) -> BoxFuture<'a, Result<A, E>>,
) -> Result<Vec<A>, E> {
    let handle = || if interleaved { tx.with_turns(Turns::default()) } else { tx.clone() };
    if interleaved || env.random_u64().is_multiple_of(2) {
        return specimen::join((0..calls).map(|call| perform(call, handle())).collect()).await;
    }
    let mut answers = Vec::with_capacity(calls);
    for call in 0..calls {
        answers.push(perform(call, handle()).await?);
    }
    Ok(answers)
}

/// The transaction of one call of a layer, which must take a turn of its own.
pub fn turned(tx: &Tx) -> Tx {
    Tx::in_turns(tx.clone())
}

/// Looks in one transaction, and goes by what was seen there in another one, as planted bugs do.
pub async fn seen_before<S, A, E, Looked, Acted>(
    session: &mut once::Session<Db>,
    look: impl Fn(Tx) -> Looked + Send + Sync,
    act: impl Fn(Tx, S) -> Acted + Send + Sync,
) -> Outcome<specimen::Answer<A>>
where
    S: Clone + Send + Sync,
    E: RetryError + Display + From<once::Error> + Send,
    Looked: Future<Output = Result<S, E>> + Send,
    Acted: Future<Output = Result<Vec<A>, E>> + Send,
    Recorded<A>: once::Answer,
{
    let seen = match session.database().clone().run(|tx, _| look(tx)).await {
        Ok(seen) => seen,
        Err(e) => return specimen::refused(&e.error),
    };
    let acted = session.apply(|tx| act(tx, seen.clone()).map_ok(Recorded));
    specimen::concluded(acted.await)
}

/// Claims that what FoundationDB refuses for its size was refused before it was written.
pub async fn fits(tx: &Tx, what: &impl Debug) -> tx::Result<()> {
    let size = tx.get_approximate_size().await;
    let is_too_large =
        matches!(size, Err(e) if [tx::Error::KEY_TOO_LARGE, tx::Error::VALUE_TOO_LARGE].contains(&e));
    always!(!is_too_large, "{what:?} was not refused, and then {size:?}");
    size.map(drop)
}

/// The keys of the sessions of all clients, as samples of the keys that a workload uses.
pub fn session_keys(clients: usize) -> impl Iterator<Item = Bytes> {
    (0..clients as u64).map(|client| slots().key(client))
}

/// A sample of the versionstamps that transactions of a run have; higher numbers are later.
pub fn stamp(number: u8) -> Versionstamp {
    Versionstamp::complete([0, 0, 0, 0, number / 4, 64 * (number % 4), 0, 0, 0, 0], 0)
}

/// The key of the row at this position below a subspace, whose stamp is complete.
pub fn key_below(space: &Subspace, position: &Position) -> Vec<u8> {
    let mut key = BytesMut::from(space.bytes());
    // A position is encoded as its key below the subspace.
    let _ = once::Answer::encode(position, &mut key);
    key.into()
}

/// A prefix for a queue in commit order whose first part, to which a transaction appends an item with this id
/// next, then needs a key of the maximum length, or of `beyond` bytes more.
pub async fn deep(tx: &Tx, id: ItemId, beyond: usize) -> tx::Result<Subspace> {
    // As the queue ranks the items of a transaction.
    let rank = tx.get_approximate_size().await?;
    let below = Subspace::all().subspace(&0);
    let key = key_below(&below, &Position::Commit { stamp: [1; 10], rank, id });
    // The offset of the stamp counts as well.
    Ok(Subspace::from_bytes(prefix_before(key.len() + 4, beyond)))
}

/// A prefix before which keys of so many more bytes have the maximum length, or are `beyond` bytes longer.
/// Those that FoundationDB is to accept are shorter on a real cluster ([`key_room`]).
pub fn prefix_before(bytes: usize, beyond: usize) -> Vec<u8> {
    let room = if beyond == 0 { key_room() } else { 0 };
    vec![b'd'; tx::KEY_SIZE_LIMIT - bytes - room + beyond]
}

/// The versionstamp of the transaction that appended the item at this position; `None` in index order.
pub fn stamp_in(position: &Position) -> Option<[u8; 10]> {
    match position {
        Position::Commit { stamp, .. } => Some(*stamp),
        Position::Index { .. } => None,
    }
}

/// The key that a mutation writes, or the first one of those that it clears.
pub fn key(mutation: &Mutation) -> &Bytes {
    match mutation {
        Mutation::Set(key, _) | Mutation::Atomic(key, ..) => key,
        Mutation::ClearRange(range) => &range.begin,
    }
}

/// Applies to the rows of a model the mutations below a subspace. Returns the rows that were changed, as they
/// were and as they are.
pub fn apply_below(
    space: &Subspace,
    mutations: &[Mutation],
    rows: &mut Keyspace,
) -> (Vec<KeyValue>, Vec<KeyValue>) {
    let mut undo = Vec::new();
    let below = mutations.iter().filter(|mutation| space.is_start_of(key(mutation)));
    below.for_each(|mutation| rows.apply(mutation, Some(&mut undo)));
    let mut changed = BTreeMap::new();
    for (key, old) in undo {
        // What a later mutation replaced is of this transaction.
        changed.entry(key).or_insert(old);
    }
    let row = |(key, value): (&Bytes, &Bytes)| KeyValue::new(key.clone(), value.clone());
    let are = changed.keys().filter_map(|key| rows.0.get_key_value(key)).map(row).collect();
    let were = changed.iter().filter_map(|(key, old)| Some(row((key, old.as_ref()?)))).collect();
    (were, are)
}

/// Puts an entry into a map if it `stands`, and takes it out if not.
pub fn put<K: Ord + Clone, V: Clone>(map: &mut OrdMap<K, V>, key: K, value: V, stands: bool) {
    match stands {
        true => map.insert(key, value),
        false => map.remove(&key),
    };
}

/// Takes the first entry out of a map.
pub fn pop_first<K: Ord + Clone, V: Clone>(map: &mut OrdMap<K, V>) -> Option<(K, V)> {
    let (first, rest) = map.without_min_with_key();
    *map = rest;
    first
}

/// The entries of a map that an older map does not have, in the order of their keys. The time is that of what
/// differs, if the one was made by changing the other.
pub fn added<K: Ord + Clone, V: PartialEq + Clone>(map: &OrdMap<K, V>, older: &OrdMap<K, V>) -> Vec<(K, V)> {
    let new = older.diff(map).filter_map(|difference| match difference {
        DiffItem::Add(key, value) | DiffItem::Update { new: (key, value), .. } => Some((key, value)),
        DiffItem::Remove(..) => None,
    });
    new.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Names an item that a client puts into a queue: the client, the number of the call, and the place in the
/// call.
pub type ItemName = (u16, u16, u16);

/// The id of an item with this name. Ids sort at random; the name inside makes them unique and readable.
pub fn item_id(name: ItemName) -> ItemId {
    let mut id = [0; 16];
    let parts = [name.0.to_be_bytes(), name.1.to_be_bytes(), name.2.to_be_bytes()].concat();
    id[8..14].copy_from_slice(&parts);
    id[..8].copy_from_slice(&hash_bytes(0, &parts).to_be_bytes());
    ItemId(id)
}

/// The name in an [id](item_id).
pub fn item_name(id: ItemId) -> ItemName {
    let part = |at: usize| u16::from_be_bytes([id.0[at], id.0[at + 1]]);
    (part(8), part(10), part(12))
}

/// The number of these items, and a hash of them in their order, which is the same in every run.
pub fn digest(items: impl Iterator<Item = impl Hash>) -> (usize, u64) {
    struct Hashed(u64);

    impl Hasher for Hashed {
        fn write(&mut self, bytes: &[u8]) {
            self.0 = hash_bytes(self.0, bytes);
        }
        fn finish(&self) -> u64 {
            self.0
        }
    }

    let (mut count, mut hashed) = (0, Hashed(0));
    for item in items {
        item.hash(&mut hashed);
        count += 1;
    }
    (count, hashed.finish())
}

/// A timer that a client keeps beside a lease, or beside any other right that ends when the client is silent.
pub struct Timer(BoxFuture<'static, ()>);

impl Timer {
    /// Starts a timer.
    pub fn new(db: &Db, time: Duration) -> Timer {
        Timer(db.env().sleep(time))
    }

    /// Whether the time is over.
    pub fn is_over(&mut self) -> bool {
        (&mut self.0).now_or_never().is_some()
    }
}

/// A configuration, and operations for each of its clients, from the strategies that plans draw from. Drawing
/// a whole [`Plan`](shaketable::plan::Plan) would compile the code that runs the workload again, for unit
/// tests.
pub fn drawn<W: shaketable::Workload>(seed: u64) -> (W, Vec<Vec<W::Op>>) {
    use proptest::{
        strategy::{Strategy, ValueTree},
        test_runner::{RngAlgorithm, TestRng, TestRunner},
    };
    let seed = shaketable_sim::seed::Seed(seed);
    let workload = W::draw(&mut seed.stream("workload"), None);
    let operations = |client: usize| {
        let mut key = [0; 32];
        seed.stream(&format!("operations-{client}")).fill(&mut key);
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &key);
        let mut runner = TestRunner::new_with_rng(Default::default(), rng);
        workload.operations(client).new_tree(&mut runner).expect("operations").current()
    };
    let lists = (0..workload.clients()).map(operations).collect();
    (workload, lists)
}

/// Whether a layer may refuse with these words to read this many bytes, because they are more than one call
/// may read.
pub fn is_too_much_to_read(said: &str, bytes: impl Iterator<Item = usize>) -> bool {
    said == TooLarge::Read { limit: READ_LIMIT }.to_string() && bytes.sum::<usize>() > READ_LIMIT
}

/// Refuses a call that reads all of these values, if the layer has refused it because they are more than one
/// call may read, and that may be so. The model does not know how long keys are: at most this many bytes.
pub fn may_read_all<'a>(at: &At, values: impl Iterator<Item = &'a Content>) -> Result<(), TooLarge> {
    const LONGEST_KEY: usize = 1_000;
    let bytes = values.map(|value| value.length() + LONGEST_KEY);
    match at.refusal.is_some_and(|said| is_too_much_to_read(said, bytes)) {
        true => Err(TooLarge::Read { limit: READ_LIMIT }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable_sim::proto::KeyRange;

    #[test]
    fn only_what_may_be_too_much_may_be_refused() {
        let said = TooLarge::Read { limit: READ_LIMIT }.to_string();
        let value = Content::of(7, 9_000);
        let judged = |refusal, many| {
            let at = At { refusal, ..At::default() };
            may_read_all(&at, std::iter::repeat_n(&value, many)).is_ok()
        };
        assert!(judged(None, 5_000) && judged(Some("it is late"), 5_000));
        assert!(judged(Some(&said), 1_000) && !judged(Some(&said), 1_001));
    }

    #[test]
    fn ids_contain_their_names() {
        for name in [(0, 0, 0), (8, 300, 3), (u16::MAX, 1, 0)] {
            assert_eq!(item_name(item_id(name)), name);
        }
    }

    #[test]
    fn what_was_added_or_changed_is_found() {
        let older = OrdMap::from_iter((1..200).map(|n| (n, 'a')));
        let mut map = older.clone();
        for (key, value, stands) in [(150, 'x', true), (3, 'c', false), (200, 'd', true), (7, 'a', true)] {
            put(&mut map, key, value, stands);
        }
        assert_eq!(added(&map, &older), [(150, 'x'), (200, 'd')]);
        assert_eq!(added(&older, &map), [(3, 'a'), (150, 'a')]);
        assert_eq!(pop_first(&mut map), Some((1, 'a')));
        assert_eq!(added(&older, &map).len(), 3);
    }

    #[test]
    fn the_rows_that_a_transaction_changed_are_those_of_before_and_after_it() {
        let set = |key: &'static str, value: &'static str| Mutation::Set(key.into(), value.into());
        let clear = |begin: &'static str, end: &'static str| {
            Mutation::ClearRange(KeyRange { begin: begin.into(), end: end.into() })
        };
        let (space, mut rows) = (Subspace::from_bytes("q"), Keyspace::default());
        apply_below(&space, &[set("qa", "1"), set("qb", "1"), set("qc", "1")], &mut rows);
        let written = [set("qa", "2"), set("qa", "3"), clear("qb", "qd"), set("qc", "4"), set("r", "5")];
        let row = KeyValue::new;
        assert_eq!(
            apply_below(&space, &written, &mut rows),
            (vec![row("qa", "1"), row("qb", "1"), row("qc", "1")], vec![row("qa", "3"), row("qc", "4")])
        );
    }
}
