"""Views are put into a queue of Python's, and threads count them, some at once. A batch may be counted twice."""
import queue
import random
import threading
import time
from collections import Counter

import fdb

fdb.api_version(740)
db = fdb.open()
views = fdb.Subspace(("views",))
waiting = queue.Queue(maxsize=5)
PAGES = {"home", "cart", "help", "news"}


@fdb.transactional
def count(tr, batch):
    for page, number in Counter(batch).items():
        tr.add(views[page][random.randrange(3)], number.to_bytes(8, "little"))


def counter():
    while True:
        batch = [waiting.get()]
        try:
            while len(batch) < 4:
                batch.append(waiting.get(timeout=0.05))
        except queue.Empty:
            pass
        count(db, [page for page in batch if page])
        if None in batch:
            waiting.put(None)
            return


threads = [threading.Thread(target=counter, daemon=True) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(40):
    waiting.put(random.choice(sorted(PAGES)))
    time.sleep(random.random() / 50)
waiting.put(None)
for thread in threads:
    thread.join()
counted = Counter()
for row in db[views.range().start:views.range().stop]:
    counted[views.unpack(row.key)[0]] += int.from_bytes(bytes(row.value), "little")
assert sum(counted.values()) == 40, f"40 views, counted {dict(counted)}"
