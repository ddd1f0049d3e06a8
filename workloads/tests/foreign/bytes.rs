//! The bytes: what a layer has written, damaged, and what it would never write.

use bytes::Bytes;
use foundationdb_tuple::pack;
use shaketable_layers::{
    nesting::first_length,
    tx::{KEY_SIZE_LIMIT, KeyValue, VALUE_SIZE_LIMIT},
};
use shaketable_sim::seed::Stream;
use std::fmt;

/// A key, and the value that it gets; none where it is cleared.
#[derive(Clone)]
pub struct Write {
    pub key: Bytes,
    pub value: Option<Bytes>,
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{} = {}", shown(&self.key), shown(value)),
            None => write!(f, "{} cleared", shown(&self.key)),
        }
    }
}

/// Bytes for a person to read; of very many the first.
fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 120;
    let cut = &bytes[..bytes.len().min(MOST)];
    match cut.len() < bytes.len() {
        true => format!("\"{}\".. ({} bytes)", cut.escape_ascii(), bytes.len()),
        false => format!("\"{}\"", cut.escape_ascii()),
    }
}

/// How a row can be damaged.
#[derive(Clone, Copy)]
enum Kind {
    Cleared,
    AnothersValue,
    ValueChanged,
    ValueOdd,
    ValueElement,
    KeyChanged,
    KeyElement,
    NewKey,
}

/// The kinds, those more often that have more in them.
const KINDS: [Kind; 12] = [
    Kind::ValueElement,
    Kind::KeyElement,
    Kind::ValueChanged,
    Kind::AnothersValue,
    Kind::ValueElement,
    Kind::KeyChanged,
    Kind::NewKey,
    Kind::KeyElement,
    Kind::ValueElement,
    Kind::ValueOdd,
    Kind::Cleared,
    Kind::ValueChanged,
];

/// What to write over `rows`, which a layer has written below one of `spaces`. Of successive cases the first damage
/// is of each kind to each row in turn; there may be more, of any kind.
pub fn damages(case: u64, rows: &[KeyValue], spaces: &[Bytes], draws: &mut Stream) -> Vec<Write> {
    let case = case as usize;
    let (kind, row) = (KINDS[case % KINDS.len()], &rows[case / KINDS.len() % rows.len()]);
    let mut writes = damage(kind, row, rows, spaces, draws);
    for _ in 0..draws.below(3) {
        let (kind, row) = (*draws.pick(&KINDS), draws.pick(rows));
        writes.extend(damage(kind, row, rows, spaces, draws));
    }
    for write in &mut writes {
        write.key.truncate(KEY_SIZE_LIMIT);
        if let Some(value) = &mut write.value {
            value.truncate(VALUE_SIZE_LIMIT);
        }
    }
    writes
}

/// One damage: a row or two.
fn damage(kind: Kind, row: &KeyValue, rows: &[KeyValue], spaces: &[Bytes], draws: &mut Stream) -> Vec<Write> {
    let set = |key: &Bytes, value: Vec<u8>| Write { key: key.clone(), value: Some(value.into()) };
    let clear = || Write { key: row.key.clone(), value: None };
    let space = spaces.iter().filter(|space| row.key.starts_with(space)).max_by_key(|space| space.len());
    let (space, tuple) = row.key.split_at(space.map_or(0, |space| space.len()));
    let is_moved = draws.chance(0.3);
    let elsewhere = |tuple: Vec<u8>| {
        let copy = set(&[space, &tuple].concat().into(), row.value.to_vec());
        if is_moved { vec![copy, clear()] } else { vec![copy] }
    };
    match kind {
        Kind::Cleared => vec![clear()],
        Kind::AnothersValue => {
            let other = draws.pick(rows);
            let mut writes = vec![set(&row.key, other.value.to_vec())];
            if draws.chance(0.5) {
                writes.push(set(&other.key, row.value.to_vec()));
            }
            writes
        }
        Kind::ValueChanged => vec![set(&row.key, changed(&row.value, draws))],
        Kind::ValueOdd => vec![set(&row.key, odd(draws))],
        Kind::ValueElement => vec![set(&row.key, element_changed(&row.value, draws))],
        Kind::KeyChanged => elsewhere(changed(tuple, draws)),
        Kind::KeyElement => elsewhere(element_changed(tuple, draws)),
        Kind::NewKey => {
            let key = [&draws.pick(spaces)[..], &self::tuple(draws)].concat();
            let value = if draws.chance(0.5) { self::tuple(draws) } else { odd(draws) };
            vec![set(&key.into(), value)]
        }
    }
}

/// Bytes that are cut, longer, or have others in a place.
fn changed(bytes: &[u8], draws: &mut Stream) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let at = draws.index(bytes.len() + 1);
    match draws.below(8) {
        0 => bytes.truncate(at),
        1 => bytes.extend(odd(draws)),
        2 => bytes.extend(element(draws)),
        // Eight bytes that are a number, where there are eight.
        3..6 => {
            let number = word(draws);
            // Aligned, or behind a byte.
            let at = draws.index(bytes.len() / 8) * 8 + draws.index(2.min(bytes.len()));
            bytes.iter_mut().skip(at).zip(number).for_each(|(byte, new)| *byte = new);
        }
        6 => drop(bytes.splice(at..at, odd(draws).into_iter().take(300))),
        _ => match bytes.get_mut(at) {
            Some(byte) => *byte = draws.u64() as u8,
            None => bytes.push(draws.u64() as u8),
        },
    }
    bytes
}

/// A packed tuple of which one element is another, or is written otherwise; or lacks it, or has it twice.
fn element_changed(packed: &[u8], draws: &mut Stream) -> Vec<u8> {
    let (mut elements, mut rest) = (Vec::new(), packed);
    while let Some(length) = first_length(rest).filter(|length| *length <= rest.len()) {
        let (first, behind) = rest.split_at(length);
        elements.push(first.to_vec());
        rest = behind;
    }
    if elements.is_empty() {
        return changed(packed, draws);
    }
    let at = draws.index(elements.len());
    match draws.below(14) {
        0 => drop(elements.remove(at)),
        1 => elements.insert(at, elements[at].clone()),
        2 => elements.insert(at, element(draws)),
        3..6 => elements[at] = padded(&elements[at]),
        6..12 => elements[at] = like(&elements[at], draws),
        _ => elements[at] = element(draws),
    }
    elements.push(rest.to_vec());
    elements.concat()
}

/// Another element of the same type.
fn like(other: &[u8], draws: &mut Stream) -> Vec<u8> {
    match other.first() {
        Some(0x01) => bytes(draws),
        Some(0x02) => text(draws),
        Some(0x0b..=0x1d) => integer(draws),
        Some(0x33) => stamp(draws),
        _ => element(draws),
    }
}

/// An integer in as many bytes as an integer may have: the same number under another key. Other elements stay.
fn padded(element: &[u8]) -> Vec<u8> {
    const ZERO: u8 = 0x14;
    match element {
        [code @ 0x14..=0x1b, bytes @ ..] => {
            let zeros = vec![0; 8 - usize::from(code - ZERO)];
            [&[ZERO + 8], &zeros[..], bytes].concat()
        }
        [code @ 0x0d..=0x13, bytes @ ..] => {
            let ones = vec![0xff; 8 - usize::from(ZERO - code)];
            [&[ZERO - 8], &ones[..], bytes].concat()
        }
        other => other.to_vec(),
    }
}

/// A number where numbers end, as eight bytes of either order.
fn word(draws: &mut Stream) -> [u8; 8] {
    let number =
        *draws.pick(&[0, 1, u64::MAX, u64::MAX - 1, i64::MAX as u64, i64::MAX as u64 - 1, 1 << 63, 1 << 40]);
    if draws.chance(0.5) { number.to_le_bytes() } else { number.to_be_bytes() }
}

/// A packed tuple of a few elements.
fn tuple(draws: &mut Stream) -> Vec<u8> {
    (0..draws.below(5)).flat_map(|_| element(draws)).collect()
}

/// A packed element, or what looks like the beginning of one.
fn element(draws: &mut Stream) -> Vec<u8> {
    match draws.below(12) {
        0..4 => integer(draws),
        4 => padded(&integer(draws)),
        5..7 => bytes(draws),
        7 => text(draws),
        8 => stamp(draws),
        9 => vec![0x05; *draws.pick(&[1, 128, 2_000, 9_980])],
        // Long integers: of no bytes, of bytes that are not there, of too many.
        10 => draws
            .pick(&[
                &[0x1d, 0][..],
                &[0x1d, 0xff],
                &[0x0b, 0xff],
                &[0x0b, 0],
                &[0x1d, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9],
            ])
            .to_vec(),
        _ => match draws.below(5) {
            0 => pack(&None::<()>),
            1 => pack(&draws.chance(0.5)),
            2 => pack(&f64::NAN),
            3 => pack(&1.5f32),
            _ => pack(&((1, "a", None::<()>), Vec::<i64>::new())),
        },
    }
}

/// A packed integer, mostly one where integers end.
fn integer(draws: &mut Stream) -> Vec<u8> {
    let unsigned = [u64::MAX, u64::MAX, u64::MAX - 1, 1 << 63, 1 << 40];
    let signed = [i64::MAX, i64::MAX, i64::MAX - 1, i64::MAX / 2, i64::MIN, i64::MIN + 1];
    let small = [0, 1, 2, 3, -1, -2, -3, 255];
    match draws.below(3) {
        0 => pack(draws.pick(&unsigned)),
        1 => pack(draws.pick(&signed)),
        _ => pack(draws.pick(&small)),
    }
}

/// A packed string of bytes.
fn bytes(draws: &mut Stream) -> Vec<u8> {
    let mut bytes = vec![0; *draws.pick(&[0, 1, 16, 17, 9_000])];
    match draws.below(3) {
        0 => bytes.fill(0xff),
        1 => draws.fill(&mut bytes),
        _ => {}
    }
    pack(&bytes)
}

/// A packed text, or what is none.
fn text(draws: &mut Stream) -> Vec<u8> {
    match draws.chance(0.9) {
        true => pack(draws.pick(&["", "a", "a\0", "head", "next", "node", "é", "\u{10ffff}"])),
        false => vec![0x02, 0xff, 0xfe, 0x00],
    }
}

/// A versionstamp: incomplete, with a user's version, cut off.
fn stamp(draws: &mut Stream) -> Vec<u8> {
    let mut stamp = [&[0x33][..], &draws.pick(&[[0xff; 12], [0; 12], [1; 12]])[..]].concat();
    stamp.truncate(if draws.chance(0.8) { 13 } else { draws.range(1..13) as usize });
    stamp
}

/// Bytes that are no tuple, but now and then.
fn odd(draws: &mut Stream) -> Vec<u8> {
    let length = *draws.pick(&[1, 7, 8, 9, 26, 200, 9_980, 100_000]);
    match draws.below(7) {
        0 => Vec::new(),
        1 => vec![0x00; length],
        2 => vec![0xff; length],
        3 => vec![0x05; length],
        4 => word(draws).to_vec(),
        5 => element(draws),
        _ => {
            let mut bytes = vec![0; length.min(200)];
            draws.fill(&mut bytes);
            bytes
        }
    }
}
