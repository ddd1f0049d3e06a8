//! Comparisons of one value with others, in the logic of three values.

use crate::value::{Shown, Tuple, Value};
use foundationdb_tuple::Element;
use std::{cmp::Ordering, fmt};

/// What a value is compared with. Values are ordered as they are in keys: `-0.0` is less than `0.0` and not
/// equal to it, and strings are ordered by their UTF-8 bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Comparison {
    /// Equal to this value.
    Equals(Value),
    /// Not equal to this value.
    NotEquals(Value),
    /// Less than this value.
    Less(Value),
    /// Less than or equal to this value.
    LessOrEqual(Value),
    /// Greater than this value.
    Greater(Value),
    /// Greater than or equal to this value.
    GreaterOrEqual(Value),
    /// A string that begins with this one, or bytes that begin with these.
    StartsWith(Value),
    /// Equal to one of these values.
    In(Vec<Value>),
    /// Null.
    IsNull,
    /// Not null.
    NotNull,
}

impl Comparison {
    /// Whether it holds for a value, `None` standing for null. The result is `None`, unknown, if the value or
    /// what it is compared with is null; only [`IsNull`](Comparison::IsNull) and
    /// [`NotNull`](Comparison::NotNull) are never unknown. [`In`](Comparison::In) is unknown if no value is
    /// equal and one is null.
    pub fn holds(&self, value: Option<&Value>) -> Option<bool> {
        let value = value.filter(|value| !matches!(value, Element::Nil));
        match self {
            Comparison::IsNull => return Some(value.is_none()),
            Comparison::NotNull => return Some(value.is_some()),
            _ => {}
        }
        let value = value?;
        match self {
            Comparison::In(values) => {
                any(values.iter().map(|one| Some(compare(value, one)? == Ordering::Equal)))
            }
            Comparison::StartsWith(prefix) => starts_with(value, prefix),
            Comparison::Equals(one) => Some(compare(value, one)?.is_eq()),
            Comparison::NotEquals(one) => Some(compare(value, one)?.is_ne()),
            Comparison::Less(one) => Some(compare(value, one)?.is_lt()),
            Comparison::LessOrEqual(one) => Some(compare(value, one)?.is_le()),
            Comparison::Greater(one) => Some(compare(value, one)?.is_gt()),
            Comparison::GreaterOrEqual(one) => Some(compare(value, one)?.is_ge()),
            Comparison::IsNull | Comparison::NotNull => None,
        }
    }

    /// The values that it compares with.
    pub fn comparands(&self) -> &[Value] {
        match self {
            Comparison::In(values) => values,
            Comparison::Equals(one)
            | Comparison::NotEquals(one)
            | Comparison::Less(one)
            | Comparison::LessOrEqual(one)
            | Comparison::Greater(one)
            | Comparison::GreaterOrEqual(one)
            | Comparison::StartsWith(one) => std::slice::from_ref(one),
            Comparison::IsNull | Comparison::NotNull => &[],
        }
    }

    /// The comparison that is true where this one is false, and unknown where this one is; `None` if no
    /// comparison is.
    pub(super) fn negated(&self) -> Option<Comparison> {
        Some(match self {
            Comparison::Equals(one) => Comparison::NotEquals(one.clone()),
            Comparison::NotEquals(one) => Comparison::Equals(one.clone()),
            Comparison::Less(one) => Comparison::GreaterOrEqual(one.clone()),
            Comparison::LessOrEqual(one) => Comparison::Greater(one.clone()),
            Comparison::Greater(one) => Comparison::LessOrEqual(one.clone()),
            Comparison::GreaterOrEqual(one) => Comparison::Less(one.clone()),
            Comparison::IsNull => Comparison::NotNull,
            Comparison::NotNull => Comparison::IsNull,
            Comparison::StartsWith(_) | Comparison::In(_) => return None,
        })
    }

    /// Whether it is true for no value: everything that it compares with is null.
    pub(super) fn never_holds(&self) -> bool {
        let nullary = matches!(self, Comparison::IsNull | Comparison::NotNull);
        !nullary && self.comparands().iter().all(|one| matches!(one, Element::Nil))
    }
}

/// How two values are ordered; `None` if one is null.
pub(super) fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    Some(match (left, right) {
        (Element::Nil, _) | (_, Element::Nil) => return None,
        (Element::Int(left), Element::Int(right)) => left.cmp(right),
        (Element::String(left), Element::String(right)) => left.cmp(right),
        (Element::Bytes(left), Element::Bytes(right)) => left.as_ref().cmp(right.as_ref()),
        (left, right) => Tuple::from(left.clone()).cmp(&Tuple::from(right.clone())),
    })
}

fn starts_with(value: &Value, prefix: &Value) -> Option<bool> {
    Some(match (value, prefix) {
        (_, Element::Nil) => return None,
        (Element::String(value), Element::String(prefix)) => value.starts_with(&**prefix),
        (Element::Bytes(value), Element::Bytes(prefix)) => value.starts_with(prefix),
        _ => false,
    })
}

/// True if one is true; otherwise unknown if one is unknown.
pub(super) fn any(values: impl IntoIterator<Item = Option<bool>>) -> Option<bool> {
    let mut all = Some(false);
    for value in values {
        match value {
            Some(true) => return Some(true),
            None => all = None,
            Some(false) => {}
        }
    }
    all
}

/// What follows the name of what is compared: `= 1`, `is null`.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self {
            Comparison::IsNull => return f.write_str("is null"),
            Comparison::NotNull => return f.write_str("is not null"),
            Comparison::In(values) => {
                return write!(f, "in {}", Tuple::from_iter(values.iter().cloned()));
            }
            Comparison::Equals(_) => "=",
            Comparison::NotEquals(_) => "!=",
            Comparison::Less(_) => "<",
            Comparison::LessOrEqual(_) => "<=",
            Comparison::Greater(_) => ">",
            Comparison::GreaterOrEqual(_) => ">=",
            Comparison::StartsWith(_) => "starts with",
        };
        f.write_str(sign)?;
        self.comparands().iter().try_for_each(|one| write!(f, " {}", Shown(one)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::IntoValue;

    fn v(value: impl IntoValue) -> Value {
        value.into_value()
    }

    #[test]
    fn comparisons_with_null_are_unknown() {
        let one = v(1);
        let null = Element::Nil;
        for with in [Comparison::Equals, Comparison::NotEquals, Comparison::Less, Comparison::LessOrEqual] {
            assert_eq!(with(v(1)).holds(None), None);
            assert_eq!(with(v(1)).holds(Some(&null)), None);
            assert_eq!(with(Element::Nil).holds(Some(&one)), None);
            assert_eq!(with(Element::Nil).holds(None), None);
        }
        for with in [Comparison::Greater, Comparison::GreaterOrEqual, Comparison::StartsWith] {
            assert_eq!(with(v(1)).holds(None), None);
            assert_eq!(with(Element::Nil).holds(Some(&one)), None);
        }
        assert_eq!(Comparison::IsNull.holds(None), Some(true));
        assert_eq!(Comparison::IsNull.holds(Some(&one)), Some(false));
        assert_eq!(Comparison::NotNull.holds(None), Some(false));
        assert_eq!(Comparison::NotNull.holds(Some(&one)), Some(true));
        let list = Comparison::In(vec![v(1), Element::Nil]);
        assert_eq!(list.holds(Some(&one)), Some(true));
        assert_eq!(list.holds(Some(&v(2))), None);
        assert_eq!(Comparison::In(vec![v(1)]).holds(Some(&v(2))), Some(false));
        assert_eq!(Comparison::In(vec![]).holds(Some(&v(2))), Some(false));
        assert_eq!(list.holds(None), None);
    }

    #[test]
    fn each_type_is_ordered_as_in_keys() {
        let ascending: [&[Value]; 6] = [
            &[v(i64::MIN), v(-1), v(0i32), v(1), v(i64::MAX)],
            &[v(false), v(true)],
            &[v(""), v("a"), v("a\0"), v("ab"), v("b"), v("é")],
            &[v(vec![]), v(vec![0u8]), v(vec![0u8, 255]), v(vec![1u8]), v(vec![255u8])],
            &[v(f64::NEG_INFINITY), v(-1.5), v(-0.0), v(0.0), v(2.0), v(f64::INFINITY)],
            &[v(-1.5f32), v(0.0f32), v(1e9f32)],
        ];
        for values in ascending {
            for (i, left) in values.iter().enumerate() {
                for (j, right) in values.iter().enumerate() {
                    let holds = |with: fn(Value) -> Comparison| with(right.clone()).holds(Some(left));
                    assert_eq!(holds(Comparison::Equals), Some(i == j), "{left:?} = {right:?}");
                    assert_eq!(holds(Comparison::NotEquals), Some(i != j), "{left:?} != {right:?}");
                    assert_eq!(holds(Comparison::Less), Some(i < j), "{left:?} < {right:?}");
                    assert_eq!(holds(Comparison::LessOrEqual), Some(i <= j), "{left:?} <= {right:?}");
                    assert_eq!(holds(Comparison::Greater), Some(i > j), "{left:?} > {right:?}");
                    assert_eq!(holds(Comparison::GreaterOrEqual), Some(i >= j), "{left:?} >= {right:?}");
                }
            }
        }
        assert_eq!(Comparison::StartsWith(v("ab")).holds(Some(&v("abc"))), Some(true));
        assert_eq!(Comparison::StartsWith(v("ab")).holds(Some(&v("a"))), Some(false));
        assert_eq!(Comparison::StartsWith(v(vec![1u8])).holds(Some(&v(vec![1u8, 2]))), Some(true));
    }

    #[test]
    fn a_negated_comparison_is_the_opposite_and_as_unknown() {
        let all = [
            Comparison::Equals(v(1)),
            Comparison::Less(v(1)),
            Comparison::LessOrEqual(v(1)),
            Comparison::Greater(Element::Nil),
            Comparison::IsNull,
        ];
        for comparison in all {
            let negated = comparison.negated().unwrap();
            assert_eq!(negated.negated(), Some(comparison.clone()));
            for value in [None, Some(v(0)), Some(v(1)), Some(v(2))] {
                let (is, not) = (comparison.holds(value.as_ref()), negated.holds(value.as_ref()));
                assert_eq!(is.map(|is| !is), not, "{comparison} on {value:?}");
            }
        }
    }
}
