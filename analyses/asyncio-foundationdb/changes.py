"""vnstore: tasks prepare changes in several transactions and apply them: a change is seen whole, or not at all."""

from store import chance, claim, found, run, together

from found.ext import nstore, vnstore

store = vnstore.make("people", ["people"], ["who", "what", "value"])


async def facts(tx, who):
    pattern = [who, nstore.var("what"), nstore.var("value")]
    return {(row["what"], row["value"]) async for row in await vnstore.query(tx, store, pattern)}


async def check(call):
    states = [[set()] for _ in range(3)]

    async def worker(me):
        who, know = f"worker {me}", set()
        for number in range(4):
            change = await call(vnstore.change_create, store)
            await call(vnstore.change_message, store, change, f"change {number}")
            new = set(know)
            for _ in range(3):
                fact = ("likes", chance.randrange(4))

                async def alter(tx):
                    vnstore.change_continue(tx, store, change)
                    if fact in new:
                        claim(fact not in know or await vnstore.remove(tx, store, who, *fact), f"{fact} is not there")
                    else:
                        await vnstore.add(tx, store, who, *fact)

                # What a change adds or removes twice is not the subject.
                if (fact in new) == (fact in know):
                    await call(alter)
                    new ^= {fact}
                seen = await call(facts, who)
                claim(seen == know, f"{who} knows {know}, and a change that is not applied shows as {seen}")
            states[me].append(new)
            await call(vnstore.change_apply, store, change)
            # It is applied already, which makes no difference.
            await call(vnstore.change_apply, store, change)
            know = new
            seen = await call(facts, who)
            claim(seen == know, f"{who} knows {know}, and the store has {seen}")
            for fact in sorted(know):
                claim(await call(vnstore.ask, store, who, *fact), f"ask does not find {fact} of {who}")
            entry = await call(vnstore.change_get, store, change)
            claim(entry["message"] == f"change {number}", f"change {number} has the message {entry['message']}")
            other = chance.randrange(3)
            seen = await call(facts, f"worker {other}")
            claim(seen in states[other], f"worker {other} is seen to know {seen}, which is part of a change")

    await together(*map(worker, range(3)))
    changes = await call(vnstore.change_list, store)
    applied = [change for change in changes if change["significance"] is not None]
    claim(len(applied) == 12, f"12 changes were applied, and {len(applied)} are listed")


if __name__ == "__main__":
    run(check)
