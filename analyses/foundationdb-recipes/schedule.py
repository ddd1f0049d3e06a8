"""The class scheduling of the tutorial, for Python 3: schedule.py NAME."""

from recipes import Client, Unknowns, chance, claim, fdb, page, run, together

tutorial = page("class-scheduling", "def indecisive_student")
db = tutorial["db"]
signup, drop, switch = (tutorial[name] for name in ("signup", "drop", "switch"))
attends, course, init = (tutorial[name] for name in ("attends", "course", "init"))


@fdb.transactional
def has(tr, student, name):
    return tr[attends.pack((student, name))].present()


@fdb.transactional
def classes(tr, student):
    return {attends.unpack(key)[1] for key, _ in tr[attends.range((student,))]}


@fdb.transactional
def agree(tr, name, seats):
    """Seats that are left and students who attend make all seats."""
    left = fdb.tuple.unpack(tr[course.pack((name,))])[0]
    students = sum(attends.unpack(key)[1] == name for key, _ in tr[attends.range()])
    claim(left >= 0 and left + students == seats, f"{name} has {left} seats left and {students} students, of {seats}")


def unlimited():
    """Takes the time limit of the tutorial away: a call that ends with it is not retried."""
    db.options.set_transaction_timeout(0)


def students():
    """Six students sign up, drop and switch at once, for eight classes of two seats."""
    unlimited()
    init(db)
    names = tutorial["class_names"][:8]
    for name in names:
        db[course.pack((name,))] = fdb.tuple.pack((2,))
    db.options.set_transaction_timeout(60000)  # As in the tutorial.
    mine = {f"s{number}": set() for number in range(6)}
    refused = 0
    for _ in range(12):
        clients = []
        for student, have in mine.items():
            new = chance.choice(names)
            old = chance.choice(sorted(have)) if have else None
            mood = chance.choice(["add", "add", "drop", "switch"]) if have else "add"
            arguments = {"add": (signup, student, new), "drop": (drop, student, old), "switch": (switch, student, old, new)}
            clients.append((student, mood, old, new, Client(db, *arguments[mood])))
        together([client for *_, client in clients])
        for student, mood, old, new, client in clients:
            after = set(mine[student])
            if mood in ("drop", "switch"):
                after.discard(old)
            if mood in ("add", "switch"):
                after.add(new)
            if isinstance(client.failed, fdb.FDBError):
                after = classes(db, student)  # The time limit of the tutorial: the result is unknown.
            elif client.failed:
                text = str(client.failed)
                claim(text in ("No remaining seats", "Too many classes"), repr(client.failed))
                refused += 1
                after = mine[student]
            mine[student] = after
            have = classes(db, student)
            claim(have == after, f"{student} should attend {sorted(after)}, and attends {sorted(have)}")
            claim(len(have) <= 5, f"{student} attends {len(have)} classes")
        for name in names:
            agree(db, name, 2)
    claim(refused, "nobody was refused")
    available = set(tutorial["available_classes"](db))
    for name in names:
        full = sum(name in have for have in mine.values()) == 2
        claim((name in available) != full, f"{name} is listed as available")


def tabs():
    """A student sees that she is signed up, and drops the class in another tab. The first tab is told later."""
    unlimited()
    init(db)
    name = tutorial["class_names"][0]
    for number in range(20):
        student, dropped = f"s{number}", []

        def other_tab():
            if has(db, student, name):
                drop(db, student, name)
                dropped.append(True)

        Unknowns(db, signup, other_tab)(student, name)
        claim(not dropped or not has(db, student, name), f"{student} signed up once and dropped the class, and has it")


def start():
    """The administrator initializes; a student sees the new classes and signs up. The first is told later."""
    name = tutorial["class_names"][0]
    unlimited()
    init(db)
    for number in range(20):
        old, new, signed = f"old {number}", f"new {number}", []
        signup(db, old, name)

        def student():
            if not has(db, old, name):
                signup(db, new, name)
                signed.append(True)

        Unknowns(db, init, student)()
        claim(not signed or has(db, new, name), "a student signed up after all was initialized, and is not signed up")


def seats():
    """The administrator adds a class; a student finds it and signs up. The administrator is told later."""
    unlimited()
    for number in range(20):
        name = f"class {number}"

        def student():
            if name in tutorial["available_classes"](db):
                signup(db, "student", name)
                drop(db, "student", f"class {number - 1}")

        Unknowns(db, tutorial["add_class"], student)(name)
        agree(db, name, 100)


run(globals())
