//! The encodings that columns are drawn from, and for each encoding the parts that weaker encodings confuse
//! or displace.

use serde::{Deserialize, Serialize};
use shaketable_layers::encoding::{Collation, Column, Distinguishes, Part};
use shaketable_sim::seed::Stream;

/// The encodings that are drawn for a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Unsigned integers of this many bytes.
    Unsigned(u8),
    /// Signed integers of this many bytes.
    Signed(u8),
    /// Text by code point.
    Text,
    /// Text in the order of a language, which distinguishes only letters if true, and everything otherwise.
    English(bool),
    /// The same for another language.
    Swedish(bool),
    /// Floats of 32 bits.
    Single,
    /// Floats of 64 bits.
    Double,
}

impl Kind {
    /// Draws an encoding; integers have any width.
    pub(super) fn draw(rng: &mut Stream) -> Kind {
        let (bytes, letters) = (rng.range(1..9) as u8, rng.chance(0.5));
        *rng.pick(&[
            Kind::Unsigned(bytes),
            Kind::Unsigned(bytes),
            Kind::Signed(bytes),
            Kind::Signed(bytes),
            Kind::Text,
            Kind::Text,
            Kind::English(false),
            Kind::English(true),
            Kind::Swedish(letters),
            Kind::Single,
            Kind::Double,
        ])
    }

    pub(super) fn column(self) -> Column {
        let collated = |locale, letters| {
            let tells = if letters { Distinguishes::Letters } else { Distinguishes::Case };
            Column::Collated(Collation::new(locale, tells).expect("a known language"))
        };
        match self {
            Kind::Unsigned(bytes) => Column::Unsigned(bytes),
            Kind::Signed(bytes) => Column::Signed(bytes),
            Kind::Text => Column::Text,
            Kind::English(letters) => collated("en", letters),
            Kind::Swedish(letters) => collated("sv", letters),
            Kind::Single => Column::Single,
            Kind::Double => Column::Double,
        }
    }

    /// A part of the column's pool.
    pub(super) fn part(self, number: u8) -> Part {
        let (at, is_other) = (usize::from(number), number == POOL - 1);
        match self {
            Kind::Text | Kind::English(_) | Kind::Swedish(_) if is_other => Part::Signed(1),
            _ if is_other => "text".into(),
            Kind::Unsigned(bytes) => Part::Unsigned(unsigned(bytes)[at % 16]),
            Kind::Signed(bytes) => Part::Signed(signed(bytes)[at % 16]),
            Kind::Text | Kind::English(_) | Kind::Swedish(_) => TEXTS[at % TEXTS.len()].into(),
            Kind::Single => Part::Single(FLOATS[at % FLOATS.len()] as f32),
            Kind::Double => Part::Double(FLOATS[at % FLOATS.len()]),
        }
    }
}

/// Texts. The last two fit into few keys, and into none.
const TEXTS: [&str; 26] = [
    "",
    "a",
    "a\tb",
    "b\tc",
    "c",
    "a\0b",
    "ab",
    "Kings",
    "kings",
    "Königs",
    "Konigs",
    "Åsa",
    "Zulu",
    "zulu",
    "\u{ffff}",
    "\u{10000}",
    "é",
    "e\u{301}",
    "co-op",
    "coop",
    "\0",
    "a\0",
    "a\0\u{10ffff}",
    "\u{10ffff}",
    LARGE,
    TOO_LARGE,
];

/// Pairs of texts that some collation does not distinguish.
pub(super) const ALIKE: [(u8, u8); 8] =
    [(7, 8), (8, 10), (9, 10), (9, 7), (12, 13), (17, 16), (0, 20), (21, 1)];

const TOO_LARGE: &str = const {
    const BYTES: [u8; 10_000] = [b'x'; 10_000];
    match std::str::from_utf8(&BYTES) {
        Ok(text) => text,
        Err(_) => "",
    }
};

const LARGE: &str = TOO_LARGE.split_at(9_000).0;

const FLOATS: [f64; 14] = [
    -f64::NAN,
    f64::NEG_INFINITY,
    f64::MIN,
    -2.0,
    -1.0,
    -f64::MIN_POSITIVE / 4.0,
    -0.0,
    0.0,
    f64::MIN_POSITIVE,
    1.0,
    2.0,
    f64::MAX,
    f64::INFINITY,
    f64::NAN,
];

/// Unsigned integers for a column of this many bytes: the largest, the next one, and those on both sides of
/// where another byte is needed.
fn unsigned(bytes: u8) -> [u64; 16] {
    let most = u64::MAX >> (64 - 8 * u32::from(bytes));
    let [half, beyond] = [most / 2, most.saturating_add(1)];
    [0, 1, 9, 10, 127, 128, 255, 256, 65_535, 65_536, most - 1, half, half + 1, most, beyond, u64::MAX]
}

/// Signed integers for a column of this many bytes: the extremes, the next ones, and those on both sides of
/// where another byte is needed.
fn signed(bytes: u8) -> [i64; 16] {
    let most = i64::MAX >> (64 - 8 * u32::from(bytes));
    let (least, beyond, below) = (-most - 1, most.saturating_add(1), (-most - 1).saturating_sub(1));
    [0, 1, -1, -2, 10, 127, -128, 128, -129, -40_000, most, least, beyond, below, i64::MAX, i64::MIN]
}

/// The number of parts in a column's pool. The last one has the type of another column.
pub(super) const POOL: u8 = 27;

/// The collation of a comparison.
pub(super) fn collation(tells: u8) -> Collation {
    let tells = [Distinguishes::Letters, Distinguishes::Accents, Distinguishes::Case][usize::from(tells)];
    Collation::new("en", tells).expect("a known language")
}

/// A text of the pool.
pub(super) fn text(number: u8) -> &'static str {
    TEXTS[usize::from(number) % 24]
}

/// What a collation distinguishes of a text of the pool: base letters, accents and case, depending on
/// `tells`. It ignores zero bytes.
pub(super) fn seen(text: &str, tells: u8) -> String {
    let apart =
        text.replace('\0', "").replace('ö', "o\u{308}").replace('Å', "A\u{30a}").replace('é', "e\u{301}");
    let is_accent = |c: char| ('\u{300}'..'\u{370}').contains(&c);
    match tells {
        0 => apart.to_lowercase().replace(is_accent, ""),
        1 => apart.to_lowercase(),
        _ => apart,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable_layers::encoding::Error;

    #[test]
    fn texts_are_alike_exactly_if_their_collation_keys_are_equal() {
        for tells in 0..3 {
            let collation = collation(tells);
            for (a, b) in (0..24).flat_map(|a| (0..24).map(move |b| (text(a), text(b)))) {
                let alike = seen(a, tells) == seen(b, tells);
                assert_eq!(collation.key(a) == collation.key(b), alike, "{a:?} {b:?} {tells}");
            }
        }
    }

    #[test]
    fn pools_name_parts_that_fit_and_parts_that_do_not() {
        let widths = (1..=8).flat_map(|bytes| [Kind::Unsigned(bytes), Kind::Signed(bytes)]);
        let others = [Kind::Text, Kind::English(false), Kind::Swedish(true), Kind::Single, Kind::Double];
        for kind in widths.chain(others) {
            let column = kind.column();
            let encodes = |n| column.encode(&kind.part(n), &mut Vec::new());
            assert!((0..POOL - 1).any(|n| encodes(n).is_ok()), "{kind:?}");
            assert!(matches!(encodes(POOL - 1), Err(Error::WrongType { .. })), "{kind:?}");
        }
    }
}
