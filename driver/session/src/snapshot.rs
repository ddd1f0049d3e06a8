//! The data of a cluster as text, to begin another cluster with: a fixture that is made once.
//!
//! ```text
//! shaketable snapshot 1
//! \x15\x07name some\x20text
//! rows 1
//! ```
//!
//! A line is a key and its value, with a space between them. A byte that is no visible ASCII character, and
//! the backslash, is written as `\x` and two hexadecimal digits. Keys ascend; the last line counts the rows,
//! so that a file that is not whole is noticed. Versions are not part of the data: those of the new cluster
//! begin anew, and versionstamps in the data may be greater.

use bytes::Bytes;
use futures::channel::oneshot;
use parking_lot::Mutex;
use shaketable_sim::{
    client::SimDatabase,
    cluster::Cluster,
    ids::{ClientId, Endpoint},
    world::{Class, World},
};
use shaketable_tx::{Database, KEY_SIZE_LIMIT, KeyValue, Result, Transaction, VALUE_SIZE_LIMIT};
use std::{collections::BTreeMap, fmt::Write, sync::Arc};

/// The rows of a cluster, without those of the system, in ascending order.
pub type Rows = Vec<KeyValue>;

/// How the first line begins, and its version.
const HEAD: &str = "shaketable snapshot ";
const VERSION: &str = "1";

/// A transaction that restores rows writes about this many bytes, and this many rows, at most.
const BYTES_AT_ONCE: usize = 500_000;
const ROWS_AT_ONCE: usize = 5_000;

/// The client that restores the rows: the number that no database handle has.
pub const RESTORER: ClientId = ClientId(u16::MAX);

/// The rows as text.
pub fn write(rows: &[KeyValue]) -> String {
    let mut text = format!("{HEAD}{VERSION}\n");
    for row in rows {
        escape(&row.key, &mut text);
        text.push(' ');
        escape(&row.value, &mut text);
        text.push('\n');
    }
    text + &format!("rows {}\n", rows.len())
}

/// The rows of a text. The error is a sentence fragment.
pub fn read(text: &str) -> std::result::Result<Rows, String> {
    let Some((version, lines)) = text.strip_prefix(HEAD).and_then(|text| text.split_once('\n')) else {
        return Err(format!("it is no snapshot: its first line is not \"{HEAD}{VERSION}\""));
    };
    if version != VERSION {
        return Err(format!("it is a snapshot of version {version:?}; this program reads version {VERSION}"));
    }
    let mut rows = Rows::new();
    let Some((lines, last)) =
        lines.strip_suffix('\n').map(|lines| lines.rsplit_once('\n').unwrap_or(("", lines)))
    else {
        return Err("it is not whole: its last line has no end".to_owned());
    };
    for (number, line) in (2..).zip(lines.lines()) {
        let row = line.split_once(' ').and_then(|(key, value)| Some((unescape(key)?, unescape(value)?)));
        let Some((key, value)) = row else { return Err(format!("line {number} is no row")) };
        if key.len() > KEY_SIZE_LIMIT || value.len() > VALUE_SIZE_LIMIT {
            return Err(format!("line {number} has a key or a value that FoundationDB refuses as too long"));
        }
        if key.starts_with(b"\xff") {
            return Err(format!("line {number} has a key of the system"));
        }
        if rows.last().is_some_and(|before| before.key >= key) {
            return Err(format!("the key of line {number} is not after the one before"));
        }
        rows.push(KeyValue { key, value });
    }
    match last == format!("rows {}", rows.len()) {
        true => Ok(rows),
        false => Err(format!("it is not whole: it has {} rows, and ends with {last:?}", rows.len())),
    }
}

fn escape(bytes: &[u8], text: &mut String) {
    for byte in bytes {
        match byte {
            b'\\' => text.push_str("\\x5c"),
            0x21..0x7f => text.push(char::from(*byte)),
            // Writing to a string cannot fail.
            _ => drop(write!(text, "\\x{byte:02x}")),
        }
    }
}

fn unescape(word: &str) -> Option<Bytes> {
    let mut bytes = Vec::with_capacity(word.len());
    let mut left = word.as_bytes();
    while let [first, others @ ..] = left {
        left = match (first, others) {
            (b'\\', [b'x', high, low, others @ ..]) => {
                let digit = |digit: &u8| char::from(*digit).to_digit(16);
                bytes.push((digit(high)? * 16 + digit(low)?) as u8);
                others
            }
            (0x21..0x7f, _) if *first != b'\\' => {
                bytes.push(*first);
                others
            }
            _ => return None,
        };
    }
    Some(bytes.into())
}

/// The rows of a cluster that has settled.
pub(crate) fn rows(cluster: &Cluster) -> Rows {
    let replicas = cluster.final_state();
    let rows = replicas.iter().flat_map(|replica| &replica.rows).filter(|(key, _)| !key.starts_with(b"\xff"));
    // Each is in several replicas.
    let rows: BTreeMap<&Bytes, &Bytes> = rows.map(|(key, value)| (key, value)).collect();
    rows.into_iter().map(|(key, value)| KeyValue { key: key.clone(), value: value.clone() }).collect()
}

/// Writes rows into a cluster on which no fault strikes yet.
pub(crate) async fn restore(world: &Arc<World>, controller: Endpoint, rows: Arc<Rows>) {
    let (sender, is_done) = oneshot::channel();
    let sender = Arc::new(Mutex::new(Some(sender)));
    world.add_machine(Class::Observer, "restore", move |world, node| {
        let (rows, sender) = (rows.clone(), sender.clone());
        async move {
            let db = SimDatabase::new(world, node, RESTORER, controller);
            // No fault strikes yet, and the rows are legal: what fails here is the simulator.
            fill(&db, &rows).await.expect("a calm cluster takes legal rows");
            // The receiver waits below.
            let _ = sender.lock().take().map(|sender| sender.send(()));
        }
    });
    // The machine is never killed, so it sends.
    let _ = is_done.await;
}

async fn fill(db: &SimDatabase, mut rows: &[KeyValue]) -> Result<()> {
    while !rows.is_empty() {
        let mut bytes = 0;
        let count = rows.iter().take(ROWS_AT_ONCE).take_while(|row| {
            bytes += row.key.len() + row.value.len();
            bytes <= BYTES_AT_ONCE
        });
        let (part, others) = rows.split_at(count.count().max(1));
        let tx = db.create_transaction()?;
        loop {
            part.iter().for_each(|row| tx.set(&row.key, &row.value));
            match tx.commit().await {
                Ok(()) => break,
                Err(error) => tx.on_error(error).await?,
            }
        }
        rows = others;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: &[u8], value: &[u8]) -> KeyValue {
        KeyValue { key: Bytes::copy_from_slice(key), value: Bytes::copy_from_slice(value) }
    }

    #[test]
    fn every_byte_survives() {
        let all: Vec<u8> = (0..=255).collect();
        let mut rows = vec![row(b"", b""), row(b"\\x00", &all), row(b"a", b"some text")];
        rows.extend((0..0xff).map(|byte| row(&[b'b', byte], &[byte])));
        let text = write(&rows);
        assert!(text.is_ascii());
        assert_eq!(read(&text), Ok(rows));
        assert_eq!(read(&write(&[])), Ok(Rows::new()));
    }

    #[test]
    fn what_is_not_a_whole_snapshot_is_refused() {
        let text = write(&[row(b"a", b"1"), row(b"b", b"2")]);
        for end in 0..text.len() {
            assert!(read(&text[..end]).is_err(), "{:?}", &text[..end]);
        }
        let lines = |rows: &str, count: usize| read(&format!("{HEAD}{VERSION}\n{rows}rows {count}\n"));
        assert!(lines("a 1\nb 2\n", 2).is_ok());
        for (rows, count, why) in [
            ("a 1\n", 2, "it is not whole: it has 1 rows, and ends with \"rows 2\""),
            ("b 1\na 2\n", 2, "the key of line 3 is not after the one before"),
            ("a 1\na 2\n", 2, "the key of line 3 is not after the one before"),
            ("a\n", 1, "line 2 is no row"),
            ("a 1 2\n", 1, "line 2 is no row"),
            ("a \\x0g\n", 1, "line 2 is no row"),
            ("\\xff/conf 1\n", 1, "line 2 has a key of the system"),
        ] {
            assert_eq!(lines(rows, count), Err(why.to_owned()));
        }
        let long = lines(&format!("{} 1\n", "k".repeat(KEY_SIZE_LIMIT + 1)), 1);
        assert_eq!(long, Err("line 2 has a key or a value that FoundationDB refuses as too long".to_owned()));
    }
}
