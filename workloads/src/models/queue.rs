//! The sequential model of a queue in either of the layer's orders.
//!
//! In commit order an item goes to the end. In index order its index is one more than the last one at
//! the version its transaction *read*, which may be long ago: items with one index leave in any order,
//! so that the model knows a group of candidates, not always the next item. A dequeue whose answer
//! nobody learned leaves open which candidate of its group is gone.

use shaketable_layers::queue::Order;
use shaketable_sim::proto::Version;
use std::collections::BTreeMap;

/// Items that leave in any order, of which some have left unseen.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Group<V> {
    candidates: Vec<V>,
    gone: usize,
}

/// A queue of values, all of them different.
#[derive(Clone, Debug)]
pub struct Queue<V> {
    order: Order,
    groups: BTreeMap<i64, Group<V>>,
    /// After which version the last index was which, ascending.
    last_index: Vec<(Version, i64)>,
    /// In commit order: how many items there ever were.
    enqueued: i64,
}

impl<V: Clone + PartialEq> Queue<V> {
    /// An empty queue.
    pub fn new(order: Order) -> Queue<V> {
        Queue { order, groups: BTreeMap::new(), last_index: Vec::new(), enqueued: 0 }
    }

    /// The last index at `version`, as a transaction with that read version sees it.
    pub fn last_index(&self, version: Version) -> i64 {
        let known = self.last_index.partition_point(|(v, _)| *v <= version);
        known.checked_sub(1).map_or(0, |i| self.last_index[i].1)
    }

    /// Appends the items of one transaction that read at `read`. Gives the first one's index in index
    /// order.
    pub fn enqueue(&mut self, read: Version, values: impl IntoIterator<Item = V>) -> i64 {
        let first = match self.order {
            Order::Index => self.last_index(read) + 1,
            Order::Commit => self.enqueued + 1,
        };
        for (place, value) in (first..).zip(values) {
            let group = self.groups.entry(place).or_insert(Group { candidates: Vec::new(), gone: 0 });
            group.candidates.push(value);
            self.enqueued += 1;
        }
        first
    }

    /// Removes the first item. `value` is what the client got, `None` if it learned nothing. Gives
    /// whether that fits.
    pub fn dequeue(&mut self, value: Option<&V>) -> bool {
        let Some(mut entry) = self.groups.first_entry() else { return value.is_none() };
        let group = entry.get_mut();
        match value {
            None => group.gone += 1,
            Some(value) => match group.candidates.iter().position(|v| v == value) {
                Some(at) => drop(group.candidates.swap_remove(at)),
                None => return false,
            },
        }
        if group.candidates.len() == group.gone {
            entry.remove();
        }
        true
    }

    /// Ends a transaction that committed at `version`.
    pub fn commit(&mut self, version: Version) {
        let last = self.groups.last_key_value().map_or(0, |(index, _)| *index);
        self.last_index.push((version, last));
    }

    /// Whether `value` may be the first item.
    pub fn may_be_first(&self, value: &V) -> bool {
        self.groups.first_key_value().is_some_and(|(_, group)| group.candidates.contains(value))
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.groups.values().map(|group| group.candidates.len() - group.gone).sum()
    }

    /// Whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Whether these values, first to last, may be all items.
    pub fn may_hold(&self, values: &[V]) -> bool {
        let mut rest = self.clone();
        values.iter().all(|value| rest.dequeue(Some(value))) && rest.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commit_order_is_the_order_of_the_calls() {
        let mut queue = Queue::new(Order::Commit);
        queue.enqueue(0, [1, 2]);
        queue.enqueue(0, [3]);
        assert!(queue.may_hold(&[1, 2, 3]) && !queue.may_hold(&[2, 1, 3]) && !queue.may_hold(&[1, 2]));
        assert!(queue.may_be_first(&1) && !queue.may_be_first(&2));
        assert!(!queue.dequeue(Some(&2)));
        assert!(queue.dequeue(Some(&1)));
        assert!(queue.dequeue(None));
        assert!(queue.dequeue(Some(&3)));
        assert!(queue.is_empty() && queue.dequeue(None) && !queue.dequeue(Some(&4)));
    }

    #[test]
    fn index_order_goes_by_what_the_transaction_read() {
        let mut queue = Queue::new(Order::Index);
        assert_eq!(queue.enqueue(5, ['a', 'b']), 1);
        queue.commit(10);
        assert_eq!(queue.enqueue(9, ['c']), 1);
        queue.commit(11);
        assert_eq!(queue.enqueue(11, ['d']), 3);
        queue.commit(12);
        assert!(queue.may_hold(&['a', 'c', 'b', 'd']) && queue.may_hold(&['c', 'a', 'b', 'd']));
        assert!(!queue.may_hold(&['a', 'b', 'c', 'd']));
        assert!(queue.may_be_first(&'c'));
    }

    #[test]
    fn an_unseen_dequeue_leaves_open_which_candidate_is_gone() {
        let mut queue = Queue::new(Order::Index);
        queue.enqueue(0, ['a']);
        queue.enqueue(0, ['b']);
        queue.enqueue(0, ['c']);
        queue.dequeue(None);
        assert_eq!(queue.len(), 2);
        assert!(queue.dequeue(Some(&'b')));
        queue.commit(20);
        assert_eq!(queue.last_index(20), 1);
        assert!(queue.dequeue(Some(&'a')));
        assert!(queue.is_empty() && !queue.dequeue(Some(&'c')));
        queue.commit(21);
        assert_eq!((queue.last_index(19), queue.last_index(20), queue.last_index(30)), (0, 1, 0));
    }
}
