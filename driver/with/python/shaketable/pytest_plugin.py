"""A plugin for pytest: `pytest --shaketable 50` runs each test on 50 simulated FoundationDB clusters, a seed each.

Every run is a pytest of its own, of one test, that `shaketable with` starts. It finds the simulated client library in
place of FoundationDB's, has a seed and faults in its environment, and leaves its reports in a folder, from which this
session tells whether the test was skipped, failed as expected, or passed. What `with` prints of the first seed that
fails is the test's failure.

This session imports the tests too. For that the simulated library is loaded here, so that what a test module does when
it is imported never reaches a real cluster.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import Any, Iterator, NamedTuple

import pytest

import shaketable

# The folder in which a run of one test leaves its reports.
REPORTS = "SHAKETABLE_PYTEST_REPORTS"

# The exit codes of `with`.
PASSED, FAILED, USAGE, UNRELIABLE, VACUOUS = range(5)

# How long `with` has to end what it has started once this session is interrupted, seconds.
PATIENCE = 30


class Seed(NamedTuple):
    """A seed that failed once, with its faults."""

    number: int
    faults: str


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("shaketable", "tests on simulated FoundationDB clusters")
    group.addoption(
        "--shaketable",
        metavar="N|A..B",
        help="run the tests that are marked with shaketable, or all if none is, with N seeds from 0, or with the seeds "
        "A to B-1, each on a simulated cluster, until one fails",
    )
    group.addoption(
        "--shaketable-faults", metavar="PROFILE", help="the fault profile: calm, standard or storm [default: standard]"
    )
    group.addoption(
        "--shaketable-html",
        metavar="FOLDER",
        help="write a page about the failing run of each test that fails, as HTML",
    )
    group.addoption(
        "--shaketable-failures",
        metavar="FILE",
        help="append `nodeid seed faults` for each test that fails, and begin with the seeds that are listed for it",
    )
    group.addoption(
        "--shaketable-with",
        metavar="OPTIONS",
        default="",
        help="further options of `shaketable with`: --shaketable-with='--time --timeout 2m'",
    )
    group.addoption(
        "--shaketable-pytest",
        metavar="OPTIONS",
        default="",
        help="further options of the pytest that runs one test with one seed; `addopts` does not reach it",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Loads the simulated library before anything is imported that loads FoundationDB's."""
    if getattr(early_config.known_args_namespace, "shaketable", None) is None:
        return
    try:
        # The loader knows it by its name from here on.
        ctypes.CDLL(str(shaketable.library()), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise pytest.UsageError(f"--shaketable: cannot load the simulated library: {error}") from None
    # This session's own cluster, if any, is of no interest.
    os.environ.setdefault("SHAKETABLE_REPORT", "")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "shaketable: with --shaketable, run this test on simulated clusters")
    reports = os.environ.get(REPORTS)
    if reports is not None:
        config.pluginmanager.register(Run(config, Path(reports)), "shaketable-run")
    elif config.getoption("shaketable") is not None and not config.getoption("collectonly"):
        config.pluginmanager.register(Session(config), "shaketable-session")


class Run:
    """In a run of one test: keeps its reports for the session, and says whether further seeds are worth running."""

    def __init__(self, config: pytest.Config, folder: Path) -> None:
        self.config = config
        self.folder = folder
        self.reports: list[pytest.TestReport] = []
        self.is_first = not any(folder.iterdir())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.reports.append(report)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        ending = Ending(self.reports)
        to_json = self.config.hook.pytest_report_to_serializable
        text = json.dumps([to_json(config=self.config, report=report) for report in self.reports])
        seed = os.environ.get("SHAKETABLE_SEED", "0")
        # Whole or not at all: the run may be ended at any time. A seed that fails is run once more, to see whether it
        # repeats; what the test did is what it did first.
        told, unfinished = self.folder / f"{seed}.json", self.folder / f".{seed}"
        if not told.exists():
            unfinished.write_text(text, encoding="utf-8")
            unfinished.rename(told)
        # A seed with which the test fails as expected is what was looked for, and one with which it passes although it
        # must fail is none. No seed changes that a test is marked to be skipped.
        is_marked = any(True for item in session.items for name in ("skip", "skipif") for _ in item.iter_markers(name))
        if ending.is_xfailed or (ending.is_skipped and is_marked and self.is_first):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        elif ending.is_strict_xpass:
            session.exitstatus = pytest.ExitCode.OK


class Ending:
    """How a run of one test ended, by its reports."""

    def __init__(self, reports: list[pytest.TestReport]) -> None:
        self.reports = reports
        by_phase = {report.when: report for report in reports}
        self.call = by_phase.get("call")
        skipped = [report for report in reports if report.outcome == "skipped"]
        failed = [report for report in reports if report.outcome == "failed"]
        self.failure = failed[0] if failed else None
        self.is_strict_xpass = len(failed) == 1 and str(failed[0].longrepr).startswith("[XPASS(strict)]")
        self.is_xfailed = not failed and any(hasattr(report, "wasxfail") for report in skipped)
        self.is_skipped = not failed and bool(skipped) and not self.is_xfailed

    @property
    def message(self) -> str:
        """The first line of what failed."""
        longrepr = getattr(self.failure, "longrepr", None)
        text = getattr(getattr(longrepr, "reprcrash", None), "message", None) or str(longrepr)
        return next(iter(text.strip().splitlines()), "")


class Shown:
    """A failure: what is shown of it, and the line of it in the summary."""

    class Crash(NamedTuple):
        message: str

    def __init__(self, text: str, headline: str) -> None:
        self.text = text
        self.reprcrash = Shown.Crash(headline)

    def __str__(self) -> str:
        return self.text

    def toterminal(self, terminal: Any) -> None:
        for line in self.text.splitlines():
            terminal.line(line)


class Session:
    """Runs each test that is to be shaken with `shaketable with`, in place of running it here."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.marked_only = False
        self.seeds = str(config.getoption("shaketable"))
        faults = config.getoption("shaketable_faults")
        self.faults: list[str] = [] if faults is None else [f"--faults={faults}"]
        self.options = self.words("shaketable_with")
        self.run_options = self.words("shaketable_pytest")
        self.check_usage()
        self.pages = self.folder_of_pages()
        self.list = self.file("shaketable_failures")
        self.kept = self.read_list()

    def words(self, option: str) -> list[str]:
        text = self.config.getoption(option)
        try:
            return shlex.split(text)
        except ValueError as error:
            raise pytest.UsageError(f"--{option.replace('_', '-')} {text!r}: {error}") from None

    def file(self, option: str) -> Path | None:
        named = self.config.getoption(option)
        return None if named is None else self.config.invocation_params.dir / named

    def check_usage(self) -> None:
        """Has `with` read the options: a command without a name is what it objects to last."""
        try:
            done = self.start([f"--seeds={self.seeds}", *self.faults, *self.options], [""], os.environ)
        except OSError as error:
            raise pytest.UsageError(f"--shaketable: cannot start {shaketable.program()}: {error.strerror}") from None
        objection = done.stderr.strip().removeprefix("shaketable: ")
        if done.returncode != USAGE or not objection.startswith("cannot start :"):
            raise pytest.UsageError(f"--shaketable: {objection or f'exit code {done.returncode}'}")

    def folder_of_pages(self) -> Path | None:
        folder = self.file("shaketable_html")
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise pytest.UsageError(f"--shaketable-html {folder}: {error.strerror}") from None
        return folder

    def read_list(self) -> dict[str, list[Seed]]:
        kept: dict[str, list[Seed]] = {}
        if self.list is None:
            return kept
        try:
            # Also created, so that a list that cannot be written is known before the first test.
            with self.list.open("a+", encoding="utf-8") as file:
                file.seek(0)
                lines = file.read().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise pytest.UsageError(f"--shaketable-failures {self.list}: {why}") from None
        for number, line in enumerate(lines, 1):
            words = line.rsplit(" ", 2)
            if not line.strip():
                continue
            if len(words) != 3 or not words[1].isdecimal():
                raise pytest.UsageError(f"{self.list}:{number}: this is not `nodeid seed faults`: {line}")
            kept.setdefault(words[0], []).append(Seed(int(words[1]), words[2]))
        return kept

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        # Before any is deselected, so that -k does not change how a test is run.
        self.marked_only = any(item.get_closest_marker("shaketable") for item in items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if self.marked_only and not item.get_closest_marker("shaketable"):
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in [*self.shake(item), *self.torn_down(item, nextitem)]:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @staticmethod
    def torn_down(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[pytest.TestReport]:
        """Ends the fixtures of tests that ran here before and share them with this one, but not with the next."""
        state = item.session._setupstate
        call = pytest.CallInfo.from_call(lambda: state.teardown_exact(nextitem), when="teardown")
        if call.excinfo is not None:
            yield item.ihook.pytest_runtest_makereport(item=item, call=call)

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        kind = getattr(report, "shaketable", None)
        return None if kind is None else ("failed", kind[0], kind)

    def shake(self, item: pytest.Item) -> Iterator[pytest.TestReport]:
        """The reports of a test: those of its last run, but for what the runs have in common."""
        began = time.time()
        page = self.page(item)
        if page is not None:
            # Of an earlier session.
            page.unlink(missing_ok=True)
        for seed in self.kept.get(item.nodeid, []):
            shaken = self.run(item, f"{seed.number}..{seed.number + 1}", [f"--faults={seed.faults}"], page)
            # One run alone may meet no fault, and proves nothing then.
            if shaken.code not in (PASSED, VACUOUS):
                break
        else:
            shaken = self.run(item, self.seeds, self.faults, page)
        if shaken.code == FAILED and not shaken.is_decided:
            self.keep(item, shaken)
        yield from shaken.reports(item, began, time.time())

    def page(self, item: pytest.Item) -> Path | None:
        if self.pages is None:
            return None
        # Names of tests may have any characters, and any length.
        name = re.sub(r"[^\w.-]+", "-", item.nodeid)[:100].strip("-")
        return self.pages / f"{name}-{hashlib.sha256(item.nodeid.encode()).hexdigest()[:8]}.html"

    def run(self, item: pytest.Item, seeds: str, faults: list[str], page: Path | None) -> Shaken:
        options = [f"--seeds={seeds}", *faults, *self.options]
        if page is not None:
            options.append(f"--html={page}")
        with tempfile.TemporaryDirectory(prefix="shaketable-") as folder:
            environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
            environment[REPORTS] = folder
            done = self.start(options, self.one_test(item), environment)
            runs = {}
            for file in Path(folder).glob("[0-9]*.json"):
                from_json = self.config.hook.pytest_report_from_serializable
                data = json.loads(file.read_text(encoding="utf-8"))
                if data:
                    runs[int(file.stem)] = Ending([from_json(config=self.config, data=report) for report in data])
        if done.returncode > 128:
            raise KeyboardInterrupt
        return Shaken(done.returncode, done.stdout, done.stderr, runs)

    def one_test(self, item: pytest.Item) -> list[str]:
        """The pytest that runs this test alone, as this session would."""
        options = self.config.option
        script = Path(sys.argv[0]).absolute()
        # With `-m`, the current folder is one of those that have modules.
        is_script = script.name in ("pytest", "py.test") and os.access(script, os.X_OK)
        command = [str(script)] if is_script else [sys.executable, "-m", "pytest"]
        command += ["-q", "--no-header", "-o", "addopts="]
        command += ["--rootdir", str(self.config.rootpath)]
        if self.config.inipath is not None:
            command += ["-c", str(self.config.inipath)]
        if options.confcutdir is not None:
            command += ["--confcutdir", str(options.confcutdir)]
        if options.importmode != "prepend":
            command += ["--import-mode", options.importmode]
        for plugin in options.plugins:
            command += ["-p", plugin]
        for override in options.override_ini or []:
            command += ["-o", override]
        for warning in options.pythonwarnings or []:
            command += ["-W", warning]
        _, separator, within = item.nodeid.partition("::")
        return [*command, *self.run_options, f"{item.path}{separator}{within}"]

    def start(self, options: list[str], command: list[str], environment: Any) -> subprocess.CompletedProcess[str]:
        """Runs `shaketable with`, under a name that starts it again in a shell of the user."""
        found = shutil.which("shaketable")
        is_found = found is not None and Path(found) == Path(sysconfig.get_path("scripts"), "shaketable")
        words = ["shaketable" if is_found else str(shaketable.program()), "with", *options, "--", *command]
        process = subprocess.Popen(
            words,
            executable=shaketable.program(),
            cwd=self.config.invocation_params.dir,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            # Ctrl-C reaches this process alone, which passes it on: a second signal would end `with` at once.
            start_new_session=True,
        )
        try:
            stdout, stderr = process.communicate()
        except BaseException:
            process.send_signal(signal.SIGINT)
            try:
                process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
            raise
        return subprocess.CompletedProcess(words, process.returncode, stdout, stderr)

    def keep(self, item: pytest.Item, shaken: Shaken) -> None:
        """Adds the seed that failed to the list."""
        seed = shaken.seed
        if self.list is None or seed is None or seed in self.kept.get(item.nodeid, []):
            return
        # One write: other workers of pytest-xdist append as well.
        with self.list.open("a", encoding="utf-8") as file:
            file.write(f"{item.nodeid} {seed.number} {seed.faults}\n")


class Shaken:
    """What `with` found."""

    def __init__(self, code: int, text: str, said: str, runs: dict[int, Ending]) -> None:
        self.code = code
        self.text = text
        self.said = said.strip()
        # The runs that came to their end, by their seeds.
        self.runs = runs

    @property
    def seed(self) -> Seed | None:
        """The seed that failed, as the line has it that repeats it."""
        lines = re.findall(r"^replay: .*? with --seeds (\d+)\.\.\d+ --faults (\w+)", self.text, re.MULTILINE)
        return Seed(int(lines[-1][0]), lines[-1][1]) if lines else None

    @property
    def last(self) -> Ending | None:
        """The run that failed, or else any."""
        if self.code == FAILED:
            return self.runs.get(self.seed.number) if self.seed else None
        return next(iter(self.runs.values()), None)

    @property
    def is_decided(self) -> bool:
        """Whether the test is skipped or has failed as expected, so that no further seed is worth running."""
        last = self.last
        return self.code == FAILED and last is not None and (last.is_xfailed or last.is_skipped)

    def reports(self, item: pytest.Item, began: float, ended: float) -> Iterator[pytest.TestReport]:
        endings = list(self.runs.values())
        are_skipped = bool(endings) and all(ending.is_skipped for ending in endings)
        if self.is_decided and self.last is not None:
            # The runs before it passed.
            yield from self.of_run(self.last, began, ended)
        elif self.code in (PASSED, VACUOUS) and are_skipped:
            yield from self.of_run(endings[0], began, ended)
        elif self.code == PASSED:
            strict = next((ending for ending in endings if ending.is_strict_xpass), None)
            passed = next((ending for ending in endings if not ending.is_skipped), None)
            ending = strict or passed
            if ending is None:
                yield from self.failed(item, "no report: pytest wrote none of any run", None, began, ended)
            else:
                yield from self.of_run(ending, began, ended)
        elif self.code == VACUOUS:
            sentence = self.text.strip() or self.said
            headline = "vacuous: " + sentence.splitlines()[0]
            yield from self.failed(item, headline, "VACUOUS", began, ended)
        elif self.code == FAILED:
            message = self.last.message if self.last else "pytest left no report"
            seed = "" if self.seed is None else f"seed {self.seed.number}, {self.seed.faults} faults: "
            yield from self.failed(item, seed + message, None, began, ended)
        elif self.code == UNRELIABLE:
            headline = "the simulated cluster is at fault, or was not judged"
            yield from self.failed(item, headline, "UNRELIABLE", began, ended)
        else:
            yield from self.failed(item, self.said or f"shaketable: exit code {self.code}", None, began, ended)

    @staticmethod
    def of_run(ending: Ending, began: float, ended: float) -> Iterator[pytest.TestReport]:
        """The reports of a run; the test took as long as all runs."""
        main = ending.call or ending.failure or ending.reports[0]
        for report in ending.reports:
            if isinstance(report.longrepr, list):
                # The place and the reason of a skip; JSON has no tuples.
                report.longrepr = tuple(report.longrepr)
            report.duration = ended - began if report is main else 0.0
            report.start, report.stop = began, ended
            yield report

    def failed(
        self, item: pytest.Item, headline: str, kind: str | None, began: float, ended: float
    ) -> Iterator[pytest.TestReport]:
        text = "\n".join(part for part in (self.text.strip("\n"), self.said) if part)
        # First what the summary has: of what pytest-xdist sends from its workers, the first line is in the summary.
        text = headline if text in headline else f"{headline}\n\n{text}"
        for when in ("setup", "call", "teardown"):
            is_call = when == "call"
            longrepr: Any = Shown(text, headline) if is_call else None
            report = pytest.TestReport(
                nodeid=item.nodeid,
                location=item.location,
                keywords={name: 1 for name in item.keywords},
                outcome="failed" if is_call else "passed",
                longrepr=longrepr,
                when=when,
                duration=ended - began if is_call else 0.0,
                start=began,
                stop=ended,
            )
            if is_call and kind is not None:
                setattr(report, "shaketable", kind)
            yield report
