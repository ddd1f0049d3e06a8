//! The sequential model: all records with the versions that their commits gave them, at every version of the
//! database.

use super::{
    Feeds, FeedsOp,
    operations::{Act, ActAnswer, Answer, Entry, Page},
    schema::{Content, Feed, STORES, Version},
};
use crate::shared::Call;
use shaketable::{Misfit, workload::Step};
use std::collections::BTreeMap;

/// The first bytes of a version that is not complete.
const INCOMPLETE: [u8; 10] = [0xff; 10];

/// A record, and when it was last written.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub(super) content: Content,
    pub(super) version: Version,
}

/// The records of each store, by their primary keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State(pub(super) [BTreeMap<i64, Record>; STORES]);

impl State {
    /// The entries of a feed.
    fn entries(&self, feed: &Feed) -> Vec<Entry> {
        let has = |record: &Record| feed.has(&record.content) && !record.version.starts_with(&INCOMPLETE);
        let records = self.0[feed.store].iter().filter(|(_, record)| has(record));
        let entry = |(id, Record { content, version }): (&i64, &Record)| Entry {
            version: *version,
            id: *id,
            record: Some((Some(*version), content.value)),
        };
        let mut entries: Vec<_> = records.map(entry).collect();
        entries.sort();
        entries
    }

    /// Performs the calls of a transaction that is committed with this versionstamp.
    fn write(&mut self, acts: &[Act], stamp: [u8; 10]) -> Vec<ActAnswer> {
        let (mut next, mut flushed) = (0, false);
        let told = acts.iter().map(|act| self.act(act, &mut next, &mut flushed)).collect();
        for record in self.0.iter_mut().flat_map(BTreeMap::values_mut) {
            if record.version.starts_with(&INCOMPLETE) {
                record.version[..10].copy_from_slice(&stamp);
            }
        }
        told
    }

    /// Performs a call; `next` is the number of the next record that the transaction saves, and `flushed` is
    /// set once it was given entries that it cannot take back.
    fn act(&mut self, act: &Act, next: &mut u16, flushed: &mut bool) -> ActAnswer {
        let is_own = |record: &Record| record.version.starts_with(&INCOMPLETE);
        let refuses = |store: &usize, id| *flushed && self.0[*store].get(id).is_some_and(is_own);
        match act {
            Act::Save(store, id, _) | Act::Touch(store, id) if refuses(store, id) => {
                // The number of a refused record is not given again.
                *next += 1;
                return ActAnswer::TooLate;
            }
            Act::Delete(store, id) if refuses(store, id) => return ActAnswer::TooLate,
            _ => {}
        }
        let mut save = |records: &mut BTreeMap<i64, Record>, id, content| {
            let mut version = [0xff; 12];
            version[10..].copy_from_slice(&next.to_be_bytes());
            *next += 1;
            records.insert(id, Record { content, version }).is_some()
        };
        match act {
            Act::Save(store, id, content) => ActAnswer::Was(save(&mut self.0[*store], *id, content.clone())),
            Act::Insert(store, id, content) => {
                let was = self.0[*store].contains_key(id);
                if !was {
                    save(&mut self.0[*store], *id, content.clone());
                }
                ActAnswer::Was(was)
            }
            Act::Touch(store, id) => match self.0[*store].get(id).map(|record| record.content.touched()) {
                Some(content) => ActAnswer::Was(save(&mut self.0[*store], *id, content)),
                None => ActAnswer::Was(false),
            },
            Act::Delete(store, id) => ActAnswer::Was(self.0[*store].remove(id).is_some()),
            Act::Clear(store) => {
                self.0[*store].clear();
                ActAnswer::Cleared
            }
            Act::Version(store, id) => {
                ActAnswer::Version(self.0[*store].get(id).map(|record| record.version))
            }
            Act::Entries(feed) => ActAnswer::Entries(self.entries(feed)),
            Act::Flush => {
                *flushed |= self.0.iter().flat_map(BTreeMap::values).any(is_own);
                ActAnswer::Flushed
            }
        }
    }
}

impl Content {
    /// The content with another value.
    pub(super) fn touched(&self) -> Content {
        Content { value: self.value + 1, ..self.clone() }
    }
}

/// The sequential model.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub(super) now: State,
    /// The state after each commit, by its versionstamp.
    past: BTreeMap<[u8; 10], State>,
    /// The pages that clients have read: the feed, and its reader.
    read: BTreeMap<Call, (Feed, u64, Vec<Page>)>,
}

impl Feeds {
    /// Performs one operation on the model, at its place in the history, and compares what it returned.
    pub(super) fn follow(&self, model: &mut Model, step: &Step<'_, Self>) -> Result<(), Misfit> {
        let expected = match (step.op, step.stamp) {
            (FeedsOp::write { acts }, Some(stamp)) => {
                let told = model.now.write(acts, stamp);
                model.past.insert(stamp, model.now.clone());
                Answer::Written(told)
            }
            (FeedsOp::write { .. }, None) => return Err("answered, but nothing was committed".into()),
            (_, Some(_)) => return Err("committed a write".into()),
            (FeedsOp::look { feed, reverse }, None) => {
                let mut entries = model.now.entries(feed);
                if *reverse {
                    entries.reverse();
                }
                Answer::Entries(entries)
            }
            (FeedsOp::poll { feed, .. }, None) => {
                let Some(Answer::Polled(reader, pages)) = step.answer else {
                    return Err(format!("answered {:?}", step.answer).into());
                };
                if let Some(page) = pages.iter().find(|page| page.read_version < step.known_at_call()) {
                    return Err(format!("read a page at version {}", page.read_version).into());
                }
                // Judged in the end: the pages have different read versions.
                let read = (feed.clone(), *reader, pages.clone());
                model.read.insert((step.client, step.index), read);
                return Ok(());
            }
        };
        match step.answer {
            Some(answer) if *answer != expected => {
                let (found, expected) = (format!("{answer:?}"), format!("{expected:?}"));
                let message = format!("answered {found} where the model answers {expected}");
                Err(Misfit::new(message, expected, found))
            }
            _ => Ok(()),
        }
    }
}

impl Model {
    fn at(&self, read_version: i64) -> State {
        let mut last = [0xff; 10];
        last[..8].copy_from_slice(&read_version.to_be_bytes());
        self.past.range(..=last).next_back().map(|(_, state)| state.clone()).unwrap_or_default()
    }

    /// Judges all pages. Each has the first entries after those that its reader has read before, as they were
    /// at its read version. Whatever was committed meanwhile, a reader has read each record that is left, if
    /// the record was not written since, exactly once, and the entries in order.
    pub(super) fn judge(&self) -> Result<(), Misfit> {
        let mut readers: BTreeMap<(usize, u64, &Feed), Vec<&Entry>> = BTreeMap::new();
        for ((client, index), (feed, reader, pages)) in &self.read {
            let seen = readers.entry((*client, *reader, feed)).or_default();
            for page in pages {
                self.judge_page(feed, page, seen.last().map(|entry| entry.version)).map_err(|why| {
                    let message = format!("operation {index} of client {client} ({feed:?}): {why}");
                    Misfit::of_operation(*client, *index, message)
                })?;
                seen.extend(&page.entries);
            }
        }
        for ((client, _, feed), seen) in readers {
            if !seen.is_sorted_by(|one, next| one.version < next.version) {
                return Err(format!("client {client} has read {feed:?} out of order: {seen:?}").into());
            }
            let Some(last) = seen.last() else { continue };
            for entry in self.now.entries(feed).iter().filter(|entry| entry.version <= last.version) {
                let times = seen.iter().filter(|seen| **seen == entry).count();
                if times != 1 {
                    return Err(
                        format!("client {client} has read {entry:?} of {feed:?} {times} times").into()
                    );
                }
            }
        }
        Ok(())
    }

    fn judge_page(&self, feed: &Feed, page: &Page, last: Option<Version>) -> Result<(), Misfit> {
        if page.after != last {
            return Err(format!("{page:?} does not continue after {last:?}").into());
        }
        let mut expected = self.at(page.read_version).entries(feed);
        expected.retain(|entry| Some(entry.version) > last);
        let all = expected.len();
        expected.truncate(page.entries.len());
        let ends_well = if page.ends { page.entries.len() == all } else { !page.entries.is_empty() };
        match page.entries == expected && ends_well {
            true => Ok(()),
            false => {
                Err(format!("{page:?}: of {all} entries that follow, it should begin with {expected:?}")
                    .into())
            }
        }
    }
}
