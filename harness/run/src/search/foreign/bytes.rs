//! The test data: rows that a workload stored, damaged, and bytes that it would never write.
//!
//! Every second case iterates over the elements that are stored, in keys and in values, and replaces them
//! with each of a list of others: numbers at the limits, numbers in other encodings, tuples nested as deeply
//! as a key allows. The other cases are random. Among them are links: an element that also stands in keys
//! mostly names a row, and one that names another row makes a cycle of what must not have one.

use bytes::Bytes;
use foundationdb_tuple::pack;
use shaketable_sim::seed::Stream;
use shaketable_tx::{KEY_SIZE_LIMIT, KeyValue, VALUE_SIZE_LIMIT, nesting::first_length};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// A key and its value; `None` if the key is cleared.
#[derive(Clone)]
pub(super) struct Write {
    pub(super) key: Bytes,
    pub(super) value: Option<Bytes>,
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{} = {}", shown(&self.key), shown(value)),
            None => write!(f, "{} cleared", shown(&self.key)),
        }
    }
}

/// Bytes in printable form; only the first ones if there are many.
fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 120;
    let cut = &bytes[..bytes.len().min(MOST)];
    match cut.len() < bytes.len() {
        true => format!("\"{}\".. ({} bytes)", cut.escape_ascii(), bytes.len()),
        false => format!("\"{}\"", cut.escape_ascii()),
    }
}

/// A stored row: the prefix of its space, and the rest of its key, which mostly is a tuple.
#[derive(Clone)]
struct Row {
    space: Bytes,
    tuple: Bytes,
    value: Bytes,
}

impl Row {
    fn key(&self) -> Bytes {
        self.at(&self.tuple)
    }

    /// The key with this tuple.
    fn at(&self, tuple: &[u8]) -> Bytes {
        [&self.space, tuple].concat().into()
    }

    /// The elements of the value.
    fn values(&self) -> Vec<Vec<u8>> {
        // Eight bytes are a number for atomic addition, even if they could be a tuple.
        if self.value.len() == 8 { words(&self.value) } else { parts(&self.value) }
    }

    fn clear(&self) -> Write {
        Write { key: self.key(), value: None }
    }

    fn set(&self, value: Vec<u8>) -> Write {
        Write { key: self.key(), value: Some(value.into()) }
    }

    /// The same value at another key, and possibly no longer at its own.
    fn elsewhere(&self, tuple: Vec<u8>, draws: &mut Stream) -> Vec<Write> {
        let copy = Write { key: self.at(&tuple), value: Some(self.value.clone()) };
        if draws.chance(0.3) { vec![copy, self.clear()] } else { vec![copy] }
    }
}

/// Stored rows, and the ways to damage them.
pub(super) struct Damages {
    spaces: Vec<Bytes>,
    /// Grouped by kind of row: a thousand rows of one kind are damaged as often as a single row of another
    /// kind.
    kinds: Vec<Vec<Row>>,
    /// The replacements: the kind of the row, whether the element is in the key, its index, and the new
    /// element.
    places: Vec<(usize, bool, usize, Vec<u8>)>,
    links: Vec<Link>,
}

/// A place of rows whose elements name rows.
struct Link {
    rows: Vec<Row>,
    /// Whether it is in the key.
    is_key: bool,
    /// Its index.
    at: usize,
    /// The names: elements of keys.
    names: Vec<Vec<u8>>,
}

/// How many elements of a key or a value are replaced: a long value is no reason to leave others alone.
const MOST_PARTS: usize = 8;

impl Damages {
    /// The damages of `rows`, of which there is at least one.
    pub(super) fn new(rows: &[KeyValue]) -> Damages {
        let spaces = spaces(rows);
        let mut kinds: BTreeMap<_, Vec<Row>> = BTreeMap::new();
        for row in rows {
            let space = spaces.get(&group(&row.key)).cloned().unwrap_or_default();
            let row = Row { tuple: row.key.slice(space.len()..), space, value: row.value.clone() };
            kinds.entry(kind(&row)).or_default().push(row);
        }
        let kinds: Vec<Vec<Row>> = kinds.into_values().collect();
        let mut places = Vec::new();
        for (kind, rows) in kinds.iter().enumerate() {
            for (is_key, parts) in [(true, parts(&rows[0].tuple)), (false, rows[0].values())] {
                for (at, part) in parts.iter().enumerate().take(MOST_PARTS) {
                    places.extend(others(part).into_iter().map(|other| (kind, is_key, at, other)));
                }
            }
        }
        let links = links(&kinds.iter().flatten().collect::<Vec<_>>());
        Damages { spaces: spaces.into_values().collect(), kinds, places, links }
    }

    /// The writes of a case.
    pub(super) fn of(&self, case: u64, draws: &mut Stream) -> Vec<Write> {
        // A prime: consecutive cases are far apart, and all places are used in turn.
        const STEP: u64 = 7_919;
        let mut writes = match case % 4 {
            0 => self.any(draws),
            1 => self.link(draws),
            part => self.replaced(((case / 2 + part) * STEP) as usize % self.places.len().max(1), draws),
        };
        // A second damage may hide the first one.
        for _ in 0..if draws.chance(0.5) { 0 } else { draws.range(1..4) } {
            writes.extend(match draws.below(4) {
                0 => self.replaced(draws.index(self.places.len()), draws),
                1 => self.link(draws),
                _ => self.any(draws),
            });
        }
        // The system's keys must not be written.
        writes.retain(|write| write.key.first() != Some(&0xff));
        for write in &mut writes {
            write.key.truncate(KEY_SIZE_LIMIT);
            if let Some(value) = &mut write.value {
                value.truncate(VALUE_SIZE_LIMIT);
            }
        }
        writes
    }

    /// Replaces an element.
    fn replaced(&self, place: usize, draws: &mut Stream) -> Vec<Write> {
        let Some((kind, is_key, at, other)) = self.places.get(place) else { return self.any(draws) };
        let row = draws.pick(&self.kinds[*kind]);
        let mut parts = if *is_key { parts(&row.tuple) } else { row.values() };
        // A row of this kind may have fewer elements if its value has another type.
        if let Some(part) = parts.get_mut(*at) {
            *part = other.clone();
        }
        match is_key {
            true => row.elsewhere(parts.concat(), draws),
            false => vec![row.set(parts.concat())],
        }
    }

    /// Leads a row to another one, or to itself.
    fn link(&self, draws: &mut Stream) -> Vec<Write> {
        let (keys, values): (Vec<&Link>, Vec<&Link>) = self.links.iter().partition(|link| link.is_key);
        match draws.chance(0.7) {
            true if !values.is_empty() => draws.pick(&values).led_elsewhere(draws),
            _ if !keys.is_empty() => draws.pick(&keys).led_elsewhere(draws),
            _ => self.any(draws),
        }
    }

    /// Any damage: to one row, to two rows, or a new row.
    fn any(&self, draws: &mut Stream) -> Vec<Write> {
        let kind: &Vec<Row> = draws.pick(&self.kinds);
        let row = draws.pick(kind);
        match draws.below(12) {
            0 => vec![row.clear()],
            1..5 => {
                let kind = if draws.chance(0.7) { kind } else { draws.pick::<Vec<Row>>(&self.kinds) };
                let other = draws.pick(kind);
                let copied = row.set(other.value.to_vec());
                if draws.chance(0.5) { vec![copied, other.set(row.value.to_vec())] } else { vec![copied] }
            }
            5..7 => vec![row.set(changed(&row.value, draws))],
            7..9 => vec![row.set(mostly_invalid(draws))],
            9 => row.elsewhere(changed(&row.tuple, draws), draws),
            10 if !row.tuple.is_empty() => {
                let mut parts = parts(&row.tuple);
                let at = draws.index(parts.len());
                match draws.below(5) {
                    0 => drop(parts.splice(at..=at, [])),
                    1 => parts.insert(at, parts[at].clone()),
                    // The same row, at another key.
                    2 | 3 => parts[at] = padded(&parts[at]),
                    _ => parts.insert(at, element(draws)),
                }
                row.elsewhere(parts.concat(), draws)
            }
            _ => {
                let key = [&draws.pick(&self.spaces)[..], &tuple(draws)].concat();
                let value = if draws.chance(0.5) { tuple(draws) } else { mostly_invalid(draws) };
                vec![Write { key: key.into(), value: Some(value.into()) }]
            }
        }
    }
}

impl Link {
    /// A row that names another one, or itself.
    fn led_elsewhere(&self, draws: &mut Stream) -> Vec<Write> {
        let row = draws.pick(&self.rows);
        let own: Vec<_> = parts(&row.tuple).into_iter().filter(|part| self.names.contains(part)).collect();
        let name =
            if !own.is_empty() && draws.chance(0.3) { draws.pick(&own) } else { draws.pick(&self.names) };
        let mut parts = if self.is_key { parts(&row.tuple) } else { row.values() };
        match parts.get_mut(self.at) {
            Some(part) => part.clone_from(name),
            // It names none, as the last row of a chain.
            None => parts.push(name.clone()),
        }
        match self.is_key {
            true => row.elsewhere(parts.concat(), draws),
            false => vec![row.set(parts.concat())],
        }
    }
}

/// The places of which an element also stands in a place of keys that distinguishes rows.
fn links(rows: &[&Row]) -> Vec<Link> {
    // Rows with names of other types are alike here, and so are those that end with a text of their own.
    let alike = rows.iter().map(|row| {
        let (space, first, codes, last) = kind(row);
        ((space, first, codes.len()), last)
    });
    let mut columns: BTreeMap<_, Vec<&Row>> = BTreeMap::new();
    for (column, row) in alike.zip(rows) {
        columns.entry(column).or_default().push(row);
    }
    let mut merged: BTreeMap<_, Vec<&Row>> = BTreeMap::new();
    for ((alike, last), rows) in columns {
        let last = if rows.len() > 1 { last } else { Vec::new() };
        merged.entry((alike, last)).or_default().extend(rows);
    }
    let columns: Vec<Vec<&Row>> = merged.into_values().collect();
    let mut places: BTreeMap<_, BTreeSet<Vec<u8>>> = BTreeMap::new();
    for (column, rows) in columns.iter().enumerate() {
        for row in rows {
            for (is_key, parts) in [(true, parts(&row.tuple)), (false, row.values())] {
                for (at, part) in parts.into_iter().enumerate().take(MOST_PARTS) {
                    places.entry((column, is_key, at)).or_default().insert(part);
                }
            }
        }
    }
    let naming = |((_, is_key, _), names): &(&(usize, bool, usize), &BTreeSet<_>)| *is_key && names.len() > 1;
    let naming: Vec<_> = places.iter().filter(naming).collect();
    let link = |(place, elements): (&(usize, bool, usize), &BTreeSet<Vec<u8>>)| {
        let named = naming.iter().filter(|(other, names)| *other != place && !names.is_disjoint(elements));
        let names: BTreeSet<Vec<u8>> = named.flat_map(|(_, names)| *names).cloned().collect();
        let (column, is_key, at) = *place;
        let rows = columns[column].iter().copied().cloned().collect();
        (!names.is_empty()).then(|| Link { rows, is_key, at, names: names.into_iter().collect() })
    };
    places.iter().filter_map(link).collect()
}

/// What the keys of a space have in common: the first element of a tuple. All other keys are one group.
fn group(key: &[u8]) -> Vec<u8> {
    elements(key).map_or_else(Vec::new, |elements| elements[0].clone())
}

/// The spaces of rows, by group: the longest prefix of all keys, in whole elements if they are tuples, that
/// leaves something of each.
fn spaces(rows: &[KeyValue]) -> BTreeMap<Vec<u8>, Bytes> {
    let mut groups: BTreeMap<Vec<u8>, Vec<&Bytes>> = BTreeMap::new();
    for row in rows {
        groups.entry(group(&row.key)).or_default().push(&row.key);
    }
    let space = |keys: Vec<&Bytes>| {
        let first = keys[0];
        let common = |key: &&Bytes| {
            let same = first.iter().zip(key.iter()).take_while(|(a, b)| a == b).count();
            same.min(key.len().saturating_sub(1))
        };
        let common = keys.iter().map(common).min().unwrap_or(0);
        let whole = elements(first).map_or(common, |elements| {
            let ends = elements.iter().scan(0, |end, element| {
                *end += element.len();
                Some(*end)
            });
            ends.take_while(|end| *end <= common).last().unwrap_or(0)
        });
        first.slice(..whole)
    };
    groups.into_iter().map(|(group, keys)| (group, space(keys))).collect()
}

/// The kind of a row: its space, the types of its elements, the first element if it is a text or a small
/// number, by which most layers distinguish their rows, and the last one if it is a text, which often names
/// what the row has.
fn kind(row: &Row) -> (Bytes, Vec<u8>, Vec<u8>, Vec<u8>) {
    let mut parts = parts(&row.tuple);
    let code = |part: &Vec<u8>| part.first().map_or(0, |code| if is_integer(*code) { ZERO } else { *code });
    let codes = parts.iter().map(code).collect();
    let last = parts.pop_if(|last| last[0] == TEXT).unwrap_or_default();
    let tells = |first: &[u8]| first[0] == TEXT || (&[ZERO][..]..=&[ZERO + 1, 9]).contains(&first);
    if let Some(first) = parts.first_mut().filter(|first| !tells(first)) {
        first.truncate(1);
    }
    (row.space.clone(), parts.first().cloned().unwrap_or_default(), codes, last)
}

// Type codes of the tuple layer's specification (design/tuple.md).
const BYTES: u8 = 0x01;
const TEXT: u8 = 0x02;
const NESTED: u8 = 0x05;
const ZERO: u8 = 0x14;
const STAMP: u8 = 0x33;

fn is_integer(code: u8) -> bool {
    (0x0b..=0x1d).contains(&code)
}

/// The elements of a packed tuple with at least one; `None` for anything else.
fn elements(packed: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut parts, mut rest) = (Vec::new(), packed);
    while let Some(length) = first_length(rest).filter(|length| *length <= rest.len()) {
        let (first, behind) = rest.split_at(length);
        parts.push(first.to_vec());
        rest = behind;
    }
    (rest.is_empty() && !parts.is_empty()).then_some(parts)
}

/// The elements of a packed tuple; of anything else, its words.
fn parts(packed: &[u8]) -> Vec<Vec<u8>> {
    elements(packed).unwrap_or_else(|| words(packed))
}

/// Numbers of eight bytes, after one byte if the length is not a multiple of eight.
fn words(bytes: &[u8]) -> Vec<Vec<u8>> {
    let (byte, words) = bytes.split_at(bytes.len().min(usize::from(!bytes.len().is_multiple_of(8))));
    [byte].into_iter().chain(words.chunks(8)).map(<[u8]>::to_vec).filter(|part| !part.is_empty()).collect()
}

/// The possible replacements of an element.
fn others(part: &[u8]) -> Vec<Vec<u8>> {
    let words = |word: u64| [word.to_le_bytes().to_vec(), word.to_be_bytes().to_vec()];
    let mut others = match part.first() {
        _ if part.len() == 8 && first_length(part) != Some(8) => {
            [0, 1, 1 << 40, i64::MAX as u64, 1 << 63, u64::MAX].map(words).concat()
        }
        Some(code) if is_integer(*code) => {
            let signed = [0, 1, 2, -1, u32::MAX.into(), i64::MAX / 2, i64::MAX - 1, i64::MAX, i64::MIN];
            let unsigned = [u64::MAX - 1, u64::MAX];
            let written = signed.iter().map(pack).chain(unsigned.iter().map(pack));
            written.chain([padded(part), padded(&pack(&-1)), vec![0x1d, 0]]).collect()
        }
        Some(&BYTES) => [vec![], vec![0xffu8; 16], vec![0; 17], vec![0; 9_000]].iter().map(pack).collect(),
        Some(&TEXT) => ["", "\0", "next", "\u{10ffff}"].map(|text| pack(&text)).to_vec(),
        Some(&STAMP) => [[0xff; 12], [0; 12], [1; 12]].map(|stamp| [&[STAMP], &stamp[..]].concat()).to_vec(),
        _ => Vec::new(),
    };
    others.extend([
        vec![NESTED; 9_980],
        vec![NESTED; 200],
        pack(&None::<()>),
        pack(&0),
        pack(&""),
        Vec::new(),
    ]);
    others
}

/// An integer in the maximum number of bytes: the same number under another key.
fn padded(integer: &[u8]) -> Vec<u8> {
    match integer {
        [code @ ZERO..=0x1b, bytes @ ..] => {
            let zeros = vec![0; 8 - usize::from(code - ZERO)];
            [&[ZERO + 8], &zeros[..], bytes].concat()
        }
        [code @ 0x0d..ZERO, bytes @ ..] => {
            let ones = vec![0xff; 8 - usize::from(ZERO - code)];
            [&[ZERO - 8], &ones[..], bytes].concat()
        }
        other => other.to_vec(),
    }
}

/// Bytes that are truncated, extended, or changed at one position.
fn changed(bytes: &[u8], draws: &mut Stream) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let at = draws.index(bytes.len() + 1);
    match draws.below(5) {
        0 => bytes.truncate(at),
        1 => bytes.extend(mostly_invalid(draws)),
        2 => bytes.extend(element(draws)),
        3 => drop(bytes.splice(at..at, mostly_invalid(draws).into_iter().take(300))),
        _ => match bytes.get_mut(at) {
            Some(byte) => *byte = draws.u64() as u8,
            None => bytes.push(draws.u64() as u8),
        },
    }
    bytes
}

/// A packed tuple of a few elements.
fn tuple(draws: &mut Stream) -> Vec<u8> {
    (0..draws.below(5)).flat_map(|_| element(draws)).collect()
}

/// A packed element, or the apparent beginning of one.
fn element(draws: &mut Stream) -> Vec<u8> {
    let like = *draws.pick(&[&[ZERO][..], &[ZERO], &[BYTES, 0], &[TEXT, 0], &[STAMP; 13], &[0x26]]);
    match draws.below(6) {
        0 => pack(draws.pick(&[f64::NAN, -0.0, 1.5])),
        1 => pack(&((1, "a", None::<()>), Vec::<i64>::new())),
        // Invalid text; integers that are cut off, and too long ones.
        2 => draws
            .pick(&[&[TEXT, 0xff, 0][..], &[0x1d, 0xff], &[0x0b, 0], &[0x1d, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9]])
            .to_vec(),
        _ => draws.pick(&others(like)).clone(),
    }
}

/// Bytes that are mostly not a tuple.
fn mostly_invalid(draws: &mut Stream) -> Vec<u8> {
    let length = *draws.pick(&[1, 7, 8, 9, 26, 200, 9_980, 100_000]);
    match draws.below(6) {
        0 => Vec::new(),
        1 => vec![0x00; length],
        2 => vec![0xff; length],
        3 => vec![NESTED; length],
        4 => element(draws),
        _ => {
            let mut bytes = vec![0; length.min(200)];
            draws.fill(&mut bytes);
            bytes
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable_sim::seed::Seed;

    #[test]
    fn spaces_are_what_keys_begin_with() {
        let row = |key: &[u8]| KeyValue { key: Bytes::copy_from_slice(key), value: Bytes::new() };
        let keys = [
            pack(&("a", 1, "x")),
            pack(&("a", 1, "y", 2)),
            pack(&("b", 7)),
            pack(&("c",)),
            b"rows/1".to_vec(),
            b"rows/20".to_vec(),
        ];
        let found = spaces(&keys.iter().map(|key| row(key)).collect::<Vec<_>>());
        let found: Vec<&[u8]> = found.values().map(|space| &space[..]).collect();
        assert_eq!(found, [b"rows/", &pack(&("a", 1))[..], &pack(&("b",)), b""]);
    }

    #[test]
    fn rows_that_name_rows_come_to_name_themselves() {
        let row = |key: Vec<u8>, value: Vec<u8>| KeyValue { key: key.into(), value: value.into() };
        let mut rows = vec![row(pack(&("list", "head")), pack(&"a"))];
        for (id, next) in [("a", pack(&"b")), ("b", pack(&"c")), ("c", Vec::new())] {
            rows.push(row(pack(&("list", "node", id)), b"value".to_vec()));
            rows.push(row(pack(&("list", "node", id, "next")), next));
        }
        let damages = Damages::new(&rows);
        let places: Vec<_> =
            damages.links.iter().map(|link| (link.is_key, link.at, link.rows.len())).collect();
        assert!(places.contains(&(false, 0, 1)) && places.contains(&(false, 0, 3)), "{places:?}");
        let mut draws = Seed(1).stream("links");
        let cycle = |(id, next): (&str, &str)| (pack(&("list", "node", id, "next")), pack(&next));
        let mut missing: BTreeSet<_> = [("a", "a"), ("b", "a"), ("c", "a"), ("c", "c")].map(cycle).into();
        for link in (0..100).flat_map(|case| damages.of(4 * case + 1, &mut draws)) {
            let value = link.value.unwrap_or_default();
            missing.remove(&(link.key.to_vec(), value.to_vec()));
        }
        assert!(missing.is_empty(), "{missing:?}");
    }
}
