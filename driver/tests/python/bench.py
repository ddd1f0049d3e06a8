"""How many small transactions a second a Python program makes on the driver: each reads a key and writes it."""

import struct
import time

import fdb

fdb.api_version(740)
db = fdb.open("/nowhere/fdb.cluster")

COUNT = 5_000


@fdb.transactional
def add(tr, key):
    value = tr[key]
    tr[key] = struct.pack("<q", 1 + (struct.unpack("<q", value[:])[0] if value.present() else 0))


@fdb.transactional
def read(tr, key):
    return tr[key].present()


def rate(name, call):
    for n in range(200):
        call(n)
    start = time.perf_counter()
    for n in range(COUNT):
        call(n)
    seconds = time.perf_counter() - start
    print("%-24s %6.0f transactions a second, %.3f ms each" % (name, COUNT / seconds, seconds / COUNT * 1000))


rate("read and write a key", lambda n: add(db, b"key%03d" % (n % 500)))
rate("read a key", lambda n: read(db, b"key%03d" % (n % 500)))
