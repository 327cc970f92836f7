"""Adds up the test reports of a folder (JUnit XML and TAP) and prints "N passed, N failed, N skipped". Fails when one failed or none ran."""

import pathlib
import re
import sys
import xml.etree.ElementTree as xml

run = failed = skipped = 0
folder = pathlib.Path(sys.argv[1])
for report in folder.glob("*.xml"):
    for case in xml.parse(report).iter("testcase"):
        run += 1
        failed += any(child.tag in ("failure", "error") for child in case)
        skipped += any(child.tag == "skipped" for child in case)
for report in folder.glob("*.tap"):
    counts = dict(re.findall(r"^# (tests|fail|cancelled|skipped) (\d+)", report.read_text(), re.M))
    run += int(counts.get("tests", 0))
    failed += int(counts.get("fail", 0)) + int(counts.get("cancelled", 0))
    skipped += int(counts.get("skipped", 0))
print(f"{run - failed - skipped} passed, {failed} failed, {skipped} skipped")
sys.exit(failed > 0 or run == 0)
