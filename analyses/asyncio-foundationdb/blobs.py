"""bstore: tasks store the same few blobs at once."""

from store import chance, claim, found, run, together

from found.ext import bstore

store = bstore.make("blobs", ("blobs",))


async def check(call):
    blobs = [chance.randbytes(size) for size in (1, 100, 100_000, 100_001, 250_000)]
    uids = {}

    async def worker(_):
        for _ in range(6):
            blob = chance.choice(blobs)
            uid = await call(bstore.get_or_create, store, blob)
            known = uids.setdefault(blob, uid)
            claim(known == uid, f"a blob of {len(blob)} bytes has two uids")
            have = await call(bstore.get, store, uid)
            claim(have == blob, f"a blob has {len(have)} bytes, of {len(blob)} that were stored")

    await together(*map(worker, range(4)))
    begin = found.pack((store.prefix_blob,))[:-1]
    slices = await call(lambda tx: found.all(found.query(tx, begin, found.next_prefix(begin))))
    stored, should = sum(len(value) for _, value in slices), sum(map(len, uids))
    claim(stored == should, f"{should} bytes were stored, and {stored} are there")


if __name__ == "__main__":
    run(check)
