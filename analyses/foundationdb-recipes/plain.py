"""What fails without a fault: plain.py NAME. For Python 2, as the recipes."""

import random

from recipes import Client, claim, fdb, page, run

fdb.api_version(300)
db = fdb.open()


def row():
    """A row is replaced: the columns keep what it had."""
    import micro_table as table

    table.table_set_row(db, "r", {"a": 1})
    table.table_set_row(db, "r", {"b": 2})
    have, column = table.table_get_row(db, "r"), table.table_get_col(db, "a")
    claim(not column, "the row is %s, and column 'a' has %s" % (have, column))


def cell():
    import micro_table as table

    table.table_set_cell(db, "r", "a", 1)
    value, whole = table.table_get_cell(db, "r", "a"), table.table_get_row(db, "r")["a"]
    claim(value == whole, "a cell was set to %d, and table_get_cell has %r" % (whole, str(value)))


def index():
    """A user moves: the index finds her at both places, and her record is the old one."""
    users = page("simple-indexes", "set_user", fdb=fdb)
    users["set_user"](db, 7, "ann", 10001)
    users["set_user"](db, 7, "ann smith", 90210)
    old, new = (users["get_user_IDs_in_region"](db, zipcode) for zipcode in (10001, 90210))
    claim(old == [], "user 7 moved, both zip codes find her (%s and %s), and her name is %s" %
          (old, new, users["get_user"](db, 7)))


def blob():
    import micro_blob

    micro_blob.clear_subspace(db, micro_blob.blob)
    micro_blob.write_blob(db, "a long blob")
    micro_blob.write_blob(db, "short")
    have = micro_blob.read_blob(db)
    claim(have == "short", "the blob 'short' was written over another, and %r is read" % have)


def empty():
    import micro_blob

    micro_blob.clear_subspace(db, micro_blob.blob)
    micro_blob.write_blob(db, "old")
    micro_blob.write_blob(db, "")
    have = micro_blob.read_blob(db)
    claim(have == "", "an empty blob was written, and %r is read" % have)


def path():
    """A part of a document whose path goes through a list."""
    import micro_doc

    micro_doc.insert_doc(db, {"doc_id": 1, "list": [["a"], ["b"]]})
    have = micro_doc.get_doc(db, 1, ("list", 1))
    claim(have["list"] == [["b"]], "part 1 of the list is read as %s" % have)


def smaller():
    """A document is replaced by one that has less."""
    import micro_doc

    micro_doc.insert_doc(db, {"doc_id": 1, "a": 1, "b": 2})
    micro_doc.insert_doc(db, {"doc_id": 1, "a": 1})
    have = micro_doc.get_doc(db, 1)
    claim("b" not in have, "a document without 'b' was stored, and b = %s is read" % have["b"])


def unique():
    """Two clients insert a document at once, and draw the same random numbers, as forked processes do."""
    import micro_doc

    clients = [Client(db, micro_doc.insert_doc, {"name": name}) for name in ("ann", "bob")]
    for client in clients:
        random.seed(1)
        client.step()
    while not all(client.done for client in clients):
        for client in clients:
            if not client.done:
                client.step()
    conflicts = sum(client.conflicts for client in clients)
    first, second = (client.result for client in clients)
    claim(first != second, "two documents have one ID after %d conflict, and it has %s" %
          (conflicts, micro_doc.get_doc(db, first)["name"]))


def workspace():
    import micro_indirect

    return micro_indirect.Workspace(fdb.directory.create_or_open(db, (u"working",)), db)


def contents(space):
    return [space.unpack(item.key)[0] for item in db[space.range()]]


def error():
    """A bulk load ends with an error: what it had written is current."""
    work = workspace()
    db[work.current["old"]] = ""
    try:
        with work as new:
            db[new["half"]] = ""
            raise IOError("the rest cannot be read")
    except IOError:
        pass
    have = contents(work.current)
    claim(have == ["old"], "a bulk load failed, and %s is current" % have)


def dead():
    """A client dies during a bulk load: the next one begins with what it had written."""
    work = workspace()
    db[work.current["old"]] = ""
    db[work.__enter__()["from the dead"]] = ""
    with workspace() as new:
        db[new["new"]] = ""
    have = contents(work.current)
    claim(have == ["new"], "a bulk load wrote 'new', and %s is current" % have)


def first():
    """The first bulk load: nothing is current yet."""
    try:
        with workspace() as new:
            db[new["new"]] = ""
    except ValueError as error:
        claim(False, "the first bulk load fails: %s" % error)


def large():
    """A blob that is larger than a transaction may be."""
    blob = page("blob", "def write_blob", fdb=fdb)
    data = "x" * 10000000
    try:
        blob["write_blob"](db, data)
    except fdb.FDBError as error:
        claim(False, "a blob of %d MB: error %d" % (len(data) // 1000000, error.code))


run(globals())
