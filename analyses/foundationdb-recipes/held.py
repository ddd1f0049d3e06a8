"""What holds, with several clients at once in one thread: held.py NAME. For Python 2, as the recipes."""

import os

from recipes import Client, Unknowns, chance, claim, fdb, page, run, together

fdb.api_version(300)
db = fdb.open()
calm = os.environ.get("SHAKETABLE_FAULTS", "calm") == "calm"


def counted(clients):
    return sum(client.unknown for client in clients)


def rounds(enqueue, dequeue, drain):
    """Rounds of additions and removals at once. An unknown result may have added twice, or removed what nobody
    got; nothing else may."""
    added, removed, twice, lost, conflicts = [], [], 0, 0, 0
    for number in range(6):
        adding = [Client(db, enqueue, "%d %d" % (number, which)) for which in range(3)]
        removing = [Client(db, dequeue) for _ in range(2)] if number % 2 else []
        together(adding + removing)
        added += ["%d %d" % (number, which) for which in range(3)]
        removed += [client.result for client in removing if client.result is not None]
        twice += counted(adding)
        lost += counted(removing)
        conflicts += sum(client.conflicts for client in adding)
    call = Unknowns(db, dequeue)
    rest = list(iter(call, None))
    lost += call.calls - len(rest) - 1
    out = removed + rest
    again = sum(out.count(item) - 1 for item in set(out))
    missing = len(set(added) - set(out))
    claim(again <= twice, "%d items came again, and %d additions had unknown results" % (again, twice))
    claim(missing <= lost, "%d items are missing, and %d removals had unknown results" % (missing, lost))
    claim(set(out) <= set(added), "items came out that nobody added")
    claim(not calm or not conflicts, "%d additions had conflicts" % conflicts)
    drain(rest)


def queue():
    import micro_queue

    def fifo(rest):
        order = [int(item.split()[0]) for item in rest]
        claim(order == sorted(order), "items came out in the order %s" % rest)

    rounds(micro_queue.enqueue, micro_queue.dequeue, fifo)


def priority():
    import micro_priority

    def key(item):
        return int(item.split()[1]) % 2, int(item.split()[0])

    def ordered(rest):
        order = [key(item) for item in rest]
        claim(order == sorted(order), "items came out in the order %s" % rest)

    micro_priority.clear_subspace(db, micro_priority.pq)
    rounds(lambda tr, item: micro_priority.push(tr, item, key(item)[0]), micro_priority.pop, ordered)
    claim(micro_priority.peek(db) is None, "there is more")


def multi():
    import micro_multi

    count, unknown = 0, 0
    for _ in range(8):
        adds = [Client(db, micro_multi.multi_add, "index", "value") for _ in range(chance.randrange(3))]
        subtracts = [Client(db, micro_multi.multi_subtract, "index", "value") for _ in range(chance.randrange(2))]
        together(adds + subtracts)
        before = count
        count = micro_multi.multi_get_counts(db, "index").get("value", 0)
        there = micro_multi.multi_is_element(db, "index", "value")
        claim(there == (count > 0), "the count is %d, and %s that there is a value" % (count, there))
        claim(count >= 0, "the count is %d" % count)
        unknown = counted(adds + subtracts)
        low, high = before + len(adds) - len(subtracts) - unknown, before + len(adds) + unknown
        claim(max(0, low) <= count <= high, "%d and %d more and %d less are %d" %
              (before, len(adds), len(subtracts), count))


def table():
    import micro_table

    micro_table.clear_subspace(db, micro_table.table)
    for number in range(6):
        together([Client(db, micro_table.table_set_cell, chance.randrange(3), chance.randrange(3), (number, which))
                  for which in range(3)])

        @fdb.transactional
        def both(tr):
            rows = {(r, c): v for r in range(3) for c, v in micro_table.table_get_row(tr, r).items()}
            columns = {(r, c): v for c in range(3) for r, v in micro_table.table_get_col(tr, c).items()}
            return rows, columns

        rows, columns = both(db)
        claim(rows == columns, "the rows have %s, and the columns %s" % (rows, columns))
        claim(number in [value[0] for value in rows.values()], "what was set last is not there")


def graph():
    import micro_graph

    for _ in range(6):
        together([Client(db, chance.choice([micro_graph.set_edge, micro_graph.set_edge, micro_graph.del_edge]),
                         chance.randrange(3), chance.randrange(3)) for _ in range(3)])

        @fdb.transactional
        def both(tr):
            return ({(n, m) for n in range(3) for m in micro_graph.get_out_neighbors(tr, n)},
                    {(n, m) for m in range(3) for n in micro_graph.get_in_neighbors(tr, m)})

        out, back = both(db)
        claim(out == back, "the edges are %s, and the inverse ones %s" % (out, back))
    micro_graph.set_edge(db, 1, 2)
    claim(2 in micro_graph.get_out_neighbors(db, 1), "an edge that was set is not there")
    micro_graph.del_edge(db, 1, 2)
    claim(2 not in micro_graph.get_out_neighbors(db, 1), "an edge that was deleted is there")


def vector():
    code = page("vector", "def vector_get", fdb=fdb)
    have = {}
    for _ in range(15):
        index, value = chance.randrange(5), str(chance.random())
        code["vector_set"](db, index, value)
        have[index] = value
        index = chance.randrange(5)
        value = code["vector_get"](db, index, None)
        value = str(value) if value.present() else None
        claim(value == have.get(index), "element %d is %s, and was set to %s" % (index, value, have.get(index)))


def item(depth=0):
    kind = chance.randrange(4 if depth > 2 else 8)
    if kind < 4:
        return chance.choice([0, 1, -5, 2.5, None, "", "text", u"\u00e9"])
    if kind < 6:
        return [item(depth + 1) for _ in range(chance.randrange(4))]
    return {chance.choice("abcde"): item(depth + 1) for _ in range(chance.randrange(4))}


def document():
    import micro_doc

    for _ in range(6):
        documents = [{"body": item(), "more": item()} for _ in range(3)]
        clients = together([Client(db, micro_doc.insert_doc, document) for document in documents])
        for client, document in zip(clients, documents):
            have = micro_doc.get_doc(db, client.result)
            claim(have == document, "%s was stored, and %s is read" % (document, have))


def blob():
    import micro_blob

    code = page("blob", "def write_blob", "def read_blob", fdb=fdb)
    micro_blob.clear_subspace(db, micro_blob.blob)
    data = "".join(chr(chance.randrange(256)) for _ in range(chance.randrange(1, 2000)))
    micro_blob.write_blob(db, data)
    claim(micro_blob.read_blob(db) == data, "a blob of %d bytes is read as another" % len(data))
    data = data * chance.randrange(1, 100)
    code["write_blob"](db, data)
    claim(code["read_blob"](db) == data, "a blob of %d bytes is read as another" % len(data))


def segments():
    code = page("segmented-range-reads", "def get_range_limited", fdb=fdb, LIMIT=chance.randrange(1, 9))
    rows = fdb.Subspace(("rows",))

    @fdb.transactional
    def write(tr):
        for number in range(40):
            tr[rows[number]] = ""

    @fdb.transactional
    def read(tr):
        whole = rows.range()
        return list(code["get_range_limited"](tr, whole.start, whole.stop))

    write(db)
    batches = read(db)
    numbers = [rows.unpack(key)[0] for batch in batches for key in batch]
    claim(numbers == list(range(40)), "the batches have %s" % numbers)
    sizes = {len(batch) for batch in batches[:-1]}
    claim(sizes <= {code["LIMIT"]}, "batches of %s, and the limit is %d" % (sizes, code["LIMIT"]))


def workspace():
    import micro_indirect

    work = micro_indirect.Workspace(fdb.directory.create_or_open(db, (u"working",)), db)
    db[work.current["old"]] = ""
    for number in range(4):
        new = work.__enter__()
        for part in range(3):
            db[new[number][part]] = ""
        update = Client(db, type(work)._update.__get__(work))
        together([update])
        claim(not update.failed or update.unknown, "the new space is not made current: %s" % update.failed)
        current = work.current
        have = [current.unpack(row.key) for row in db[current.range()]]
        claim(have == [(number, part) for part in range(3)], "bulk load %d left %s current" % (number, have))


def users():
    """Users who never move, which the page's functions can hold."""
    code = page("simple-indexes", "set_user", fdb=fdb)
    for number in range(4):
        together([Client(db, code["set_user"], 10 * number + which, "name", which) for which in range(3)])
        for zipcode in range(3):
            have = code["get_user_IDs_in_region"](db, zipcode)
            should = [10 * before + zipcode for before in range(number + 1)]
            claim(have == should, "users %s live there, and the index has %s" % (should, have))
    claim(code["get_user"](db, 21) == "name", "a user is not there")


def everything():
    for check in (queue, priority, multi, table, graph, vector, document, blob, segments, workspace, users):
        check()


run(globals())
