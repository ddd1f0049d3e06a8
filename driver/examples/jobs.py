"""A queue of jobs, as people write it with FoundationDB's Python binding, and what is wrong with it.

`fdb.transactional` runs a function again if the result of its commit is unknown. If the first commit took effect, a
push has added its job twice, and a pop has removed a job that nobody received. `jobs.py once` passes each operation a
name: a repeated one finds under this name, in the same transaction, what it did before.

Nothing here knows of the simulated cluster. `shaketable with -- python3 jobs.py` shakes it, and so does
`pytest --shaketable 50 test_jobs.py`.
"""

import sys

import fdb

fdb.api_version(740)
db = fdb.open()
queue = fdb.Subspace(("queue",))
done = fdb.Subspace(("done",))


def first(tr, **order):
    """The first item of the queue, or the last one if the order is reversed."""
    items = queue.range()
    return next(iter(tr.get_range(items.start, items.stop, limit=1, **order)), None)


@fdb.transactional
def push(tr, job):
    last = first(tr, reverse=True)
    index = queue.unpack(last.key)[0] + 1 if last else 0
    tr[queue[index]] = job


@fdb.transactional
def pop(tr):
    item = first(tr)
    if item is None:
        return None
    del tr[item.key]
    return item.value


@fdb.transactional
def once(tr, name, operation, *arguments):
    """Does an operation of the queue, unless the operation with this name was done; returns what it returned."""
    before = tr[done[name]]
    if before.present():
        return fdb.tuple.unpack(before[:])[0]
    result = operation(tr, *arguments)
    tr[done[name]] = fdb.tuple.pack((result,))
    return result


def work(push, pop):
    """Pushes jobs and pops them all: each must come out once, in order."""
    jobs = [b"job %d" % n for n in range(20)]
    for job in jobs:
        push(job)
    popped = []
    while (job := pop()) is not None:
        popped.append(job)
    assert popped == jobs, "%d jobs in, %d out: %s" % (len(jobs), len(popped), b", ".join(popped).decode())


def work_by_name():
    """The same, with a name for each operation."""
    # Any name will do that no other operation has, for example a UUID.
    names = iter(range(1000))
    work(
        lambda job: once(db, next(names), push, job),
        lambda: once(db, next(names), pop),
    )


if __name__ == "__main__":
    if sys.argv[1:] == ["once"]:
        work_by_name()
    else:
        work(lambda job: push(db, job), lambda: pop(db))
    print("each job came out once")
