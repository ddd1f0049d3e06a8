"""Threads move money between accounts, with a retry loop of their own. The other account is read at snapshot."""
import random
import struct
import threading
import time

import fdb

fdb.api_version(740)
db = fdb.open()
ACCOUNTS = [b"a", b"b", b"c"]


def read(value):
    return struct.unpack("<q", bytes(value))[0]


def transfer(source, target, amount):
    tr = db.create_transaction()
    while True:
        try:
            if read(tr[source]) < amount:
                return False
            there = read(tr.snapshot[target])
            tr[source] = struct.pack("<q", read(tr[source]) - amount)
            tr[target] = struct.pack("<q", there + amount)
            tr.commit().wait()
            return True
        except fdb.FDBError as error:
            tr.on_error(error).wait()
            time.sleep(random.random() / 100)


def customer():
    for _ in range(8):
        source, target = random.sample(ACCOUNTS, 2)
        transfer(source, target, random.randint(1, 5))


for account in ACCOUNTS:
    db[account] = struct.pack("<q", 100)
threads = [threading.Thread(target=customer) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
total = sum(read(db[account]) for account in ACCOUNTS)
assert total == 300, f"{total} of 300"
