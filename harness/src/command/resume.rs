//! Continues a sweep that ended early: its report is read, and the seeds that it ran are not run again.

use super::{Refusal, choose, program, refuse, saved::Saved};
use crate::run::plan::Demands;
use shaketable_reports::{SweepReport, WorkloadReport};
use std::{collections::BTreeMap, ops::Range, path::Path};

/// The seeds of a shard: `len` seeds from `first` on, at intervals of `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    first: u64,
    of: u64,
    len: u64,
}

impl Share {
    /// The share of a shard, whose number starts at 1; all seeds if there is no shard.
    pub(super) fn new(seeds: &Range<u64>, shard: Option<(u64, u64)>) -> Share {
        let (number, of) = shard.unwrap_or((1, 1));
        let len = (seeds.end - seeds.start).saturating_sub(number - 1).div_ceil(of);
        Share { first: seeds.start.saturating_add(number - 1), of, len }
    }

    /// The number of seeds.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// The seed at an index less than [`len`](Self::len).
    pub(super) fn seed(&self, place: u64) -> u64 {
        self.first + place * self.of
    }

    /// The indices of the share's seeds in a range of seeds. Returns `None` if the range does not begin and
    /// end with a seed of the share.
    fn places(&self, seeds: &Range<u64>) -> Option<Range<u64>> {
        let place = |seed: u64| {
            let place = seed.checked_sub(self.first)?;
            (place % self.of == 0 && place / self.of < self.len).then_some(place / self.of)
        };
        Some(place(seeds.start)?..place(seeds.end.checked_sub(1)?)? + 1).filter(|places| !places.is_empty())
    }
}

/// The indices of a share that were run, as separate ranges: the begin and the end of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ran(BTreeMap<u64, u64>);

impl Ran {
    /// The indices that were run according to a report; `None` if the report contradicts itself.
    pub(super) fn of(report: &WorkloadReport, share: &Share) -> Option<Ran> {
        let mut ran = Ran::default();
        let mut runs = 0;
        for seeds in &report.ran {
            let places = share.places(seeds)?;
            runs += places.end - places.start;
            if ran.0.range(..places.end).next_back().is_some_and(|(_, end)| *end >= places.start) {
                return None;
            }
            ran.0.insert(places.start, places.end);
        }
        (runs == report.runs).then_some(ran)
    }

    /// All indices of a share.
    pub(super) fn all(share: &Share) -> Ran {
        Ran((share.len > 0).then_some((0, share.len)).into_iter().collect())
    }

    /// What the shards of a sweep ran, as indices of all its seeds. Each shard is given with its number;
    /// shards that are not given ran nothing.
    pub(super) fn merged(shards: impl Iterator<Item = (u64, Ran)> + Clone, of: u64) -> Ran {
        // Shards that ran all their seeds have no gaps; only what follows the first gap is merged seed by
        // seed.
        let begun = |(_, ran): (u64, Ran)| ran.0.get(&0).copied().unwrap_or(0);
        let rows = if shards.clone().count() as u64 == of { shards.clone().map(begun).min() } else { None };
        let rows = rows.unwrap_or(0);
        let mut merged = Ran::default();
        if rows > 0 {
            merged.0.insert(0, rows * of);
        }
        for (number, ran) in shards {
            let places = ran.0.iter().flat_map(|(begin, end)| (*begin).max(rows)..*end);
            places.for_each(|place| merged.insert(place * of + (number - 1)));
        }
        merged
    }

    /// Whether this index was run.
    pub(super) fn contains(&self, place: u64) -> bool {
        self.0.range(..=place).next_back().is_some_and(|(_, end)| place < *end)
    }

    /// Adds an index that was not run before.
    pub(super) fn insert(&mut self, place: u64) {
        let end = self.0.remove(&(place + 1)).unwrap_or(place + 1);
        match self.0.range_mut(..=place).next_back() {
            Some((_, before)) if *before == place => *before = end,
            _ => drop(self.0.insert(place, end)),
        }
    }

    /// The ranges of seeds of these indices. With several shards, each range also contains seeds of the other
    /// shards.
    pub(super) fn seeds(&self, share: &Share) -> Vec<Range<u64>> {
        let seeds = |(begin, end): (&u64, &u64)| share.seed(*begin)..share.seed(*end - 1) + 1;
        self.0.iter().map(seeds).collect()
    }
}

/// The earlier part of a sweep.
pub(super) struct Earlier {
    /// Its report.
    pub report: SweepReport,
    /// What was run, by workload, in the order of the report.
    pub workloads: Vec<Ran>,
}

impl Earlier {
    /// Reads the report of a sweep, which must have been written by the same build of this program.
    pub(super) fn read(path: &Path) -> Result<Earlier, Refusal> {
        let saved = Saved::read(path)?;
        if saved.commit != program().commit {
            refuse!(
                "{} was written by a program built from commit {}; this one was built from {}, and its runs differ",
                saved.shown,
                saved.commit,
                program().commit
            );
        }
        Ok(Earlier { workloads: saved.ran()?, report: saved.report })
    }

    /// The demands on each of its runs.
    pub(super) fn demands(
        &self,
        plant: impl Fn(&mut Demands, &str) -> Result<(), Refusal>,
    ) -> Result<Demands, Refusal> {
        let profile = choose::profile(&self.report.faults).map_err(Refusal::Usage)?;
        let without = choose::families(&self.report.without)?;
        let scale = self.report.scale;
        let mut demands = Demands { profile, without, scale, ..Demands::default() };
        if let Some(bug) = &self.report.bug {
            plant(&mut demands, bug)?;
        }
        Ok(demands)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_every_nth_seed() {
        let share = Share::new(&(10..31), Some((2, 4)));
        assert_eq!((0..share.len()).map(|place| share.seed(place)).collect::<Vec<_>>(), [11, 15, 19, 23, 27]);
        assert_eq!(share.places(&(15..24)), Some(1..4));
        for wrong in [14..24, 15..25, 11..32, 7..12, 15..15] {
            assert_eq!(share.places(&wrong), None, "{wrong:?}");
        }
        assert_eq!(Share::new(&(0..2), Some((3, 4))).len(), 0);
        assert_eq!(Share::new(&(0..u64::MAX), None).len(), u64::MAX);
    }

    #[test]
    fn what_shards_ran_is_merged() {
        let seeds = 5..28;
        let whole = Share::new(&seeds, None);
        let part = |number: u64, left_out: &[u64]| {
            let share = Share::new(&seeds, Some((number, 3)));
            let mut ran = Ran::default();
            (0..share.len()).filter(|place| !left_out.contains(place)).for_each(|place| ran.insert(place));
            ran
        };
        let merged = |shards: &[(u64, Ran)]| Ran::merged(shards.iter().cloned(), 3).seeds(&whole);
        let complete = [(2, part(2, &[])), (1, part(1, &[])), (3, part(3, &[]))];
        assert_eq!(merged(&complete), std::iter::once(5..28).collect::<Vec<_>>());
        let gaps = [(1, part(1, &[])), (2, part(2, &[1, 6, 7])), (3, part(3, &[6]))];
        assert_eq!(merged(&gaps), [5..9, 10..24, 26..27]);
        assert_eq!(merged(&gaps[..1]).len(), 8, "each seed is a range of its own");
    }

    #[test]
    fn what_was_run_is_written_as_ranges_and_read_back() {
        let share = Share::new(&(100..200), Some((1, 2)));
        let mut ran = Ran::default();
        for place in [3, 0, 1, 7, 2, 6] {
            assert!(!ran.contains(place));
            ran.insert(place);
            assert!(ran.contains(place));
        }
        assert_eq!(ran.seeds(&share), [100..107, 112..115]);
        let report = WorkloadReport { ran: ran.seeds(&share), runs: 6, ..WorkloadReport::default() };
        assert_eq!(Ran::of(&report, &share), Some(ran));
        for ran in [vec![100..107, 112..113], vec![100..107, 106..113], vec![101..107, 112..115]] {
            assert_eq!(Ran::of(&WorkloadReport { ran, ..report.clone() }, &share), None);
        }
    }
}
