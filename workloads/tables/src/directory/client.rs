//! How one call is performed in a transaction.

use super::{Answer, Directory, Names, Op, operations::CONTENT};
use crate::shared::{came_back, one_call, paged};
use shaketable::{
    isolation,
    specimen::{Content, Specimen},
};
use shaketable_layers::directory::{self, CandidateSeed, Error};
use shaketable_tx::{
    self as tx, Env,
    Isolation::{self, Serializable},
    RangeOption, Transaction, Tx, always,
};

impl Directory {
    /// Performs one call correctly.
    pub(super) async fn perform_right(
        &self,
        tx: &Tx,
        env: &Env,
        op: &Op,
        isolation: Isolation,
    ) -> Result<Answer, Error> {
        let all = self.directories();
        let tx = &match op {
            Op::Pages(..)
            | Op::Put(..)
            | Op::PutLater(..)
            | Op::Read(_)
            | Op::ByHandle(_)
            | Op::Declare(_) => one_call(tx, <Self as Specimen>::is_read_only(op)).await,
            _ => tx.clone(),
        };
        Ok(match op {
            Op::Create(names, tag, None, chance) => {
                opened(&came_back(all.create(tx, &path(names), tag, *chance).await?))
            }
            Op::Create(names, tag, Some(prefix), chance) => {
                opened(&came_back(all.create_with_prefix(tx, &path(names), tag, prefix, *chance).await?))
            }
            Op::CreateOrOpen(names, tag, chance) => {
                opened(&came_back(all.create_or_open(tx, &path(names), tag, *chance).await?))
            }
            Op::Both([one, other], chances) => {
                let (one, other) = (path(one), path(other));
                let one = all.create_or_open(tx, &one, b"", chances[0]);
                let other = all.create_or_open(tx, &other, b"", chances[1]);
                // Neither future is dropped before it ends: both are awaited before either result is used.
                let (one, other) = futures::join!(one, other);
                one?;
                other?;
                Answer::Done
            }
            Op::Open(names, tag) => opened(&came_back(all.open(tx, &path(names), tag).await?)),
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
            Op::Pages(names, first, most) => {
                let (all, path) = (&all, &path(names));
                let page = |last: Option<&String>| {
                    let after = last.or(first.as_ref()).cloned();
                    async move { all.list_page(tx, path, after.as_deref(), *most, isolation).await }
                };
                Answer::Names(paged(*most, page).await?)
            }
            Op::Exists(names) => Answer::Is(all.exists(tx, &path(names), isolation).await?),
            Op::Put(names, key, byte, length) | Op::PutLater(names, key, byte, length) => {
                put(tx, &came_back(all.open(tx, &path(names), b"").await?), *key, *byte, *length)?
            }
            Op::Read(names) => {
                let prefix = all.open(tx, &path(names), b"").await?.subspace()?.into_bytes();
                let end = tx::strinc(&prefix).unwrap_or_default();
                let rows = tx.get_range_all(RangeOption::new(prefix.clone(), end), Serializable).await?;
                let row = |kv: &tx::KeyValue| row(&kv.key[prefix.len()..], &kv.value);
                Answer::Content(rows.iter().filter_map(row).collect())
            }
            Op::ByHandle(op) => return self.by_handle(tx, env, op).await,
            Op::Allocate(chance) => {
                Answer::Allocated(Some(all.nodes().allocator().allocate(tx, *chance).await?.to_vec()))
            }
            Op::Declare(version) => {
                let value: Vec<u8> = version.iter().flat_map(|n| n.to_le_bytes()).collect();
                tx.set(&all.nodes().version(), &value);
                Answer::Done
            }
        })
    }

    async fn by_handle(&self, tx: &Tx, env: &Env, op: &Op) -> Result<Answer, Error> {
        let names = Self::handled(op);
        let directory = came_back(self.directories().open(tx, &path(names), b"").await?);
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
                let read = |tx, isolation| async move { below.list(&tx, &[], isolation).await };
                Answer::Names(isolation::at_both_levels(tx, op, read).await?)
            }
            Op::Exists(_) => {
                let directory = &directory;
                let read = |tx, isolation| async move { directory.exists(&tx, isolation).await };
                Answer::Is(isolation::at_both_levels(tx, op, read).await?)
            }
            Op::Create(_, tag, _, chance) => {
                directory.remove(tx).await?;
                let new = came_back(self.directories().create(tx, &path(names), tag, *chance).await?);
                let stale = directory.siblings().check(tx, &directory).await;
                let expected = Err(Error::Stale(directory.path().clone()));
                always!(stale == expected, "the handle of a removed directory is checked: {stale:?}");
                opened(&new)
            }
            _ => opened(
                &self.directories().create_or_open(tx, &path(names), b"", CandidateSeed::draw(env)).await?,
            ),
        })
    }

    /// The directory that a call by handle opens.
    pub(super) fn handled(op: &Op) -> &Names {
        match op {
            Op::Rename(names, _)
            | Op::Remove(names)
            | Op::RemoveIfExists(names)
            | Op::List(names)
            | Op::Exists(names)
            | Op::Create(names, ..)
            | Op::CreateOrOpen(names, ..) => names,
            op => unreachable!("{op:?} is not drawn with a handle"),
        }
    }
}

/// The names as the layer takes them.
pub(super) fn path(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

fn opened(directory: &directory::Directory) -> Answer {
    Answer::Opened(directory.tag().to_vec(), Some(directory.prefix().to_vec()))
}

/// Puts a row into a directory.
pub(super) fn put(
    tx: &Tx,
    directory: &directory::Directory,
    key: u8,
    byte: u8,
    length: usize,
) -> Result<Answer, Error> {
    let key = [directory.subspace()?.bytes(), CONTENT[usize::from(key) % CONTENT.len()]].concat();
    tx.set(&key, &vec![byte; length]);
    Ok(Answer::Done)
}

pub(super) fn row(key: &[u8], value: &[u8]) -> Option<(u8, Content)> {
    let place = CONTENT.iter().position(|known| *known == key)?;
    Some((place as u8, Content::from(value)))
}
