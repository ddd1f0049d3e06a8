"""Replays recorded answers of a real cluster through FoundationDB's Python binding on the driver.

    conformance.py FOLDER [EVERY]

FOLDER has the recordings and a README that explains them. With EVERY, one case of so many is replayed.

The recorded cluster had one shard and one resolver. The simulated one must have them too: where a batch of a range ends
and which commits conflict depends on them.

Every recorded step is a call of the binding. Two have no public form and are made as the binding makes them itself: one
batch of a range (`_get_range`), and an atomic operation with a code that has no name (`_atomic_operation`).
"""

import glob
import json
import os
import sys
import time

import fdb

fdb.api_version(740)

import directories
import spelling
import tuples
from spelling import decode, encode

db = fdb.open("/nowhere/fdb.cluster")

READ_CONFLICTS = b"\xff\xff/transaction/read_conflict_range/"
WRITE_CONFLICTS = b"\xff\xff/transaction/write_conflict_range/"
CONFLICTING = b"\xff\xff/transaction/conflicting_keys/"


@fdb.transactional
def prepare(tr):
    """Adds system keys after the user's, as many as the recorded cluster had: selectors beyond the user's keys count
    them."""
    tr.options.set_access_system_keys()
    tr[b"\xff\x02/fdbClientInfo/migrated/"] = b""
    tr[b"\xff\x02/serverMetadataChanges"] = b"0" * 32
    for n in range(60):
        tr[spelling.TIME_KEEPER + (0x6B010CCE + 10 * n).to_bytes(4, "big")] = bytes(8)


class Replay:
    """The transactions of a case, and what is outstanding of them."""

    def __init__(self):
        self.transactions = {}
        self.commits = {}
        self.watches = {}
        self.stamps = {}

    def perform(self, step):
        """Performs a step, and returns its answer as recordings write it."""
        try:
            return self.call(step)
        except fdb.FDBError as error:
            return {"error": error.code}

    def bytes(self, text, times=1):
        return decode(text, self.stamps) * times

    def selector(self, recorded):
        return fdb.KeySelector(self.bytes(recorded["key"]), recorded["or_equal"], recorded["offset"])

    def call(self, step):
        name, op = step["tx"], step["op"]
        if name not in self.transactions:
            self.transactions[name] = db.create_transaction()
        tr = self.transactions[name]
        reader = tr.snapshot if step.get("snapshot") else tr
        key_times, value_times = step.get("repeat", [1, 1])
        key = self.bytes(step["key"], key_times) if "key" in step else None
        if op == "get":
            value = reader.get(key)
            return {"value": encode(value[:]) if value.present() else None}
        if op == "get_key":
            return {"key": encode(reader.get_key(self.selector(step["selector"])).wait())}
        if op == "get_range":
            mode = getattr(fdb.StreamingMode, step["mode"])
            begin, end = self.selector(step["begin"]), self.selector(step["end"])
            rows, _, more = reader._get_range(
                begin, end, step["limit"], mode, step.get("iteration", 1), step.get("reverse", False)
            ).wait()
            return {"rows": [[encode(row.key), encode(row.value)] for row in rows], "more": bool(more)}
        if op == "set":
            tr.set(key, self.bytes(step["value"], value_times))
        elif op == "clear":
            tr.clear(key)
        elif op == "clear_range":
            tr.clear_range(self.bytes(step["begin"]), self.bytes(step["end"]))
        elif op == "atomic":
            operand = self.bytes(step["operand"])
            if step["mutation"] == "?":
                tr._atomic_operation(step["code"], key, operand)
            else:
                getattr(tr, step["mutation"])(key, operand)
        elif op in ("add_read_conflict_range", "add_write_conflict_range"):
            getattr(tr, op)(self.bytes(step["begin"]), self.bytes(step["end"]))
        elif op == "conflict_ranges":
            return {"read": boundaries(tr, READ_CONFLICTS), "write": boundaries(tr, WRITE_CONFLICTS)}
        elif op == "conflicting_keys":
            return {"conflicting": boundaries(tr, CONFLICTING)}
        elif op == "set_option":
            parameters = [step["param"]] if "param" in step else []
            getattr(tr.options, "set_" + step["option"])(*parameters)
        elif op == "get_read_version":
            tr.get_read_version().wait()
            return {"ok": True}
        elif op == "set_read_version":
            tr.set_read_version(step["version"])
        elif op == "approximate_size":
            return {"size": tr.get_approximate_size().wait()}
        elif op == "commit":
            return self.commit(name, tr, step.get("stamp"))
        elif op == "commit_start":
            self.commits[name] = tr.commit()
        elif op == "commit_wait":
            self.commits.pop(name).wait()
            return {"committed": True}
        elif op == "on_error":
            tr.on_error(fdb.FDBError(step["code"])).wait()
            return {"retry": True}
        elif op in ("reset", "cancel"):
            getattr(tr, op)()
        elif op == "watch":
            self.watches[step["id"]] = tr.watch(key)
        elif op == "watch_wait":
            self.watches.pop(step["id"]).wait()
            return {"fired": True}
        elif op == "watch_ready":
            return {"ready": is_ready_soon(self.watches[step["id"]])}
        else:
            raise ValueError("unknown: " + op)
        return {}

    def commit(self, name, tr, wants_stamp):
        stamp = tr.get_versionstamp() if wants_stamp else None
        tr.commit().wait()
        answer = {"committed": True, "read_only": tr.get_committed_version() == -1}
        if stamp is not None:
            try:
                self.stamps[name] = stamp.wait()[:]
            except fdb.FDBError as error:
                return {"committed": True, "stamp_error": error.code}
        return answer


def boundaries(tr, prefix):
    end = prefix[:-1] + b"0"
    select = fdb.KeySelector.first_greater_or_equal
    rows, _, _ = tr._get_range(select(prefix), select(end), 0, fdb.StreamingMode.want_all, 1, False).wait()
    return [[encode(row.key[len(prefix) :]), row.value.decode()] for row in rows]


def is_ready_soon(future):
    """Whether it is ready within 0.3 seconds."""
    end = time.monotonic() + 0.3
    while not future.is_ready() and time.monotonic() < end:
        time.sleep(0.01)
    return bool(future.is_ready())


def replay(case):
    """The first difference between a case of the client and its replay, or None."""
    replay = Replay()
    spelling.set_keyspace(db, [(decode(key), decode(value)) for key, value in case["setup"]])
    for number, step in enumerate(case["steps"]):
        answer = replay.perform(step)
        if spelling.normal(answer, replay.stamps) != spelling.normal(step["expect"], replay.stamps):
            return number, {name: step[name] for name in step if name != "expect"}, step["expect"], answer
    last = sorted((replay.bytes(key), replay.bytes(value)) for key, value in case["final"])
    found = spelling.keyspace(db)
    return None if last == found else ("end", "final keyspace", last, found)


def kind_of(case):
    """How a case is replayed, by its fields."""
    if "packed" in case:
        return tuples.replay
    if "manual_prefixes" in case:
        return lambda case: directories.replay(db, case)
    return replay


def main(folder, every):
    files = sorted(glob.glob(os.path.join(folder, "*.jsonl")))
    if not files:
        print("no recordings in %s: skipped" % folder)
        return 0
    prepare(db)
    total = different = 0
    for path in files:
        name = os.path.basename(path)
        with open(path) as lines:
            cases = [json.loads(line) for line in lines][::every]
        start, before = time.monotonic(), different
        for number, case in enumerate(cases):
            difference = kind_of(case)(case)
            if difference:
                different += 1
                step, what, expected, found = difference
                print("%s, step %s: %s" % (case.get("id", "tuple-%d" % (number * every + 1)), step, what))
                print("  recorded %.500s\n  and now  %.500s" % (expected, found))
        total += len(cases)
        equal, seconds = len(cases) - (different - before), time.monotonic() - start
        print("%-18s %4d of %4d cases equal, %4.1f s" % (name, equal, len(cases), seconds), flush=True)
    print("%d of %d recorded cases are answered equally" % (total - different, total))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1))
