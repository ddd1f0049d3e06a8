//! Special keys, and the metadata version key.

use super::{
    Case, Ctx, Expectation,
    expect::{fails, holds, same, succeeds},
    world::{CONFLICTING_KEYS, READ_CONFLICTS, Serializable, Snapshot, WRITE_CONFLICTS, ranges, some},
};
use bytes::Bytes;
use futures::future::join;
use shaketable_tx::{
    ConflictRangeType::{self, Read},
    Error, MutationType,
    MutationType::*,
    RangeOption, Result, Transaction,
    TransactionOption::{self, *},
    Tx,
};

const SECTION: &str = "sizes";

/// The key whose value clients compare to check that their caches are up to date.
const METADATA_VERSION: &[u8] = b"\xff/metadataVersion";
/// The only operand it accepts.
const REQUIRED: &[u8] = &[0; 14];

pub(super) fn cases() -> Vec<Case> {
    catalogue! {
        "special/boundaries", boundaries,
            "Conflict ranges are listed as boundaries, each with 1 where a range begins and 0 where it ends.";
        "special/get", boundary_get,
            "A single boundary can be read with get.";
        "special/limit-reverse", limit_reverse,
            "Special keys obey limits and the reverse order.";
        "special/no-conflict-range", no_conflict_range,
            "Reading special keys adds no conflict range.";
        "special/pending-reads", pending_reads,
            "The list of read conflict ranges waits for pending reads.";
        "special/empty", empty,
            "A new transaction lists nothing.";
        "special/conflicting-keys", conflicting_keys,
            "With option 712 a failed commit lists the ranges it conflicted on, and no others.";
        "special/conflicting-range", conflicting_range,
            "A range that was read and then written in part is listed as conflicting.";
        "special/conflicting-keys-off", conflicting_off,
            "Without option 712 nothing is listed.";
        "special/cross-module", cross_module,
            "A range across modules is 2112.";
        "special/no-module", no_module,
            "A read that touches no module is 2113.";
        "special/relaxed", relaxed,
            "With option 713 both are allowed.";
        "special/write", |c| write(c, None, Error::SPECIAL_KEYS_WRITE_DISABLED),
            "A write of special keys is 2114.";
        "special/write-enabled", |c| write(c, Some(SpecialKeySpaceEnableWrites), Error::SPECIAL_KEYS_NO_WRITE_MODULE_FOUND),
            "With option 714 a write where no module takes any is 2115.";
        "special/status", status,
            "The status of the cluster can be read, as JSON.";
        "special/connection-string", connection_string,
            "The connection string is that of the cluster's coordinators.";
        "special/cluster-id", cluster_id,
            "The cluster has an id that stays.";
        "special/tracing", tracing,
            "A transaction has the trace id that it was given, or one of its own.";
        "special/own-write", own_write,
            "A written special key is read again before the commit.";
        "special/clear-across", clear_across,
            "With option 714 a clear across what takes writes is 2116.";
        "special/error-message", error_message,
            "A call of special keys that fails with 2117 leaves its reason, until the reset.";
        "special/key-servers", key_servers,
            "The map of shards begins at the first key and can be read in order.";
        "metadata-version/readable", metadata_readable,
            "Every transaction may read the metadata version.";
        "metadata-version/stamped", metadata_stamped,
            "A versionstamped value with fourteen zero bytes sets it to the commit's stamp.";
        "metadata-version/set", metadata_set,
            "A plain set of it is 2000.";
        "metadata-version/operand", metadata_operand,
            "Another operand, or another operation, is 2000.";
        "metadata-version/unreadable", metadata_unreadable,
            "Read in the transaction that set it, it is 1036.";
        "metadata-version/conflict", metadata_conflict,
            "A serializable read of it conflicts with a change.";
        "metadata-version/conflict-range", metadata_range,
            "A read conflict range of exactly this key needs no option, also after a write; any other of system keys is 2004.";
        "metadata-version/consistent", metadata_consistent,
            "Its value is that of the read version.";
    }
}

async fn boundaries(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.get(&c.key("a"), Serializable).await?;
    tx.add_conflict_range(&c.key("c"), &c.key("e"), Read)?;
    tx.set(&c.key("x"), b"1");
    let boundaries = |module: &'static [u8], keys: &[(&str, &'static str)]| -> Vec<(Bytes, Bytes)> {
        keys.iter().map(|(key, value)| ([module, &c.key(key)].concat().into(), Bytes::from(*value))).collect()
    };
    for (module, promised) in [
        (READ_CONFLICTS, boundaries(READ_CONFLICTS, &[("a", "1"), ("a\0", "0"), ("c", "1"), ("e", "0")])),
        (WRITE_CONFLICTS, boundaries(WRITE_CONFLICTS, &[("x", "1"), ("x\0", "0")])),
    ] {
        let range = RangeOption::new(module, [module, b"\xff"].concat());
        let rows = tx.get_range_all(range, Serializable).await?;
        let seen: Vec<(Bytes, Bytes)> = rows.into_iter().map(|row| (row.key, row.value)).collect();
        same("the boundaries", seen, promised)?;
    }
    Ok(())
}

async fn boundary_get(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.get(&c.key("a"), Serializable).await?;
    for (key, promised) in [("a", some("1")), ("a\0", some("0")), ("b", None)] {
        let special = [READ_CONFLICTS, &c.key(key)].concat();
        same(&format!("the boundary at {key:?}"), tx.get(&special, Snapshot).await?, promised)?;
    }
    Ok(())
}

async fn limit_reverse(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    for key in ["a", "b", "c"] {
        tx.set(&c.key(key), b"1");
    }
    let all = RangeOption::new(WRITE_CONFLICTS, [WRITE_CONFLICTS, b"\xff"].concat());
    let keys = async |range: RangeOption| -> Result<Vec<Bytes>> {
        let rows = tx.get_range_all(range, Snapshot).await?;
        Ok(rows.iter().map(|row| c.strip(&row.key[WRITE_CONFLICTS.len()..])).collect())
    };
    same("the first three", keys(all.clone().limit(3)).await?, vec!["a".into(), "a\0".into(), "b".into()])?;
    same("the last two", keys(all.reversed().limit(2)).await?, vec!["c\0".into(), "c".into()])
}

async fn no_conflict_range(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    c.listed(&tx, READ_CONFLICTS).await?;
    c.listed(&tx, WRITE_CONFLICTS).await?;
    c.reads_are(&tx, &[]).await?;
    tx.commit().await?;
    same("the committed version", tx.get_committed_version()?, -1)
}

async fn pending_reads(c: Ctx) -> Expectation {
    let (tx, key) = (c.tx()?, c.key("a"));
    let read = tx.get(&key, Serializable);
    let (read, listed) = join(read, c.listed(&tx, READ_CONFLICTS)).await;
    read?;
    same("read conflict ranges", listed?, ranges(&[("a", "a\0")]))
}

async fn empty(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    for module in [READ_CONFLICTS, WRITE_CONFLICTS, CONFLICTING_KEYS] {
        same("a list", c.listed(&tx, module).await?, ranges(&[]))?;
    }
    Ok(())
}

async fn conflicting_keys(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(ReportConflictingKeys)?;
    for key in ["a", "b", "c"] {
        tx.get(&c.key(key), Serializable).await?;
    }
    c.put("b", "theirs").await?;
    c.put("x", "theirs").await?;
    c.touch(&tx)?;
    fails("the commit", tx.commit().await, Error::NOT_COMMITTED)?;
    same("conflicting keys", c.listed(&tx, CONFLICTING_KEYS).await?, ranges(&[("b", "b\0")]))
}

async fn conflicting_range(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(ReportConflictingKeys)?;
    tx.get_range_all(c.range("a", "f"), Serializable).await?;
    c.put("c", "theirs").await?;
    c.touch(&tx)?;
    fails("the commit", tx.commit().await, Error::NOT_COMMITTED)?;
    // A conflicting range is cut at the boundaries between resolvers: at least the piece that holds the key
    // is listed.
    let listed = c.listed(&tx, CONFLICTING_KEYS).await?;
    let within = |r: &(Bytes, Bytes)| r.0 >= "a" && r.1 <= "f" && r.0 <= "c" && r.1 > "c";
    holds(listed.len() == 1 && listed.iter().all(within), || {
        format!("one range within [a, f) that holds c, seen {listed:?}")
    })
}

async fn conflicting_off(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.get(&c.key("a"), Serializable).await?;
    c.put("a", "theirs").await?;
    c.touch(&tx)?;
    fails("the commit", tx.commit().await, Error::NOT_COMMITTED)?;
    same("conflicting keys", c.listed(&tx, CONFLICTING_KEYS).await?, ranges(&[]))
}

/// A range that starts within a module and ends after it.
fn across() -> RangeOption {
    RangeOption::new(READ_CONFLICTS, &b"\xff\xff/transaction1"[..])
}

const NO_MODULE: &[u8] = b"\xff\xff/no/such/module";

async fn cross_module(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let rows = tx.get_range(&across(), 1, Snapshot).await;
    fails("the range", rows, Error::SPECIAL_KEYS_CROSS_MODULE_READ)
}

async fn no_module(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    fails("get", tx.get(NO_MODULE, Snapshot).await, Error::SPECIAL_KEYS_NO_MODULE_FOUND)
}

async fn relaxed(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(SpecialKeySpaceRelaxed)?;
    tx.set(&c.key("a"), b"1");
    same("get of no module", tx.get(NO_MODULE, Snapshot).await?, None)?;
    let rows = tx.get_range_all(across(), Snapshot).await?;
    same("how many rows of a range across", rows.len(), 2)
}

async fn write(c: Ctx, option: Option<TransactionOption>, error: Error) -> Expectation {
    let key = [READ_CONFLICTS, b"a"].concat();
    let end = [READ_CONFLICTS, b"b"].concat();
    for wrong in 0..3 {
        let tx = c.tx()?;
        if let Some(option) = &option {
            tx.set_option(option.clone())?;
        }
        match wrong {
            0 => tx.set(&key, b"1"),
            1 => tx.clear(&key),
            _ => tx.clear_range(&key, &end),
        }
        let what = ["after set", "after clear", "after clear_range"][wrong];
        fails(what, tx.get(&c.key("a"), Snapshot).await, error)?;
    }
    Ok(())
}

async fn status(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let status = tx.get(b"\xff\xff/status/json", Snapshot).await?.unwrap_or_default();
    holds(status.starts_with(b"{") && status.ends_with(b"}"), || {
        format!("a JSON object, seen {} bytes", status.len())
    })
}

async fn connection_string(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(ReadSystemKeys)?;
    let coordinators = tx.get(b"\xff/coordinators", Snapshot).await?;
    holds(coordinators.is_some(), || "no coordinators".to_owned())?;
    same("the connection string", tx.get(b"\xff\xff/connection_string", Snapshot).await?, coordinators)
}

async fn cluster_id(c: Ctx) -> Expectation {
    let get = async || c.tx()?.get(b"\xff\xff/cluster_id", Snapshot).await;
    let first = get().await?;
    let is_id = |id: &Bytes| id.len() == 32 && id.iter().all(u8::is_ascii_hexdigit);
    holds(first.as_ref().is_some_and(is_id), || format!("32 digits, seen {first:?}"))?;
    same("the id", get().await?, first)
}

/// A transaction that may write special keys.
fn managing(c: &Ctx) -> Result<Tx> {
    let tx = c.tx()?;
    tx.set_option(SpecialKeySpaceEnableWrites)?;
    Ok(tx)
}

async fn tracing(c: Ctx) -> Expectation {
    const ID: &[u8] = b"\xff\xff/tracing/transaction_id";
    let own = [c.tx()?.get(ID, Snapshot).await?, c.tx()?.get(ID, Snapshot).await?];
    holds(own[0] != own[1], || format!("two ids, seen {own:?}"))?;
    let (tx, given) = (managing(&c)?, "0123456789abcdef0123456789abcdef");
    tx.set(ID, given.as_bytes());
    same("the id", tx.get(ID, Snapshot).await?, some(given))
}

const SUSPENDED: &[u8] = b"\xff\xff/management/consistency_check_suspended";

async fn own_write(c: Ctx) -> Expectation {
    let tx = managing(&c)?;
    tx.set(SUSPENDED, b"");
    same("after set", tx.get(SUSPENDED, Snapshot).await?, some(""))?;
    tx.clear(SUSPENDED);
    same("after clear", tx.get(SUSPENDED, Snapshot).await?, None)
}

async fn clear_across(c: Ctx) -> Expectation {
    let tx = managing(&c)?;
    tx.clear_range(SUSPENDED, b"\xff\xff/management/options0");
    let read = tx.get(&c.key("a"), Snapshot).await;
    fails("get", read, Error::SPECIAL_KEYS_CROSS_MODULE_CLEAR)
}

async fn error_message(c: Ctx) -> Expectation {
    const MESSAGE: &[u8] = b"\xff\xff/error_message";
    let tx = managing(&c)?;
    same("before", tx.get(MESSAGE, Snapshot).await?, None)?;
    tx.set(b"\xff\xff/configuration/process/class_type/nowhere", b"storage");
    fails("the commit", tx.commit().await, Error::SPECIAL_KEYS_API_FAILURE)?;
    let message = tx.get(MESSAGE, Snapshot).await?.unwrap_or_default();
    let text = String::from_utf8_lossy(&message);
    holds(text.contains("setclass") && text.contains("nowhere"), || format!("the reason, seen {text}"))?;
    tx.reset();
    same("after the reset", tx.get(MESSAGE, Snapshot).await?, None)
}

async fn key_servers(c: Ctx) -> Expectation {
    const MAP: &[u8] = b"\xff/keyServers/";
    let tx = c.tx()?;
    tx.set_option(ReadSystemKeys)?;
    let rows = tx.get_range_all(RangeOption::new(MAP, &b"\xff/keyServers0"[..]), Snapshot).await?;
    let begins = rows.first().is_some_and(|row| row.key == MAP && !row.value.is_empty());
    holds(begins, || format!("a first shard, seen {} rows", rows.len()))
}

/// Changes the metadata version and returns its new stamp.
async fn change_metadata(c: &Ctx) -> Result<[u8; 10]> {
    let tx = c.tx()?;
    tx.atomic_op(METADATA_VERSION, REQUIRED, SetVersionstampedValue);
    let stamp = tx.get_versionstamp();
    tx.commit().await?;
    stamp.await
}

async fn metadata_readable(c: Ctx) -> Expectation {
    for isolation in [Serializable, Snapshot] {
        let tx = c.tx()?;
        let value = succeeds("get", tx.get(METADATA_VERSION, isolation).await)?;
        holds(value.as_ref().is_none_or(|v| v.len() == 10), || {
            format!("nothing or a stamp, seen {value:?}")
        })?;
    }
    Ok(())
}

async fn metadata_stamped(c: Ctx) -> Expectation {
    for _ in 0..2 {
        let stamp = change_metadata(&c).await?;
        let tx = c.tx()?;
        let value = tx.get(METADATA_VERSION, Snapshot).await?;
        // Others may have changed it since, which only increases it.
        holds(value.as_ref().is_some_and(|v| v.as_ref() >= stamp.as_slice()), || {
            format!("the stamp {stamp:?} or a later one, seen {value:?}")
        })?;
    }
    Ok(())
}

async fn metadata_set(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set(METADATA_VERSION, b"1");
    fails("the commit", tx.commit().await, Error::CLIENT_INVALID_OPERATION)
}

async fn metadata_operand(c: Ctx) -> Expectation {
    let wrong: [(MutationType, &[u8]); 3] =
        [(SetVersionstampedValue, &[1; 14]), (SetVersionstampedValue, &[0; 15]), (Add, REQUIRED)];
    for (op, operand) in wrong {
        let tx = c.tx()?;
        tx.atomic_op(METADATA_VERSION, operand, op);
        fails(&format!("{op:?}"), tx.commit().await, Error::CLIENT_INVALID_OPERATION)?;
    }
    Ok(())
}

async fn metadata_unreadable(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.atomic_op(METADATA_VERSION, REQUIRED, SetVersionstampedValue);
    fails("get", tx.get(METADATA_VERSION, Snapshot).await, Error::ACCESSED_UNREADABLE)
}

async fn metadata_conflict(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.get(METADATA_VERSION, Serializable).await?;
    change_metadata(&c).await?;
    c.touch(&tx)?;
    fails("the commit", tx.commit().await, Error::NOT_COMMITTED)
}

/// The ends of read conflict ranges that begin at the metadata version's key: only the first ends directly
/// after it.
const RANGE_ENDS: &[&[u8]] = &[
    b"\xff/metadataVersion\0",
    b"\xff/metadataVersion",
    b"\xff/metadataVersion\0\0",
    b"\xff/metadataVersion\x01",
    b"\xff/n",
    b"\xff\xff",
    b"\xff\xff\0",
    b"\xff\xff\xff",
    b"\xff\xff\xff\xff",
];

async fn metadata_range(c: Ctx) -> Expectation {
    for end in RANGE_ENDS {
        let tx = c.tx()?;
        c.touch(&tx)?;
        // What the call itself returns is not promised: the error is that of the next call.
        let _ = tx.add_conflict_range(METADATA_VERSION, end, ConflictRangeType::Read);
        let answer = tx.get(&c.key("a"), Serializable).await;
        match *end == RANGE_ENDS[0] {
            true => drop(succeeds("a read after the exact range", answer)?),
            false => {
                fails(&format!("a read after the range to {end:?}"), answer, Error::KEY_OUTSIDE_LEGAL_RANGE)?
            }
        }
    }
    let tx = c.tx()?;
    tx.get_read_version().await?;
    tx.add_conflict_range(METADATA_VERSION, RANGE_ENDS[0], ConflictRangeType::Read)?;
    change_metadata(&c).await?;
    c.touch(&tx)?;
    fails("the commit", tx.commit().await, Error::NOT_COMMITTED)
}

async fn metadata_consistent(c: Ctx) -> Expectation {
    let first = change_metadata(&c).await?;
    let tx = c.tx()?;
    tx.get_read_version().await?;
    let second = change_metadata(&c).await?;
    let value = tx.get(METADATA_VERSION, Snapshot).await?;
    holds(
        value.as_ref().is_some_and(|v| v.as_ref() >= first.as_slice() && v.as_ref() < second.as_slice()),
        || format!("a stamp from {first:?} on and before {second:?}, seen {value:?}"),
    )
}
