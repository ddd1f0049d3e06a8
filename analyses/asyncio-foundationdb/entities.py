"""eavstore: entities that tasks create, replace and remove at once. Queries must find what they should; what they
find beyond it, plain.py shows."""

import uuid

from store import chance, claim, found, run, together

from found.ext import eavstore

store = eavstore.make("things", ("things",))


def some():
    return {key: chance.choice([1, 2.5, None, True, "red", b"blue"]) for key in "abcde" if chance.random() < 0.6}


async def finds(tx, uid):
    """The entity, which queries for its values find."""
    entity = await eavstore.get(tx, store, uid)
    for key, value in entity.items():
        uids = await found.all(eavstore.query(tx, store, key, value))
        claim(uid in uids, f"an entity has {key} = {value}, and the query does not find it")
    return entity


async def check(call):
    shared = uuid.uuid4()
    versions = []

    async def worker(me):
        entities = {}
        for number in range(10):
            uid = chance.choice(list(entities)) if entities and chance.random() < 0.7 else uuid.uuid4()
            new = some()
            if uid not in entities:
                # The uid is given, so that a repeated call does the same.
                await call(eavstore.create, store, new, uid)
            elif chance.random() < 0.3:
                await call(eavstore.remove, store, uid)
                new = {}
            else:
                await call(eavstore.update, store, uid, new)
            entities[uid] = new
            have = await call(finds, uid)
            claim(have == new, f"worker {me} stored {new}, and get has {have}")
            # One entity is everybody's: it is as one of them stored it, never a mixture.
            whole = {"one": me, "two": number, "three": me * 100 + number, **({"four": 1} if me % 2 else {})}
            versions.append(whole)
            await call(eavstore.update, store, shared, whole)
            have = await call(finds, shared)
            claim(have in versions, f"the shared entity is {have}, as nobody stored it")
        for uid, new in entities.items():
            have = await call(eavstore.get, store, uid)
            claim(have == new, f"worker {me} stored {new}, and in the end get has {have}")

    await together(*map(worker, range(4)))


if __name__ == "__main__":
    run(check)
