"""The formulas of docs/scaling.md, compared with its own table and with a ramp on this machine."""

import math
import pathlib
import re

from conftest import Server
from test_loadtest import run

TEXT = pathlib.Path("docs/scaling.md").read_text()
CONSTANTS = {name: float(value.replace(",", "")) for name, value in re.findall(r"^\| `([^`]+)` \| ([\d.,]+) \|", TEXT, re.M)}


def predicted(participants, senders, kbps):
    """Packets a second, Mbit/s, share of a core, and MB above an empty server, for a call in which `senders` send audio and, unless 0, `kbps` of video."""
    streams = [(CONSTANTS["audio packets"], CONSTANTS["audio bytes"])]
    if kbps:
        frame = kbps * 1000 / 8 / 30
        count = math.ceil(frame / CONSTANTS["payload"])
        streams.append((30 * count, frame / count + CONSTANTS["overhead"]))
    receivers = senders * (participants - 1)
    out = receivers * sum(packets for packets, _ in streams)
    rate = receivers * sum(8 * packets * size for packets, size in streams) / 1e6
    cpu = CONSTANTS["c0"] + CONSTANTS["c"] * out / 1e6
    return out, rate, cpu, CONSTANTS["mp"] * participants + (CONSTANTS["ms"] * senders if kbps else 0)


def test_the_table_by_call_size_follows_from_the_formulas():
    calls = [(2, 2, 1000), (10, 10, 600), (25, 25, 0), (63, 3, 1000), (300, 3, 1000), (1000, 3, 0)]
    section = TEXT.partition("## By call size")[2].partition("\n## ")[0]
    rows = [row.strip("| ").split(" | ") for row in section.splitlines() if row.startswith("| ")][2:]
    assert len(rows) == len(calls)
    for (_, out, rate, cpu, memory), call in zip(rows, calls):
        told = float(out.replace(",", "")), float(rate.split()[0]) * (1000 if "Gbit" in rate else 1), float(cpu.split()[0]) / 100, float(memory.split()[0])
        for figure, formula in zip(told, predicted(*call)):
            assert abs(figure - formula) <= 0.05 * formula + 0.05, (call, figure, formula)


def test_a_ramp_on_this_machine_follows_the_formulas(tmp_path, artifacts):
    server = Server(tmp_path)
    try:
        options = ("--scenario", "ramp", "--publishers", "3", "--video-kbps", "1000", "--participants", "36", "--step", "12", "--duration", "4")
        _, report = run(server, artifacts / "ramp.json", *options, "--until", "packets>1000000")
    finally:
        server.stop()
    steps = report["steps"]
    assert [step["participants"] for step in steps] == [12, 24, 36], report["faults"]
    ratios = []
    for step in steps:
        out, _, cpu, memory = predicted(step["participants"], 3, 1000)
        assert abs(step["packetsPerSecond"] - out) < 0.15 * out
        ratios.append(step["server"]["cpuShare"] / cpu)
        assert 0.6 < step["server"]["rssBytes"] / 1e6 / (CONSTANTS["m0"] + memory) < 1.5
    print(ratios)
    # Another machine is faster or slower by the same factor in all steps, and other programs disturb some of them.
    assert 0.3 < min(ratios) and max(ratios) < 5 and max(ratios) / min(ratios) < 2.5, ratios
