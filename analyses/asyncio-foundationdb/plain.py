"""What fails without a fault: plain.py NAME."""

import asyncio
import sys

from store import chance, claim, found, one, run

from found.ext import bstore, eavstore, nstore, pstore, vnstore

things = eavstore.make("things", ("things",))
facts = nstore.make("facts", ("facts",), 3)
words = pstore.make("words", ("words",))
var = nstore.var


def having(key, value):
    return lambda tx: found.all(eavstore.query(tx, things, key, value))


def those(*pattern):
    return lambda tx: found.all(nstore.query(tx, facts, pattern))


async def updated(call):
    """An entity is updated: it is found by its value of before."""
    uid = await call(eavstore.create, things, {"color": "red"})
    await call(eavstore.update, things, uid, {"color": "blue"})
    found_red = uid in await call(having("color", "red"))
    claim(not found_red, f"the color is {(await call(eavstore.get, things, uid))['color']}, and red finds it")


async def removed(call):
    """An entity is removed: it is found by its values."""
    uid = await call(eavstore.create, things, {"color": "red"})
    await call(eavstore.remove, things, uid)
    claim(await call(having("color", "red")) == [], f"red finds {await call(eavstore.get, things, uid)}")


async def zero(call):
    """Strings that go on with a zero byte belong to the shorter one too."""
    await call(nstore.add, facts, "a\0b", "is", "here")
    answer = await call(those("a", var("verb"), var("object")))
    claim(answer == [], f"no fact begins with 'a', and the query has {answer}")


async def zero_entity(call):
    uid = await call(eavstore.create, things, {"name": "a\0b"})
    claim(await call(having("name", "a")) == [], f"name 'a' finds {await call(eavstore.get, things, uid)}")


async def zero_word(call):
    await call(pstore.index, words, 1, {"a\0b": 3})
    answer = await call(pstore.search, words, ["a"], 10)
    claim(answer == [], f"no document has the word 'a', and the search has {answer}")


async def twice(call):
    """A pattern names a variable twice."""
    await call(nstore.add, facts, "ann", "knows", "bob")
    await call(nstore.add, facts, "eve", "knows", "eve")
    answer = await call(those(var("who"), "knows", var("who")))
    claim(answer == [{"who": "eve"}], f"who knows themselves: {', '.join(row['who'] for row in answer)}")


async def stamped(call):
    """A fact with a versionstamp that the commit is to fill in."""
    await call(nstore.add, facts, "ann", "came", found.Versionstamp.incomplete())
    (answer,) = await call(those("ann", "came", var("when")))
    claim(answer["when"].is_complete(), f"the versionstamp of a fact was not filled in: {answer['when']}")


async def nested(call):
    packed = found.has_incomplete_versionstamp(((found.Versionstamp.incomplete(),),))
    claim(packed, "there is a versionstamp")
    try:
        found.pack_with_versionstamp(((found.Versionstamp.incomplete(),),))
    except ValueError as error:
        claim(False, f"a versionstamp in a nested tuple: {error}")


async def readonly(call):
    """A read-only transaction clears a key."""
    await call(found.set, b"key", b"value")
    await call(found.clear, b"key", snapshot=True)
    claim(await call(found.get, b"key") == b"value", "a read-only transaction has cleared the key")


async def stamp(call):
    """The stamp of a commit, asked for before it and awaited after it."""
    tx = found.make_transaction(call.db)
    await found.set(tx, b"key", b"value")
    stamp = found.get_versionstamp(tx)
    await found.commit(tx)
    try:
        await stamp
    except found.FoundException as error:
        claim(False, f"get_versionstamp: {error!r}")


async def watch(call):
    """A watch as the README has it: nobody changes the key."""
    tx = found.make_transaction(call.db)
    watched = found.watch(tx, b"key")
    await found.commit(tx)
    fired = asyncio.ensure_future(watched)
    await asyncio.sleep(0.5)
    claim(not fired.done(), "nobody has changed the key, and the watch is done")
    fired.cancel()


async def watches(call):
    """Watches that are cancelled, at most 10 at once: they count for ever."""
    found.database_set_option(call.db, 20, one(10))  # MAX_WATCHES
    for number in range(20):
        tx = found.make_transaction(call.db)
        future = await found.watch(tx, b"key")
        await found.commit(tx)
        await asyncio.sleep(0.01)
        if future.done():
            claim(False, f"{number} watches were cancelled, and the next fails: {future.exception()!r}")
        future.cancel()


async def empty(call):
    blobs = bstore.make("blobs", ("blobs",))
    uid = await call(bstore.get_or_create, blobs, b"")
    try:
        await call(bstore.get, blobs, uid)
    except bstore.BStoreException:
        claim(False, "an empty blob was stored, and get does not find it")


async def change(call):
    """A tuple that two changes have added."""
    people = vnstore.make("people", ["people"], ["name"])
    for _ in range(2):
        uid = await call(vnstore.change_create, people)

        async def add(tx):
            vnstore.change_continue(tx, people, uid)
            await vnstore.add(tx, people, "ann")

        await call(add)
        await call(vnstore.change_apply, people, uid)

    async def everyone(tx):
        return await found.all(await vnstore.query(tx, people, [var("name")]))

    answer = await call(everyone)
    claim(len(answer) == 1, f"two changes added ann, and the query has {len(answer)} of her")


async def thread(call):
    """The callback for the end of the network thread: Python says on standard error what became of it."""
    found.add_network_thread_completion_hook(lambda: print("the callback was called"))


async def sample(call):
    """The document that matches best, among more of them than a search looks at."""
    async def some(tx, documents):
        for document in documents:
            await pstore.index(tx, words, document, {"word": 1 + 99 * (document == best)})

    best = chance.randrange(2000)
    for begin in range(0, 2000, 100):
        await call(some, range(begin, begin + 100))
    for tries in range(20):
        (document, score), = await call(pstore.search, words, ["word"], 1)
        claim(document == best, f"the best document has the word 100 times, and the search finds one with {score}")


run(globals()[sys.argv[1]])
