//! Chooses the operations of a plan that are explored, and the operations that run before and after them.
//!
//! A *scene* is one such choice: a few explored operations with the operations around them.

use super::{
    Accesses, Subject,
    accesses::Operation,
    case::{Case, Part},
    orders::serial,
};
use crate::run::runner::kind;
use shaketable_sim::{faults::Step, ids::ClientId};
use std::collections::{BTreeMap, BTreeSet};

/// How many operations of each client run before its explored ones. They run one after another, and write
/// the data that the explored operations find.
const BEFORE: usize = 3;
/// How many earlier operations run before the explored ones, of all clients together: those that wrote the
/// data that the explored operations read or overwrite.
const EARLIER_WRITERS: usize = 6;
/// How many later operations run after the explored ones, of all clients together: those that read what the
/// explored operations wrote.
const LATER_READERS: usize = 2;
/// How many operations of each client are explored together.
const TOGETHER: usize = 3;
/// How many operations of a client run after its explored ones, and see their effects.
const AFTER: usize = 1;
/// How many scenes of a seed are made for outcomes.
const SCENES: usize = 2;
/// How many operations of a seed are explored alone, between the earlier writers of their data and the later
/// readers of what they write.
const ALONE: usize = 4;
/// The most scenes that are made for one kind of operation.
const MOST_SCENES_OF_KIND: usize = 6;
/// The most conflicts that count for the score of a group.
const MOST_CONFLICTS: usize = 4;
/// The least number of groups of operations of a seed whose orders are explored, if there are that many.
const GROUPS: usize = 12;

type Group = Vec<Operation>;

/// The words of an operation's text. Two operations with the same keys or values have words in common.
fn words(shown: &str) -> BTreeSet<&str> {
    shown.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

/// The kinds that were explored so far, and how often.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    drawn: BTreeSet<String>,
    explored: BTreeMap<String, usize>,
    /// How often an operation of a kind was explored alone.
    alone: BTreeMap<String, usize>,
}

impl Kinds {
    /// How many kinds of operations were explored, of how many that were drawn.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.explored.len(), self.drawn.len())
    }
}

/// The operations of a subject and their kinds.
pub(super) struct Stage<'a> {
    number: usize,
    subject: &'a dyn Subject,
    shown: Vec<Vec<String>>,
    kinds: Vec<Vec<String>>,
    /// What the operations read and wrote in the run of the whole plan without faults.
    accesses: Accesses,
}

impl<'a> Stage<'a> {
    pub(super) fn new(number: usize, subject: &'a dyn Subject, accesses: Accesses) -> Stage<'a> {
        let shown = subject.operations();
        let kinds = shown.iter().map(|list| list.iter().map(|op| kind(op)).collect()).collect();
        Stage { number, subject, shown, kinds, accesses }
    }

    /// A case of these explored operations, with the operations of the same clients before and after them.
    /// The ones before run one after another.
    fn case(&self, part: Part, explored: Vec<(usize, usize)>, after: usize) -> Case {
        let mut sketch = self.subject.empty();
        let mut warm_up: Vec<(usize, (usize, usize))> = Vec::new();
        for (client, kept) in sketch.operations.iter_mut().enumerate() {
            let own = explored.iter().filter(|of| of.0 == client).map(|of| of.1);
            let (Some(first), Some(last)) = (own.clone().min(), own.max()) else { continue };
            let from = first.saturating_sub(BEFORE);
            *kept = (from..(last + 1 + after).min(self.shown[client].len())).collect();
            warm_up.extend((from..first).map(|index| (index - from, (client, index))));
        }
        warm_up.sort_unstable();
        let before = warm_up
            .into_iter()
            .flat_map(|(_, (client, index))| serial(ClientId(client as u16), index as u32));
        sketch.faults.order = before.collect();
        Case { part, explored, ..Case::plain(self.number, sketch) }
    }

    /// A case of these explored operations, after the earlier writers of their data, and before the later
    /// readers of what they wrote.
    fn case_of_data(&self, part: Part, explored: Vec<Operation>) -> Case {
        let writers = self.accesses.earlier_writers(&explored, EARLIER_WRITERS);
        let readers = self.accesses.later_readers(&explored, LATER_READERS);
        let mut sketch = self.subject.empty();
        for (client, index) in writers.iter().chain(&explored).chain(&readers) {
            sketch.operations[*client].push(*index);
        }
        sketch.operations.iter_mut().for_each(|kept| kept.sort_unstable());
        let steps = |operations: &[Operation]| -> Vec<Step> {
            let of = |(client, index): &Operation| serial(ClientId(*client as u16), *index as u32);
            operations.iter().flat_map(of).collect()
        };
        sketch.faults.order = steps(&writers);
        Case { part, explored, after: steps(&readers), ..Case::plain(self.number, sketch) }
    }

    /// The scenes for outcomes of one operation that writes, rarely explored kinds first.
    pub(super) fn alone(&self, seen: &mut Kinds) -> Vec<Case> {
        let mut left: Vec<Operation> = self.clients().flat_map(|client| self.of(client)).collect();
        left.retain(|operation| self.accesses.writes(*operation));
        let mut cases = Vec::new();
        while cases.len() < ALONE {
            let alone = |(client, index): &Operation| {
                seen.alone.get(&self.kinds[*client][*index]).copied().unwrap_or(0)
            };
            left.retain(|operation| alone(operation) < MOST_SCENES_OF_KIND);
            let Some(at) = (0..left.len()).min_by_key(|at| alone(&left[*at])) else { break };
            let operation = left.remove(at);
            let kind = &self.kinds[operation.0][operation.1];
            *seen.alone.entry(kind.clone()).or_default() += 1;
            *seen.explored.entry(kind.clone()).or_default() += 1;
            let mut case = self.case_of_data(Part::Plain, vec![operation]);
            case.set_order(serial(ClientId(operation.0 as u16), operation.1 as u32).collect());
            cases.push(case);
        }
        cases
    }

    /// The scenes for outcomes of operations of two clients at once, rarely explored kinds first.
    pub(super) fn outcomes(&self, seen: &mut Kinds) -> Vec<Case> {
        seen.drawn.extend(self.kinds.iter().flatten().cloned());
        let clients: Vec<usize> = self.clients().take(2).collect();
        let longest = clients.iter().map(|client| self.shown[*client].len()).max().unwrap_or(0);
        let mut starts: Vec<usize> = (0..longest).step_by(TOGETHER).collect();
        let window = |start: usize| -> Vec<(usize, usize)> {
            let own = |client: usize| {
                let end = (start + TOGETHER).min(self.shown[client].len());
                (start..end).map(move |index| (client, index))
            };
            clients.iter().flat_map(|client| own(*client)).collect()
        };
        let mut cases = Vec::new();
        for _ in 0..SCENES.min(starts.len()) {
            let novelty = |start: usize| -> f64 {
                let rarity = |(client, index): (usize, usize)| {
                    1.0 / (1 + seen.explored.get(&self.kinds[client][index]).copied().unwrap_or(0)) as f64
                };
                window(start).into_iter().map(rarity).sum()
            };
            let best =
                (0..starts.len()).fold(0, |best, at| match novelty(starts[at]) > novelty(starts[best]) {
                    true => at,
                    false => best,
                });
            let explored = window(starts.remove(best));
            let is_explored_often = |(client, index): &Operation| {
                seen.explored
                    .get(&self.kinds[*client][*index])
                    .is_some_and(|scenes| *scenes >= MOST_SCENES_OF_KIND)
            };
            if explored.iter().all(is_explored_often) {
                break;
            }
            for (client, index) in &explored {
                *seen.explored.entry(self.kinds[*client][*index].clone()).or_default() += 1;
            }
            cases.push(self.case(Part::Plain, explored, AFTER));
        }
        cases
    }

    /// Groups of operations of different clients: for each combination of kinds, those with the highest
    /// score. The score counts first the conflicts, where one operation writes what another one reads, and
    /// then the words that the operations have in common.
    pub(super) fn groups(&self, part: Part) -> Vec<Case> {
        let all = if part == Part::Order { self.pairs() } else { self.triples() };
        let words: Vec<Vec<BTreeSet<&str>>> =
            self.shown.iter().map(|list| list.iter().map(|op| words(op)).collect()).collect();
        let ranks = self.accesses.ranks();
        let mut by_kinds: BTreeMap<Vec<&str>, Vec<(usize, Group)>> = BTreeMap::new();
        for group in all {
            let mut kinds: Vec<&str> = group.iter().map(|(c, i)| self.kinds[*c][*i].as_str()).collect();
            kinds.sort_unstable();
            let word = |at: usize| &words[group[at].0][group[at].1];
            let common: usize = (1..group.len()).map(|at| word(at - 1).intersection(word(at)).count()).sum();
            let conflicts: usize =
                (1..group.len()).map(|at| self.accesses.conflicts(group[at - 1], group[at])).sum();
            // Among equals, operations that took effect near each other are preferred: it is likely that the
            // data of all of them exists at the same time.
            let ranks = || group.iter().map(|operation| ranks.get(operation).copied().unwrap_or(0));
            let apart = ranks().max().unwrap_or(0) - ranks().min().unwrap_or(0);
            let score = (conflicts.min(MOST_CONFLICTS) * 10 + common.min(9)) * 1_000 + (999 - apart.min(999));
            by_kinds.entry(kinds).or_default().push((score, group));
        }
        let each = GROUPS.div_ceil(by_kinds.len().max(1));
        let chosen = by_kinds.into_values().map(|groups| best(groups, each));
        chosen.flat_map(|groups| self.cases(part, groups)).collect()
    }

    /// The cases of the groups of one combination of kinds, the best group first. The best one is also
    /// explored after its clients' preceding operations, even if these did not write its data.
    fn cases(&self, part: Part, groups: Vec<Group>) -> Vec<Case> {
        let first = groups.first().filter(|_| part == Part::Order).cloned();
        let of_data = groups.into_iter().map(|group| self.case_of_data(part, group));
        of_data.chain(first.map(|group| self.case(part, group, AFTER))).collect()
    }

    /// The clients that have operations.
    fn clients(&self) -> impl Iterator<Item = usize> {
        (0..self.shown.len()).filter(|client| !self.shown[*client].is_empty())
    }

    fn of(&self, client: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        (0..self.shown[client].len()).map(move |index| (client, index))
    }

    /// Every two operations of different clients.
    fn pairs(&self) -> Vec<Group> {
        let clients: Vec<usize> = self.clients().take(3).collect();
        let mut pairs = Vec::new();
        for (at, first) in clients.iter().enumerate() {
            for second in &clients[at + 1..] {
                pairs.extend(self.of(*first).flat_map(|a| self.of(*second).map(move |b| vec![a, b])));
            }
        }
        pairs
    }

    /// Groups of three operations of different clients at similar positions in their lists. Without this
    /// limit there would be too many groups.
    fn triples(&self) -> Vec<Group> {
        let clients: Vec<usize> = self.clients().take(3).collect();
        let [first, second, third] = clients[..] else { return Vec::new() };
        let near = |client: usize, index: usize| {
            self.of(client).filter(move |other| other.1.abs_diff(index) <= BEFORE)
        };
        let mut triples = Vec::new();
        for a in self.of(first) {
            for b in near(second, a.1) {
                triples.extend(near(third, a.1).map(|c| vec![a, b, c]));
            }
        }
        triples
    }
}

/// The groups with the highest scores, without those that share an operation with a better one.
fn best(mut groups: Vec<(usize, Group)>, most: usize) -> Vec<Group> {
    groups.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    let mut chosen: Vec<Group> = Vec::new();
    for (_, group) in groups {
        let is_shared = |other: &Group| group.iter().any(|operation| other.contains(operation));
        if chosen.len() < most && !chosen.iter().any(is_shared) {
            chosen.push(group);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_names_of_variants() {
        for (shown, name) in [
            ("Swap { a: 1 }", "Swap"),
            ("Dequeue", "Dequeue"),
            ("[Dequeue]", "Dequeue"),
            ("[Set(1, [2, 3])]", "Set"),
            ("[Set(1), Get { key: 2 }]", "several"),
            ("[]", "several"),
            ("(1, 2)", ""),
        ] {
            assert_eq!(kind(shown), name, "{shown}");
        }
    }
}
