//! `directory`: directories are created, opened, moved, removed and listed, and rows are stored in them.
//!
//! There are few names, and paths of two or three levels, so that clients meet on every path. Directories
//! have layer tags, some are partitions, and some have manual prefixes, which nest with each other and with
//! allocated prefixes. In some seeds a later version of the schema appears and disappears. The candidates of
//! the allocator follow from a few random numbers, so that allocators meet, too. In some seeds they have
//! given hundreds of prefixes before, so that prefixes are longer and windows are larger. A few names and
//! layer tags are as long as a key or a value may be, or longer. Two creates may run concurrently in one
//! transaction, and a row may be written through a handle that was opened earlier. What is stored is read
//! from the raw rows: every prefix belongs to one path, no prefix begins with another, and every key belongs
//! to a directory.

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod documents;
mod model;
mod planted;
mod prefixes;
mod store;

pub use model::Model;

use crate::shared::{came_back, paged};
use foundationdb_tuple::{Subspace, pack};
use futures::future::try_join;
use model::Known;
use prefixes::Place;
use proptest::option;
use shaketable::{
    isolation,
    prelude::*,
    real::key_room,
    specimen::{Answer, Content, Recorded, concluded},
};
use shaketable_fidelity::survey::{Rows, survey};
use shaketable_layers::directory::{CandidateSeed, Directories, Directory as Handle, Error, PARTITION};
use shaketable_tx::{KEY_SIZE_LIMIT, VALUE_SIZE_LIMIT, always};
use std::ops::Range;
use store::Store;

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Directory {
    /// How many of [`NAMES`] are used.
    names: usize,
    /// The maximum depth of paths.
    depth: usize,
    /// Whether manual prefixes are allowed.
    manual: bool,
    /// Whether some manual prefixes nest with prefixes that the allocator chooses.
    nested: bool,
    /// Whether nodes and content are in subspaces of the workload's own, rather than in the default ones.
    own_subspaces: bool,
    /// The number of different chances. If there are few, allocators meet.
    chances: u64,
    /// What the allocator of the root has given before the run.
    store: Store,
    /// Whether another program declares versions of the schema.
    versions: bool,
    /// The maximum length of values, in bytes.
    longest: usize,
}

/// The [`Opened`] in an answer, if it has one.
macro_rules! in_opened {
    ($answer:expr) => {
        match $answer {
            DirectoryAnswer::create(opened)
            | DirectoryAnswer::create_with_prefix(opened)
            | DirectoryAnswer::create_or_open(opened)
            | DirectoryAnswer::open(opened)
            | DirectoryAnswer::replace_by_handle(opened)
            | DirectoryAnswer::reopen_by_handle(opened) => Some(opened),
            _ => None,
        }
    };
}
/// Directories created, moved and removed, with tags, partitions and prefixes by hand.
#[shaketable::workload(name = "directory", model = Model, planted, promises(turns, limits))]
impl Directory {
    const TRANSACTIONS: Range<u64> = 6..28;
    const TOGETHER: Range<u64> = 1..4;

    fn points() -> &'static [&'static str] {
        &[
            "directory: a candidate is taken",
            "directory: a move within a partition",
            "directory: a partition is entered",
            "directory: a prefix by hand is in use",
            "directory: a removal takes others with it",
            "directory: a window is used up",
            "directory: an allocated prefix clashes with a manual one",
            "directory: a handle is stale",
        ]
    }

    fn draw(rng: &mut Stream) -> Directory {
        Directory {
            names: rng.range(2..NAMES.len() as u64 + 1) as usize,
            depth: rng.range(2..4) as usize,
            manual: rng.chance(0.8),
            nested: rng.chance(0.5),
            own_subspaces: rng.chance(0.25),
            chances: *rng.pick(&[1, 2, 5, u64::MAX]),
            versions: rng.chance(0.25),
            longest: *rng.pick(&[4, 40, 2_000]),
            store: Store::draw(rng),
        }
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        let (all, (_, content)) = (self.directories(), self.spaces());
        let nodes = all.nodes();
        let mut keys = vec![nodes.version(), nodes.allocator().mark(self.store.start)];
        keys.extend(NAMES[..self.names].iter().map(|name| nodes.root().child(name)));
        for candidate in [0i64, 9, 20, 40, 63] {
            let prefix = content.pack(&(self.store.start + candidate));
            keys.extend([nodes.of(&prefix).tag(), prefix]);
        }
        keys
    }

    async fn setup(&self, tx: &Tx) -> Result<(), Error> {
        let rows = self.store.rows(&self.directories().nodes().allocator());
        rows.iter().for_each(|(key, value)| tx.set(key, value));
        Ok(())
    }

    fn refuses_cleanly(op: &DirectoryOp, refusal: &Error) -> bool {
        // A prefix that cannot be used is never allocated again.
        let has_allocated =
            matches!(refusal, Error::PrefixClash { .. } | Error::PrefixNotEmpty { .. } | Error::TooLarge(_));
        !has_allocated && !matches!(op, DirectoryOp::both { .. })
    }

    /// The subspaces of the nodes and of the content.
    fn spaces(&self) -> (Subspace, Subspace) {
        match self.own_subspaces {
            true => (Subspace::from("nodes"), Subspace::from("content")),
            false => (Subspace::from_bytes([0xfe]), Subspace::all()),
        }
    }

    /// Whether calls may give this prefix by hand.
    fn may_be_manual(&self, prefix: &[u8]) -> bool {
        let is_nested = || prefix.starts_with(self.spaces().1.bytes());
        PREFIXES.contains(&prefix) || self.manual && self.nested && is_nested()
    }

    /// The directories of the run.
    fn directories(&self) -> Directories {
        let (nodes, content) = self.spaces();
        let directories = match self.own_subspaces {
            true => Directories::new(nodes, content),
            false => Directories::default(),
        };
        if self.manual { directories.with_manual_prefixes() } else { directories }
    }

    fn name(&self) -> impl Strategy<Value = String> + Clone + use<> {
        select(&NAMES[..self.names]).prop_map(str::to_owned)
    }

    /// A path. A few are the longest name that fits into a key, or a longer one: only at the root, so that
    /// it is known how long the keys are.
    #[draws(names)]
    fn path(&self) -> BoxedStrategy<Names> {
        let name = self.name();
        let usual = prop_oneof![1 => Just(0), 16 => 1..=self.depth]
            .prop_flat_map(move |length| vec(name.clone(), length));
        let room = KEY_SIZE_LIMIT - self.directories().nodes().root().child("").len();
        let long = select(vec![room - key_room(), room + 1]).prop_map(|length| vec!["x".repeat(length)]);
        prop_oneof![100 => usual, 1 => long].boxed()
    }

    #[draws(tag)]
    fn tag() -> impl Strategy<Value = Vec<u8>> {
        select(&TAGS[..]).prop_map(<[u8]>::to_vec)
    }

    #[draws(chance)]
    fn chance(&self) -> BoxedStrategy<CandidateSeed> {
        (0..if self.store.exhausted { 1 } else { self.chances }).prop_map(CandidateSeed).boxed()
    }

    /// A manual prefix. Where some nest with allocated ones, it may be the prefix of a candidate, or one that
    /// begins with it, or the beginning of most candidates' prefixes.
    fn prefix(&self) -> BoxedStrategy<Vec<u8>> {
        let content = self.spaces().1.into_bytes();
        let candidate = self.store.drawn_from().prop_map(|candidate| pack(&candidate));
        let beyond = (candidate, select(BEYOND)).prop_map(|(packed, rest)| [&packed[..], rest].concat());
        let beginning = self.store.drawn_from().prop_map(|candidate| {
            let mut packed = pack(&candidate.max(1));
            packed.pop();
            packed
        });
        let nested =
            prop_oneof![8 => beyond, 6 => beginning].prop_map(move |rest| [&content[..], &rest].concat());
        prop_oneof![
            8 => select(&PREFIXES[..]).prop_map(<[u8]>::to_vec),
            u32::from(self.nested) * 14 => nested,
        ]
        .boxed()
    }

    #[draws(row)]
    fn row(&self) -> BoxedStrategy<Row> {
        (0..CONTENT.len() as u8, any::<u8>(), 0..=self.longest).boxed()
    }

    // Weights are eighths: the eight kinds of calls through a handle weigh seven together.
    #[write(weight = 48, at)]
    async fn create(
        &self,
        tx: &Tx,
        names: &[String],
        tag: &[u8],
        chance: CandidateSeed,
    ) -> Result<Opened, Error> {
        Ok(opened(&came_back(self.directories().create(tx, &path(names), tag, chance).await?)))
    }

    /// A few tags are too long: only where the prefix is given, so that it is known which key has the tag.
    #[write(weight = 32 + 32 * u32::from(self.nested), at)]
    async fn create_with_prefix(
        &self,
        tx: &Tx,
        names: &[String],
        #[draw(prop_oneof![
            80 => Self::tag(),
            u32::from(self.manual) => Just(vec![b't'; VALUE_SIZE_LIMIT + 1]),
        ])]
        tag: &[u8],
        #[draw(self.prefix())] prefix: &[u8],
        chance: CandidateSeed,
    ) -> Result<Opened, Error> {
        let created = self.directories().create_with_prefix(tx, &path(names), tag, prefix, chance).await?;
        Ok(opened(&came_back(created)))
    }

    #[write(weight = 48, at)]
    async fn create_or_open(
        &self,
        tx: &Tx,
        names: &[String],
        tag: &[u8],
        chance: CandidateSeed,
    ) -> Result<Opened, Error> {
        Ok(opened(&came_back(self.directories().create_or_open(tx, &path(names), tag, chance).await?)))
    }

    /// Opens or creates two directories concurrently.
    #[write(weight = 40, at)]
    async fn both(
        &self,
        tx: &Tx,
        #[draw(prop_oneof![
            3 => [self.path(), self.path()],
            2 => self.path().prop_map(|path| [path.clone(), path]),
        ])]
        paths: [Names; 2],
        #[draw([self.chance(), self.chance()])] chances: [CandidateSeed; 2],
    ) -> Result<(), Error> {
        let (all, [one, other]) = (self.directories(), [path(&paths[0]), path(&paths[1])]);
        let one = all.create_or_open(tx, &one, b"", chances[0]);
        let other = all.create_or_open(tx, &other, b"", chances[1]);
        // Neither future is dropped before it ends: both are awaited before either result is used.
        let (one, other) = futures::join!(one, other);
        one.and(other).map(drop)
    }

    #[read(weight = 24)]
    async fn open(&self, tx: &Tx, names: &[String], tag: &[u8]) -> Result<Opened, Error> {
        Ok(opened(&came_back(self.directories().open(tx, &path(names), tag).await?)))
    }

    #[write(weight = 72)]
    async fn rename(
        &self,
        tx: &Tx,
        #[draw(prop_oneof![
            8 => (self.path(), self.path()),
            1 => (self.path(), self.name()).prop_map(|(from, name)| {
                let below = [&from[..], &[name]].concat();
                (from, below)
            }),
        ])]
        paths: (Names, Names),
    ) -> Result<(), Error> {
        self.directories().rename(tx, &path(&paths.0), &path(&paths.1)).await.map(drop)
    }

    #[write(weight = 24)]
    async fn remove(&self, tx: &Tx, names: &[String]) -> Result<(), Error> {
        self.directories().remove(tx, &path(names)).await
    }

    #[write(weight = 24)]
    async fn remove_if_exists(&self, tx: &Tx, names: &[String]) -> Result<bool, Error> {
        self.directories().remove_if_exists(tx, &path(names)).await
    }

    #[read(weight = 24)]
    async fn list(&self, tx: &Tx, isolation: Isolation, names: &[String]) -> Result<Names, Error> {
        self.directories().list(tx, &path(names), isolation).await
    }

    /// Lists the directories below one page by page, from the first one after a name, so many on each.
    #[read(weight = 24)]
    async fn pages(
        &self,
        tx: &Tx,
        isolation: Isolation,
        names: &[String],
        #[draw(option::weighted(0.3, self.name()))] after: Option<String>,
        #[draw(1..4usize)] most: usize,
    ) -> Result<Names, Error> {
        let (tx, all, path) = (&tx.reading().await, &self.directories(), &path(names));
        let page = |last: Option<&String>| {
            let after = last.or(after.as_ref()).cloned();
            async move { all.list_page(tx, path, after.as_deref(), most, isolation).await }
        };
        paged(most, page).await
    }

    #[read(weight = 8)]
    async fn exists(&self, tx: &Tx, isolation: Isolation, names: &[String]) -> Result<bool, Error> {
        self.directories().exists(tx, &path(names), isolation).await
    }

    #[write(weight = 48)]
    async fn put(&self, tx: &Tx, names: &[String], row: Row) -> Result<(), Error> {
        let tx = &tx.writing().await;
        put(tx, &came_back(self.directories().open(tx, &path(names), b"").await?), row)
    }

    /// The same; if it is alone in its transaction, through a handle that was opened earlier.
    #[write(weight = 72)]
    async fn put_later(&self, tx: &Tx, names: &[String], row: Row) -> Result<(), Error> {
        self.put(tx, names, row).await
    }

    /// Reads the rows of a directory.
    #[read(weight = 32)]
    async fn read(&self, tx: &Tx, names: &[String]) -> Result<Vec<(u8, Content)>, Error> {
        let tx = &tx.reading().await;
        let prefix = self.directories().open(tx, &path(names), b"").await?.subspace()?.into_bytes();
        let end = tx::strinc(&prefix).unwrap_or_default();
        let rows = tx.get_range_all(RangeOption::new(prefix.clone(), end), Serializable).await?;
        Ok(rows.iter().filter_map(|kv| row(&kv.key[prefix.len()..], &kv.value)).collect())
    }

    /// Allocates a prefix of the root for something else than a directory.
    #[write(weight = 16)]
    async fn allocate(&self, tx: &Tx, chance: CandidateSeed) -> Result<Option<Vec<u8>>, Error> {
        Ok(Some(self.directories().nodes().allocator().allocate(tx, chance).await?.to_vec()))
    }

    /// Declares the version of the schema, as another program would: mostly one that allows writes.
    #[write(weight = if self.versions { 75 } else { 0 })]
    async fn declare(
        &self,
        tx: &Tx,
        #[draw(prop_oneof![1 => select(&LATER[..]), 4 => select(&VERSIONS[..])])] version: [u32; 3],
    ) -> Result<(), Error> {
        let value: Vec<u8> = version.iter().flat_map(|n| n.to_le_bytes()).collect();
        tx.writing().await.set(&self.directories().nodes().version(), &value);
        Ok(())
    }

    /// Opens a directory, for a call through its handle.
    async fn handle(&self, tx: &Tx, names: &[String]) -> Result<Handle, Error> {
        let handle = came_back(self.directories().open(tx, &path(names), b"").await?);
        handle.siblings().check(tx, &handle).await?;
        always!(handle.path().names() == names, "{names:?} was opened as {}", handle.path());
        Ok(handle)
    }

    /// Half of these moves are mostly out of a partition, if the directory is in one.
    #[write(weight = 14)]
    async fn rename_by_handle(
        &self,
        tx: &Tx,
        #[draw(prop_oneof![
            (self.path(), self.path()),
            (self.path(), self.name()).prop_map(|(from, name)| {
                let below = from.iter().skip(1).cloned();
                (from.clone(), [name].into_iter().chain(below).collect())
            }),
        ])]
        paths: (Names, Names),
    ) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let handle = self.handle(tx, &paths.0).await?;
        let moved = handle.move_to(tx, &path(&paths.1)).await?;
        always!(moved.prefix() == handle.prefix(), "a move has changed a prefix");
        Ok(())
    }

    #[write(weight = 7)]
    async fn remove_by_handle(&self, tx: &Tx, names: &[String]) -> Result<(), Error> {
        let tx = &tx.writing().await;
        self.handle(tx, names).await?.remove(tx).await
    }

    #[write(weight = 7)]
    async fn remove_if_exists_by_handle(&self, tx: &Tx, names: &[String]) -> Result<bool, Error> {
        let tx = &tx.writing().await;
        self.handle(tx, names).await?.remove_if_exists(tx).await
    }

    /// The look through the handle is at both isolation levels, opening it is serializable.
    #[read(weight = 7)]
    async fn list_by_handle(&self, tx: &Tx, names: &[String]) -> Result<Names, Error> {
        let tx = &tx.reading().await;
        let below = &self.handle(tx, names).await?.below();
        let read = |tx, isolation| async move { below.list(&tx, &[], isolation).await };
        isolation::at_both_levels(tx, &"a list by handle", read).await
    }

    /// As the list.
    #[read(weight = 7)]
    async fn exists_by_handle(&self, tx: &Tx, names: &[String]) -> Result<bool, Error> {
        let tx = &tx.reading().await;
        let handle = &self.handle(tx, names).await?;
        let read = |tx, isolation| async move { handle.exists(&tx, isolation).await };
        isolation::at_both_levels(tx, &"a look by handle", read).await
    }

    /// Removes a directory through its handle, and creates one that is not that of the handle.
    #[write(weight = 7, at)]
    async fn replace_by_handle(
        &self,
        tx: &Tx,
        names: &[String],
        tag: &[u8],
        chance: CandidateSeed,
    ) -> Result<Opened, Error> {
        let tx = &tx.writing().await;
        let handle = self.handle(tx, names).await?;
        handle.remove(tx).await?;
        let new = self.create(tx, names, tag, chance).await?;
        let stale = handle.siblings().check(tx, &handle).await;
        let expected = Err(Error::Stale(handle.path().clone()));
        always!(stale == expected, "the handle of a removed directory is checked: {stale:?}");
        Ok(new)
    }

    /// Opens a directory again while its handle exists.
    #[write(weight = 7)]
    async fn reopen_by_handle(&self, tx: &Tx, env: &Env, names: &[String]) -> Result<Opened, Error> {
        let tx = &tx.writing().await;
        self.handle(tx, names).await?;
        let again =
            self.directories().create_or_open(tx, &path(names), b"", CandidateSeed::draw(env)).await?;
        Ok(opened(&again))
    }

    async fn apply(&self, _: Option<&str>, session: &mut Session<Db>, ops: &[DirectoryOp]) -> Ended {
        self.put_through_handle(session, ops, true).await
    }

    /// Puts a row through a handle that an earlier transaction opened.
    async fn put_through_handle(
        &self,
        session: &mut Session<Db>,
        ops: &[DirectoryOp],
        is_checked: bool,
    ) -> Ended {
        let [DirectoryOp::put_later { names, row }] = ops else { return None };
        let (all, names) = (&self.directories(), &path(names));
        let db = session.database().clone();
        let handle = &db.run(|tx, _| async move { all.open(&tx, names, b"").await }).await.ok()?;
        handle.subspace().ok()?;
        let put = |tx: Tx| async move {
            match all.check(&tx, handle).await {
                _ if !is_checked => put(&tx, handle, *row),
                Ok(()) => put(&tx, handle, *row),
                Err(Error::Stale(_)) => {
                    reachable!("directory: a handle is stale");
                    put(&tx, &all.open(&tx, names, b"").await?, *row)
                }
                Err(e) => Err(e),
            }
            .map(|()| Recorded(vec![DirectoryAnswer::put_later]))
        };
        Some(concluded(session.apply(put).await))
    }

    fn model(&self) -> Model {
        let (nodes, content) = self.spaces();
        Model::new(Place {
            nodes: nodes.into_bytes(),
            content: content.into_bytes(),
            candidates: self.store.candidates(),
            manual: self.manual,
        })
    }

    fn choose(
        &self,
        model: &mut Model,
        expected: &mut [DirectoryAnswer],
        answers: Option<&[DirectoryAnswer]>,
        mutations: &[Mutation],
    ) {
        for (n, answer) in answers.unwrap_or(&[]).iter().enumerate() {
            let Some((expected, later)) =
                expected.get_mut(n..).and_then(<[DirectoryAnswer]>::split_first_mut)
            else {
                break;
            };
            if let (Some((_, open @ None)), Some((_, Some(prefix)))) =
                (in_opened!(expected), in_opened!(answer))
            {
                // What an allocated directory had may be given by hand after it is removed.
                let is_it = |later: &DirectoryAnswer| {
                    in_opened!(later).is_some_and(|(_, own)| own.as_ref() == Some(prefix))
                };
                let again = || self.may_be_manual(prefix) && later.iter().any(is_it);
                if !model.root.gave(prefix) || again() {
                    *open = Some(prefix.clone());
                }
            } else if let (DirectoryAnswer::allocate(open), DirectoryAnswer::allocate(Some(prefix))) =
                (expected, answer)
                && model.root.gives([self.spaces().1.bytes(), prefix].concat())
            {
                *open = Some(prefix.clone());
            }
        }
        model.root.choose(self.spaces().0.bytes(), mutations);
    }

    #[stored]
    async fn stored(&self, tx: &Tx) -> tx::Result<Result<Model, String>> {
        // Everything except for the sessions.
        let sessions = Subspace::from("sessions");
        let end = tx::strinc(sessions.bytes()).unwrap_or_default();
        let before = tx.get_range_all(RangeOption::new(&b""[..], sessions.into_bytes()), Serializable);
        let behind = tx.get_range_all(RangeOption::new(end, &b"\xff"[..]), Serializable);
        let (before, behind) = try_join(before, behind).await?;
        let rows = before.into_iter().chain(behind).map(|row| (row.key.to_vec(), row.value.to_vec()));
        let model = self.model();
        let by_hand = |prefix: &[u8]| self.may_be_manual(prefix);
        let surveyed = survey(rows.collect::<Rows>(), &model.place.nodes);
        let root = surveyed.and_then(|layer| Known::surveyed(&layer, &model.place.content, &by_hand, &row));
        Ok(root.map(|root| Model { root, ..model }))
    }
}

/// What opened a directory has returned: its tag and its prefix.
type Opened = (Vec<u8>, Option<Vec<u8>>);

/// Names.
type Names = Vec<String>;

/// A row to be stored: the number of what its key ends with in [`CONTENT`], and a byte that is repeated this
/// many times.
type Row = (u8, u8, usize);

/// How a transaction ended that was done in a way of its own.
type Ended = Option<Outcome<Answer<DirectoryAnswer>>>;

/// The names that are drawn.
const NAMES: [&str; 7] = ["a", "", "b\0é", "a\u{10ffff}", "x y", "ß", "ss"];

/// What follows the prefix of a directory in the keys of its content, in order: nothing, packed tuples, and
/// what sorts after all tuples.
const CONTENT: [&[u8]; 6] = [b"", b"\x14", b"\x15\x01", b"\xff", b"\xff\xff\x01", b"\xff\xff\xff"];

/// The layer tags that are drawn.
const TAGS: [&[u8]; 4] = [b"", b"", b"t\0g", PARTITION];

/// Manual prefixes that the allocator does not choose. Some of them nest; the empty one and the last three
/// are reserved.
const PREFIXES: [&[u8]; 9] =
    [b"1", b"1A", b"1A\0", b"2\xff", b"2\xff\0", b"", b"\xfe\x01", b"\xff\x02", b"\xff\xff"];

/// What may follow a candidate's prefix in a manual one.
const BEYOND: &[&[u8]] = &[b"", b"\0", b"x"];

/// The versions of the schema that another program declares: those of which all directories can be changed,
/// and others. Some numbers differ in each of their bytes.
const VERSIONS: [[u32; 3]; 3] = [[1, 0, 0], [1, 0, 7], [1, 0, 0x0403_0201]];
const LATER: [[u32; 3]; 4] = [[1, 1, 0], [1, 0x0403_0201, 0], [2, 0, 0], [0x0403_0201, 0, 9]];

/// The names as the layer takes them.
fn path(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

fn opened(handle: &Handle) -> Opened {
    (handle.tag().to_vec(), Some(handle.prefix().to_vec()))
}

/// Puts a row into a directory.
fn put(tx: &Tx, directory: &Handle, (key, byte, length): Row) -> Result<(), Error> {
    let key = [directory.subspace()?.bytes(), CONTENT[usize::from(key)]].concat();
    tx.set(&key, &vec![byte; length]);
    Ok(())
}

fn row(key: &[u8], value: &[u8]) -> Option<(u8, Content)> {
    let place = CONTENT.iter().position(|known| *known == key)?;
    Some((place as u8, Content::from(value)))
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Mounted<Directory>>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable_sim::seed::Seed;

    #[test]
    fn a_prefix_may_be_given_by_hand_after_its_directory_is_removed_in_the_same_transaction() {
        let drawn = |nested: bool| {
            let mut all = (0..400).map(|seed| Directory::draw(&mut Seed(seed).stream("draw")));
            all.find(|own| own.manual && own.nested == nested && !own.own_subspaces)
        };
        let prefix = vec![0x15, 7];
        for (nested, expected) in [(true, Some(prefix.clone())), (false, None)] {
            let own = drawn(nested).expect("a configuration");
            let mut model = own.model();
            model.root.below.insert("b".into(), Known { prefix: Some(prefix.clone()), ..Known::default() });
            let created = |prefix: Option<&Vec<u8>>| DirectoryAnswer::create((Vec::new(), prefix.cloned()));
            let by_hand = DirectoryAnswer::create_with_prefix((Vec::new(), Some(prefix.clone())));
            let mut answers = [created(None), DirectoryAnswer::remove, by_hand.clone()];
            let actual = [created(Some(&prefix)), DirectoryAnswer::remove, by_hand];
            own.choose(&mut model, &mut answers, Some(&actual), &[]);
            assert_eq!(answers[0], created(expected.as_ref()));
        }
    }
}
