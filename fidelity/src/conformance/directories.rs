//! Recorded cases of the official directory layer, replayed with this project's layer.

use super::{
    Bytes, Difference, Replayed,
    replay::{keyspace, set_keyspace},
};
use crate::survey::{Layer, Rows, Surveyed, survey};
use foundationdb_tuple::unpack;
use serde::Deserialize;
use serde_json::{Value, json};
use shaketable_layers::directory::{CandidateSeed, Directories, Directory, Error};
use shaketable_tx::{self as tx, Database, Isolation::Serializable, RetryError, Transaction};
use std::collections::{BTreeMap, BTreeSet};

/// One call of a case, and its result.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectoryStep {
    /// The call.
    pub op: String,
    /// The path.
    pub path: Vec<String>,
    /// The destination of a move.
    pub to: Option<Vec<String>>,
    /// The layer tag.
    #[serde(default)]
    pub layer: Bytes,
    /// The manual prefix.
    pub prefix: Option<Bytes>,
    /// The recorded result.
    pub expect: Value,
}

/// One recorded case.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectoryCase {
    /// Its name, which ends in its number.
    pub id: String,
    /// Whether creates of the case give manual prefixes.
    pub manual_prefixes: bool,
    /// The calls, each a transaction.
    pub steps: Vec<DirectoryStep>,
    /// The final keyspace.
    #[serde(rename = "final")]
    pub last: Vec<(Bytes, Bytes)>,
}

/// Replays a case on the empty database `db`: performs its steps, compares their results and every byte of
/// the final keyspace, and repeats the reads of the case's steps on the recorded keyspace.
///
/// The allocator's choices in the recording are random. An allocated prefix must be equal wherever the
/// recorded ones are equal, and different wherever those differ; everything else is compared unchanged.
pub async fn replay_directories<D: Database>(db: &D, case: &DirectoryCase) -> tx::Result<Replayed> {
    set_keyspace(db, &[]).await?;
    let mut prefixes = Prefixes::of(case);
    let different = |step, what: &str, expected: String, actual: String| {
        Ok(Replayed::Different(Difference { step, what: what.to_owned(), expected, actual }))
    };
    for (number, step) in case.steps.iter().enumerate() {
        let actual = perform(db, case, step, CandidateSeed(number as u64)).await?;
        if !prefixes.agree(&step.expect, &actual) {
            let what = format!("{} {:?}", step.op, step.path);
            return different(Some(number), &what, step.expect.to_string(), actual.to_string());
        }
    }
    let own: Rows =
        keyspace(db).await?.into_iter().map(|row| (row.key.to_vec(), row.value.to_vec())).collect();
    let Some(recorded) = rows(case) else {
        return different(None, "final keyspace", "bytes".to_owned(), "not well spelled".to_owned());
    };
    let read = |rows: &Rows| survey(rows.clone(), b"\xfe");
    let (ours, theirs) = match (read(&own), read(&recorded)) {
        (Ok(ours), Ok(theirs)) => (ours, theirs),
        (ours, theirs) => {
            return different(None, "final keyspace", format!("{theirs:?}"), format!("{ours:?}"));
        }
    };
    if !prefixes.same_layer(&theirs, &ours, &[], &[]) {
        return different(None, "final keyspace", format!("{theirs:?}"), format!("{ours:?}"));
    }
    let reads = || case.steps.iter().flat_map(reads_of);
    let mut answers = Vec::new();
    for step in reads() {
        answers.push(perform(db, case, &step, CandidateSeed(0)).await?);
    }
    set_keyspace(db, &recorded.into_iter().collect::<Vec<_>>()).await?;
    for (step, own) in reads().zip(answers) {
        let theirs = perform(db, case, &step, CandidateSeed(0)).await?;
        if !prefixes.agree(&theirs, &own) {
            let what = format!("{} {:?} of the recorded bytes", step.op, step.path);
            return different(None, &what, own.to_string(), theirs.to_string());
        }
    }
    Ok(Replayed::Equal)
}

fn rows(case: &DirectoryCase) -> Option<Rows> {
    let none = BTreeMap::new();
    case.last.iter().map(|(key, value)| Some((key.decode(&none)?, value.decode(&none)?))).collect()
}

/// Reads of what a step's paths lead to.
fn reads_of(step: &DirectoryStep) -> impl Iterator<Item = DirectoryStep> {
    let paths: Vec<_> = [step.path.clone()].into_iter().chain(step.to.clone()).collect();
    let reads = |path: Vec<String>| {
        ["list", "exists", "open"].map(|op| DirectoryStep {
            op: op.to_owned(),
            path: path.clone(),
            to: None,
            layer: Bytes::default(),
            prefix: None,
            expect: Value::Null,
        })
    };
    paths.into_iter().flat_map(reads)
}

/// Performs one step in its own transaction.
async fn perform<D: Database>(
    db: &D,
    case: &DirectoryCase,
    step: &DirectoryStep,
    chance: CandidateSeed,
) -> tx::Result<Value> {
    // The recorded layer allows manual prefixes, whether the case gives any or not.
    let all = Directories::default().with_manual_prefixes();
    let none = BTreeMap::new();
    let names = |names: &[String]| names.to_vec();
    let (path, to) = (names(&step.path), names(step.to.as_deref().unwrap_or_default()));
    let tag = step.layer.decode(&none).unwrap_or_default();
    let prefix = step.prefix.as_ref().and_then(|prefix| prefix.decode(&none));
    // Recordings are numbered from one, the values that they store from zero.
    let number = case.id.rsplit('-').next().and_then(|number| number.parse::<i64>().ok()).unwrap_or(0) - 1;
    let (all, path, to, tag, prefix, op) = (&all, &refs(&path), &refs(&to), &tag[..], &prefix, &*step.op);
    let done = db
        .run(|tx, _| async move {
            Ok::<_, Error>(match (op, prefix) {
                ("create", None) => opened(&all.create(&tx, path, tag, chance).await?),
                ("create", Some(prefix)) => {
                    opened(&all.create_with_prefix(&tx, path, tag, prefix, chance).await?)
                }
                ("create_or_open", _) => opened(&all.create_or_open(&tx, path, tag, chance).await?),
                ("open", _) => opened(&all.open(&tx, path, tag).await?),
                ("move", _) => json!({ "path": all.rename(&tx, path, to).await?.path() }),
                ("remove", _) => {
                    all.remove(&tx, path).await?;
                    json!({})
                }
                ("remove_if_exists", _) => json!({ "removed": all.remove_if_exists(&tx, path).await? }),
                ("list", _) => json!({ "names": all.list(&tx, path, Serializable).await? }),
                ("exists", _) => json!({ "exists": all.exists(&tx, path, Serializable).await? }),
                ("put", _) => {
                    let subspace = all.open(&tx, path, b"").await?.subspace()?;
                    tx.set(&subspace.pack(&("k", number)), b"v");
                    json!({})
                }
                _ => json!({ "unknown": op }),
            })
        })
        .await;
    match done {
        Ok(answer) => Ok(answer),
        Err(e) => match e.error.fdb() {
            Some(error) => Err(error),
            None => Ok(json!({ "refused": official_message(op, &e.error) })),
        },
    }
}

fn refs(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

fn opened(directory: &Directory) -> Value {
    let mut answer = json!({
        "path": directory.path(),
        "layer": Bytes::encode(directory.tag()).0,
        "partition": directory.is_partition(),
    });
    if let Ok(subspace) = directory.subspace() {
        answer["prefix"] = Bytes::encode(subspace.bytes()).0.into();
    }
    answer
}

/// The recorded message of a refusal.
fn official_message(op: &str, error: &Error) -> String {
    let words = match (op, error) {
        ("move", Error::NotFound(_)) => "The source directory does not exist.",
        (_, Error::NotFound(_)) => "The directory does not exist.",
        ("move", Error::AlreadyExists(_)) => "The destination directory already exists. Remove it first.",
        (_, Error::AlreadyExists(_)) => "The directory already exists.",
        (_, Error::WrongTag { .. }) => "The directory was created with an incompatible layer.",
        (_, Error::BelowItself { .. }) => {
            "The destination directory cannot be a subdirectory of the source directory."
        }
        (_, Error::BetweenPartitions { .. }) => "Cannot move between partitions.",
        (_, Error::NoParent(_)) => "The parent of the destination directory does not exist. Create it first.",
        (_, Error::PrefixInPartition(_)) => "Cannot specify a prefix in a partition.",
        (_, Error::Partition(_)) => "Cannot pack keys using the root of a directory partition.",
        (_, other) => return other.to_string(),
    };
    words.to_owned()
}

/// The mapping between the replay's prefixes and those of the recording.
struct Prefixes {
    given: BTreeSet<Vec<u8>>,
    /// The replay's prefixes, by the recording's.
    ours: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The recording's prefixes, by the replay's.
    theirs: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Prefixes {
    fn of(case: &DirectoryCase) -> Prefixes {
        let none = BTreeMap::new();
        let given = case.steps.iter().filter_map(|step| step.prefix.as_ref()?.decode(&none)).collect();
        Prefixes { given, ours: BTreeMap::new(), theirs: BTreeMap::new() }
    }

    /// Whether a prefix can correspond to the recorded one; if so, it does from now on.
    fn same(&mut self, theirs: &[u8], ours: &[u8]) -> bool {
        if self.given.contains(theirs) || self.given.contains(ours) {
            return theirs == ours;
        }
        let one = self.ours.entry(theirs.to_vec()).or_insert_with(|| ours.to_vec()).as_slice() == ours;
        let other = self.theirs.entry(ours.to_vec()).or_insert_with(|| theirs.to_vec()).as_slice() == theirs;
        one && other
    }

    fn agree(&mut self, expected: &Value, actual: &Value) -> bool {
        let prefix = |value: &Value| {
            let text = value.get("prefix")?.as_str()?.to_owned();
            Bytes(text).decode(&BTreeMap::new())
        };
        let same = match (prefix(expected), prefix(actual)) {
            (Some(theirs), Some(ours)) => self.same(&theirs, &ours),
            (None, None) => true,
            _ => false,
        };
        let rest = |value: &Value| {
            let mut value = value.clone();
            value.as_object_mut().map(|fields| fields.remove("prefix"));
            value
        };
        same && rest(expected) == rest(actual)
    }

    /// Whether two layers have the same content, given the prefixes of their allocated prefixes.
    fn same_layer(&mut self, theirs: &Layer, ours: &Layer, their_content: &[u8], our_content: &[u8]) -> bool {
        theirs.version == ours.version
            && theirs.windows == ours.windows
            && theirs.marks.len() == ours.marks.len()
            && self.same_all(
                &theirs.directories,
                &ours.directories,
                (theirs, their_content),
                (ours, our_content),
            )
    }

    fn same_all(
        &mut self,
        theirs: &BTreeMap<String, Surveyed>,
        ours: &BTreeMap<String, Surveyed>,
        their: (&Layer, &[u8]),
        our: (&Layer, &[u8]),
    ) -> bool {
        theirs.len() == ours.len()
            && theirs.iter().zip(ours).all(|((their_name, theirs), (our_name, ours))| {
                let within = match (&theirs.partition, &ours.partition) {
                    (Some(one), Some(other)) => self.same_layer(one, other, &theirs.prefix, &ours.prefix),
                    (None, None) => true,
                    _ => false,
                };
                // A live candidate is marked in both layers or, if its window was cleared, in neither.
                let marked = |(layer, content): (&Layer, &[u8]), prefix: &[u8]| {
                    let candidate = prefix.strip_prefix(content).map(unpack::<i64>);
                    candidate.and_then(Result::ok).map(|candidate| layer.marks.contains(&candidate))
                };
                within
                    && their_name == our_name
                    && theirs.tag == ours.tag
                    && theirs.content == ours.content
                    && self.same(&theirs.prefix, &ours.prefix)
                    && marked(their, &theirs.prefix) == marked(our, &ours.prefix)
                    && self.same_all(&theirs.below, &ours.below, their, our)
            })
    }
}
