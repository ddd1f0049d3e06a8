"""nstore: rows that tasks add, remove and hand over at once, found by every pattern."""

from itertools import product

from store import chance, claim, found, run, together

from found.ext import nstore

store = nstore.make("rows", ("rows",), 3)
WORKERS = 4


async def matches(tx, pattern):
    """The rows that a pattern has, whatever index it is read from."""
    names = [nstore.var(name) for name in "abc"]
    asked = [name if item is None else item for name, item in zip(names, pattern)]
    rows = await found.all(nstore.query(tx, store, asked))
    return sorted(tuple(row.get(name, item) for name, item in zip("abc", asked)) for row in rows)


async def agree(tx):
    """All indexes have the same rows; returns them."""
    rows = await matches(tx, (None, None, None))
    row = rows[chance.randrange(len(rows))] if rows else ("a", "b", "c")
    for known in product((False, True), repeat=3):
        pattern = tuple(item if is_known else None for item, is_known in zip(row, known))
        should = [row for row in rows if all(item in (None, has) for item, has in zip(pattern, row))]
        found_rows = await matches(tx, pattern)
        claim(found_rows == should, f"pattern {pattern} has {found_rows}, and the store {should}")
    for row in rows[:3]:
        value = await nstore.get(tx, store, *row)
        claim(value is not None, f"get does not find {row}")
    return rows


async def hand(tx, token, to):
    """Hands a token over; it has one holder."""
    holders = [row["who"] async for row in nstore.select(tx, store, "token", token, nstore.var("who"))]
    claim(len(holders) == 1, f"token {token} is held by {holders}")
    await nstore.remove(tx, store, "token", token, holders[0])
    await nstore.add(tx, store, "token", token, to)


async def check(call):
    for token in range(2):
        await call(nstore.add, store, "token", token, 0)
    mine = [dict() for _ in range(WORKERS)]

    async def worker(me):
        for _ in range(12):
            row = (f"by {me}", chance.randrange(3), chance.randrange(3))
            action = chance.randrange(4)
            if action == 0:
                value = b"%d" % chance.randrange(100)

                async def add(tx):
                    await nstore.add(tx, store, *row, value=value)

                await call(add)
                mine[me][row] = value
            elif action == 1:
                await call(nstore.remove, store, *row)
                mine[me].pop(row, None)
            elif action == 2:
                await call(hand, chance.randrange(2), me)
            else:
                rows = await call(agree)
                own = [row for row in rows if row[0] == f"by {me}"]
                claim(own == sorted(mine[me]), f"worker {me} added {sorted(mine[me])}, and the store has {own}")
            value = await call(nstore.get, store, *row)
            claim(value == mine[me].get(row), f"{row} has {value}, and should have {mine[me].get(row)}")

    await together(*map(worker, range(WORKERS)))
    rows = await call(agree)
    claim(len(rows) == 2 + sum(map(len, mine)), f"the store has {len(rows)} rows")


if __name__ == "__main__":
    run(check)
