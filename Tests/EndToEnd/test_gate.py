"""`.ci/run` and `deploy/test` in a small repository, with scripts of this test instead of tools: which groups run again, and when a record is written."""

import json
import os
import pathlib
import shutil
import subprocess
import time

import pytest
from build_scripts import debian_with_all_packages

ROOT = pathlib.Path(__file__).parents[2]
TABLE = """
[cores]
protects = the cores
when = always
runs = swift
minutes = 1
tests = OneTests TwoTests
paths = Sources

[calls]
protects = calls
when = always
runs = pytest
minutes = 1
tests = test_calls.py
also = test_deaths.py::test_some
environment = SIZE=2
paths = Sources

[deaths]
protects = many deaths
when = all
runs = pytest
minutes = 1
tests = test_deaths.py
environment = SIZE=20
paths = Sources/One docs

[figures]
protects = figures
when = all
runs = pytest
place = alone
minutes = 2
tests = test_figures.py
paths = @Two

[address]
protects = memory
when = all
runs = address
minutes = 1
tests = OneTests TwoTests
"""
TARGETS = [
    {"name": "One", "type": "regular", "dependencies": []},
    {"name": "Two", "type": "regular", "dependencies": [{"byName": ["One", None]}]},
    {"name": "Three", "type": "regular", "dependencies": []},
    {"name": "OneTests", "type": "test", "dependencies": [{"byName": ["One", None]}]},
    {"name": "TwoTests", "type": "test", "dependencies": [{"target": ["Two", None]}]},
]
# Each tool writes a line about what it runs. A part that $FAILING names fails, and one that $CRASHING names ends without a report.
TOOL = """#!/usr/bin/env bash
repository=$PWD
note() { echo "$*" >>"$repository/runs.txt"; }
# report FILE NAME: the report of a part, and its status.
report() {
  [[ " $CRASHING " != *" $2 "* ]] || exit 139
  local inside= status=0
  [[ " $FAILING " != *" $2 "* ]] || { inside='<failure/>' status=1; }
  [[ " $SKIPPING " != *" $2 "* ]] || inside='<skipped/>'
  echo "<testsuites><testsuite><testcase classname='c' name='$2' time='1'>$inside</testcase></testsuite></testsuites>" >"$1"
  [ -z "$EDITING" ] || echo more >>"$repository/$EDITING"
  exit $status
}
case "$(basename "$0") $*" in
  "swift --version"*) echo "${TOOLCHAIN:-Swift 6.3}" ;;
  "swift package dump-package") cat "$repository/package.json" ;;
  "swift format"* | "tsc"*) note "lint"; [ -z "$UNCLEAN" ] ;;
  "swift build"*) note "build $CONCLAVE_TESTS"; [[ " $FAILING " != *" build "* ]] ;;
  "swift test"*)
    while [ "$1" != --xunit-output ]; do shift; done
    name=$(basename "$2" .xml)
    note "$name"
    report "${2%.xml}-swift-testing.xml" "$name"
    ;;
  "pytest"*)
    name=$(basename "$3" .xml)
    note "$name $SIZE ${*:4}"
    [[ " $HANGING " != *" $name "* ]] || sleep 100
    report "$3" "$name"
    ;;
esac
"""


class Repository:
    def __init__(self, folder):
        self.folder, self.artifacts = folder / "repository", folder / "artifacts"
        if not self.folder.exists():
            self.make()

    def make(self):
        for path in ("deploy/test", "deploy/groups.py", "deploy/count.py", ".ci/run"):
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, self.folder / path)
        files = {
            "Tests/groups": TABLE,
            "deploy/debian.sh": debian_with_all_packages(),
            "Tests/EndToEnd/conftest.py": "",
            "Tests/EndToEnd/kit/hands.py": "",
            "Tests/EndToEnd/requirements.txt": "",
            ".build/venv/requirements.txt": "",
            "Package.swift": "",
            "package.json": json.dumps({"targets": TARGETS}),
            ".gitignore": ".build/\nruns.txt\n",
            "docs/deaths.md": "",
        }
        files |= {f"Sources/{name}/{name}.swift": "" for name in ("One", "Two", "Three")} | {f"Tests/{name}Tests/Tests.swift": "" for name in ("One", "Two")}
        files |= {f"Tests/EndToEnd/test_{name}.py": "from hands import it\n" if name == "deaths" else "" for name in ("calls", "deaths", "figures")}
        for path, text in files.items():
            self.write(path, text)
        lints = [f".ci/{file.name}" for file in (ROOT / ".ci").iterdir() if file.name not in ("run", "passed")]
        for path in ("bin/swift", "bin/tsc", ".build/venv/bin/pytest", *lints):
            self.write(path, TOOL)
            (self.folder / path).chmod(0o755)
        subprocess.run(["git", "init", "-q"], cwd=self.folder, check=True)

    def write(self, path, text):
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text)

    def run(self, *command, until=None, **variables):
        """The names of the parts that ran; `text` is the script's output, `status` its exit status."""
        (self.folder / "runs.txt").write_text("")
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CONCLAVE_")}
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        more = {} if until is None else {"CONCLAVE_UNTIL": str(int(time.time() + until))}
        done = subprocess.run(
            command or [".ci/run"], cwd=self.folder, capture_output=True, text=True, timeout=120,
            env={**kept, "PATH": path, "CONCLAVE_ARTIFACTS": str(self.artifacts), **more, **variables},
        )
        self.text, self.status = done.stdout + done.stderr, done.returncode
        self.last = done.stdout.splitlines()[-1] if done.stdout else ""
        self.lines = (self.folder / "runs.txt").read_text().splitlines()
        return {line.split()[0] for line in self.lines} - {"lint", "build"}

    @property
    def passed(self):
        file = self.folder / ".ci/passed"
        return {line.split()[0] for line in file.read_text().splitlines() if line[0] != "#"} if file.exists() else set()


ALWAYS = {"cores", "calls"}
OF_ALL = {"deaths", "figures", "address-OneTests", "address-TwoTests"}


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path)


@pytest.fixture(scope="module")
def all_passed(tmp_path_factory):
    repository = Repository(tmp_path_factory.mktemp("passed"))
    assert repository.run() == ALWAYS | OF_ALL, repository.text
    assert (repository.last, repository.status) == ("6 passed, 0 failed, 0 skipped", 0), repository.text
    assert repository.passed == OF_ALL
    return repository


@pytest.fixture
def passed(all_passed, tmp_path):
    """A repository whose groups have all passed."""
    shutil.copytree(all_passed.folder, tmp_path / "repository", symlinks=True)
    return Repository(tmp_path)


def test_groups_that_passed_are_skipped_and_the_gate_says_since_when(passed):
    record = (passed.folder / ".ci/passed").read_text()
    assert passed.run() == ALWAYS
    today = time.strftime("%Y-%m-%d")
    for name in OF_ALL:
        assert passed.text.count(f"{name}: not run, since its files are as they passed on {today}") == 2, "at the beginning and at the end"
    assert (passed.last, passed.status) == ("2 passed, 0 failed, 0 skipped", 0)
    assert (passed.folder / ".ci/passed").read_text() == record


@pytest.mark.parametrize(
    "file, again",
    [
        ("Sources/One/One.swift", OF_ALL),
        ("Sources/Two/Two.swift", {"figures", "address-TwoTests"}),
        ("Sources/Three/Three.swift", set()),
        ("Sources/Two/New.swift", {"figures", "address-TwoTests"}),
        ("Tests/OneTests/Tests.swift", {"address-OneTests"}),
        ("docs/deaths.md", {"deaths"}),
        ("Tests/EndToEnd/test_figures.py", {"figures"}),
        # Files that tests import are included automatically.
        ("Tests/EndToEnd/kit/hands.py", {"deaths"}),
        ("Tests/EndToEnd/conftest.py", {"deaths", "figures"}),
        ("Package.swift", {"figures", "address-OneTests", "address-TwoTests"}),
    ],
)
def test_a_changed_file_makes_those_that_depend_on_it_run_again(passed, file, again):
    passed.write(file, "changed")
    if file.endswith(".py"):
        passed.write(file, "from hands import it\n# changed\n")
    assert passed.run() - ALWAYS == again
    assert passed.run() == ALWAYS, "they have passed with it"


def test_a_removed_file_makes_a_group_run_again(passed):
    (passed.folder / "docs/deaths.md").unlink()
    passed.write("docs/more.md", "")
    assert passed.run() - ALWAYS == {"deaths"}


def test_a_changed_table_makes_a_group_run_again(passed):
    passed.write("Tests/groups", TABLE.replace("SIZE=20", "SIZE=10"))
    assert passed.run() - ALWAYS == {"deaths"}
    passed.write("Tests/groups", TABLE.replace("SIZE=20", "SIZE=10").replace("many deaths", "some deaths"))
    assert passed.run() == ALWAYS, "words are for readers"


def test_another_toolchain_makes_each_run_again(passed):
    assert passed.run(TOOLCHAIN="Swift 6.4") == ALWAYS | OF_ALL
    assert passed.run() == ALWAYS | OF_ALL


@pytest.mark.parametrize("name", ["deaths", "address-OneTests"])
@pytest.mark.parametrize("how", ["FAILING", "CRASHING", "SKIPPING"])
def test_a_run_that_did_not_pass_makes_no_record(repository, name, how):
    assert repository.run(**{how: name}) == ALWAYS | OF_ALL
    assert (repository.status == 0) == (how == "SKIPPING"), repository.text
    assert repository.passed == OF_ALL - {name}
    assert repository.run() == ALWAYS | {name}
    assert repository.passed == OF_ALL


def test_a_failed_run_takes_the_record_away(passed):
    assert passed.run("deploy/test", "deaths", "address", FAILING="deaths address-TwoTests") == {"deaths", "address-OneTests", "address-TwoTests"}
    assert passed.status == 1 and passed.last == "1 passed, 2 failed, 0 skipped"
    assert passed.passed == OF_ALL - {"deaths", "address-TwoTests"}
    assert passed.run() == ALWAYS | {"deaths", "address-TwoTests"}


def test_a_failure_of_what_always_runs_fails_the_gate(passed):
    assert passed.run(FAILING="calls") == ALWAYS
    assert (passed.last, passed.status) == ("1 passed, 1 failed, 0 skipped", 1)


def test_a_file_that_changes_during_the_run_makes_no_record(repository):
    repository.run("deploy/test", "figures", EDITING="Sources/Two/Two.swift")
    assert repository.status == 0 and repository.passed == set()


def test_a_build_that_fails_makes_no_record(passed):
    assert passed.run("deploy/test", "address", FAILING="build") == set()
    assert (passed.last, passed.status) == ("0 passed, 1 failed, 0 skipped", 1)
    assert passed.passed == OF_ALL - {"address-OneTests", "address-TwoTests"}
    assert passed.run("deploy/test", FAILING="build") == set()
    assert (passed.last, passed.status) == ("0 passed, 1 failed, 0 skipped", 1)


def test_part_of_a_group_makes_no_record(repository):
    assert repository.run("deploy/test", "test_deaths") == {"test_deaths"}
    assert repository.status == 0 and repository.passed == set()


def test_groups_that_do_not_end_in_time_are_named_and_do_not_run(repository):
    # Lanes take a minute, measurements two.
    assert repository.run("deploy/test", "--changed", until=90) == ALWAYS | OF_ALL - {"figures"}
    assert "Run by hand: deploy/test figures" in repository.text and repository.status == 0
    assert repository.passed == OF_ALL - {"figures"}
    assert repository.run("deploy/test", "--changed", until=-1) == ALWAYS
    assert repository.run("deploy/test", "--changed", until=600) == ALWAYS | {"figures"}


def test_groups_that_take_too_long_are_ended_and_named(repository):
    repository.run("deploy/test", "--changed", HANGING="deaths", CONCLAVE_STOP=str(int(time.time()) + 15))
    assert "Run by hand: deploy/test deaths figures address" in repository.text and repository.status == 0
    assert repository.passed == set(), "there was no time for what comes after it, either"


def test_each_level_runs_what_the_table_says(repository):
    assert repository.run("deploy/test") == ALWAYS and repository.passed == set()
    assert "calls 2 Tests/EndToEnd/test_calls.py Tests/EndToEnd/test_deaths.py::test_some" in repository.lines, "a few of another group's"
    assert repository.run("deploy/test", "--all") == ALWAYS | OF_ALL
    assert "calls 2 Tests/EndToEnd/test_calls.py" in repository.lines, "whose group runs, too"
    assert "deaths 20 Tests/EndToEnd/test_deaths.py" in repository.lines
    assert repository.run("deploy/test", "--all") == ALWAYS | OF_ALL, "records are for --changed"
    assert repository.run("deploy/test", "OneTests", "calls") == {"OneTests", "calls"}
    assert "build OneTests" in repository.lines, "a target is built without the others"


def test_an_unknown_name_is_an_error(repository):
    assert repository.run("deploy/test", "--quick") == set() and repository.status == 2
    assert repository.run("deploy/test", "nothing") == set() and repository.status == 1
    assert "No group, target or file of tests is named nothing" in repository.text


def test_help_lists_the_groups(repository):
    repository.run("deploy/test", "--help")
    assert repository.status == 0 and all(name in repository.text for name in ("cores", "calls", "deaths", "figures", "address"))


def test_lints_come_first(passed):
    assert passed.run(UNCLEAN="yes") == set()
    assert passed.status != 0
