"""Twenty entities are created and twenty increments made, each once: once.py NAME."""

import sys

from store import claim, found, one, run

from found.ext import eavstore

things = eavstore.make("things", ("things",))


async def create(call):
    for number in range(20):
        await call(eavstore.create, things, {"kind": "thing", "number": number})
    answer = await call(lambda tx: found.all(eavstore.query(tx, things, "kind", "thing")))
    claim(len(answer) == 20, f"20 entities were created, and {len(answer)} are there")


async def add(call):
    for _ in range(20):
        await call(found.add, b"counter", one(1))
    count = int.from_bytes(await call(found.get, b"counter"), "little")
    claim(count == 20, f"20 increments counted as {count}")


run(globals()[sys.argv[1]])
