//! What needs no fault.

use super::{Claim, claim, open};
use futures::future;
use opendal::{ErrorKind, Operator};

/// An operation that the service does not offer is refused, and changes nothing.
pub async fn unsupported() -> Claim {
    let op = open();
    op.write("file", "old").await.map_err(|error| error.to_string())?;
    let refused = [
        ("if_not_exists", op.write_with("file", "new").if_not_exists(true).await.map(drop)),
        ("if_match", op.write_with("file", "new").if_match("old").await.map(drop)),
        ("append", op.write_with("file", "new").append(true).await.map(drop)),
        ("list", op.list("").await.map(drop)),
        ("delete recursively", op.delete_with("").recursive(true).await),
        ("copy", op.copy("file", "copy").await.map(drop)),
        ("rename", op.rename("file", "other").await),
        ("create_dir", op.create_dir("folder/").await),
        ("check", op.check().await),
    ];
    for (name, answer) in refused {
        let refused = answer.as_ref().is_err_and(|error| error.kind() == ErrorKind::Unsupported);
        claim(refused, || format!("{name} is not refused: {answer:?}"))?;
    }
    let read = op.read("file").await.map_err(|error| error.to_string())?;
    claim(read.to_vec() == b"old", || "a refused operation has changed the file".into())?;
    for path in ["copy", "other", "folder/"] {
        claim(!op.exists(path).await.map_err(|error| error.to_string())?, || format!("{path} is there"))?;
    }
    Ok("all refused".into())
}

/// Values have up to 100,000 bytes and keys up to 10,000; beyond that is an error, and nothing is written.
pub async fn limits() -> Claim {
    let op = open();
    let long = "k".repeat(10_000);
    for (path, length, fits) in [
        ("file", 100_000, true),
        ("file", 100_001, false),
        (&*long, 100_000, true),
        (&*(long.clone() + "k"), 1, false),
        ("empty", 0, true),
    ] {
        let written = op.write(path, vec![7; length]).await;
        claim(written.is_ok() == fits, || format!("a write of {length} bytes says {written:?}"))?;
        let read = op.read(path).await.map(|read| read.len()).ok();
        let there = if fits { Some(length) } else { (path == "file").then_some(100_000) };
        claim(read == there, || format!("after a write of {length} bytes, {read:?} are there"))?;
    }
    // Deleting what is not there is no error.
    for path in ["empty", "empty", "never"] {
        op.delete(path).await.map_err(|error| error.to_string())?;
    }
    claim(!op.exists("empty").await.map_err(|error| error.to_string())?, || {
        "it is deleted, and there".into()
    })?;
    Ok("limits are kept".into())
}

/// A program that opens the service twice.
pub async fn second(closes_the_first: bool) -> Claim {
    let first = open();
    first.write("file", "first").await.map_err(|error| error.to_string())?;
    let first: Option<Operator> = (!closes_the_first).then_some(first);
    let second = open();
    let read = second.read("file").await.map_err(|error| error.to_string())?;
    claim(read.to_vec() == b"first", || "the second does not see what the first wrote".into())?;
    drop(first);
    Ok("both work".into())
}

/// A file is written again while it is read in chunks.
pub async fn torn() -> Claim {
    let op = open();
    op.write("file", vec![b'a'; 2000]).await.map_err(|error| error.to_string())?;
    let read = async { op.reader_with("file").chunk(500).await?.read(0..2000).await };
    let (read, written) = future::join(read, op.write("file", vec![b'b'; 2000])).await;
    let read = read.map_err(|error| error.to_string())?.to_vec();
    written.map_err(|error| error.to_string())?;
    let old = read.iter().filter(|byte| **byte == b'a').count();
    claim(old == 0 || old == 2000, || {
        format!(
            "a reader with chunks of 500 bytes returns {old} bytes of one write and {} of another",
            2000 - old
        )
    })?;
    Ok("one version is read".into())
}
