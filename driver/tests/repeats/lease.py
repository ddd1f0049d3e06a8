"""Workers share a lease that runs out. One that is slow goes on to work when another one has it."""
import random
import threading
import time
import uuid

import fdb

fdb.api_version(740)
db = fdb.open()
TTL = 0.5


@fdb.transactional
def acquire(tr, name):
    held = tr[b"lease"]
    if held.present():
        owner, until = fdb.tuple.unpack(bytes(held))
        if owner != name and until > time.time():
            return False
    tr[b"lease"] = fdb.tuple.pack((name, time.time() + TTL))
    return True


@fdb.transactional
def release(tr, name):
    held = tr[b"lease"]
    if held.present() and fdb.tuple.unpack(bytes(held))[0] == name:
        del tr[b"lease"]


def worker(number):
    name = f"{number}-{uuid.uuid4()}"
    for turn in range(3):
        while not acquire(db, name):
            time.sleep(random.uniform(0.01, 0.2))
        seen = int(bytes(db[b"count"]))
        time.sleep(random.expovariate(4))
        db[b"count"] = str(seen + 1).encode()
        release(db, name)


db[b"count"] = b"0"
threads = [threading.Thread(target=worker, args=(number,)) for number in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
count = int(bytes(db[b"count"]))
assert count == 9, f"{count} of 9 turns are counted"
