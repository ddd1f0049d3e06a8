"""Workers take jobs from a queue, and watch it while it is empty. A job is done again if its transaction runs again."""
import threading
import time
import uuid

import fdb

fdb.api_version(740)
db = fdb.open()
jobs = fdb.Subspace(("jobs",))
done, lock, over = [], threading.Lock(), threading.Event()


@fdb.transactional
def push(tr, job):
    tr[jobs[uuid.uuid4().hex]] = job.encode()
    tr.add(b"changed", b"\1\0\0\0\0\0\0\0")


@fdb.transactional
def take(tr):
    for row in tr.get_range(jobs.range().start, jobs.range().stop, limit=1):
        del tr[row.key]
        with lock:
            done.append(bytes(row.value).decode())
        return None
    return tr.watch(b"changed")


def worker():
    while not over.is_set():
        watch = take(db)
        if watch:
            changed = threading.Event()
            watch.on_ready(lambda _: changed.set())
            changed.wait(2)


workers = [threading.Thread(target=worker) for _ in range(3)]
for thread in workers:
    thread.start()
for number in range(15):
    push(db, f"job {number}")
while list(db[jobs.range().start:jobs.range().stop]):
    time.sleep(0.05)
over.set()
for thread in workers:
    thread.join()
assert len(done) == 15, f"15 jobs, done: {done}"
