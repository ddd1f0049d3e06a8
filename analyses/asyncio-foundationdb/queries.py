"""Ranges in both directions, with limits and in all modes, compared with a dictionary; tuples, compared with
FoundationDB's own binding."""

import uuid

import fdb.impl  # noqa: F401
import fdb.tuple

from store import chance, claim, found, run

MODES = [getattr(found, f"STREAMING_MODE_{name}") for name in
         ("WANT_ALL", "ITERATOR", "EXACT", "SMALL", "MEDIUM", "LARGE", "SERIAL")]


async def ranges(call):
    rows = {found.pack((chance.randrange(2000),)): chance.randbytes(chance.randrange(600)) for _ in range(150)}

    async def write(tx):
        for key, value in rows.items():
            await found.set(tx, key, value)

    await call(write)
    for _ in range(12):
        low, high = sorted(found.pack((chance.randrange(2000),)) for _ in range(2))
        limit = chance.choice([0, 0, 1, 7, 60])
        mode = chance.choice(MODES)
        if mode == found.STREAMING_MODE_EXACT and not limit:
            limit = 20
        if low == high:
            continue
        keys = sorted(key for key in rows if low <= key < high)
        answer = await call(lambda tx: found.all(found.query(tx, low, high, limit=limit, mode=mode)))
        should = [(key, rows[key]) for key in keys][: limit or None]
        claim(answer == should, f"a range has {len(should)} rows, and the query {len(answer)} (mode {mode})")
        answer = await call(lambda tx: found.all(found.query(tx, low, high, limit=limit, mode=mode, reverse=True)))
        should = [(key, rows[key]) for key in reversed(keys)][: limit or None]
        claim(answer == should, f"a range backwards has {len(should)} rows, and the query {len(answer)} (mode {mode})")


def item(depth=0):
    kind = chance.randrange(10 if depth < 3 else 9)
    if kind == 0:
        return None
    if kind == 1:
        return chance.random() < 0.5
    if kind == 2:
        return bytes(chance.choice([0, 1, 65, 255]) for _ in range(chance.randrange(6)))
    if kind == 3:
        return "".join(chance.choice("\0a\u00e9\uffff\U0001f600") for _ in range(chance.randrange(6)))
    if kind in (4, 5):
        bits = chance.choice([0, 1, 7, 8, 9, 31, 32, 56, 63, 64, 65, 128, 2000])
        return ((1 << bits) + chance.randrange(-2, 3)) * chance.choice([1, -1])
    if kind == 6:
        return chance.choice([0.0, -0.0, 1.5, float("inf"), float("nan"), 5e-324, chance.uniform(-1e9, 1e9)])
    if kind == 7:
        return uuid.UUID(int=chance.getrandbits(128))
    if kind == 8:
        return fdb.tuple.Versionstamp(chance.randbytes(10), chance.randrange(1 << 16))
    return tuple(item(depth + 1) for _ in range(chance.randrange(4)))


def of_found(value):
    if isinstance(value, tuple):
        return tuple(map(of_found, value))
    if isinstance(value, fdb.tuple.Versionstamp):
        return found.Versionstamp(value.tr_version, value.user_version)
    return value


async def tuples(call):
    for _ in range(200):
        value = tuple(item() for _ in range(chance.randrange(5)))
        packed = fdb.tuple.pack(value)
        claim(found.pack(of_found(value)) == packed, f"{value} is not packed as FoundationDB's binding packs it")
        claim(repr(found.unpack(packed)) == repr(of_found(value)), f"{value} is not unpacked as it was packed")


async def check(call):
    await ranges(call)
    await tuples(call)


if __name__ == "__main__":
    run(check)
