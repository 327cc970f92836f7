"""The length of the packet path in instructions, which does not depend on how busy the machine is. callgrind counts them."""

import collections
import pathlib
import platform
import re
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent
# For one packet of 1,200 bytes to one of ten receivers that report arrivals, compiled by Swift 6.3 for x86-64.
RECORDED = 2_021
TOLERANCE = 0.1
PACKETS = 20_000


def costs_of_files(profile):
    """The instructions of each object file, excluding those of the functions that it calls (Callgrind Format Specification, 3.1)."""
    names, costs = {}, collections.Counter()
    current, is_call = None, False
    for line in profile.splitlines():
        if match := re.match(r"(c?ob)=\((\d+)\)(?: (.*))?", line):
            names.setdefault(match[2], match[3])
            if match[1] == "ob":
                current = names[match[2]]
        elif line.startswith("calls="):
            is_call = True
        elif re.match(r"[0-9+*-]", line):
            if not is_call:
                costs[current] += int(line.split()[1])
            is_call = False
    return costs


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the recorded number is for x86-64")
def test_a_forwarded_packet_takes_no_more_instructions_than_recorded(tmp_path):
    (tests,) = pathlib.Path(".build/release").glob("*.xctest")
    binary, preload, profile = (tmp_path / name for name in ("tests", "sigsuspend.so", "callgrind.out"))
    # valgrind 3.19 cannot read Swift's debugging information.
    subprocess.run(["strip", "-g", "-o", binary, tests], check=True)
    subprocess.run(["clang", "-shared", "-fPIC", "-O1", "-o", preload, HERE / "sigsuspend.c"], check=True)
    symbols = subprocess.run(["nm", binary], check=True, capture_output=True, text=True).stdout
    (measured,) = re.findall(r"\S*BenchC8measured\S*F$", symbols, re.M)
    run = subprocess.run(
        ["valgrind", "--tool=callgrind", "--collect-atstart=no", f"--toggle-collect={measured}", f"--callgrind-out-file={profile}"]
        + [binary, "--testing-library", "swift-testing", "--filter", "forwardsForTheCount"],
        env={"PATH": "/usr/bin:/bin", "SWIFT_DETERMINISTIC_HASHING": "1", "LD_PRELOAD": str(preload)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
    )
    binary.unlink()
    assert run.returncode == 0 and "with 1 test " in run.stdout, run.stdout
    costs = costs_of_files(profile.read_text())
    # OpenSSL and libc have different code for each kind of processor.
    own = sum(cost for name, cost in costs.items() if name == str(binary) or "libswiftCore" in name) / PACKETS
    print(f"{own:.1f} instructions for each forwarded packet")
    assert own < RECORDED * (1 + TOLERANCE), (
        f"A forwarded packet takes {own:.0f} instructions, and {RECORDED} are recorded. Find what made the packet path longer: callgrind_annotate {profile} "
        f"lists the functions. If the change is worth it, write the new number to RECORDED in {pathlib.Path(__file__).name} and say why in the commit message."
    )
    assert own > RECORDED * (1 - TOLERANCE), (
        f"A forwarded packet takes {own:.0f} instructions, and {RECORDED} are recorded. If the packet path became so much shorter, write the new number to "
        f"RECORDED in {pathlib.Path(__file__).name}. If it did not, the measurement misses a part of it."
    )
