"""A pool of threads sells lamps. An order's id is drawn within the transaction, which may run again after it has committed."""
import uuid
from concurrent.futures import ThreadPoolExecutor

import fdb

fdb.api_version(740)
db = fdb.open()
orders = fdb.Subspace(("orders",))


@fdb.transactional
def order(tr, customer):
    free = int(bytes(tr[b"free"]))
    if free == 0:
        return None
    oid = uuid.uuid4().hex
    tr[b"free"] = str(free - 1).encode()
    tr[orders[oid]] = customer.encode()
    return oid


db[b"free"] = b"30"
with ThreadPoolExecutor(4) as pool:
    sold = [oid for oid in pool.map(lambda n: order(db, f"customer {n % 3}"), range(20)) if oid]
rows = {orders.unpack(row.key)[0] for row in db[orders.range().start:orders.range().stop]}
assert rows == set(sold), f"orders that nobody knows: {sorted(rows - set(sold))}"
