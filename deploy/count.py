"""Adds up the test reports of a folder (JUnit XML and TAP). Prints what took longest, the tests that failed, and last "N passed, N failed, N skipped". Fails when a
test failed or none ran.

Each part of the tests has left a file NAME.status with its exit status. A part that failed without reporting a failure, for example by a crash, counts as one
failed test. So does a part without any report. Each part and each build has left its duration in NAME.seconds."""

import collections
import pathlib
import re
import sys
import xml.etree.ElementTree as xml

SLOWEST = 25
WIDTH = 160


def counts(report):
    """The numbers of tests in a report: all, failed, skipped."""
    if report.suffix == ".tap":
        told = dict(re.findall(r"^# (tests|fail|cancelled|skipped) (\d+)", report.read_text(), re.M))
        told = {name: int(number) for name, number in told.items()}
        return told.get("tests", 0), told.get("fail", 0) + told.get("cancelled", 0), told.get("skipped", 0)
    found = list(cases(report))
    failed = sum(any(child.tag in ("failure", "error") for child in case) for case in found)
    return len(found), failed, sum(any(child.tag == "skipped" for child in case) for case in found)


def cases(report):
    """The test cases of a JUnit report; empty for a report that a crash has cut off."""
    try:
        return xml.parse(report).iter("testcase")
    except xml.ParseError:
        return iter(())


def results(folder):
    """For each part of the tests: its name, its exit status, and its numbers of tests: all, failed, skipped."""
    for file in sorted(folder.glob("*.status")):
        # Swift writes NAME-swift-testing.xml beside NAME.xml.
        reports = [folder / f"{file.stem}{end}" for end in (".xml", "-swift-testing.xml", ".tap")]
        columns = zip((0, 0, 0), *(counts(report) for report in reports if report.exists()))
        yield file.stem, file.read_text().strip(), *map(sum, columns)


def durations(folder):
    """Three lists of (seconds, name): parts and builds, suites of Swift by their longest test, and tests in Python."""
    parts = [(float(file.read_text()), file.stem) for file in folder.glob("*.seconds")]
    # A suite's tests run in parallel, so the sum of their times means nothing.
    suites, tests = collections.defaultdict(float), []
    for report in folder.glob("*.xml"):
        is_swift = report.stem.endswith("-swift-testing")
        for case in cases(report):
            seconds, place = float(case.get("time") or 0), case.get("classname") or report.stem
            if is_swift:
                suites[place] = max(suites[place], seconds)
            else:
                tests.append((seconds, f"{place.rpartition('.')[2]}::{case.get('name')}"))
    return parts, [(seconds, name) for name, seconds in suites.items()], tests


def print_durations(folder):
    titles = ("Builds and parts", "Suites of Swift, by their longest test", "Tests in Python")
    for title, rows in zip(titles, durations(folder)):
        if rows:
            print(f"\n{title}, in seconds:")
            for seconds, name in sorted(rows, reverse=True)[:SLOWEST]:
                print(f"{seconds:8.1f}  {name}")
    print()


def failures(report):
    """For each failed test of a report: its name and the first line of its message."""
    if report.suffix == ".tap":
        return [(name, "") for name in re.findall(r"^ *not ok \d+ - (.*)$", report.read_text(), re.M)]
    return [
        (f"{case.get('classname', report.stem)}::{case.get('name')}", (child.get("message") or "").partition("\n")[0])
        for case in cases(report)
        for child in case
        if child.tag in ("failure", "error")
    ]


def main(folder):
    print_durations(folder)
    for report in sorted([*folder.glob("*.xml"), *folder.glob("*.tap")]):
        for name, message in failures(report):
            print(f"failed: {name} {message[:WIDTH]}".rstrip())
    run = failed = skipped = 0
    for name, status, *sums in results(folder):
        if (status != "0" and sums[1] == 0) or sums[0] == 0:
            print(f"{name}: ended with status {status}, and no report names a failed test: see its output above")
            sums = [sums[0] + 1, sums[1] + 1, sums[2]]
        run, failed, skipped = run + sums[0], failed + sums[1], skipped + sums[2]
    print(f"{run - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return failed > 0 or run == 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
