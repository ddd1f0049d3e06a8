"""The plugin of an installed wheel, with FoundationDB's published binding: what it runs, and what it tells."""

import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

import shaketable

# Each run notes its seed. The session itself has none.
MODULE = """
import os
import fdb
import pytest

fdb.api_version(740)
db = fdb.open()
seed = int(os.environ.get("SHAKETABLE_SEED", -1))

def write(what=""):
    db[b"key"] = b"value"
    with open(os.environ["NOTES"], "a") as notes:
        notes.write(f"{what}{seed} ")

"""
CALM = ("--shaketable-faults", "calm")


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("NOTES", str(pytester.path / "notes"))
    return pytester


def run(project: pytest.Pytester, tests: str, *options: str) -> pytest.RunResult:
    """Runs the tests of a file."""
    project.makepyfile(test_it=MODULE + tests)
    return project.runpytest_subprocess(*options)


def notes(project: pytest.Pytester) -> list[str]:
    """What the runs have noted since this was asked last."""
    file = project.path / "notes"
    noted = file.read_text().split() if file.exists() else []
    file.unlink(missing_ok=True)
    return noted


def replay(result: pytest.RunResult) -> str:
    lines = [line for line in result.outlines if line.startswith("replay: ")]
    assert len(lines) == 1, lines
    return lines[0].removeprefix("replay: ")


FAILS_WITH_2 = "def test_it():\n    write()\n    assert seed != 2\n"


def test_the_module_says_where_the_files_are() -> None:
    for file in (shaketable.program(), shaketable.library(), shaketable.clock()):
        assert file.is_file()
    command = Path(sysconfig.get_path("scripts"), "shaketable")
    done = subprocess.run([command, "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()[0]) == (0, "shaketable")


def test_a_test_that_passes_is_run_with_every_seed(project: pytest.Pytester) -> None:
    result = run(project, "def test_it():\n    write()\n", "--shaketable", "5..8", *CALM)
    result.assert_outcomes(passed=1)
    assert (result.ret, notes(project)) == (0, ["5", "6", "7"])


def test_without_the_option_nothing_is_shaken(project: pytest.Pytester) -> None:
    # No library of FoundationDB is installed, and none is loaded.
    result = run(project, "def test_it():\n    pass\n")
    result.assert_outcomes(errors=1)
    result = project.runpytest_subprocess("--markers")
    result.stdout.fnmatch_lines("@pytest.mark.shaketable: *")


def test_the_first_seed_that_fails_is_told_with_the_line_that_repeats_it(project: pytest.Pytester) -> None:
    result = run(project, FAILS_WITH_2, "--shaketable", "5", *CALM, "--shaketable-html", "pages")
    result.assert_outcomes(failed=1)
    assert (result.ret, notes(project)[:3]) == (1, ["0", "1", "2"])
    for shown in ("*test_it.py:16: AssertionError", "replay: *--seeds 2..3*", "*committed*"):
        result.stdout.fnmatch_lines([shown])
    result.stdout.fnmatch_lines(["FAILED test_it.py::test_it - seed 2, calm faults: *assert 2 != 2*"])
    [page] = (project.path / "pages").iterdir()
    assert "assert seed != 2" in page.read_text() and page.name.startswith("test_it.py-test_it-")
    again = subprocess.run(replay(result), shell=True, capture_output=True, text=True)
    assert again.returncode == 1 and "test_it.py:16: AssertionError" in again.stdout, again
    assert set(notes(project)) == {"2"}
    # It is mended, and its page is gone.
    run(project, "def test_it():\n    write()\n", "--shaketable", "1", *CALM, "--shaketable-html", "pages")
    assert not list((project.path / "pages").iterdir())


def test_a_crash_is_told_as_a_failure(project: pytest.Pytester) -> None:
    result = run(project, "def test_it():\n    write()\n    os.abort()\n", "--shaketable", "3", *CALM)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*signal 6*", "FAILED test_it.py::test_it - seed 0, calm faults: *"])


@pytest.mark.parametrize(
    ("body", "faults", "said"),
    [
        ("pass", "calm", "none used the simulated cluster"),
        ("db[b'key']", "calm", "none committed a write"),
        ("write()", "standard", "none met a fault"),
    ],
)
def test_runs_that_prove_nothing_are_a_failure_of_their_own_kind(
    project: pytest.Pytester, body: str, faults: str, said: str
) -> None:
    # In the session the module opens a database, too.
    opens = MODULE if body != "pass" else ""
    project.makepyfile(test_it=f"{opens}\ndef test_it():\n    {body}\n")
    result = project.runpytest_subprocess("-v", "--shaketable", "1", "--shaketable-faults", faults)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["test_it.py::test_it VACUOUS*", f"vacuous: 1 run passed*{said}*"])
    result.stdout.fnmatch_lines(["VACUOUS test_it.py::test_it - vacuous: 1 run passed*"])


BOTH = """
@pytest.fixture(scope="module", autouse=True)
def module():
    yield
    write("end of ")

def test_unmarked():
    write("unmarked ")

@pytest.mark.shaketable
def test_marked():
    write("marked ")
"""


def test_marked_tests_are_shaken_and_the_others_run_once(project: pytest.Pytester) -> None:
    project.makepyfile(test_other="def test_other():\n    pass\n")
    result = run(project, BOTH, "--shaketable", "2", *CALM)
    result.assert_outcomes(passed=3)
    marked = [f"{what} {seed}" for seed in (0, 1) for what in ("marked", "end of")]
    assert notes(project) == " ".join(["unmarked -1", *marked, "end of -1"]).split()
    # What is deselected does not change how the others are run.
    result = project.runpytest_subprocess("--shaketable", "2", *CALM, "-k", "unmarked")
    result.assert_outcomes(passed=1, deselected=2)
    assert notes(project) == "unmarked -1 end of -1".split()


def test_if_none_is_marked_all_are_shaken(project: pytest.Pytester) -> None:
    unmarked = BOTH.replace("@pytest.mark.shaketable\n", "")
    run(project, unmarked, "--shaketable", "2", *CALM).assert_outcomes(passed=2)
    assert notes(project).count("-1") == 0


def test_an_end_of_a_shared_fixture_that_fails_is_an_error(project: pytest.Pytester) -> None:
    fails = BOTH.replace('write("end of ")', "assert seed != -1")
    run(project, fails, "--shaketable", "1", *CALM).assert_outcomes(passed=2, errors=1)


def test_seeds_that_failed_are_kept_and_tried_first(project: pytest.Pytester) -> None:
    keeps = ("--shaketable-failures", "seeds.txt", *CALM)
    run(project, FAILS_WITH_2, "--shaketable", "5", *keeps).assert_outcomes(failed=1)
    seeds = project.path / "seeds.txt"
    assert (seeds.read_text(), notes(project)[:3]) == ("test_it.py::test_it 2 calm\n", ["0", "1", "2"])
    # Also with faults other than those of the session.
    project.runpytest_subprocess("--shaketable", "2", "--shaketable-failures", "seeds.txt").assert_outcomes(failed=1)
    assert (seeds.read_text(), set(notes(project))) == ("test_it.py::test_it 2 calm\n", {"2"})
    run(project, "def test_it():\n    write()\n", "--shaketable", "2", *keeps).assert_outcomes(passed=1)
    assert (seeds.read_text(), notes(project)) == ("test_it.py::test_it 2 calm\n", ["2", "0", "1"])


ENDINGS = """
@pytest.mark.skip(reason="not today")
def test_skipped():
    pass

def test_skips_itself():
    write("itself:")
    pytest.skip("not any day")

def test_skips_itself_with_a_seed():
    if seed == 0:
        pytest.skip("not with 0")
    write("other:")

@pytest.mark.xfail(reason="a known bug", strict=STRICT)
def test_fails_as_expected():
    write("expected:")
    assert seed != 1

@pytest.mark.xfail(reason="a bug of old", strict=STRICT)
def test_does_not_fail_as_expected():
    write("unexpected:")

def test_gives_up():
    write("up:")
    pytest.xfail("half done")
"""


def test_what_a_test_did_first_counts_when_its_seed_is_run_once_more(project: pytest.Pytester) -> None:
    once = "    assert os.path.exists('done') or open('done', 'w').close() or False\n"
    expected = "@pytest.mark.xfail(reason='a known bug')\ndef test_it():\n    write()\n" + once
    result = run(project, expected, "--shaketable", "1", *CALM)
    result.assert_outcomes(xfailed=1)
    assert notes(project) == ["0", "0"]
    (project.path / "done").unlink()
    result = run(project, "def test_it():\n    write()\n" + once, "--shaketable", "1", *CALM)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["repeats: no: the second run ended with exit code 0", "FAILED *seed 0, calm faults: *"])


@pytest.mark.parametrize("strict", [False, True])
def test_skips_and_expected_failures_are_told_as_such(project: pytest.Pytester, strict: bool) -> None:
    result = run(project, ENDINGS.replace("STRICT", str(strict)), "--shaketable", "3", *CALM, "-ra")
    result.assert_outcomes(skipped=2, passed=1, xfailed=2, xpassed=not strict, failed=strict)
    result.stdout.fnmatch_lines_random(
        [
            "SKIPPED * not today",
            "SKIPPED * not any day",
            "XFAIL test_it.py::test_fails_as_expected - a known bug*",
            "XFAIL test_it.py::test_gives_up - *half done*",
            "*XPASS(strict)] a bug of old" if strict else "XPASS test_it.py::test_does_not_fail_as_expected *",
        ]
    )
    noted = notes(project)
    expected = {"itself": "012", "other": "12", "expected": "01", "unexpected": "012", "up": "0"}
    for what, seeds in expected.items():
        assert set(seeds) == {note[-1] for note in noted if note.startswith(what)}, (what, noted)


def test_a_run_has_the_root_the_configuration_and_the_options_of_the_session(project: pytest.Pytester) -> None:
    project.makeini(
        "[pytest]\naddopts = --junitxml=out.xml --strict-markers --own=session\nmarkers = own\npythonpath = src\n"
        "testpaths = inner\n"
    )
    project.mkdir("src").joinpath("helped.py").write_text("def helps():\n    return True\n")
    project.makepyfile(extra="import pytest\n\n@pytest.fixture\ndef extra():\n    return 'extra'\n")
    inner = project.mkdir("inner")
    inner.joinpath("conftest.py").write_text(
        "import pytest\n\n@pytest.fixture\ndef own(request):\n    return str(request.config.rootpath)\n\n"
        "def pytest_addoption(parser):\n    parser.addoption('--own', action='append')\n"
    )
    tests = f"""{MODULE}
import helped

@pytest.mark.own
@pytest.mark.parametrize("what", ["a b", "c::d[e]"])
def test_it(own, extra, request, what):
    assert (own, extra) == ({str(project.path)!r}, "extra") and helped.helps()
    assert request.config.getoption("own") == ["given"]
    assert request.config.getini("console_output_style") == "classic"
    assert os.getcwd() == {str(project.path)!r}
    write()
"""
    inner.joinpath("test_it.py").write_text(tests)
    pytest_command = Path(sysconfig.get_path("scripts"), "pytest")
    options = ["-p", "extra", "-o", "console_output_style=classic", "--shaketable-pytest", "--own given"]
    result = project.run(pytest_command, "--shaketable", "1", *CALM, *options, "--import-mode", "importlib")
    result.assert_outcomes(passed=2)
    assert notes(project) == ["0", "0"]
    results = (project.path / "out.xml").read_text()
    assert 'tests="2"' in results and "test_it[a b]" in results


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--shaketable", "many"], "'many' for '--seeds"),
        (["--shaketable", "0"], "'0' for '--seeds"),
        (["--shaketable", "5..5"], "'5..5' for '--seeds"),
        (["--shaketable", "-3"], "'-3' for '--seeds"),
        (["--shaketable", "5", "--shaketable-faults", "strom"], "'strom' for '--faults"),
        (["--shaketable", "5", "--shaketable-with", "--library /nowhere"], "there is no libfdb_c.so in /nowhere"),
        (["--shaketable", "5", "--shaketable-with=--tiem"], "unexpected argument '--tiem'"),
        (["--shaketable", "5", "--shaketable-with='--time"], "No closing quotation"),
        (["--shaketable", "5", "--shaketable-failures", "wrong.txt"], "wrong.txt:2: this is not `nodeid seed faults`"),
        (["--shaketable", "5", "--shaketable-failures", "."], "Is a directory"),
        (["--shaketable", "5", "--shaketable-html", "wrong.txt"], "File exists"),
    ],
)
def test_wrong_usage_is_one_line(project: pytest.Pytester, options: list[str], said: str) -> None:
    project.path.joinpath("wrong.txt").write_text("test_it.py::test_it[a b] 3 calm\ntest_it.py::test_it calm 3\n")
    result = run(project, FAILS_WITH_2, *options)
    lines = [line for line in result.errlines if line]
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert len(lines) == 1 and lines[0].startswith("ERROR: ") and said in lines[0], lines
    assert notes(project) == []


@pytest.mark.parametrize(("missing", "said"), [("lib", "cannot load the simulated library"), ("bin", "cannot start")])
def test_a_package_without_its_files_is_one_line(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, missing: str, said: str
) -> None:
    copy = project.path / "copy"
    shutil.copytree(Path(shaketable.__file__).parent, copy / "shaketable")
    shutil.rmtree(copy / "shaketable" / missing)
    monkeypatch.setenv("PYTHONPATH", str(copy))
    result = run(project, FAILS_WITH_2, "--shaketable", "5")
    lines = [line for line in result.errlines if line]
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert len(lines) == 1 and re.match(f"ERROR: --shaketable: {said}", lines[0]), lines


def test_further_options_reach_the_command(project: pytest.Pytester) -> None:
    tests = "def test_it():\n    import time\n    write()\n    time.sleep(3600)\n    assert time.gmtime().tm_year != 2026\n"
    options = ["--shaketable", "2", *CALM, "--shaketable-with", "--time --timeout 1m"]
    result = run(project, tests, *options)
    result.assert_outcomes(failed=1)
    assert " --time " in replay(result) and " --timeout 1m " in replay(result)
