//! What needs a fault.

use super::{Claim, claim, open};
use opendal::{
    ErrorKind, Operator,
    layers::{RetryEvent, RetryLayer},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

/// Writes until the write is acknowledged.
async fn write(op: &Operator, path: &str, contents: &str) {
    while op.write(path, contents.to_owned()).await.is_err() {}
}

/// Asks for a file that is there. Nobody deletes it.
pub async fn exists() -> Claim {
    let op = open();
    write(&op, "file", "contents").await;
    for n in 1..=100 {
        match op.exists("file").await {
            Ok(there) => {
                claim(there, || format!("question {n}: file does not exist, and nobody deleted it"))?
            }
            // An error is an answer that keeps the promise.
            Err(error) => claim(error.kind() != ErrorKind::NotFound, || error.to_string())?,
        }
    }
    Ok("it exists".into())
}

/// Adds lines to a file, one after the other, as one does where appending is not supported. Nobody else
/// writes. A line whose write fails is added again, unless it is there.
pub async fn append() -> Claim {
    const LINES: usize = 40;
    let op = open();
    write(&op, "log", "").await;
    let text = async || loop {
        match op.read("log").await {
            Ok(read) => return String::from_utf8_lossy(&read.to_vec()).into_owned(),
            // A new file begins.
            Err(error) if error.kind() == ErrorKind::NotFound => return String::new(),
            Err(_) => {}
        }
    };
    for n in 0..LINES {
        let line = format!("line {n}\n");
        loop {
            let text = text().await;
            if text.contains(&line) || op.write("log", text + &line).await.is_ok() {
                break;
            }
        }
    }
    let db = foundationdb::Database::default().map_err(|error| error.to_string())?;
    let log = db.run(|tr, _| async move { Ok(tr.get(b"log", false).await?) }).await;
    let log = log.map_err(|error| error.to_string())?;
    let found = String::from_utf8_lossy(log.as_deref().unwrap_or_default()).lines().count();
    claim(found == LINES, || format!("{LINES} lines were added, and the file has {found}"))?;
    Ok("all lines are there".into())
}

/// Writes one file again and again, with OpenDAL's retries. Each write has the same contents.
pub async fn retry() -> Claim {
    let retries = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&retries);
    let layer = RetryLayer::new().with_max_times(1000).with_min_delay(Duration::from_millis(1));
    let layer = layer.with_max_delay(Duration::from_millis(1)).with_notify(move |_: RetryEvent<'_>| {
        counted.fetch_add(1, Relaxed);
    });
    let op = open().layer(layer);
    for n in 1..=100 {
        if let Err(error) = op.write("file", "contents").await {
            let (message, retries) = (error.message(), retries.load(Relaxed));
            return Err(format!("write {n} fails with {message} after {retries} retries"));
        }
    }
    Ok("all were written".into())
}
