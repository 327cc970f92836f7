"""Adds up the test reports of a folder (JUnit XML and TAP) and prints "N passed, N failed, N skipped". Fails when a test failed or none ran.

Each part of the tests has left a file NAME.status with its exit status. A part that failed without reporting a failure, for example by a crash, counts as one
failed test. So does a part without any report."""

import pathlib
import re
import sys
import xml.etree.ElementTree as xml

folder = pathlib.Path(sys.argv[1])


def counts(report):
    """The numbers of tests in a report: all, failed, skipped."""
    if report.suffix == ".tap":
        told = dict(re.findall(r"^# (tests|fail|cancelled|skipped) (\d+)", report.read_text(), re.M))
        told = {name: int(number) for name, number in told.items()}
        return told.get("tests", 0), told.get("fail", 0) + told.get("cancelled", 0), told.get("skipped", 0)
    try:
        cases = list(xml.parse(report).iter("testcase"))
    except xml.ParseError:
        return 0, 0, 0
    failed = sum(any(child.tag in ("failure", "error") for child in case) for case in cases)
    return len(cases), failed, sum(any(child.tag == "skipped" for child in case) for case in cases)


run = failed = skipped = 0
for file in sorted(folder.glob("*.status")):
    status = file.read_text().strip()
    reports = [*folder.glob(f"{file.stem}*.xml"), *folder.glob(f"{file.stem}.tap")]
    sums = [sum(column) for column in zip((0, 0, 0), *map(counts, reports))]
    if (status != "0" and sums[1] == 0) or sums[0] == 0:
        print(f"{file.stem}: ended with status {status}, and no report names a failed test: see its output above")
        sums = [sums[0] + 1, sums[1] + 1, sums[2]]
    run, failed, skipped = run + sums[0], failed + sums[1], skipped + sums[2]
print(f"{run - failed - skipped} passed, {failed} failed, {skipped} skipped")
sys.exit(failed > 0 or run == 0)
