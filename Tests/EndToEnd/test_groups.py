"""Tests/groups, the table of the groups of tests: each file is in one group, and everything that the table names exists."""

import importlib.util
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
loader = importlib.util.spec_from_file_location("groups", ROOT / "deploy/groups.py")
table = importlib.util.module_from_spec(loader)
loader.loader.exec_module(table)
GROUPS = table.groups()
PACKAGE = table.Package()
# It reads only the text of the sources, and runs no code that a sanitizer could check.
UNSANITIZED = {"ArchitectureTests"}


def all_tests():
    """Everything that can be run: test targets, and test files in JavaScript and Python."""
    python = [*ROOT.glob("Tests/EndToEnd/test_*.py"), *ROOT.glob("Tests/Vectors/*.py")]
    files = {str(file.relative_to(ROOT)) for file in [*python, *ROOT.glob("Tests/WebTests/**/*.test.mjs")]}
    return files | targets()


def targets():
    return {name for name, target in PACKAGE.targets.items() if target["type"] == "test"}


def listed():
    for group in GROUPS:
        if not group.is_by_target:
            yield from group.tests if group.runs == "swift" else group.files()


def misplaced(files, placed):
    """Files without a group, files in two, and entries without a file."""
    return {file for file in files | set(placed) if placed.count(file) != 1 or file not in files}


def test_each_file_and_target_of_tests_belongs_to_one_group():
    assert not misplaced(all_tests(), list(listed())), "name each in one group of Tests/groups"


def test_a_file_without_a_group_is_noticed():
    there, placed = all_tests(), list(listed())
    assert misplaced(there | {"Tests/EndToEnd/test_new.py"}, placed) == {"Tests/EndToEnd/test_new.py"}
    assert misplaced(there, [*placed, "CallsTests"]) == {"CallsTests"}
    assert misplaced(there - {"CallsTests"}, placed) == {"CallsTests"}


def test_each_target_of_tests_runs_under_each_sanitizer_once():
    for kind in table.SANITIZERS:
        watched = [target for group in GROUPS if group.runs == kind for target in group.tests]
        assert sorted(watched) == sorted(targets() - UNSANITIZED), kind


def test_the_paths_and_single_tests_of_the_table_exist():
    for group in GROUPS:
        assert group.paths or group.is_by_target, f"{group.name} depends on nothing"
        for path in group.paths:
            assert path[1:] in PACKAGE.targets if path.startswith("@") else (ROOT / path).exists(), f"{group.name}: {path}"
        for test in group.also:
            file, _, name = test.partition("::")
            text = (table.PYTHON / file).read_text()
            assert not name or f"def {name.partition('[')[0]}(" in text, f"{group.name}: {test}"


def test_ten_rows_of_the_table_of_lies_are_told_to_real_browsers_always():
    (lies,) = (group for group in GROUPS if group.name == "lies")
    rows = [test for test in lies.also if test.startswith("test_lies.py::test_row[")]
    assert lies.is_always and len(set(rows)) == 10


def test_twenty_kills_are_those_of_all_and_some_are_always():
    kills = {group.name: int(re.search(r"CONCLAVE_KILLS=(\d+)", group.environment)[1]) for group in GROUPS if "CONCLAVE_KILLS" in group.environment}
    assert kills == {"restart": 4, "deaths": 20}


def test_measurements_run_alone():
    for group in GROUPS:
        assert group.place in ("first", "lanes", "alone", "last"), group.name
        measures = {"test_bench.py", "test_instructions.py", "test_signaling_load.py", "test_scaling.py", "test_overload.py", "test_call_of_ten.py"}
        assert not measures & set(group.tests) or group.place == "alone", group.name


def test_the_document_shows_the_table():
    text = (ROOT / "docs/contributing.md").read_text()
    shown = re.search("<!-- Tests/groups -->\n(.*)<!-- end of Tests/groups -->", text, re.S)[1]
    assert shown == table.rows(), "write the output of `python3 deploy/groups.py table` between the marks of docs/contributing.md"
