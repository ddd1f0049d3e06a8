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
mod client;
#[cfg(test)]
mod documents;
mod model;
mod operations;
mod planted;
mod prefixes;
mod store;

pub use model::Known;
pub use operations::{Answer, Names, Op};
pub use prefixes::{Place, Wish};

use bytes::Bytes;
use client::{path, put, row};
use foundationdb_tuple::Subspace;
use futures::future::try_join;
use operations::{NAMES, PREFIXES};
use planted::{BUGS, Planted};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit,
    specimen::{self, At, Content, Specimen},
    workload::{Bug, Outcome},
};
use shaketable_fidelity::survey::{Rows, survey};
use shaketable_layers::directory::{Directories, Error, Path};
use shaketable_sim::{proto::Mutation, seed::Stream};
use shaketable_tx::{
    self as tx, Database, Db, Env,
    Isolation::{self, Serializable},
    RangeOption, Transaction, Tx,
    once::{self, Session},
};
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
    planted: Option<Planted>,
}

fn known(known: &Known) -> Answer {
    Answer::Opened(known.tag.clone(), known.prefix.clone())
}

impl Directory {
    fn subspaces(&self) -> (Subspace, Subspace) {
        match self.own_subspaces {
            true => (Subspace::from("nodes"), Subspace::from("content")),
            false => (Subspace::from_bytes([0xfe]), Subspace::all()),
        }
    }

    /// Whether calls may give this prefix by hand.
    fn may_be_manual(&self, prefix: &[u8]) -> bool {
        let is_nested = || prefix.starts_with(self.subspaces().1.bytes());
        PREFIXES.contains(&prefix) || self.manual && self.nested && is_nested()
    }

    /// The directories of the run.
    fn directories(&self) -> Directories {
        let (nodes, content) = self.subspaces();
        let directories = match self.own_subspaces {
            true => Directories::new(nodes, content),
            false => Directories::default(),
        };
        if self.manual { directories.with_manual_prefixes() } else { directories }
    }
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<shaketable::specimen::Mounted<Directory>>()
}

impl Specimen for Directory {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Known;

    const NAME: &'static str = "directory";
    const ABOUT: &'static str =
        "directories created, moved and removed, with tags, partitions and prefixes by hand";
    const CHECKS_LIMITS: bool = true;
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
            store: Store::draw(rng),
            planted: bug.and_then(Planted::named),
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let all = self.directories();
        let nodes = all.nodes();
        let mut keys = vec![nodes.version(), nodes.allocator().mark(self.store.start)];
        keys.extend(NAMES[..self.names].iter().map(|name| nodes.root().child(name)));
        for candidate in [0i64, 9, 20, 40, 63] {
            let prefix = self.subspaces().1.pack(&(self.store.start + candidate));
            keys.extend([nodes.of(&prefix).tag(), prefix]);
        }
        keys.into_iter().map(Bytes::from).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        self.drawn()
    }

    fn refuses_cleanly(op: &Op, refusal: &Error) -> bool {
        // A prefix that cannot be used is never allocated again.
        let has_allocated =
            matches!(refusal, Error::PrefixClash { .. } | Error::PrefixNotEmpty { .. } | Error::TooLarge(_));
        !has_allocated && !matches!(op, Op::Both(..))
    }

    fn is_read_only(op: &Op) -> bool {
        match op {
            Op::ByHandle(op) => Self::is_read_only(op),
            op => matches!(op, Op::Open(..) | Op::List(_) | Op::Pages(..) | Op::Exists(_) | Op::Read(_)),
        }
    }

    async fn setup(&self, db: &Db) -> tx::Result<()> {
        let (store, allocator) = (&self.store, &self.directories().nodes().allocator());
        let stored = db.run(|tx, _| async move {
            store.rows(allocator).iter().for_each(|(key, value)| tx.set(key, value));
            Ok::<_, tx::Error>(())
        });
        stored.await.map_err(|e| e.error)
    }

    fn takes_isolation(&self, op: &Op) -> bool {
        matches!(op, Op::List(_) | Op::Pages(..) | Op::Exists(_))
            && self.planted.is_none_or(|planted| planted == Planted::ListAtSnapshot)
    }

    async fn perform(&self, tx: &Tx, env: &Env, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
        if let Some(planted) = self.planted
            && let Some(answer) = planted::perform(planted, self, tx, env, op).await?
        {
            return Ok(answer);
        }
        self.perform_right(tx, env, op, isolation).await
    }

    /// Writes through a handle that an earlier transaction opened.
    async fn apply(
        &self,
        _: Option<&str>,
        session: &mut Session<Db>,
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
                    shaketable_tx::reachable!("directory: a handle is stale");
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

    fn takes_turns(&self) -> bool {
        self.planted.is_none()
    }

    fn model(&self) -> Known {
        Known::default()
    }

    fn replay(&self, model: &mut Known, op: &Op, at: &At) -> Result<Answer, Error> {
        // A handle uses the layer of its own partition, and none above it.
        let (op, start) = match op {
            Op::ByHandle(op) => {
                let handled = Self::handled(op);
                model.open(handled, b"")?;
                let start = model.partition_of(handled);
                if let Op::Create(..) = **op {
                    model.remove(start, handled)?;
                }
                (&**op, start)
            }
            op => (op, 0),
        };
        let (nodes, content) = self.subspaces();
        let place =
            Place { nodes: nodes.bytes(), content: content.bytes(), candidates: self.store.candidates() };
        let (manual, refusal) = (self.manual, at.refusal);
        let wish = |tag, prefix, opens| Wish { tag, prefix, opens, manual, place: place.clone(), refusal };
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
                model.rename(start, from, to, &place)?;
                Answer::Done
            }
            Op::Remove(names) => match model.remove(start, names)? {
                true => Answer::Done,
                false => return Err(Error::NotFound(Path::from(&names[..]))),
            },
            Op::RemoveIfExists(names) => Answer::Is(model.remove(start, names)?),
            Op::List(names) => Answer::Names(model.list(names)?),
            Op::Pages(names, after, _) => {
                let mut found = model.list(names)?;
                found.retain(|name| after.as_ref().is_none_or(|after| name > after));
                Answer::Names(found)
            }
            Op::Exists(names) => Answer::Is(model.exists(names)?),
            Op::Put(names, key, byte, length) | Op::PutLater(names, key, byte, length) => {
                model.keeper(names)?.content.insert(*key, Content::of(*byte, *length));
                Answer::Done
            }
            Op::Read(names) => Answer::Content(model.keeper(names)?.content.clone().into_iter().collect()),
            Op::ByHandle(_) => Answer::Done,
            Op::Allocate(_) => Answer::Allocated(None),
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
        for (n, answer) in answers.unwrap_or(&[]).iter().enumerate() {
            let Some((expected, later)) = expected.get_mut(n..).and_then(<[Answer]>::split_first_mut) else {
                break;
            };
            // What an allocated directory had may be given by hand after it is removed.
            let again = |prefix: &Vec<u8>| {
                let is_it = |later: &Answer| matches!(later, Answer::Opened(_, Some(own)) if own == prefix);
                self.may_be_manual(prefix) && later.iter().any(is_it)
            };
            match (expected, answer) {
                (Answer::Opened(_, open @ None), Answer::Opened(_, Some(prefix)))
                    if !model.gave(prefix) || again(prefix) =>
                {
                    *open = Some(prefix.clone());
                }
                (Answer::Allocated(open), Answer::Allocated(Some(prefix)))
                    if model.gives([self.subspaces().1.bytes(), prefix].concat()) =>
                {
                    *open = Some(prefix.clone());
                }
                _ => {}
            }
        }
        model.choose(self.subspaces().0.bytes(), mutations);
    }

    async fn read_model(&self, tx: &Tx) -> tx::Result<Result<Known, Misfit>> {
        // Everything except for the sessions.
        let sessions = Subspace::from("sessions");
        let end = tx::strinc(sessions.bytes()).unwrap_or_default();
        let before = tx.get_range_all(RangeOption::new(&b""[..], sessions.into_bytes()), Serializable);
        let behind = tx.get_range_all(RangeOption::new(end, &b"\xff"[..]), Serializable);
        let (before, behind) = try_join(before, behind).await?;
        let rows = before.into_iter().chain(behind).map(|row| (row.key.to_vec(), row.value.to_vec()));
        let (nodes, content) = self.subspaces();
        let surveyed = survey(rows.collect::<Rows>(), nodes.bytes());
        let by_hand = |prefix: &[u8]| self.may_be_manual(prefix);
        Ok(surveyed
            .and_then(|layer| Known::surveyed(&layer, content.bytes(), &by_hand, &row))
            .map_err(Misfit::from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable_sim::seed::Seed;

    #[test]
    fn a_prefix_may_be_given_by_hand_after_its_directory_is_removed_in_the_same_transaction() {
        let drawn = |nested: bool| {
            let mut all = (0..400).map(|seed| Directory::draw(&mut Seed(seed).stream("draw"), None));
            all.find(|own| own.manual && own.nested == nested && !own.own_subspaces)
        };
        let prefix = vec![0x15, 7];
        for (nested, expected) in [(true, Some(prefix.clone())), (false, None)] {
            let own = drawn(nested).expect("a configuration");
            let mut model = own.model();
            model.below.insert("b".into(), Known { prefix: Some(prefix.clone()), ..Known::default() });
            let answer = |prefix: Option<&Vec<u8>>| Answer::Opened(Vec::new(), prefix.cloned());
            let mut answers = [answer(None), Answer::Done, answer(Some(&prefix))];
            own.choose(
                &mut model,
                &mut answers,
                Some(&[answer(Some(&prefix)), Answer::Done, answer(Some(&prefix))]),
                &[],
            );
            assert_eq!(answers[0], answer(expected.as_ref()));
        }
    }
}
