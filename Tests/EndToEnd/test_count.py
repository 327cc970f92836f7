"""The last line of `deploy/test` is true, whatever happens to a part of it."""

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
        # A test binary that crashed: no report, a part of one, or one from before the crash.
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
