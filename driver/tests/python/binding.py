"""FoundationDB's Python binding on the driver: every part of it that does not need a real cluster.

Prints what the cluster answered, so that two runs with one seed can be compared.
"""

import random
import struct
import threading

import fdb

fdb.api_version(fdb.LATEST_API_VERSION)

import fdb.directory_impl
import fdb.tuple
from fdb.subspace_impl import Subspace

# The directory layer draws numbers: they are the program's, not the cluster's.
random.seed(7)
fdb.directory_impl.random.seed(7)

fdb.options.set_trace_log_group("driver")
db = fdb.open("/nowhere/fdb.cluster")


def again(step):
    """Faults strike steps that have no retry loop of their own: they are repeated from their beginning."""

    def repeated():
        pause = db.create_transaction()
        for _ in range(100):
            try:
                return step()
            except fdb.FDBError as error:
                # Waits, or fails if the error cannot be retried.
                pause.on_error(error).wait()
        raise AssertionError("it never ends")

    return repeated


@again
def transactions():
    @fdb.transactional
    def add(tr, key, amount):
        value = tr[key]
        tr[key] = struct.pack("<q", amount + (struct.unpack("<q", value[:])[0] if value.present() else 0))
        return tr.get_read_version().wait()

    versions = [add(db, b"counter", n) for n in range(20)]
    assert versions == sorted(versions)
    print("versions", versions)
    # An unknown result may have been a commit: the sum is at least this.
    assert struct.unpack("<q", db[b"counter"][:])[0] >= 190
    db[b"plain"] = b"value"
    assert db[b"plain"] == b"value"
    del db[b"plain"]
    assert db[b"plain"] is None
    tr = db.create_transaction()
    tr[b"a"] = b"b"
    assert tr.get_approximate_size().wait() > 0
    tr.cancel()
    expect(1025, lambda: tr[b"a"].wait())
    tr.reset()
    assert not tr[b"a"].present()


def expect(code, call):
    try:
        call()
    except fdb.FDBError as error:
        if fdb.predicates.is_retryable(error) and error.code != code:
            raise
        assert error.code == code, error
    else:
        raise AssertionError("no error %d" % code)


def retried(function):
    """Runs a function of a transaction until it commits, and returns the transaction."""
    tr = db.create_transaction()
    while True:
        try:
            function(tr)
            tr.commit().wait()
            return tr
        except fdb.FDBError as error:
            tr.on_error(error).wait()


def ranges():
    @fdb.transactional
    def fill(tr):
        tr.clear_range(b"row", b"rox")
        for n in range(300):
            tr[b"row%03d" % n] = b"x" * 100

    fill(db)

    @fdb.transactional
    def read(tr):
        every = [kv.key for kv in tr.get_range_startswith(b"row")]
        last = [kv.key for kv in tr.get_range(b"row", b"rox", limit=3, reverse=True)]
        exact = list(tr.snapshot.get_range(b"row", b"rox", limit=5, streaming_mode=fdb.StreamingMode.exact))
        key = tr.get_key(fdb.KeySelector.last_less_than(b"row100") + 2)
        return every, last, len(exact), key.wait()

    every, last, exact, key = read(db)
    assert every == [b"row%03d" % n for n in range(300)], len(every)
    assert (last, exact, key) == ([b"row299", b"row298", b"row297"], 5, b"row101")

    @fdb.transactional
    def sizes(tr):
        points = list(tr.get_range_split_points(b"row", b"rox", 1000).wait())
        if fdb.LATEST_API_VERSION >= 800:
            tr.options.set_max_grv_queue_delay(1000)
            assert list(tr.get_range_split_points(b"row", b"rox", 1000, 0).wait()) == [b"row", b"rox"]
        return points[0], points[-1], tr.get_estimated_range_size_bytes(b"row", b"rox").wait()

    begin, end, size = sizes(db)
    assert (begin, end) == (b"row", b"rox") and size >= 0


@again
def conflicts():
    first, second = db.create_transaction(), db.create_transaction()
    second.options.set_retry_limit(0)
    first[b"c"].present(), second[b"c"].present()
    second[b"c"] = b"2"
    retried(lambda tr: tr.set(b"c", b"1"))
    try:
        second.commit().wait()
        raise AssertionError("it conflicts")
    except fdb.FDBError as error:
        print("conflict", error.code, error.description)
        refused = error
    expect(refused.code, lambda: second.on_error(refused).wait())
    tr = db.create_transaction()
    tr.options.set_size_limit(100)
    tr[b"big"] = b"x" * 200
    expect(2101, lambda: tr.commit().wait())
    expect(2007, lambda: fdb.impl._capi.fdb_transaction_set_option(tr.tpointer, 4711, None, 0))
    assert not fdb.predicates.is_retryable(fdb.FDBError(2101))
    assert fdb.predicates.is_maybe_committed(fdb.FDBError(1021))
    assert fdb.predicates.is_retryable_not_committed(fdb.FDBError(1020))


@again
def atomic_operations():
    stamps = []

    def write(tr):
        tr.add(b"sum", struct.pack("<q", 5))
        tr.set_versionstamped_key(fdb.tuple.pack_with_versionstamp(("log", fdb.tuple.Versionstamp())), b"entry")
        stamps.append(tr.get_versionstamp())

    db.clear(b"sum")
    tr = retried(write)
    stamp = stamps[-1].wait()
    assert len(stamp[:]) == 10 and tr.get_committed_version() > 0
    assert struct.unpack("<q", db[b"sum"][:])[0] % 5 == 0
    entries = [fdb.tuple.unpack(key) for key, _ in db.get_range_startswith(fdb.tuple.pack(("log",)))]
    assert fdb.tuple.Versionstamp(stamp[:]) in [entry[1] for entry in entries], entries


def layers():
    items = (b"bytes", "text", -5, 2**70, 1.5, None, True, (1, ("nested",)), fdb.tuple.SingleFloat(2.5))
    assert fdb.tuple.unpack(fdb.tuple.pack(items)) == items
    people = Subspace(("people",))
    db[people["ann"]["age"]] = b"30"
    assert [people.unpack(key) for key, _ in db[people.range()]] == [("ann", "age")]
    root = fdb.directory.create_or_open(db, ("app", "users"))
    other = fdb.directory.create_or_open(db, ("app", "orders"))
    assert root.key() != other.key()
    assert sorted(fdb.directory.list(db, ("app",))) == ["orders", "users"]
    moved = fdb.directory.move(db, ("app", "orders"), ("app", "invoices"))
    assert moved.key() == other.key()
    assert fdb.directory.exists(db, ("app", "invoices"))
    fdb.directory.remove(db, ("app", "invoices"))
    assert not fdb.directory.exists(db, ("app", "invoices"))
    print("directory", root.key())


def watches():
    """A watch may fail like any other call, so that it is set until it fires."""

    @fdb.transactional
    def watch(tr):
        return tr.watch(b"watched")

    for n in range(100):
        future, seen = watch(db), []
        future.on_ready(lambda ready: seen.append(ready))
        db[b"watched"] = b"%d" % n
        try:
            future.wait()
            break
        except fdb.FDBError as error:
            print("watch", error.code)
    else:
        raise AssertionError("it never fires")
    cancelled = watch(db)
    cancelled.cancel()
    expect(1101, cancelled.wait)


def threads():
    @fdb.transactional
    def add(tr):
        tr.add(b"threads", struct.pack("<q", 1))

    def work():
        for _ in range(20):
            add(db)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert struct.unpack("<q", db[b"threads"][:])[0] >= 80


def no_streams_of_changes():
    expect(2000, lambda: db.register_cdc_stream(b"stream", b"a", b"b").wait())
    expect(2000, lambda: db.create_cdc_consumer(b"stream").wait())
    assert db.remove_cdc_stream(b"stream").wait() is None
    assert db.list_cdc_streams().wait() == []
    with db.resume_cdc_consumer(fdb.impl.CdcCursor(7, 100)).wait() as consumer:
        assert consumer.get_position() == (7, 100)
        expect(2000, lambda: consumer.consume().wait())
        expect(2000, lambda: consumer.acknowledge().wait())


@again
def what_there_is_not():
    if fdb.LATEST_API_VERSION < 800:
        tenant = db.open_tenant(b"tenant")
        expect(2131, lambda: tenant.create_transaction()[b"a"].wait())
    else:
        no_streams_of_changes()
    assert b"Healthy" in bytes(db.get_client_status().wait()), db.get_client_status().wait()


if __name__ == "__main__":
    import sys

    transactions()
    ranges()
    conflicts()
    atomic_operations()
    layers()
    if "alone" not in sys.argv:
        # Other threads, or callbacks: the order in which their calls arrive decides.
        watches()
        threads()
    what_there_is_not()
    print("passed")
