//! The transaction's own conflict ranges, and the keys that made its commit fail.

use super::{
    parts::{Kind, SpecialKeyRange},
    reader::{Reader, named},
};
use crate::{
    atomic,
    client::{
        conflict::RangeSet,
        guard::{guarded, idle},
        keys::single_key,
        transaction::State,
        write_map,
    },
    proto::{CommitReply, KeyRange},
};
use bytes::Bytes;
use shaketable_tx::{KeyValue, Result};

impl State {
    fn read_conflicts(&self) -> RangeSet {
        let mut set = self.reads.clone();
        let native = self.native.read_ranges.iter().chain(&self.native.extra_reads);
        native.cloned().for_each(|range| set.insert(range));
        set
    }

    fn write_conflicts(&self) -> RangeSet {
        let committed = match &self.outcome {
            Some(CommitReply::Committed { version, batch_index }) => {
                Some(atomic::versionstamp(*version, *batch_index))
            }
            _ => None,
        };
        let mut set = RangeSet::default();
        let written = write_map::conflict_ranges(&self.writes, &Bytes::new(), &write_map::EVERYTHING);
        written.into_iter().for_each(|range| set.insert(range));
        if self.options.ryw_disabled {
            self.native.write_ranges.iter().cloned().for_each(|range| set.insert(range));
        }
        for key in &self.stamp_keys {
            let landing = match committed {
                Some(stamp) => Ok(single_key(&atomic::substitute(key, &stamp))),
                None => atomic::versionstamped_key_range(key, self.version.known(), &self.max_read()),
            };
            set.insert(landing.unwrap_or_else(|_| KeyRange::new("", "")));
        }
        set
    }
}

impl Reader {
    /// The boundaries of a set, each with a value that indicates whether a range begins or ends there. The
    /// ranges of reads in progress are included.
    pub(super) async fn conflicts(&self, part: &SpecialKeyRange) -> Result<Vec<KeyValue>> {
        let set = match part.kind {
            Kind::ReadConflicts => {
                self.reads_in_progress().await?;
                self.state().read_conflicts()
            }
            Kind::WriteConflicts => self.state().write_conflicts(),
            _ => self.state().conflicting.clone(),
        };
        let boundaries = set
            .ranges()
            .into_iter()
            .flat_map(|range| [named(part, &range.begin, "1"), named(part, &range.end, "0")]);
        Ok(boundaries.collect())
    }

    async fn reads_in_progress(&self) -> Result<()> {
        let watches = self.state().watches.clone();
        let pending = async {
            for watch in watches {
                watch.read().await;
            }
            idle(&self.inner, self.epoch).await
        };
        guarded(&self.inner, self.epoch, pending).await
    }
}
