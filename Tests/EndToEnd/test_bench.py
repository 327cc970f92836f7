"""`deploy/bench` and `loadtest/tools/send-ways` measure everything in their tables in docs/benchmarks.md."""

import pathlib
import re
import subprocess


def rows(text):
    """The rows of a table with the header of deploy/bench: the work, its figure, the figure of the C loop, their ratio."""
    lines = text.partition("| work | ns | C loop, ns | ratio |\n")[2].splitlines()[1:]
    cells = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|"))
    return {work: [float(figure) for figure in figures if figure] for work, *figures in cells}


def test_the_benchmarks_run_and_the_document_has_their_rows():
    run = subprocess.run(["deploy/bench", "--quick"], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    table = rows(run.stdout)
    text = pathlib.Path("docs/benchmarks.md").read_text()
    written = re.search("<!-- deploy/bench -->\n(.*)<!-- end of deploy/bench -->", text, re.S)[1]
    assert len(table) > 10 and table.keys() == rows(written).keys()
    for work, figures in table.items():
        assert all(figure > 0 for figure in figures), work
    # Selection, the estimator and the three calls through whole workers have no loop in C to compare with.
    assert sum(len(figures) == 3 for figures in table.values()) == len(table) - 5


def test_each_way_to_send_works_and_the_document_has_it():
    run = subprocess.run(["loadtest/tools/send-ways", "--quick"], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in run.stdout.splitlines()[2:]]
    ways = {way: [int(figure) for place in places for figure in place.split(", ") if figure] for way, *places in cells}
    assert len(ways) == 10
    text = pathlib.Path("docs/benchmarks.md").read_text()
    for way, figures in ways.items():
        assert f"| {way} |" in text, way
        # AF_XDP has no loopback.
        assert len(figures) == (3 if way == "AF_XDP" else 6) and all(figure > 0 for figure in figures), way
