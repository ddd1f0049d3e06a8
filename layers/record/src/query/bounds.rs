//! The part of an index that a scan reads.

use super::comparison::{Comparison, compare};
use crate::{
    cursor::{Endpoint, TupleRange},
    value::{IntoValue, Shown, Tuple, Value},
};
use foundationdb_tuple::Element;
use std::fmt;

/// The value of one of the first columns.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// This one.
    To(Value),
    /// Each of the values of the in-join around the scan, one after another.
    Each,
}

/// The values of the column after those that are bound to one value. Nulls are in no range.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueRange {
    /// The least value, and whether it is in the range.
    pub low: Option<(Value, bool)>,
    /// The greatest value, and whether it is in the range.
    pub high: Option<(Value, bool)>,
    /// What the strings or bytes begin with.
    pub prefix: Option<Value>,
}

/// The part of an index that a scan reads: some first columns that have one value, then a range. All columns
/// are named as key expressions are written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bounds {
    /// The first columns.
    pub equal: Vec<(String, Bound)>,
    /// The next column.
    pub range: Option<(String, ValueRange)>,
    /// Whether the range is one of ranks, which has no nulls.
    pub of_ranks: bool,
}

impl ValueRange {
    /// The values for which all the comparisons that were taken hold.
    pub(super) fn new() -> ValueRange {
        ValueRange::default()
    }

    /// Narrows the range to the values for which a comparison holds; `false` if it cannot.
    pub(super) fn narrow(&mut self, comparison: &Comparison) -> bool {
        let bounded = self.low.is_some() || self.high.is_some();
        match comparison {
            Comparison::NotNull => {}
            Comparison::StartsWith(prefix) if !bounded && self.prefix.is_none() => {
                self.prefix = Some(prefix.clone());
            }
            _ if self.prefix.is_some() => return false,
            Comparison::Greater(value) => self.above(value, false),
            Comparison::GreaterOrEqual(value) => self.above(value, true),
            Comparison::Less(value) => self.below(value, false),
            Comparison::LessOrEqual(value) => self.below(value, true),
            _ => return false,
        }
        true
    }

    fn above(&mut self, value: &Value, inclusive: bool) {
        let tighter = self.low.as_ref().is_none_or(|(low, _)| {
            compare(value, low).is_some_and(|order| order.is_gt() || order.is_eq() && !inclusive)
        });
        if tighter {
            self.low = Some((value.clone(), inclusive));
        }
    }

    fn below(&mut self, value: &Value, inclusive: bool) {
        let tighter = self.high.as_ref().is_none_or(|(high, _)| {
            compare(value, high).is_some_and(|order| order.is_lt() || order.is_eq() && !inclusive)
        });
        if tighter {
            self.high = Some((value.clone(), inclusive));
        }
    }

    fn endpoints(&self, of_ranks: bool) -> (Endpoint, Endpoint) {
        let end = |end: &(Value, bool)| match end {
            (value, true) => Endpoint::Inclusive(value.clone().into()),
            (value, false) => Endpoint::Exclusive(value.clone().into()),
        };
        if let Some(prefix) = &self.prefix {
            return (Endpoint::Inclusive(prefix.clone().into()), Endpoint::Exclusive(after(prefix).into()));
        }
        let lowest = match of_ranks {
            true => Endpoint::Open,
            false => Endpoint::Exclusive(Element::Nil.into()),
        };
        (self.low.as_ref().map_or(lowest, end), self.high.as_ref().map_or(Endpoint::Open, end))
    }
}

/// The least value after all that begin with `prefix`.
fn after(prefix: &Value) -> Value {
    match prefix {
        Element::String(text) => {
            let mut chars: Vec<char> = text.chars().collect();
            while let Some(last) = chars.pop() {
                // The code points of surrogates are no characters.
                let next = (u32::from(last) + 1..=u32::from(char::MAX)).find_map(char::from_u32);
                if let Some(next) = next {
                    chars.push(next);
                    return chars.into_iter().collect::<String>().into_value();
                }
            }
            // In keys, nested tuples come after strings.
            Element::Tuple(Vec::new())
        }
        Element::Bytes(bytes) => {
            let kept = bytes.iter().rposition(|byte| *byte != 0xff);
            match kept {
                Some(last) => {
                    let mut next = bytes[..=last].to_vec();
                    next[last] += 1;
                    next.into_value()
                }
                // In keys, strings come after bytes.
                None => "".into_value(),
            }
        }
        _ => Element::Nil,
    }
}

impl Bounds {
    /// Whether it is the whole index.
    pub fn is_all(&self) -> bool {
        self.equal.is_empty() && self.range.is_none()
    }

    /// The range of tuples, with a value for [`Bound::Each`]; `None` if it is empty.
    pub fn tuples(&self, each: Option<&Value>) -> Option<TupleRange> {
        let value = |bound: &(String, Bound)| match &bound.1 {
            Bound::To(value) => value.clone(),
            Bound::Each => each.cloned().unwrap_or(Element::Nil),
        };
        let prefix: Tuple = self.equal.iter().map(value).collect();
        let range = match &self.range {
            None if prefix.is_empty() => return Some(TupleRange::all()),
            None => return Some(TupleRange::all_of(prefix)),
            Some((_, range)) => {
                let (low, high) = range.endpoints(self.of_ranks);
                TupleRange::between(low, high).after(&prefix)
            }
        };
        let (begin, end) = range.keys(&foundationdb_tuple::Subspace::all());
        (begin < end).then_some(range)
    }
}

impl fmt::Display for ValueRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(prefix) = &self.prefix {
            return write!(f, "starts with {}", Shown(prefix));
        }
        let sign = |inclusive: bool| if inclusive { "=" } else { "" };
        match (&self.low, &self.high) {
            (None, None) => f.write_str("is not null"),
            (Some((low, with)), None) => write!(f, ">{} {}", sign(*with), Shown(low)),
            (None, Some((high, with))) => write!(f, "<{} {}", sign(*with), Shown(high)),
            (Some((low, with_low)), Some((high, with_high))) => {
                let (low, high) = (Shown(low), Shown(high));
                write!(f, ">{} {low} and <{} {high}", sign(*with_low), sign(*with_high))
            }
        }
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_all() {
            return f.write_str("everything");
        }
        let mut first = true;
        for (name, bound) in &self.equal {
            f.write_str(if std::mem::take(&mut first) { "" } else { ", " })?;
            match bound {
                Bound::To(Element::Nil) => write!(f, "{name} is null")?,
                Bound::To(value) => write!(f, "{name} = {}", Shown(value))?,
                Bound::Each => write!(f, "{name} = each")?,
            }
        }
        if let Some((name, range)) = &self.range {
            write!(f, "{}{name} {range}", if first { "" } else { ", " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(comparisons: &[Comparison]) -> Bounds {
        let mut range = ValueRange::new();
        for comparison in comparisons {
            assert!(range.narrow(comparison), "{comparison}");
        }
        Bounds { equal: Vec::new(), range: Some(("a".into(), range)), of_ranks: false }
    }

    fn within(bounds: &Bounds, value: &Value) -> bool {
        let Some(range) = bounds.tuples(None) else { return false };
        let (begin, end) = range.keys(&foundationdb_tuple::Subspace::all());
        let key = Tuple::from((value.clone(), 7)).pack();
        begin <= key && key < end
    }

    /// A key is in the range of tuples if and only if the comparisons hold for its value.
    #[test]
    fn ranges_have_the_values_for_which_the_comparisons_hold() {
        let v = |text: &str| text.into_value();
        let texts = [
            "",
            "a",
            "a\0",
            "a\0b",
            "ab",
            "abc",
            "ac",
            "b",
            "\u{d7ff}",
            "\u{e000}",
            "\u{10ffff}",
            "\u{10ffff}a",
        ];
        let ints = [i64::MIN, -1, 0, 1, 255, 256, i64::MAX];
        let mut values: Vec<Value> = texts.iter().map(|text| v(text)).collect();
        values.push(Element::Nil);
        let mut tried = 0;
        for one in &texts {
            let all = [
                Comparison::Less(v(one)),
                Comparison::LessOrEqual(v(one)),
                Comparison::Greater(v(one)),
                Comparison::GreaterOrEqual(v(one)),
                Comparison::StartsWith(v(one)),
                Comparison::NotNull,
            ];
            for comparison in all {
                for value in &values {
                    let holds = comparison.holds(Some(value)) == Some(true);
                    assert_eq!(
                        within(&bounds(std::slice::from_ref(&comparison)), value),
                        holds,
                        "{value:?} {comparison}"
                    );
                    tried += 1;
                }
            }
        }
        for low in ints {
            for high in ints {
                let both =
                    [Comparison::Greater(low.into_value()), Comparison::LessOrEqual(high.into_value())];
                for value in ints {
                    let holds = low < value && value <= high;
                    assert_eq!(
                        within(&bounds(&both), &value.into_value()),
                        holds,
                        "{low} < {value} <= {high}"
                    );
                    tried += 1;
                }
            }
        }
        assert_eq!(tried, 12 * 6 * 13 + 7 * 7 * 7);
        let bytes =
            [vec![], vec![1u8], vec![1, 0xff], vec![1, 0xff, 3], vec![2], vec![0xff], vec![0xff, 0xff, 1]];
        for prefix in &bytes {
            let comparison = Comparison::StartsWith(prefix.clone().into_value());
            for value in &bytes {
                let value = value.clone().into_value();
                let holds = comparison.holds(Some(&value)) == Some(true);
                assert_eq!(
                    within(&bounds(std::slice::from_ref(&comparison)), &value),
                    holds,
                    "{value:?} {comparison}"
                );
            }
        }
    }

    #[test]
    fn the_tighter_bound_is_taken() {
        let v = |number: i64| number.into_value();
        let both = bounds(&[
            Comparison::Greater(v(1)),
            Comparison::GreaterOrEqual(v(1)),
            Comparison::LessOrEqual(v(9)),
            Comparison::Less(v(9)),
            Comparison::Less(v(20)),
        ]);
        assert_eq!(both.to_string(), "a > 1 and < 9");
        let mut range = ValueRange::new();
        assert!(range.narrow(&Comparison::StartsWith("a".into_value())));
        assert!(!range.narrow(&Comparison::Less("ab".into_value())));
    }
}
