"""The last line of `deploy/test` is correct, whatever happens to a part of it."""

import pathlib
import subprocess
import sys

import pytest

COUNT = pathlib.Path(__file__).parents[2] / "deploy/count.py"
GOOD = '<testsuites><testsuite><testcase name="a"/><testcase name="b"><skipped/></testcase></testsuite></testsuites>'
BAD = '<testsuites><testsuite><testcase name="a"/><testcase name="b"><failure/></testcase></testsuite></testsuites>'
TAP = "ok 1 - a\n# tests 3\n# fail 1\n# cancelled 0\n# skipped 1\n"


@pytest.mark.parametrize(
    "files, last, status",
    [
        ({"swift.status": "0\n", "swift-swift-testing.xml": GOOD}, "1 passed, 0 failed, 1 skipped", 0),
        ({"swift.status": "1", "swift-swift-testing.xml": BAD}, "1 passed, 1 failed, 0 skipped", 1),
        ({"web.status": "1", "web.tap": TAP}, "1 passed, 1 failed, 1 skipped", 1),
        # A crashed test binary: no report, a partial one, or one from before the crash.
        ({"pure.status": "139"}, "0 passed, 1 failed, 0 skipped", 1),
        ({"pure.status": "139", "pure-swift-testing.xml": GOOD[:40]}, "0 passed, 1 failed, 0 skipped", 1),
        ({"pure.status": "139", "pure-swift-testing.xml": GOOD}, "1 passed, 1 failed, 1 skipped", 1),
        (
            {"pure.status": "139", "swift.status": "0", "swift-swift-testing.xml": GOOD},
            "1 passed, 1 failed, 1 skipped",
            1,
        ),
        # A part that ran nothing.
        ({"swift.status": "0"}, "0 passed, 1 failed, 0 skipped", 1),
        ({}, "0 passed, 0 failed, 0 skipped", 1),
    ],
)
def test_the_last_line_counts_what_crashed(tmp_path, files, last, status):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    run = subprocess.run([sys.executable, COUNT, tmp_path], capture_output=True, text=True)
    assert run.stdout.splitlines()[-1] == last
    assert run.returncode == status, run.stderr


def test_the_durations_of_all_parts_stand_in_one_table(tmp_path):
    pytest_report = '<testsuites><testsuite><testcase classname="Tests.EndToEnd.test_{0}" name="{1}" time="{2}"/></testsuite></testsuites>'
    (tmp_path / "lies.xml").write_text(pytest_report.format("lies", "test_row[7]", "9.25"))
    (tmp_path / "calls.xml").write_text(pytest_report.format("calls", "test_call", "11.5"))
    suite = "".join(f'<testcase classname="CallsTests.Rules" name="{number}" time="{number}"/>' for number in (2, 3))
    (tmp_path / "pure-swift-testing.xml").write_text(f"<testsuites>{suite}</testsuites>")
    for name, seconds in (("build", 700), ("lies", 60), ("calls", 80), ("pure", 12)):
        (tmp_path / f"{name}.seconds").write_text(f"{seconds}\n")
        if name != "build":
            (tmp_path / f"{name}.status").write_text("0\n")
    run = subprocess.run([sys.executable, COUNT, tmp_path], capture_output=True, text=True)
    parts, suites, tests, last = run.stdout.strip().split("\n\n")
    rows = lambda text: [tuple(line.split(maxsplit=1)) for line in text.splitlines()[1:]]
    assert rows(parts) == [("700.0", "build"), ("80.0", "calls"), ("60.0", "lies"), ("12.0", "pure")]
    assert rows(suites) == [("3.0", "CallsTests.Rules")], "the longest test of the suite, since they run in parallel"
    assert rows(tests) == [("11.5", "test_calls::test_call"), ("9.2", "test_lies::test_row[7]")]
    assert (last, run.returncode) == ("4 passed, 0 failed, 0 skipped", 0)


def test_only_the_slowest_are_listed(tmp_path):
    cases = "".join(f'<testcase classname="test_many" name="t{number}" time="{number}"/>' for number in range(60))
    (tmp_path / "many.xml").write_text(f"<testsuites>{cases}</testsuites>")
    (tmp_path / "many.status").write_text("0\n")
    run = subprocess.run([sys.executable, COUNT, tmp_path], capture_output=True, text=True)
    listed = [line.split()[1] for line in run.stdout.splitlines() if "test_many::" in line]
    assert listed == [f"test_many::t{number}" for number in range(59, 34, -1)]


def test_failed_tests_are_named_before_the_last_line(tmp_path):
    case = '<testcase classname="test_{0}" name="{0}"><{1} message="first line&#10;second line"/></testcase>'
    (tmp_path / "calls.xml").write_text(f"<testsuites>{case.format('broken', 'failure')}{case.format('absent', 'skipped')}</testsuites>")
    (tmp_path / "web.tap").write_text("TAP version 13\nok 1 - works\nnot ok 2 - does not\n# tests 2\n# fail 1\n")
    for name in ("calls", "web"):
        (tmp_path / f"{name}.status").write_text("1\n")
    run = subprocess.run([sys.executable, COUNT, tmp_path], capture_output=True, text=True)
    assert run.stdout.splitlines()[-3:] == [
        "failed: test_broken::broken first line",
        "failed: does not",
        "1 passed, 2 failed, 1 skipped",
    ]
