//! Families of labels that are easily confused: a text and a longer text that begins with it; the integer 1,
//! the text "1" and the float 1.0; the zeros; NaN; nil and the empty text; integers on both sides of where
//! the tuple layer needs another byte; texts and bytes beyond what is often taken for their end; long labels
//! that fill several batches of a range read; and labels nested as deep as they may be, or deeper.

use foundationdb_tuple::Element;
use proptest::{
    sample::select,
    strategy::{BoxedStrategy, Strategy},
};
use serde::{Deserialize, Serialize};
use shaketable_layers::label::Label;
use shaketable_sim::seed::Stream;
use shaketable_tx::{limits::TooLarge, nesting::MAX_DEPTH};

/// A label, as plain data: its family, and its number there.
pub type Which = (u8, u8);

const LONG: u8 = 5;
const DEEP: u8 = 6;
const OVERSIZE: u8 = 7;

/// How deep the members of the family of nested labels are nested: at the limit, on both sides of it, and
/// less. A reader could not unpack what is nested deeper than the limit.
const DEPTHS: [usize; 6] = [1, MAX_DEPTH, MAX_DEPTH - 1, MAX_DEPTH + 1, 2, MAX_DEPTH + 2];

/// The labels that a run draws from: the first members of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Family {
    family: u8,
    members: u8,
}

impl Family {
    /// Draws a family, and how many of its members there are.
    pub fn draw(rng: &mut Stream) -> Family {
        Family { family: rng.below(u64::from(OVERSIZE)) as u8, members: rng.range(2..7) as u8 }
    }

    /// The members.
    pub fn all(self) -> Vec<Which> {
        (0..self.members).map(|member| (self.family, member)).collect()
    }

    /// One of them.
    pub fn one(self) -> BoxedStrategy<Which> {
        select(self.all()).boxed()
    }

    /// A label that fits into no key.
    pub fn oversize() -> Which {
        (OVERSIZE, 0)
    }
}

/// The label.
pub fn label(which: Which) -> Label {
    match which {
        (0, 0) => "a".into(),
        (0, 1) => "ab".into(),
        (0, 2) => "a\0b".into(),
        (0, 3) => "".into(),
        (0, 4) => Label::nil(),
        (0, _) => (&b"a"[..]).into(),
        (1, 0) => 1.into(),
        (1, 1) => "1".into(),
        (1, 2) => 1.0.into(),
        (1, 3) => 1.0f32.into(),
        (1, 4) => true.into(),
        (1, _) => (&b"1"[..]).into(),
        (2, 0) => (-0.0).into(),
        (2, 1) => 0.0.into(),
        (2, 2) => f64::NAN.into(),
        (2, 3) => (-f64::NAN).into(),
        (2, 4) => 0.into(),
        (2, _) => false.into(),
        (3, 0) => 255.into(),
        (3, 1) => 256.into(),
        (3, 2) => (-1).into(),
        (3, 3) => i64::MIN.into(),
        (3, 4) => (&b"\xff\x00\xff"[..]).into(),
        (3, _) => Label::tuple(&["a".into(), Label::nil()]),
        (4, 0) => "a".into(),
        (4, 1) => "a\u{10ffff}".into(),
        (4, 2) => "a\u{ffff}".into(),
        (4, 3) => (&b"a\xff"[..]).into(),
        (4, 4) => (&b"\xff\xff"[..]).into(),
        (4, _) => "\u{10ffff}".into(),
        (DEEP, member) => {
            let depth = DEPTHS[usize::from(member) % DEPTHS.len()];
            (0..depth).fold("x".into(), |inner, _| Label::tuple(&[inner]))
        }
        (LONG, member) => format!("{}{member}", "long".repeat(400)).as_str().into(),
        _ => "long".repeat(2_500).as_str().into(),
    }
}

/// Refuses a label that is nested deeper than it may be.
pub fn unpacks(label: &Label) -> Result<(), TooLarge> {
    // Each opens with one byte, and there is none of these in a label's other parts.
    let depth = label.packed().iter().take_while(|byte| **byte == OPENING).count();
    if depth > MAX_DEPTH { Err(TooLarge::Depth { limit: MAX_DEPTH }) } else { Ok(()) }
}

/// The byte with which a nested tuple begins.
const OPENING: u8 = 5;

/// An integer as its digits, for planted bugs that store labels without their types.
pub fn digits(label: &Label) -> Label {
    match label.to::<Element<'_>>() {
        Some(Element::Int(n)) => n.to_string().into(),
        _ => label.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_labels_of_a_family_differ_and_one_is_too_long() {
        let families = (0..OVERSIZE).map(|family| Family { family, members: 6 });
        let labels: Vec<BTreeSet<Label>> =
            families.map(|family| family.all().into_iter().map(label).collect()).collect();
        assert!(labels.iter().all(|family| family.len() == 6));
        assert!(labels.iter().flatten().all(|label| label.packed().len() < 5_000));
        assert!(label(Family::oversize()).packed().len() > shaketable_tx::KEY_SIZE_LIMIT);
    }
}
