"""transactional and its hooks: increments by tasks at once, a log that a hook writes, and a watch."""

import asyncio

from store import claim, found, one, run, together

TASKS, EACH = 4, 6


def number(value):
    return int.from_bytes(value or b"", "little")


async def check(call):
    done = []

    async def log(tx):
        await found.add(tx, b"log", one(tx.vars["step"]))

    async def after(tx, stats):
        done.append(stats)
        claim(tx.vars["step"] == 1, "variables are those of the attempt that is committed")

    async def increment(tx):
        claim(not tx.vars, f"an attempt begins with {tx.vars}")
        tx.vars["step"] = 1
        await found.set(tx, b"counter", one(number(await found.get(tx, b"counter")) + 1))

    async def worker(_):
        for _ in range(EACH):
            await found.transactional(hooked, increment)

    async def waiter():
        """Waits until the counter is there, with nothing but watches."""
        while True:
            async def look(tx):
                value = number(await found.get(tx, b"counter"))
                return None if value >= TASKS * EACH else await found.watch(tx, b"counter")

            watch = await call(look)
            if watch is None:
                return
            try:
                await watch
            except found.FoundException:
                pass

    hooked = await found.open()
    hooked.hooks.on_commit.append(log)
    hooked.hooks.on_post_commit.append(after)
    waiting = asyncio.create_task(waiter())
    await together(*map(worker, range(TASKS)))

    async def both(tx):
        return [number(value) for value in await asyncio.gather(found.get(tx, b"counter"), found.get(tx, b"log"))]

    counter, logged = await call(both)
    claim(counter == logged, f"the counter is {counter}, and the log of the hook has {logged}")
    calls, retries = TASKS * EACH, sum(stats.retries for stats in done)
    claim(len(done) == calls, f"{calls} calls, and the hook after a commit ran {len(done)} times")
    claim(calls <= counter <= calls + retries, f"{calls} increments and {retries} retries counted as {counter}")
    await waiting


if __name__ == "__main__":
    run(check)
