//! `directory`: directories are created, opened, moved, removed and listed, and things kept in them.
//!
//! Few names, two or three levels deep, so that clients meet on every path; layer tags, partitions, and
//! prefixes by hand that nest, with allocated ones too; a later version of the schema that appears and goes.
//! Candidates follow from few chances, so that allocators meet too. Two creates may run concurrently in one
//! transaction, and a key may be put through a handle that was opened before. What is stored is surveyed from the raw rows:
//! every prefix belongs to one path, none begins another, and no key is left that is no directory's.

pub mod model;
mod planted;

use crate::catalogue::directory::model::{Known, Place, Rows, Wish, survey};
use bytes::Bytes;
use foundationdb_tuple::{Subspace, pack, unpack};
use futures::future::try_join;
use proptest::{collection::vec, prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{
    looks,
    specimen::{self, At, Content, Specimen, UNRECORDED},
    workload::{Bug, Outcome},
};
use shaketable_layers::{
    always,
    directory::{self, Chance, Directories, Error, PARTITION, Path},
    once::{self, Session},
    tx::{
        self, Database, Env,
        Isolation::{self, Serializable},
        RangeOption, Transaction,
    },
};
use shaketable_sim::{proto::Mutation, seed::Stream};

shaketable::planted_bugs! {
    Unrecorded = UNRECORDED, "a create is retried after an unknown result, and finds its own directory", "a create that is told it exists already";
    CandidateAtSnapshot = "candidate-at-snapshot", "the allocator reads a candidate's mark at snapshot", "an allocator without isolation";
    SilentCandidate = "silent-candidate", "the allocator marks a candidate without a write conflict", "an allocator that never declares its choice";
    ParallelCreate = "parallel-create", "two calls of one transaction both find the path free", "a known issue of the node.js and Python bindings";
    PathAtSnapshot = "path-at-snapshot", "whether the path is free is read at snapshot", "a check without isolation";
    ClashUnseen = "clash-unseen", "the allocator does not look at prefixes given by hand", "an allocator that believes it is alone";
    ClashAtSnapshot = "clash-at-snapshot", "the allocator looks at prefixes given by hand at snapshot alone", "a check without isolation";
    EqualPrefix = "equal-prefix", "a prefix by hand is compared with others for equality alone", "a check that forgets nesting";
    IntoItself = "into-itself", "a directory is moved below itself", "a tree that becomes a ring";
    AcrossPartitions = "across-partitions", "a directory moves into another partition, and its content does not", "a move of the name alone";
    MissingParent = "missing-parent", "a move creates the directories on the way", "the habit of create";
    TagLeftBehind = "tag-left-behind", "a moved directory loses its layer tag", "a node written anew";
    ContentLeft = "content-left", "a removal clears the node and not the content", "a removal of the metadata alone";
    BelowLeft = "below-left", "a removal leaves the directories below", "a removal that is not recursive";
    RemoveAtSnapshot = "remove-at-snapshot", "a removal reads the directories below at snapshot", "a removal that misses a new one";
    TagIgnored = "tag-ignored", "a directory is opened whatever its layer tag", "a check that was forgotten";
    VersionIgnored = "version-ignored", "what a later version has written is written to", "a check that was forgotten";
    StaleHandle = "stale-handle", "a handle from an earlier transaction is used unchecked", "the hazard that the documentation warns of";
    ListAtSnapshot = "list-at-snapshot", "a list is read at snapshot, however it is asked for", "a dropped conflict range";
}

/// The names that are drawn.
const NAMES: [&str; 4] = ["a", "", "b\0é", "x y"];

/// So many names are listed at a time.
const PAGE: usize = 2;

/// The layer tags that are drawn.
const TAGS: [&[u8]; 4] = [b"", b"", b"t\0g", PARTITION];

/// The prefixes that are given by hand apart from what the allocator chooses. Some nest; the empty
/// one and the last two are nobody's to give.
const PREFIXES: [&[u8]; 8] = [b"1", b"1A", b"1A\0", b"2\xff", b"2\xff\0", b"", b"\xfe\x01", b"\xff\xff"];

/// How a prefix by hand goes on behind a candidate's.
pub(crate) const BEYOND: &[&[u8]] = &[b"", b"\0", b"x"];

/// The versions of the schema that a stranger declares.
const VERSIONS: [[u32; 3]; 4] = [[1, 0, 0], [1, 0, 7], [1, 1, 0], [2, 0, 0]];

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Directory {
    /// Of [`NAMES`], how many are used.
    names: usize,
    /// How deep paths are at most.
    depth: usize,
    /// Whether prefixes may be given by hand.
    manual: bool,
    /// Whether some of them nest with what the allocator chooses.
    nested: bool,
    /// Whether nodes and content have subspaces of their own, rather than the official ones.
    own_subspaces: bool,
    /// How many chances are drawn from: with few, allocators meet.
    chances: u64,
    /// Whether a stranger declares versions.
    versions: bool,
    /// Values have up to so many bytes.
    longest: usize,
    pub(crate) planted: Option<Planted>,
}

/// Names.
pub type Names = Vec<String>;

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Creates a directory with this tag, and a prefix by hand if there is one.
    Create(Names, Vec<u8>, Option<Vec<u8>>, Chance),
    /// Opens or creates a directory with this tag.
    CreateOrOpen(Names, Vec<u8>, Chance),
    /// Opens or creates two at once.
    Both([Names; 2], [Chance; 2]),
    /// Opens a directory.
    Open(Names, Vec<u8>),
    /// Moves a directory.
    Rename(Names, Names),
    /// Removes a directory.
    Remove(Names),
    /// Removes a directory if it is there.
    RemoveIfExists(Names),
    /// Lists the directories below one.
    List(Names),
    /// Lists them a few at a time.
    Pages(Names),
    /// Asks whether there is a directory.
    Exists(Names),
    /// Puts under this key so many bytes of this number into a directory.
    Put(Names, u8, u8, usize),
    /// The same, through a handle that was opened before.
    PutLater(Names, u8, u8, usize),
    /// Reads what was put.
    Read(Names),
    /// Opens a directory without a tag, and does what the call does through its handle.
    ByHandle(Box<Op>),
    /// A stranger declares the version of the schema.
    Declare([u32; 3]),
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// The directory's tag, and its prefix.
    Opened(Vec<u8>, Option<Vec<u8>>),
    /// It is done.
    Done,
    /// Whether there is, or was, a directory.
    Is(bool),
    /// Names.
    Names(Names),
    /// What was put.
    Content(Vec<(u8, Content)>),
}

/// The names as the layer takes them.
pub(crate) fn path(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

pub(crate) fn opened(directory: &directory::Directory) -> Answer {
    Answer::Opened(directory.tag().to_vec(), Some(directory.prefix().to_vec()))
}

fn known(known: &Known) -> Answer {
    Answer::Opened(known.tag.clone(), known.prefix.clone())
}

/// Puts a row into a directory.
pub(crate) fn put<T: Transaction>(
    tx: &T,
    directory: &directory::Directory,
    key: u8,
    byte: u8,
    length: usize,
) -> Result<Answer, Error> {
    tx.set(&directory.subspace()?.pack(&i64::from(key)), &vec![byte; length]);
    Ok(Answer::Done)
}

fn row(key: &[u8], value: &[u8]) -> Option<(u8, Content)> {
    Some((u8::try_from(unpack::<i64>(key).ok()?).ok()?, Content::from(value)))
}

impl Directory {
    fn subspaces(&self) -> (Subspace, Subspace) {
        match self.own_subspaces {
            true => (Subspace::from("nodes"), Subspace::from("content")),
            false => (Subspace::from_bytes([0xfe]), Subspace::all()),
        }
    }

    /// The directories of the run.
    pub(crate) fn directories(&self) -> Directories {
        let (nodes, content) = self.subspaces();
        let directories = Directories::new(nodes, content);
        if self.manual { directories.with_manual_prefixes() } else { directories }
    }

    /// The directory that a call by handle opens.
    fn handled(op: &Op) -> &Names {
        match op {
            Op::Rename(names, _)
            | Op::Remove(names)
            | Op::RemoveIfExists(names)
            | Op::List(names)
            | Op::Exists(names)
            | Op::CreateOrOpen(names, ..) => names,
            op => unreachable!("{op:?} is not drawn with a handle"),
        }
    }

    async fn by_handle<T: Transaction>(&self, tx: &T, env: &Env, op: &Op) -> Result<Answer, Error> {
        let names = Self::handled(op);
        let directory = self.directories().open(tx, &path(names), b"").await?;
        directory.siblings().check(tx, &directory).await?;
        always!(directory.path().names() == names, "{names:?} was opened as {}", directory.path());
        Ok(match op {
            Op::Rename(_, to) => {
                let moved = directory.move_to(tx, &path(to)).await?;
                always!(moved.prefix() == directory.prefix(), "a move has changed a prefix");
                Answer::Done
            }
            Op::Remove(_) => {
                directory.remove(tx).await?;
                Answer::Done
            }
            Op::RemoveIfExists(_) => Answer::Is(directory.remove_if_exists(tx).await?),
            Op::List(_) => {
                let below = &directory.below();
                let look = |tx, isolation| async move { below.list(&tx, &[], isolation).await };
                Answer::Names(looks::twice(tx, op, look).await?)
            }
            Op::Exists(_) => {
                let directory = &directory;
                let look = |tx, isolation| async move { directory.exists(&tx, isolation).await };
                Answer::Is(looks::twice(tx, op, look).await?)
            }
            _ => opened(&self.directories().create_or_open(tx, &path(names), b"", Chance::draw(env)).await?),
        })
    }

    /// Does one call as it should be done.
    pub(crate) async fn perform_right<T: Transaction>(
        &self,
        tx: &T,
        env: &Env,
        op: &Op,
        isolation: Isolation,
    ) -> Result<Answer, Error> {
        let all = self.directories();
        Ok(match op {
            Op::Create(names, tag, None, chance) => {
                opened(&all.create(tx, &path(names), tag, *chance).await?)
            }
            Op::Create(names, tag, Some(prefix), chance) => {
                opened(&all.create_with_prefix(tx, &path(names), tag, prefix, *chance).await?)
            }
            Op::CreateOrOpen(names, tag, chance) => {
                opened(&all.create_or_open(tx, &path(names), tag, *chance).await?)
            }
            Op::Both([one, other], chances) => {
                let (one, other) = (path(one), path(other));
                let one = all.create_or_open(tx, &one, b"", chances[0]);
                let other = all.create_or_open(tx, &other, b"", chances[1]);
                // Neither is dropped half way: both answers are awaited before either is looked at.
                let (one, other) = futures::join!(one, other);
                one?;
                other?;
                Answer::Done
            }
            Op::Open(names, tag) => opened(&all.open(tx, &path(names), tag).await?),
            Op::Rename(from, to) => {
                all.rename(tx, &path(from), &path(to)).await?;
                Answer::Done
            }
            Op::Remove(names) => {
                all.remove(tx, &path(names)).await?;
                Answer::Done
            }
            Op::RemoveIfExists(names) => Answer::Is(all.remove_if_exists(tx, &path(names)).await?),
            Op::List(names) => Answer::Names(all.list(tx, &path(names), isolation).await?),
            Op::Pages(names) => {
                let (path, mut found) = (path(names), Names::new());
                loop {
                    let after = found.last().map(String::as_str);
                    let page = all.list_page(tx, &path, after, PAGE, isolation).await?;
                    let ends = page.len() < PAGE;
                    found.extend(page);
                    if ends {
                        break Answer::Names(found);
                    }
                }
            }
            Op::Exists(names) => Answer::Is(all.exists(tx, &path(names), isolation).await?),
            Op::Put(names, key, byte, length) | Op::PutLater(names, key, byte, length) => {
                put(tx, &all.open(tx, &path(names), b"").await?, *key, *byte, *length)?
            }
            Op::Read(names) => {
                let range = all.open(tx, &path(names), b"").await?.subspace()?.range();
                let begin = range.0.len() - 1;
                let rows = tx.get_range_all(range.into(), Serializable).await?;
                let row = |kv: &tx::KeyValue| row(&kv.key[begin..], &kv.value);
                Answer::Content(rows.iter().filter_map(row).collect())
            }
            Op::ByHandle(op) => return self.by_handle(tx, env, op).await,
            Op::Declare(version) => {
                let value: Vec<u8> = version.iter().flat_map(|n| n.to_le_bytes()).collect();
                tx.set(&all.nodes().version(), &value);
                Answer::Done
            }
        })
    }
}

impl Specimen for Directory {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Known;

    const NAME: &'static str = "directory";
    const ABOUT: &'static str =
        "directories created, moved and removed, with tags, partitions and prefixes by hand";
    const TRANSACTIONS: std::ops::Range<u64> = 6..28;
    const TOGETHER: std::ops::Range<u64> = 1..4;

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "directory: a candidate is taken",
            "directory: a move within a partition",
            "directory: a partition is entered",
            "directory: a prefix by hand is in use",
            "directory: a removal takes others with it",
            "directory: a window is used up",
            "directory: an allocated prefix clashes with a manual one",
            "directory: another call of the transaction is first",
            "directory: a handle is stale",
        ]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Directory {
        Directory {
            names: rng.range(2..NAMES.len() as u64 + 1) as usize,
            depth: rng.range(2..4) as usize,
            manual: rng.chance(0.8),
            nested: rng.chance(0.5),
            own_subspaces: rng.chance(0.25),
            chances: *rng.pick(&[1, 2, 5, u64::MAX]),
            versions: rng.chance(0.25),
            longest: *rng.pick(&[4, 40, 2_000]),
            planted: bug.and_then(Planted::named),
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let all = self.directories();
        let nodes = all.nodes();
        let mut keys = vec![nodes.version(), nodes.allocator().mark(0)];
        keys.extend(NAMES[..self.names].iter().map(|name| nodes.root().child(name)));
        for candidate in [0i64, 9, 20, 40, 63] {
            let prefix = self.subspaces().1.pack(&candidate);
            keys.extend([nodes.of(&prefix).tag(), prefix]);
        }
        keys.into_iter().map(Bytes::from).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        let (names, depth) = (&NAMES[..self.names], self.depth);
        let path = move || {
            let length = prop_oneof![1 => Just(0), 16 => 1..=depth];
            length.prop_flat_map(move |length| vec(select(names).prop_map(str::to_owned), length))
        };
        let tag = || select(&TAGS[..]).prop_map(<[u8]>::to_vec);
        let (chances, nested) = (self.chances, u32::from(self.nested));
        let chance = move || (0..chances).prop_map(Chance);
        let content = self.subspaces().1.into_bytes();
        let below = move |rest: &[u8]| [&content[..], rest].concat();
        let among = below.clone();
        let prefix = prop_oneof![
            8 => select(&PREFIXES[..]).prop_map(<[u8]>::to_vec),
            // A candidate's own prefix, or one that begins with it; one that most candidates begin with.
            nested * 8 => (0..64i64, select(BEYOND))
                .prop_map(move |(candidate, rest)| among(&[&pack(&candidate)[..], rest].concat())),
            nested * 6 => Just(below(&pack(&1i64)[..1])),
        ];
        let prefix = prefix.prop_map(Some);
        let value = (0..3u8, any::<u8>(), 0..=self.longest);
        let versions = if self.versions { 1 } else { 0 };
        let any = prop_oneof![
            6 => (path(), tag(), chance()).prop_map(|(p, t, c)| Op::Create(p, t, None, c)),
            4 + nested * 4 => (path(), tag(), prefix, chance()).prop_map(|(p, t, x, c)| Op::Create(p, t, x, c)),
            6 => (path(), tag(), chance()).prop_map(|(p, t, c)| Op::CreateOrOpen(p, t, c)),
            3 => (path(), path(), chance(), chance()).prop_map(|(p, q, c, d)| Op::Both([p, q], [c, d])),
            2 => (path(), chance(), chance()).prop_map(|(p, c, d)| Op::Both([p.clone(), p], [c, d])),
            3 => (path(), tag()).prop_map(|(p, t)| Op::Open(p, t)),
            8 => (path(), path()).prop_map(|(p, q)| Op::Rename(p, q)),
            1 => (path(), select(names)).prop_map(|(p, name)| {
                Op::Rename(p.clone(), p.into_iter().chain([name.to_owned()]).collect())
            }),
            3 => path().prop_map(Op::Remove),
            3 => path().prop_map(Op::RemoveIfExists),
            3 => path().prop_map(Op::List),
            2 => path().prop_map(Op::Pages),
            1 => path().prop_map(Op::Exists),
            6 => (path(), value.clone()).prop_map(|(p, (k, b, n))| Op::Put(p, k, b, n)),
            9 => (path(), value).prop_map(|(p, (k, b, n))| Op::PutLater(p, k, b, n)),
            4 => path().prop_map(Op::Read),
            5 => prop_oneof![
                (path(), path()).prop_map(|(p, q)| Op::Rename(p, q)),
                path().prop_map(Op::Remove),
                path().prop_map(Op::RemoveIfExists),
                path().prop_map(Op::List),
                path().prop_map(Op::Exists),
                path().prop_map(|p| Op::CreateOrOpen(p, Vec::new(), Chance(0))),
            ]
            .prop_map(|op| Op::ByHandle(Box::new(op))),
        ];
        match versions {
            0 => any.boxed(),
            // Mostly back to a version that lets things be done.
            _ => prop_oneof![
                40 => any,
                1 => select(&VERSIONS[2..]).prop_map(Op::Declare),
                4 => select(&VERSIONS[..2]).prop_map(Op::Declare),
            ]
            .boxed(),
        }
    }

    fn is_look(op: &Op) -> bool {
        match op {
            Op::ByHandle(op) => Self::is_look(op),
            op => matches!(op, Op::Open(..) | Op::List(_) | Op::Pages(_) | Op::Exists(_) | Op::Read(_)),
        }
    }

    fn takes_isolation(&self, op: &Op) -> bool {
        matches!(op, Op::List(_) | Op::Pages(_) | Op::Exists(_))
            && self.planted.is_none_or(|planted| planted == Planted::ListAtSnapshot)
    }

    async fn perform<T: Transaction>(
        &self,
        tx: &T,
        env: &Env,
        op: &Op,
        isolation: Isolation,
    ) -> Result<Answer, Error> {
        if let Some(planted) = self.planted
            && let Some(answer) = planted::perform(planted, self, tx, env, op).await
        {
            return answer;
        }
        let isolation = planted::isolation(self.planted, op, isolation);
        self.perform_right(tx, env, op, isolation).await
    }

    /// A put through a handle that an earlier transaction opened.
    async fn divert<D: Database>(
        &self,
        session: &mut Session<D>,
        ops: &[Op],
    ) -> Option<Outcome<specimen::Answer<Answer>>> {
        let [Op::PutLater(names, key, byte, length)] = ops else { return None };
        let (all, names) = (self.directories(), path(names));
        let (all, names) = (&all, &names);
        let db = session.database().clone();
        let handle = db.run(|tx, _| async move { all.open(&tx, names, b"").await }).await.ok()?;
        handle.subspace().ok()?;
        let (handle, unchecked) = (&handle, self.planted == Some(Planted::StaleHandle));
        let applied = session.apply(|tx| async move {
            let answer = match all.check(&tx, handle).await {
                _ if unchecked => put(&tx, handle, *key, *byte, *length),
                Ok(()) => put(&tx, handle, *key, *byte, *length),
                Err(Error::Stale(_)) => {
                    shaketable_layers::reachable!("directory: a handle is stale");
                    put(&tx, &all.open(&tx, names, b"").await?, *key, *byte, *length)
                }
                Err(e) => Err(e),
            };
            answer.map(|answer| specimen::Recorded(vec![answer]))
        });
        Some(match applied.await {
            once::Outcome::Applied(recorded) => Outcome::Answered(specimen::Answer::Done(recorded.0)),
            once::Outcome::Refused(e) => specimen::refused(&e),
            once::Outcome::Unknown(_) => Outcome::Unknown(tx::Error::COMMIT_UNKNOWN_RESULT),
        })
    }

    fn model(&self) -> Known {
        Known::default()
    }

    fn replay(&self, model: &mut Known, op: &Op, at: &At) -> Result<Answer, Error> {
        // A handle goes by the layer of its own partition, and asks none above.
        let (op, start) = match op {
            Op::ByHandle(op) => {
                let handled = Self::handled(op);
                model.open(handled, b"")?;
                (&**op, model.partition_of(handled))
            }
            op => (op, 0),
        };
        let (nodes, content) = self.subspaces();
        let place = Place { nodes: nodes.bytes(), content: content.bytes() };
        let (manual, refusal) = (self.manual, at.refusal);
        let wish = |tag, prefix, opens| Wish { tag, prefix, opens, manual, place, refusal };
        Ok(match op {
            Op::Create(names, tag, prefix, _) => {
                known(model.create(names, wish(tag, prefix.as_deref(), false))?)
            }
            Op::CreateOrOpen(names, tag, _) => known(model.create(names, wish(tag, None, true))?),
            Op::Both(both, _) => {
                for names in both {
                    model.create(names, wish(b"", None, true))?;
                }
                Answer::Done
            }
            Op::Open(names, tag) => known(model.open(names, tag)?),
            Op::Rename(from, to) => {
                model.rename(start, from, to)?;
                Answer::Done
            }
            Op::Remove(names) => match model.remove(start, names)? {
                true => Answer::Done,
                false => return Err(Error::NotFound(Path::from(&names[..]))),
            },
            Op::RemoveIfExists(names) => Answer::Is(model.remove(start, names)?),
            Op::List(names) | Op::Pages(names) => Answer::Names(model.list(names)?),
            Op::Exists(names) => Answer::Is(model.exists(names)?),
            Op::Put(names, key, byte, length) | Op::PutLater(names, key, byte, length) => {
                model.keeper(names)?.content.insert(*key, Content::of(*byte, *length));
                Answer::Done
            }
            Op::Read(names) => Answer::Content(model.keeper(names)?.content.clone().into_iter().collect()),
            Op::ByHandle(_) => Answer::Done,
            Op::Declare(version) => {
                model.version = Some(*version);
                Answer::Done
            }
        })
    }

    fn choose(
        &self,
        model: &mut Known,
        expected: &mut [Answer],
        answers: Option<&[Answer]>,
        mutations: &[Mutation],
    ) {
        for (expected, answer) in expected.iter_mut().zip(answers.unwrap_or(&[])) {
            if let (Answer::Opened(_, open @ None), Answer::Opened(_, Some(prefix))) = (expected, answer)
                && !model.gave(prefix)
            {
                *open = Some(prefix.clone());
            }
        }
        model.choose(self.subspaces().0.bytes(), mutations);
    }

    async fn stored<T: Transaction>(&self, tx: &T) -> tx::Result<Result<Known, String>> {
        // Everything but the sessions.
        let sessions = Subspace::from("sessions");
        let end = tx::strinc(sessions.bytes()).unwrap_or_default();
        let before = tx.get_range_all(RangeOption::new(&b""[..], sessions.into_bytes()), Serializable);
        let behind = tx.get_range_all(RangeOption::new(end, &b"\xff"[..]), Serializable);
        let (before, behind) = try_join(before, behind).await?;
        let rows = before.into_iter().chain(behind).map(|row| (row.key.to_vec(), row.value.to_vec()));
        let (nodes, content) = self.subspaces();
        let surveyed = survey(rows.collect::<Rows>(), nodes.bytes());
        let by_hand = |prefix: &[u8]| {
            PREFIXES.contains(&prefix) || self.manual && self.nested && prefix.starts_with(content.bytes())
        };
        Ok(surveyed.and_then(|layer| Known::surveyed(&layer, content.bytes(), &by_hand, &row)))
    }
}
