"""Reads Tests/groups, the table of the groups of tests, for deploy/test and .ci/run.

deploy/groups.py help                      lists the groups
deploy/groups.py table                     the table as docs/contributing.md shows it
deploy/groups.py plan FOLDER [--all | --changed | NAME...]   the parts to run, a line each: part|runs|place|when|minutes|environment|arguments.
    For each group of --all the hash of its files before the run goes to FOLDER. Lines on the standard error name the groups that need no run.
deploy/groups.py record FOLDER             writes to .ci/passed which of these groups passed, by the reports in FOLDER
"""

import ast
import configparser
import datetime
import hashlib
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "deploy"))
from count import results  # noqa: E402

TABLE = ROOT / "Tests/groups"
PASSED = ROOT / ".ci/passed"
PYTHON = ROOT / "Tests/EndToEnd"
PLACES = {"swift": "first", "node": "first", "pytest": "lanes", "address": "last", "thread": "last"}
SANITIZERS = ("address", "thread")


class Group:
    def __init__(self, name, entry):
        self.name, self.entry = name, entry
        self.protects, self.runs, self.is_always = entry["protects"], entry["runs"], entry["when"] == "always"
        self.minutes = float(entry["minutes"])
        self.place = entry.get("place", PLACES.get(self.runs))
        self.tests, self.also, self.paths = (entry.get(key, "").split() for key in ("tests", "also", "paths"))
        self.environment = entry.get("environment", "")

    @property
    def is_by_target(self):
        return self.runs in SANITIZERS

    def files(self):
        """The test files of a group in JavaScript or Python, relative to the repository."""
        found = []
        for pattern in self.tests:
            there = sorted(ROOT.glob(pattern if "/" in pattern else f"Tests/EndToEnd/{pattern}"))
            if not there:
                raise SystemExit(f"Tests/groups: {self.name} has no file {pattern}")
            found += [str(file.relative_to(ROOT)) for file in there]
        return found

    def records(self):
        """The names of its records: its own, or one for each target if it runs under a sanitizer."""
        return {f"{self.runs}-{target}": [target] for target in self.tests} if self.is_by_target else {self.name: self.tests}


def groups():
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    parser.read_string(TABLE.read_text())
    return [Group(name, parser[name]) for name in parser.sections()]


# The files that a group depends on.


class Package:
    """The targets of Package.swift."""

    def __init__(self):
        told = subprocess.run(["swift", "package", "dump-package"], cwd=ROOT, check=True, capture_output=True, text=True)
        self.targets = {target["name"]: target for target in json.loads(told.stdout)["targets"]}

    def folder(self, name):
        target = self.targets[name]
        return target.get("path") or f"{'Tests' if target['type'] == 'test' else 'Sources'}/{name}"

    def folders(self, name):
        """The folders of a target and of all targets of this package that it imports."""
        needed, pending = set(), [name]
        while pending:
            name = pending.pop()
            if name in self.targets and name not in needed:
                needed.add(name)
                pending += [each[kind][0] for each in self.targets[name]["dependencies"] for kind in ("byName", "target") if kind in each]
        return {self.folder(name) for name in needed}


def imported(files):
    """The files of Tests/EndToEnd and its kit that these files import, directly or indirectly."""
    found, pending = set(), [PYTHON / "conftest.py", *(ROOT / file for file in files)]
    while pending:
        file = pending.pop()
        if file in found or not file.exists():
            continue
        found.add(file)
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)] if isinstance(node, ast.ImportFrom) and node.module else []
            pending += [folder / f"{name.replace('.', '/')}.py" for folder in (PYTHON, PYTHON / "kit") for name in names]
    return {str(file.relative_to(ROOT)) for file in found}


class Hashes:
    """Hashes everything that a record depends on, and knows the toolchain."""

    def __init__(self):
        self.package = Package()
        told = subprocess.run(["swift", "--version"], check=True, capture_output=True, text=True).stdout
        self.toolchain = " ".join(told.split("\n")[0].split())
        shown = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True)
        self.files = sorted(set(filter(None, shown.stdout.split("\0"))))
        self.contents = {}

    def paths(self, group, tests):
        if group.is_by_target:
            return {"Package.swift", "deploy/thread-sanitizer.supp"}.union(*map(self.package.folders, tests))
        found = set(group.paths) | {"deploy/debian.sh"}
        for target in [path for path in group.paths if path.startswith("@")]:
            found = found - {target} | {"Package.swift"} | self.package.folders(target[1:])
        return found | imported(group.files()) | {"Tests/EndToEnd/requirements.txt"}

    def content(self, file):
        if file not in self.contents:
            path = ROOT / file
            data = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes() if path.exists() else b"-"
            self.contents[file] = hashlib.sha256(data).hexdigest()
        return self.contents[file]

    def of(self, group, tests):
        paths = self.paths(group, tests)
        # The table's descriptions and times are for readers only.
        entry = {key: value for key, value in group.entry.items() if key not in ("protects", "minutes")}
        if group.is_by_target:
            del entry["tests"]
        total = hashlib.sha256(json.dumps([entry, self.toolchain], sort_keys=True).encode())
        for file in self.files:
            if any(file == path or file.startswith(f"{path.rstrip('/')}/") for path in paths):
                total.update(f"{file}\0{self.content(file)}\0".encode())
        return total.hexdigest()[:32]


def passed():
    """The records: name to (hash, date, toolchain)."""
    lines = PASSED.read_text().splitlines() if PASSED.exists() else []
    return {name: rest for name, *rest in (line.split(None, 3) for line in lines if line and not line.startswith("#"))}


# Commands.


def show(name, group, arguments, runs=None):
    print("|".join([name, runs or group.runs, group.place, group.entry["when"], f"{group.minutes:g}", group.environment, " ".join(arguments)]))


def of_name(name, table):
    """The group and tests that a name on the command line means, and whether it is a whole group."""
    for group in table:
        if name == group.name:
            return group, group.tests, True
        if group.is_by_target and name in group.records():
            return group, group.records()[name], True
        if group.runs == "swift" and name in group.tests:
            return group, [name], False
        if group.runs == "pytest":
            file = next((file for file in group.files() if pathlib.Path(file).name in (name, f"{name}.py")), None)
            if file:
                return group, [file], False
    raise SystemExit(f"No group, target or file of tests is named {name}. `deploy/test --help` lists the groups.")


def stale(group, tests, folder, hashes, known):
    """The tests of a group of --all that differ from their record; their hashes go to the folder."""
    found = []
    for name, its in group.records().items():
        if not set(its) <= set(tests):
            continue
        now = hashes.of(group, its)
        if known.get(name, [None])[0] == now:
            print(f"{name}: not run, since its files are as they passed on {known[name][1]}", file=sys.stderr)
        else:
            (folder / f"{name}.hash").write_text(now)
            found += its
    return found


def plan(folder, chosen):
    table = groups()
    if chosen in ([], ["--all"], ["--changed"]):
        wanted = [(group, group.tests, True) for group in table if group.is_always or chosen]
    else:
        wanted = [of_name(name, table) for name in chosen]
    known = passed() if chosen == ["--changed"] else {}
    hashes = Hashes() if any(is_whole and not group.is_always for group, _, is_whole in wanted) else None
    kept = []
    for group, tests, is_whole in wanted:
        if is_whole and not group.is_always:
            tests = stale(group, tests, folder, hashes, known)
        if tests:
            kept.append((group, tests, is_whole))
    running = {file for group, tests, is_whole in kept if group.runs == "pytest" for file in (group.files() if is_whole else tests)}
    for group, tests, is_whole in kept:
        if group.is_by_target or (group.runs == "swift" and is_whole):
            show(group.name, group, tests)
        elif group.runs == "swift":
            show(tests[0], group, tests, runs="target")
        elif not is_whole:
            show(pathlib.Path(tests[0]).stem, group, tests)
        else:
            also = [f"Tests/EndToEnd/{test}" for test in group.also]
            show(group.name, group, group.files() + [test for test in also if test.partition("::")[0] not in running])


def record(folder):
    outcomes = {name: status == "0" and failed == 0 and run > skipped for name, status, run, failed, skipped in results(folder)}
    stamps = {file.stem: file.read_text() for file in folder.glob("*.hash")}
    if not stamps:
        return
    hashes, known, today = Hashes(), passed(), datetime.date.today().isoformat()
    for group in groups():
        for name, tests in group.records().items():
            # A failed build has the name of its group.
            has_passed = outcomes.get(name, outcomes.get(group.name))
            if name not in stamps or has_passed is None:
                continue
            # A file that changed during the run may not have been tested.
            if has_passed and hashes.of(group, tests) == stamps[name]:
                known[name] = [stamps[name], today, hashes.toolchain]
            else:
                known.pop(name, None)
    text = "# Written by deploy/test when a group of --all has passed: its name, the hash of what it depends on, the date, the toolchain.\n"
    PASSED.write_text(text + "".join(f"{name} {' '.join(known[name])}\n" for name in sorted(known)))


def rows():
    header = "| group | run by | minutes | protects | depends on |\n| --- | --- | --- | --- | --- |\n"
    by = lambda group: "`deploy/test`" if group.is_always else "`--all`"
    paths = lambda group: "each target's own folder and those that it imports" if group.is_by_target else ", ".join(f"`{path}`" for path in group.paths)
    return header + "".join(f"| `{group.name}` | {by(group)} | {group.minutes:g} | {group.protects} | {paths(group)} |\n" for group in groups())


def help():
    for level, title in ((True, "deploy/test runs"), (False, "deploy/test --all adds")):
        print(f"{title}:")
        for group in groups():
            if group.is_always == level:
                print(f"  {group.name:17} {group.minutes:4g} min  {group.protects}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["help"]:
            help()
        case ["table"]:
            print(rows(), end="")
        case ["plan", folder, *chosen]:
            plan(pathlib.Path(folder), chosen)
        case ["record", folder]:
            record(pathlib.Path(folder))
        case _:
            sys.exit(__doc__)
