//! The keys of the workload, and what a call means in terms of keys.

use super::{Call, Range, Selector, Spot};
use bytes::Bytes;
use shaketable::models::keyspace::{Space, Write};
use shaketable_tx::{Isolation, KeySelector, MutationType, RangeOption, StreamingMode, key_after};

/// The number of keys of a region that calls name by number.
pub(super) const KEYS: u8 = 16;
/// The number of keys at either end of the whole keyspace that are never written, so that no selector leaves
/// the keyspace.
const MARGIN: usize = 8;
/// The maximum offset of a selector.
pub(super) const REACH: i32 = MARGIN as i32 - 2;

/// What the keys that clients watch begin with.
pub(super) const WOKEN: &[u8] = b"api1";

/// The names of all keys, made once.
///
/// ```text
/// api/!0 .. api/!7        untouched, so that selectors find a key
/// api/00/00 .. /03        the shared region, and api/00/s<versionstamp>
/// api/01/00 .. /03        the first client's region, and so on
/// api/~0 .. api/~7        untouched
/// api1<client>            watched, and otherwise nobody's
/// ```
///
/// The names of a region are those of four keys, each alone, followed by one and by two zero bytes, and by a
/// greater one.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) regions: Vec<Vec<Bytes>>,
}

impl Layout {
    /// The keys for this many clients, at most 99.
    pub(super) fn new(clients: usize) -> Layout {
        let key = |region, n: u8| {
            let alike = ["", "\0", "\0\0", "\u{7f}"][usize::from(n % 4)];
            Bytes::from(format!("api/{region:02}/{:02}{alike}", n / 4))
        };
        Layout { regions: (0..=clients).map(|r| (0..KEYS).map(|n| key(r, n)).collect()).collect() }
    }

    /// The content of the database before the first operation.
    pub(super) fn initial() -> Space {
        let margin = |c: char| (0..MARGIN).map(move |i| (Bytes::from(format!("api/{c}{i}")), Bytes::new()));
        margin('!').chain(margin('~')).collect()
    }

    /// The whole keyspace of the workload.
    pub(super) fn whole() -> RangeOption {
        RangeOption::new("api/", "api0")
    }

    fn region(client: usize, own: bool) -> usize {
        if own { client + 1 } else { 0 }
    }

    pub(super) fn key(&self, client: usize, spot: Spot) -> &Bytes {
        &self.regions[Layout::region(client, spot.own)][usize::from(spot.n % KEYS)]
    }

    pub(super) fn selector(&self, client: usize, Selector(spot, or_equal, offset): Selector) -> KeySelector {
        KeySelector::new(self.key(client, spot).clone(), or_equal, offset.clamp(-REACH, REACH))
    }

    /// The range that a call reads. At snapshot a range stays in the client's own region.
    pub(super) fn range(&self, client: usize, range: Range, isolation: Isolation) -> RangeOption {
        let bound = |Selector(spot, or_equal, offset)| match isolation {
            Isolation::Serializable => self.selector(client, Selector(spot, or_equal, offset)),
            Isolation::Snapshot => self.selector(client, Selector(Spot { own: true, n: spot.n }, false, 1)),
        };
        let mut option = RangeOption::between(bound(range.begin), bound(range.end)).mode(range.mode);
        option.limit = (range.limit > 0).then_some(range.limit.into());
        option.reverse = range.reverse;
        // The mode `Exact` requires a limit.
        if range.mode == StreamingMode::Exact && range.limit == 0 {
            option.limit = Some(usize::from(KEYS));
        }
        option
    }

    pub(super) fn stamped(&self, client: usize, own: bool) -> (Bytes, Bytes) {
        let region = Layout::region(client, own);
        (format!("api/{region:02}/s").into(), format!("api/{region:02}/t").into())
    }

    /// The key that a point read reads: at snapshot, a key of the client's own region.
    pub(super) fn point(&self, client: usize, spot: Spot, isolation: Isolation) -> &Bytes {
        self.key(client, Spot { own: spot.own || isolation == Isolation::Snapshot, n: spot.n })
    }

    pub(super) fn span(&self, client: usize, begin: Spot, end: u8) -> Option<(&Bytes, &Bytes)> {
        let (begin, end) = (self.key(client, begin), self.key(client, Spot { own: begin.own, n: end }));
        (begin <= end).then_some((begin, end))
    }

    /// The write that a call performs, if it is a write.
    pub(super) fn write(&self, client: usize, call: &Call) -> Option<Write> {
        Some(match call {
            Call::Set(at, data) | Call::SetByHand(at, data) => {
                Write::Set(self.key(client, *at).clone(), data.bytes().into())
            }
            Call::Clear(at) => {
                let key = self.key(client, *at);
                Write::Clear(key.clone(), key_after(key))
            }
            Call::ClearRange(begin, end) => {
                let (begin, end) = self.span(client, *begin, *end)?;
                Write::Clear(begin.clone(), end.clone())
            }
            Call::ClearStamped(own) => {
                let (begin, end) = self.stamped(client, *own);
                Write::Clear(begin, end)
            }
            Call::Atomic(op, at, data) => {
                Write::Atomic(*op, self.key(client, *at).clone(), data.bytes().into())
            }
            Call::StampKey(own, data) => {
                let mut key = self.stamped(client, *own).0.to_vec();
                let offset = key.len() as u32;
                key.extend_from_slice(&[0; 10]);
                key.extend(data.0.first());
                key.extend_from_slice(&offset.to_le_bytes());
                Write::Atomic(MutationType::SetVersionstampedKey, key.into(), data.bytes().into())
            }
            Call::StampValue(at, data) => {
                let mut value = data.bytes();
                let offset = value.len() / 2;
                value.splice(offset..offset, [0; 10]);
                value.extend_from_slice(&(offset as u32).to_le_bytes());
                Write::Atomic(
                    MutationType::SetVersionstampedValue,
                    self.key(client, *at).clone(),
                    value.into(),
                )
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable::models::keyspace::View;

    #[test]
    fn no_selector_leaves_the_margins() {
        let layout = Layout::new(9);
        let space = Layout::initial();
        let view = View::new(&space, true);
        for n in 0..KEYS {
            for (or_equal, offset) in [(false, -REACH), (true, -REACH), (false, REACH), (true, REACH)] {
                for (client, own) in [(0, false), (8, true)] {
                    let key =
                        view.get_key(&layout.selector(client, Selector(Spot { own, n }, or_equal, offset)));
                    assert!(space.contains_key(&key), "{key:?}");
                }
            }
        }
    }
}
