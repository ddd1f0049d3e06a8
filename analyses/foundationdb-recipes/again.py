"""What a repeated call does after an unknown result, with one client: again.py NAME. For Python 2."""

import json

from recipes import claim, fdb, run

fdb.api_version(300)
db = fdb.open()
ITEMS = range(20)


def odd(items):
    """The items that are not there just once."""
    return ", ".join("%d came %d times" % (item, items.count(item)) for item in ITEMS if items.count(item) != 1)


def queue():
    import micro_queue

    for item in ITEMS:
        micro_queue.enqueue(db, str(item))
    items = [int(item) for item in iter(lambda: micro_queue.dequeue(db), None)]
    claim(not odd(items), "items of the queue: " + odd(items))


def priority():
    import micro_priority

    for item in ITEMS:
        micro_priority.push(db, str(item), item % 3)
    items = [int(item) for item in iter(lambda: micro_priority.pop(db), None)]
    claim(not odd(items), "items of the priority queue: " + odd(items))


def add():
    import micro_multi

    for _ in ITEMS:
        micro_multi.multi_add(db, "index", "value")
    count = micro_multi.multi_get_counts(db, "index")["value"]
    claim(count == 20, "20 additions counted as %d" % count)


def subtract():
    import micro_multi

    db[micro_multi.multi["index"]["value"]] = chr(40) + 7 * "\0"
    for _ in ITEMS:
        micro_multi.multi_subtract(db, "index", "value")
    count = micro_multi.multi_get_counts(db, "index")["value"]
    claim(count == 20, "20 subtractions from 40 left %d" % count)


def document():
    """A document that is given as text, without an ID."""
    import micro_doc

    for item in ITEMS:
        micro_doc.insert_doc(db, json.dumps({"item": item}))
    items = [fdb.tuple.unpack(row.value)[0] for row in db[micro_doc.doc_space.range()]
             if micro_doc.doc_space.unpack(row.key)[1] == "item"]
    claim(not odd(items), "documents: " + odd(items))


def workspace():
    """Bulk loads, one after the other."""
    import micro_indirect

    work = micro_indirect.Workspace(fdb.directory.create_or_open(db, (u"working",)), db)
    work.current
    for item in ITEMS:
        try:
            with work as new:
                db[new[item]] = ""
        except ValueError as error:
            current = work.current
            have = [current.unpack(row.key)[0] for row in db[current.range()]]
            claim(False, "bulk load %d ends with \"%s\", and %s is current" % (item, error, have))


run(globals())
