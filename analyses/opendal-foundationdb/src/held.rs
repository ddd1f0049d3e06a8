//! Tasks write, delete, read and stat files, all at once. A file has one task that changes it, and all tasks
//! look at it: what they see is one of its versions, whole, and no older than the last that was acknowledged
//! before they asked.

use super::{Chance, Claim, claim, open};
use foundationdb::Database;
use futures::future;
use opendal::{ErrorKind, Operator};
use std::cell::RefCell;

const FILES: u64 = 4;
const CHANGES: u64 = 10;
const LOOKS: u64 = 12;

/// How a change ended.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Pending,
    Acknowledged,
    /// The error says that it is not committed.
    Failed,
    /// It may be committed, or may be later.
    Unknown,
}

/// A file: its changes in order, of which the first stands for its absence in the beginning.
struct File {
    name: String,
    /// The contents of each version; none if the change is a deletion.
    versions: Vec<(Option<Vec<u8>>, End)>,
}

impl File {
    /// The version that was acknowledged last.
    fn last(&self) -> usize {
        self.versions.iter().rposition(|(_, end)| *end == End::Acknowledged).unwrap_or(0)
    }

    /// Whether one who asked when `from` was the last version may see one of which `is` says that it is this.
    fn may_be(&self, from: usize, is: impl Fn(Option<&[u8]>) -> bool) -> bool {
        let versions = self.versions.iter().enumerate();
        versions
            .filter(|(n, (_, end))| *end == End::Unknown || (*n >= from && *end != End::Failed))
            .any(|(_, (contents, _))| is(contents.as_deref()))
    }
}

type Files = [RefCell<File>];

/// Each version is of another length, and says in every part which it is.
fn contents(name: &str, version: usize, length: u64) -> Vec<u8> {
    let part = format!("{name}, version {version}; ");
    part.bytes().cycle().take(length as usize * 16 + version).collect()
}

async fn change(op: &Operator, file: &RefCell<File>, stream: u64) {
    let mut chance = Chance::new(stream);
    for _ in 0..CHANGES {
        let (name, version) = (file.borrow().name.clone(), file.borrow().versions.len());
        let written = (chance.below(4) > 0).then(|| contents(&name, version, chance.below(60)));
        file.borrow_mut().versions.push((written.clone(), End::Pending));
        let answer = match &written {
            None => op.delete(&name).await,
            Some(written) if chance.below(2) == 0 => op.write(&name, written.clone()).await.map(drop),
            // In parts; nothing is there before the writer is closed.
            Some(written) => {
                async {
                    let mut writer = op.writer(&name).await?;
                    let (first, second) = written.split_at(written.len() / 2);
                    writer.write(first.to_vec()).await?;
                    writer.write(second.to_vec()).await?;
                    writer.close().await.map(drop)
                }
                .await
            }
        };
        let end = match answer {
            Ok(()) => End::Acknowledged,
            Err(error) => {
                let text = error.to_string();
                let unknown = ["commit_unknown_result", "cluster_version_changed"];
                if unknown.iter().any(|name| text.contains(name)) { End::Unknown } else { End::Failed }
            }
        };
        file.borrow_mut().versions[version].1 = end;
    }
}

async fn look(op: &Operator, files: &Files, stream: u64, strict: bool) -> Claim<()> {
    let mut chance = Chance::new(stream);
    for _ in 0..LOOKS {
        let file = &files[chance.below(FILES) as usize];
        let (name, from) = (file.borrow().name.clone(), file.borrow().last());
        let end = 1 + chance.below(300);
        let kind = chance.below(4);
        let seen = match kind {
            0 => op.stat(&name).await.map(|metadata| metadata.content_length().to_be_bytes().to_vec()),
            1 => op.read_with(&name).range(7..7 + end).await.map(|read| read.to_vec()),
            2 => async { op.reader(&name).await?.read(..).await }.await.map(|read| read.to_vec()),
            _ => op.read(&name).await.map(|read| read.to_vec()),
        };
        let file = file.borrow();
        match seen {
            Ok(seen) => {
                let holds = file.may_be(from, |contents| match (kind, contents) {
                    (_, None) => false,
                    (0, Some(contents)) => seen == (contents.len() as u64).to_be_bytes(),
                    (1, Some(contents)) => contents.get(7..7 + end as usize) == Some(&*seen),
                    (_, Some(contents)) => contents == seen,
                });
                let what = ["stat", "a read of a range", "a reader", "a read"][kind as usize];
                claim(holds, || format!("{what} of {name} sees no version of it that can be there"))?;
            }
            // Without faults, and if errors are told apart, it means what it says.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let holds = !strict || file.may_be(from, |contents| contents.is_none());
                claim(holds, || format!("{name} is not found, and is there"))?;
            }
            // The range ends after a version that may be there, or its size changed between two requests.
            Err(error) if kind == 1 && error.kind() == ErrorKind::RangeNotSatisfied => {
                let short = |contents: Option<&[u8]>| contents.is_some_and(|it| it.len() < 7 + end as usize);
                claim(file.may_be(from, short), || format!("a range of {name} is refused, and is there"))?;
            }
            // A copy that tells errors apart.
            Err(error) if strict && error.kind() == ErrorKind::Unexpected => {}
            Err(error) => return Err(format!("{name}: {error}")),
        }
    }
    Ok(())
}

pub async fn held(strict: bool) -> Claim {
    let op = open();
    let absent = || vec![(None, End::Acknowledged)];
    let files: Vec<RefCell<File>> =
        (0..FILES).map(|n| RefCell::new(File { name: format!("file {n}"), versions: absent() })).collect();
    let changes = future::join_all(files.iter().zip(0..).map(|(file, n)| change(&op, file, n)));
    let looks = future::join_all((0..FILES).map(|n| look(&op, &files, 100 + n, strict)));
    let (_, looks) = future::join(changes, looks).await;
    looks.into_iter().collect::<Claim<()>>()?;

    // The last acknowledged version is there, or one whose result was unknown. This reads the keys
    // themselves, since an error of a read would look like absence.
    let db = Database::default().map_err(|error| error.to_string())?;
    for file in &files {
        let file = file.borrow();
        let key = file.name.as_bytes();
        let found = db.run(|tr, _| async move { Ok(tr.get(key, false).await?) }).await;
        let found = found.map_err(|error| error.to_string())?;
        let holds = file.may_be(file.last(), |contents| contents == found.as_deref());
        claim(holds, || format!("in the end {} has no version that can be there", file.name))?;
    }
    let acknowledged = |file: &RefCell<File>| {
        file.borrow().versions.iter().skip(1).filter(|(_, end)| *end == End::Acknowledged).count()
    };
    Ok(format!("{} changes acknowledged", files.iter().map(acknowledged).sum::<usize>()))
}
