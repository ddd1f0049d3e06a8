//! Keys in readable form: as a tuple if the key is one, which most layers use, else as bytes.

use foundationdb_tuple::Element;
use shaketable_tx::{key_after, nesting};

/// A key: `("queue", 4)` if it is a packed tuple, otherwise its bytes, escaped.
pub fn show(key: &[u8]) -> String {
    let is_text = key.iter().all(|byte| matches!(byte, b' '..=b'~'));
    match nesting::unpack::<Vec<Element<'_>>>(key) {
        _ if key.is_empty() => "\"\"".to_owned(),
        Ok(items) if !is_text => tuple(&items),
        _ => key.escape_ascii().to_string(),
    }
}

/// A range of keys: one key, or its bounds.
pub fn show_range(begin: &[u8], end: &[u8]) -> String {
    match key_after(begin) == end {
        true => show(begin),
        false => format!("{} to {}", show(begin), show(end)),
    }
}

fn tuple(items: &[Element<'_>]) -> String {
    let items: Vec<_> = items.iter().map(item).collect();
    match &items[..] {
        [one] => format!("({one},)"),
        all => format!("({})", all.join(", ")),
    }
}

fn item(item: &Element<'_>) -> String {
    match item {
        Element::Nil => "null".to_owned(),
        Element::Bytes(bytes) => format!("b\"{}\"", bytes.escape_ascii()),
        Element::String(text) => format!("{text:?}"),
        Element::Int(number) => number.to_string(),
        Element::BigInt(number) => number.to_string(),
        Element::Float(number) => number.to_string(),
        Element::Double(number) => number.to_string(),
        Element::Bool(truth) => truth.to_string(),
        Element::Uuid(id) => id.to_string(),
        Element::Versionstamp(stamp) => format!("versionstamp {}", hexadecimal(stamp.as_bytes())),
        Element::Tuple(items) => tuple(items),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use foundationdb_tuple::{Versionstamp, pack};

    #[test]
    fn tuples_are_shown_as_their_items_and_other_keys_as_bytes() {
        assert_eq!(show(&pack(&("queue", 4))), r#"("queue", 4)"#);
        assert_eq!(show(&pack(&("a",))), r#"("a",)"#);
        assert_eq!(show(&pack(&(true, Option::<i64>::None, (-1.5, ())))), "(true, null, (-1.5, ()))");
        let stamp = Versionstamp::complete([7; 10], 1);
        assert_eq!(show(&pack(&(stamp,))), "(versionstamp 070707070707070707070001,)");
        assert_eq!(show(b"row1"), "row1");
        assert_eq!(show(b"\xff/SC/\x02"), r"\xff/SC/\x02");
        // The bytes of a versionstamp as well.
        assert_eq!(show(b"3twelve bytes"), "3twelve bytes");
        assert_eq!(show_range(b"", b"b"), "\"\" to b");
        assert_eq!(show_range(b"a", b"a\0"), "a");
        assert_eq!(show_range(&pack(&(1,)), &pack(&(2,))), "(1,) to (2,)");
    }
}
