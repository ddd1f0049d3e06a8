"""Processes that share the cluster of a server: one waits for orders with watches, others place them, some are killed.

several.py            starts the others, and checks what they did
several.py shop       serves orders until there are ORDERS of them, and prints the number
several.py buyer N C  places C orders, each with a name of its own, and prints each that is acknowledged
"""

import signal
import subprocess
import sys
import time

import fdb

fdb.api_version(740)
ORDERS = 60
BUYERS = 6
EACH = 20


@fdb.transactional
def place(tr, name):
    # A retry after an unknown result finds what it did before.
    if tr[fdb.tuple.pack(("order", name))].present():
        return
    tr[fdb.tuple.pack(("order", name))] = b""
    tr.add(b"orders", (1).to_bytes(8, "little"))


@fdb.transactional
def look(tr):
    """The number of orders, and a watch for the next one."""
    value = tr[b"orders"]
    number = int.from_bytes(value, "little") if value.present() else 0
    return number, tr.watch(b"orders")


@fdb.transactional
def orders(tr):
    number = tr[b"orders"]
    names = [fdb.tuple.unpack(key)[1] for key, _ in tr[fdb.tuple.range(("order",))]]
    return int.from_bytes(number, "little"), names


def shop(db):
    while True:
        number, watch = look(db)
        if number >= ORDERS:
            print(number, flush=True)
            return
        try:
            watch.wait()
        except fdb.FDBError as error:
            # A watch may end early; it is set again.
            if not fdb.predicates.retryable(error):
                raise


def buyer(db, number, count):
    for n in range(count):
        name = f"{number}-{n}"
        place(db, name)
        print(name, flush=True)


def start(*arguments):
    return subprocess.Popen([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True)


def main(db):
    waiting = start("shop")
    # Two of them would never end, and die.
    counts = [10**9] * 2 + [EACH] * (BUYERS - 2)
    buyers = [start("buyer", str(number), str(count)) for number, count in enumerate(counts)]
    acknowledged = []
    for victim in buyers[:2]:
        acknowledged.append(victim.stdout.readline().strip())
        victim.send_signal(signal.SIGKILL)
    for process in buyers:
        acknowledged += process.communicate()[0].split()
    served, _ = waiting.communicate(timeout=60)
    assert waiting.returncode == 0 and int(served) >= ORDERS, served
    assert [buyer.returncode for buyer in buyers] == [-signal.SIGKILL] * 2 + [0] * (BUYERS - 2)
    count, names = orders(db)
    assert count == len(names), f"{count} counted, {len(names)} there"
    lost = set(acknowledged) - set(names)
    assert not lost, f"acknowledged and not there: {sorted(lost)}"
    unacknowledged = set(names) - set(acknowledged)
    of = [name.split("-")[0] for name in unacknowledged]
    assert set(of) <= {"0", "1"} and len(of) == len(set(of)), f"not the last one of who died: {sorted(unacknowledged)}"
    print(f"{count} orders of {BUYERS} buyers")


database = fdb.open()
match sys.argv[1:]:
    case ["shop"]:
        shop(database)
    case ["buyer", number, count]:
        buyer(database, number, int(count))
    case []:
        started = time.monotonic()
        main(database)
        assert time.monotonic() - started < 120
