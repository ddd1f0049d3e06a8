//! Enumerates the orders in which a group of operations makes its requests.

use super::case::{Case, Part};
use shaketable_sim::{
    faults::{Request, Step},
    ids::ClientId,
};

/// How many transactions of an operation have their requests put in an order.
const TRANSACTIONS: u32 = 4;
/// The most orders of a group of operations that are run. Those with the fewest switches from one operation
/// to another come first.
const MOST: usize = 100;

/// The first requests that an operation can make, in the order in which it makes them. Requests that it does
/// not make have no effect.
pub(super) fn serial(client: ClientId, operation: u32) -> impl Iterator<Item = Step> {
    (0..TRANSACTIONS).flat_map(move |index| {
        [Request::ReadVersion, Request::Commit].map(|request| Step { client, operation, request, index })
    })
}

/// The cases in which the operations of a group are done one after another.
pub(super) fn one_after_another(group: &Case, part: Part) -> Vec<Case> {
    let in_turn = |explored: Vec<(usize, usize)>| {
        let mut case = Case { part, explored, ..group.clone() };
        let steps =
            case.explored.iter().flat_map(|(client, index)| serial(ClientId(*client as u16), *index as u32));
        let order = steps.collect();
        case.set_order(order);
        case
    };
    permutations(&group.explored).into_iter().map(in_turn).collect()
}

fn permutations<T: Copy>(items: &[T]) -> Vec<Vec<T>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let first = |at: usize| {
        let mut rest = items.to_vec();
        let first = rest.remove(at);
        permutations(&rest).into_iter().map(move |rest| [vec![first], rest].concat())
    };
    (0..items.len()).flat_map(first).collect()
}

/// The requests of each operation of a group, taken from the run in which the operation made most requests.
pub(super) fn requests(group: &Case, runs: &[Vec<Step>]) -> Vec<Vec<Step>> {
    let of = |(client, index): &(usize, usize)| -> Vec<Step> {
        let is_own = |step: &&Step| {
            (usize::from(step.client.0), step.operation as usize) == (*client, *index)
                && step.index < TRANSACTIONS
        };
        let own = |made: &Vec<Step>| -> Vec<Step> { made.iter().filter(is_own).copied().collect() };
        runs.iter().map(own).max_by_key(Vec::len).unwrap_or_default()
    };
    group.explored.iter().map(of).collect()
}

/// The number of all orders of a group's requests; and a case for each order that is run. The serial orders,
/// in which the operations run one after another, are left out of the cases.
pub(super) fn orders(group: &Case, part: Part, lists: &[Vec<Step>]) -> (u64, Vec<Case>) {
    let switches = lists.iter().filter(|list| !list.is_empty()).count().saturating_sub(1);
    let total = number(lists);
    let mut found = Vec::new();
    let longest: usize = lists.iter().map(Vec::len).sum();
    for switches in switches + 1..=longest {
        if found.len() >= MOST {
            break;
        }
        let mut merge = Merge { lists, taken: vec![0; lists.len()], order: Vec::new(), found: &mut found };
        merge.go(None, switches);
    }
    let case = |order: Vec<Step>| {
        let mut case = Case { part, ..group.clone() };
        case.set_order(order);
        case
    };
    (total, found.into_iter().map(case).collect())
}

/// How many orders there are.
fn number(lists: &[Vec<Step>]) -> u64 {
    let mut length = 0u128;
    let mut number = 1u128;
    for list in lists {
        for taken in 1..=list.len() as u128 {
            length += 1;
            number = number * length / taken;
        }
    }
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// All orders of lists, each of which keeps its own order, with a number of switches from one list to
/// another.
struct Merge<'a> {
    lists: &'a [Vec<Step>],
    taken: Vec<usize>,
    order: Vec<Step>,
    found: &'a mut Vec<Vec<Step>>,
}

impl Merge<'_> {
    /// Continues after a request of the list `last`, with this many switches left.
    fn go(&mut self, last: Option<usize>, switches: usize) {
        let left: Vec<usize> =
            (0..self.lists.len()).filter(|at| self.taken[*at] < self.lists[*at].len()).collect();
        // The rest needs at least a switch to each list that is left, and has at most one at each request.
        let least = left.iter().filter(|at| Some(**at) != last).count()
            - usize::from(last.is_none() && !left.is_empty());
        let requests: usize = left.iter().map(|at| self.lists[*at].len() - self.taken[*at]).sum();
        if self.found.len() >= MOST || switches < least || switches > requests {
            return;
        }
        if left.is_empty() {
            self.found.push(self.order.clone());
            return;
        }
        for at in left {
            let cost = usize::from(last.is_some_and(|last| last != at));
            let Some(rest) = switches.checked_sub(cost) else { continue };
            self.order.push(self.lists[at][self.taken[at]]);
            self.taken[at] += 1;
            self.go(Some(at), rest);
            self.taken[at] -= 1;
            self.order.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn list(client: u16, length: usize) -> Vec<Step> {
        serial(ClientId(client), 0).take(length).collect()
    }

    fn all(lists: &[Vec<Step>]) -> (u64, Vec<Vec<Step>>) {
        let group = Case::plain(0, crate::search::explore::tests::empty(2));
        let (total, cases) = orders(&group, Part::Order, lists);
        (total, cases.into_iter().map(|case| case.order).collect())
    }

    #[test]
    fn two_transactions_have_six_orders() {
        let (total, found) = all(&[list(0, 2), list(1, 2)]);
        let shown: BTreeSet<String> =
            found.iter().map(|order| order.iter().map(|step| step.client.0.to_string()).collect()).collect();
        // 0011 and 1100 are the serial ones.
        assert_eq!(shown.into_iter().collect::<Vec<_>>(), ["0101", "0110", "1001", "1010"]);
        assert_eq!((total, found.len()), (6, 4));
        assert!(
            found
                .iter()
                .all(|order| order.iter().filter(|step| step.request == Request::Commit).count() == 2)
        );
    }

    #[test]
    fn orders_are_different_and_their_number_is_known() {
        for (lengths, total, serial) in
            [(&[2, 1][..], 3, 2), (&[2, 4], 15, 2), (&[2, 2, 2], 90, 6), (&[2, 0], 1, 1)]
        {
            let lists: Vec<Vec<Step>> =
                lengths.iter().enumerate().map(|(at, length)| list(at as u16, *length)).collect();
            let (number, found) = all(&lists);
            let unique: BTreeSet<&Vec<Step>> = found.iter().collect();
            assert_eq!(
                (number, found.len(), unique.len()),
                (total, total as usize - serial, total as usize - serial)
            );
        }
        let (number, found) = all(&[list(0, 8), list(1, 8)]);
        assert_eq!((number, found.len()), (12_870, MOST));
    }
}
