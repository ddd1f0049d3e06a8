"""Twenty increments, each in a transaction that first reads what it needs, in a hook for the beginning."""

from store import claim, found, one, run


async def check(call):
    async def read(tx):
        tx.vars["schema"] = await found.get(tx, b"schema")

    call.db.hooks.on_begin.append(read)
    for number in range(20):
        try:
            await call(found.add, b"counter", one(1))
        except found.FoundException as error:
            again = found.error_predicate(found.ERROR_PREDICATE_RETRYABLE, error.code)
            claim(not again, f"transactional does not retry {error!r}")
            raise


run(check)
