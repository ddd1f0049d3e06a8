"""What the programs here share, in Python 2 and 3: FoundationDB's recipes, a claim, and clients in one thread.

RECIPES is the folder of FoundationDB's source. Its modules are imported, and the code blocks of its pages are
executed, as they are."""

import os
import random
import sys
import textwrap
import traceback

import fdb

SOURCE = os.environ["RECIPES"]
SEED = int(os.environ.get("SHAKETABLE_SEED", 0))
sys.path.insert(0, os.path.join(SOURCE, "recipes", "python-recipes"))

# Chance must make no difference between two runs of a seed: recipes and the directory layer draw from these.
chance = random.Random(SEED)
random.seed(SEED)
os.urandom = lambda count: bytes(bytearray(chance.getrandbits(8) for _ in range(count)))


class Broken(Exception):
    pass


def claim(holds, otherwise):
    if not holds:
        raise Broken(otherwise)


def page(name, *marks, **names):
    """Executes code blocks of a page: for each mark the first one that has it."""
    with open(os.path.join(SOURCE, "documentation", "sphinx", "source", name + ".rst")) as source:
        lines = source.read().split("\n")
    blocks, block = [], []
    for line in lines + ["end"]:
        if line.strip() and not line[0].isspace():
            blocks.append("\n".join(block))
            block = []
        else:
            block.append(line if line.strip() else "")
    names.setdefault("__name__", name)
    for mark in marks:
        code = textwrap.dedent(next(block for block in blocks if mark in block))
        exec(compile(code, name, "exec"), names)
    return names


# commit_unknown_result and cluster_version_changed: it may have been committed.
UNKNOWN = (1021, 1039)


class Client(object):
    """A client that calls a function in a transaction, one step after the other, as fdb.transactional does."""

    def __init__(self, db, function, *arguments):
        self.tr = db.create_transaction()
        self.function, self.arguments = function, arguments
        self.called = self.done = False
        self.result = self.failed = None
        self.unknown = self.conflicts = 0

    def step(self):
        try:
            if self.called:
                self.tr.commit().wait()
                self.done = True
            else:
                try:
                    self.result = self.function(self.tr, *self.arguments)
                except fdb.FDBError:
                    raise
                except Exception as error:
                    self.failed, self.done = error, True
                self.called = True
        except fdb.FDBError as error:
            self.unknown += error.code in UNKNOWN
            self.conflicts += error.code == 1020
            self.called = False
            try:
                self.tr.on_error(error).wait()
            except fdb.FDBError as error:
                self.failed, self.done = error, True


def together(clients):
    """Lets clients take steps, in an order by chance, until all are done."""
    waiting = list(clients)
    while waiting:
        client = chance.choice(waiting)
        client.step()
        if client.done:
            waiting.remove(client)
    return clients


numbers = iter(range(1000))


class Unknowns(object):
    """Calls a transactional function, and another one before the second attempt. If what the command names ends
    with "_once", a key says that a call is done, as the developer guide recommends."""

    def __init__(self, db, function, between=lambda: None):
        self.db, self.function, self.between, self.calls = db, function, between, 0

    def __call__(self, *arguments):
        attempts = [0]
        done = fdb.Subspace(("done",))[next(numbers)] if sys.argv[1].endswith("_once") else None

        @fdb.transactional
        def attempt(tr):
            attempts[0] += 1
            if attempts[0] == 2:
                self.between()
            if done:
                if tr[done].present():
                    return None
                tr[done] = b""
            return self.function(tr, *arguments)

        result = attempt(self.db)
        self.calls += attempts[0]
        return result


def run(checks):
    """Runs the check that the command names, and says what broke."""
    try:
        checks[sys.argv[1].replace("_once", "")]()
    except Broken as error:
        print(error)
        sys.exit(1)
    except Exception:
        traceback.print_exc()
        sys.exit(1)
