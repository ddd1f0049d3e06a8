"""What the programs here share: chance without chance, a claim, and the start."""

import asyncio
import gc
import logging
import os
import random
import sys
import uuid

import uuid_extensions

# Neither chance nor the clock may make a difference between two runs of a seed. The package takes these names
# when it is imported.
gc.disable()  # It would destroy transactions in cycles at moments of its own.
logging.disable()
chance = random.Random(int(os.environ.get("SHAKETABLE_SEED", 0)))
random.seed(chance.random())
moments = iter(range(1, 1 << 40))
uuid.uuid4 = lambda: uuid.UUID(int=chance.getrandbits(128), version=4)
uuid_extensions.uuid7 = lambda: uuid.UUID(int=next(moments) << 80 | 7 << 76 | 2 << 62)

import found  # noqa: E402


class Broken(Exception):
    pass


def claim(holds, otherwise):
    if not holds:
        raise Broken(otherwise)


class Calls:
    """A database whose functions of the package are called in transactions."""

    def __init__(self, db):
        self.db = db

    def __call__(self, function, *arguments, **options):
        return found.transactional(self.db, function, *arguments, **options)


def one(value):
    return value.to_bytes(8, "little")


async def together(*tasks):
    """Runs tasks at once, and ends all if one fails."""
    async with asyncio.TaskGroup() as group:
        for task in tasks:
            group.create_task(task)


def first(error):
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def run(*checks):
    async def start():
        db = await found.open()
        for check in checks:
            await check(Calls(db))
            db.hooks.on_begin.clear()
            db.hooks.on_commit.clear()
            db.hooks.on_post_commit.clear()

    try:
        asyncio.run(start())
    except (Broken, found.BaseFoundException, ExceptionGroup) as error:
        error = first(error)
        print(error if isinstance(error, Broken) else repr(error))
        sys.exit(1)
