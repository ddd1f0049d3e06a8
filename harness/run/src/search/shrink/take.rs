//! Removes operations, clients and faults: large parts first, then groups, then single ones.

use super::{
    Sketch,
    search::{FEW, LAST, Search},
};
use crate::judge::finding::deciding;
use crate::run::plan::Element;
use std::collections::BTreeSet;

/// The most operations, and the most faults, that are tried alone.
const GUESSES: usize = 40;

impl Search<'_> {
    /// Keeps only the operations that the judge has named, or those of each client up to them.
    pub(super) fn keep_witness(&mut self) {
        let named = |result| Some(deciding(result)?.witness.operations.clone());
        let Some(witness) = named(&self.result.findings) else { return };
        let witness: Vec<(usize, usize)> = witness
            .into_iter()
            .filter_map(|(client, operation)| self.best.original_operation(client, operation))
            .collect();
        if witness.is_empty() {
            return;
        }
        let is_before = |client, index| witness.iter().any(|(c, last)| *c == client && index <= *last);
        let latest = witness.iter().map(|(_, index)| *index).max().unwrap_or_default();
        let guesses: [&dyn Fn(usize, usize) -> bool; 3] =
            [&|client, index| witness.contains(&(client, index)), &is_before, &|client, index| {
                is_before(client, index) || index <= latest
            }];
        for keeps in guesses {
            if self.keep(keeps, FEW) {
                return;
            }
        }
    }

    /// Keeps only one client, or what one fault needs: an operation with the faults at it, or one fault
    /// alone.
    pub(super) fn keep_one(&mut self) {
        let faults = self.best.faults();
        if faults.is_empty() {
            let clients = 0..self.best.operations.len();
            let _ = clients.into_iter().any(|client| self.keep(|other, _| other == client, 1));
            return;
        }
        let hit: BTreeSet<(usize, usize)> = self
            .best
            .faults
            .decisions
            .iter()
            .filter_map(|of| Some((of.client.0.into(), of.operation? as usize)))
            .collect();
        for (client, index) in hit.into_iter().take(GUESSES) {
            let alone = self.best.only(|other, at| (other, at) == (client, index));
            let before = self.best.only(|other, at| other == client && at <= index);
            if [alone.with_first_opportunities(), alone, before].into_iter().any(|guess| self.fails(guess, 1))
            {
                return;
            }
        }
        for fault in faults.iter().take(GUESSES) {
            let others: Vec<Element> = faults.iter().filter(|other| *other != fault).cloned().collect();
            if !others.is_empty() && self.fails(self.best.without(&others), 1) {
                return;
            }
        }
    }

    /// Keeps only some operations.
    fn keep(&mut self, keeps: impl Fn(usize, usize) -> bool, schedules: usize) -> bool {
        let kept = self.best.only(keeps);
        kept.operations != self.best.operations && self.fails(kept, schedules)
    }

    /// Removes the last operations of all clients, because none is needed after the failure. Then the first
    /// ones.
    pub(super) fn take_ends(&mut self) {
        for take_last in [true, false] {
            let longest = self.best.operations.iter().map(Vec::len).max().unwrap_or_default();
            // A binary search: so many operations of each client still fail, and so many do not.
            let (mut sufficient, mut too_few) = (longest, 0);
            while sufficient > too_few + 1 && !self.stopped {
                let most = too_few + (sufficient - too_few) / 2;
                let kept: Vec<Vec<usize>> = self
                    .best
                    .operations
                    .iter()
                    .map(|list| {
                        let spare = list.len().saturating_sub(most);
                        if take_last { list[..list.len() - spare].to_vec() } else { list[spare..].to_vec() }
                    })
                    .collect();
                match self.keep(|client, index| kept[client].contains(&index), FEW) {
                    true => sufficient = most,
                    false => too_few = most,
                }
            }
        }
    }

    /// Takes all operations of a client away.
    pub(super) fn take_clients(&mut self) {
        for client in (0..self.best.operations.len()).rev() {
            if !self.best.operations[client].is_empty() {
                self.keep(|other, _| other != client, FEW);
            }
        }
    }

    /// Takes groups of elements away, from halves down to pairs.
    pub(super) fn take_groups(&mut self, elements: fn(&Sketch) -> Vec<Element>) {
        let mut size = elements(&self.best).len().div_ceil(2);
        while size > 1 {
            let mut from = 0;
            loop {
                let left = elements(&self.best);
                let Some(group) = left.get(from..(from + size).min(left.len())).filter(|g| !g.is_empty())
                else {
                    break;
                };
                let candidate = self.best.without(group);
                if !self.fails(candidate, self.schedules(FEW)) {
                    from += size;
                }
                if self.stopped {
                    return;
                }
            }
            // Half of it, and of what remains.
            size = size.min(elements(&self.best).len()).div_ceil(2);
        }
    }

    /// Takes each element away alone.
    pub(super) fn take_singles(&mut self, elements: fn(&Sketch) -> Vec<Element>) {
        for element in elements(&self.best) {
            // It may have gone with another one.
            if elements(&self.best).contains(&element) {
                let candidate = self.best.without(std::slice::from_ref(&element));
                self.fails(candidate, self.schedules(LAST));
            }
            if self.stopped {
                return;
            }
        }
    }
}
