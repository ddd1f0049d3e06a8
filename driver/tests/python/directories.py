"""Recorded cases of the directory layer, replayed with the binding's own layer.

Prefixes that the layer allocates are random. They must be equal where the recorded ones are equal and different where
those differ; everything else must be equal to the byte.
"""

import fdb
import fdb.directory_impl
import fdb.tuple

import spelling
from spelling import decode

READS = ("list", "exists", "open")


def perform(db, case, step):
    """Performs a step in a transaction of its own, and returns its answer as recordings write it."""
    layer = fdb.directory_impl.DirectoryLayer(allow_manual_prefixes=True)
    path, op, tag = tuple(step["path"]), step["op"], decode(step.get("layer", ""))
    if op == "create":
        prefix = decode(step["prefix"]) if step.get("prefix") is not None else None
        call = lambda tr: opened(layer.create(tr, path, tag, prefix))
    elif op in ("open", "create_or_open"):
        call = lambda tr: opened(getattr(layer, op)(tr, path, tag))
    elif op == "move":
        call = lambda tr: {"path": list(layer.move(tr, path, tuple(step["to"])).get_path())}
    elif op == "remove":
        call = lambda tr: layer.remove(tr, path) and {}
    elif op == "remove_if_exists":
        call = lambda tr: {"removed": bool(layer.remove_if_exists(tr, path))}
    elif op == "list":
        call = lambda tr: {"names": layer.list(tr, path)}
    elif op == "exists":
        call = lambda tr: {"exists": bool(layer.exists(tr, path))}
    elif op == "put":
        number = int(case["id"].rsplit("-", 1)[1]) - 1
        call = lambda tr: tr.set(layer.open(tr, path).pack(("k", number)), b"v") or {}
    else:
        raise ValueError("unknown: " + op)
    try:
        return fdb.transactional(call)(db)
    except fdb.FDBError:
        raise
    except Exception as error:
        return {"refused": str(error)}


def opened(directory):
    is_partition = isinstance(directory, fdb.directory_impl.DirectoryPartition)
    answer = {
        "path": list(directory.get_path()),
        "layer": directory.get_layer().hex(),
        "partition": is_partition,
    }
    if not is_partition:
        answer["prefix"] = directory.key().hex()
    return answer


class Prefixes:
    """Which allocated prefix of the recording is which of the replay."""

    def __init__(self, case):
        self.given = {decode(step["prefix"]) for step in case["steps"] if step.get("prefix") is not None}
        self.ours, self.theirs = {}, {}

    def same(self, theirs, ours):
        """Whether one can be the other; if so, it is from now on."""
        if theirs in self.given or ours in self.given:
            return theirs == ours
        return self.ours.setdefault(theirs, ours) == ours and self.theirs.setdefault(ours, theirs) == theirs

    def agree(self, expected, found):
        if ("prefix" in expected) != ("prefix" in found):
            return False
        if "prefix" in expected and not self.same(decode(expected["prefix"]), decode(found["prefix"])):
            return False
        rest = lambda answer: {name: value for name, value in answer.items() if name != "prefix"}
        return rest(expected) == rest(found)

    def same_layer(self, theirs, ours):
        """Whether two surveyed layers are equal, given which prefix is which."""
        if (theirs["counters"], len(theirs["marks"])) != (ours["counters"], len(ours["marks"])):
            return False
        return theirs["version"] == ours["version"] and self.same_all(theirs["below"], ours["below"])

    def same_all(self, theirs, ours):
        return theirs.keys() == ours.keys() and all(self.same_directory(theirs[n], ours[n]) for n in theirs)

    def same_directory(self, theirs, ours):
        equal = all(theirs[field] == ours[field] for field in ("tag", "content", "is_marked"))
        if not equal or not self.same(theirs["prefix"], ours["prefix"]):
            return False
        if (theirs["partition"] is None) != (ours["partition"] is None):
            return False
        if theirs["partition"] and not self.same_layer(theirs["partition"], ours["partition"]):
            return False
        return self.same_all(theirs["below"], ours["below"])


class Survey:
    """Every row of a keyspace that a directory layer has written, with its meaning."""

    def __init__(self, rows):
        self.rows = dict(rows)

    def take(self, prefix):
        """Removes the rows that begin with `prefix`, and returns them without it."""
        found = {key: value for key, value in self.rows.items() if key.startswith(prefix)}
        for key in found:
            del self.rows[key]
        return {key[len(prefix) :]: value for key, value in found.items()}

    def layer(self, content):
        """The layer whose nodes are below `content` and 0xfe."""
        nodes = content + b"\xfe"
        # The root node's name is the prefix of the nodes.
        root = nodes + fdb.tuple.pack((nodes,))
        allocator = self.take(root + fdb.tuple.pack((b"hca",)))
        split = lambda which: {k: v for k, v in allocator.items() if fdb.tuple.unpack(k)[0] == which}
        marks = {fdb.tuple.unpack(key)[1] for key in split(1)}
        version = self.take(root + fdb.tuple.pack((b"version",)))
        below = self.below(nodes, root, content, marks)
        return {"counters": split(0), "marks": marks, "version": version, "below": below}

    def below(self, nodes, node, content, marks):
        children = self.take(node + fdb.tuple.pack((0,)))
        return {
            fdb.tuple.unpack(name)[0]: self.directory(nodes, prefix, content, marks)
            for name, prefix in children.items()
        }

    def directory(self, nodes, prefix, content, marks):
        node = nodes + fdb.tuple.pack((prefix,))
        tag = self.take(node + fdb.tuple.pack((b"layer",)))
        below = self.below(nodes, node, content, marks)
        partition = self.layer(prefix) if tag.get(b"") == b"partition" else None
        # What a directory of a partition contains was taken with it.
        rest = self.take(prefix)
        return {
            "prefix": prefix,
            "tag": tag,
            "below": below,
            "partition": partition,
            "content": rest,
            "is_marked": is_marked(prefix, content, marks),
        }


def is_marked(prefix, content, marks):
    """Whether the allocator has a mark for a prefix: in both layers or, if its window was cleared, in neither."""
    try:
        return fdb.tuple.unpack(prefix[len(content) :])[0] in marks
    except (IndexError, ValueError):
        return False


def survey(rows):
    surveyed = Survey(rows)
    return surveyed.layer(b""), surveyed.rows


def replay(db, case):
    """The first difference between a case and its replay, or None."""
    prefixes = Prefixes(case)
    spelling.set_keyspace(db, [])
    for number, step in enumerate(case["steps"]):
        found = perform(db, case, step)
        if not prefixes.agree(step["expect"], found):
            return number, (step["op"], step["path"]), step["expect"], found
    own, recorded = spelling.keyspace(db), [(decode(key), decode(value)) for key, value in case["final"]]
    (theirs, their_rest), (ours, our_rest) = survey(recorded), survey(own)
    if not prefixes.same_layer(theirs, ours) or their_rest != our_rest:
        return "end", "final keyspace", recorded, own
    reads = [
        {"op": op, "path": path}
        for step in case["steps"]
        for path in [step["path"], step.get("to")]
        if path is not None
        for op in READS
    ]
    answers = [perform(db, case, step) for step in reads]
    spelling.set_keyspace(db, recorded)
    for step, found in zip(reads, answers):
        expected = perform(db, case, step)
        if not prefixes.agree(expected, found):
            return "end", ("%s of the recorded bytes" % step["op"], step["path"]), expected, found
    return None
