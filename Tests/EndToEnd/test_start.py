"""The first steps of a newcomer. In a separate folder, whose compiler is a script, `deploy/start` shows one line of progress, and all lines when the build
fails. For each program that README.md starts, it also has the command that builds it."""

import os
import pathlib
import pty
import re
import subprocess

import pytest
from build_scripts import debian_with_all_packages

ROOT = pathlib.Path(__file__).parents[2]
COMPILER = """#!/bin/sh
for step in $(seq 1 100); do echo "[$step/100] Compiling NIO file$step.swift"; done
[ -z "$FAULT" ] || { echo "main.swift:1:1: error: $FAULT"; exit 1; }
"""


@pytest.fixture
def folder(tmp_path):
    files = {
        "bin/swift": COMPILER,
        ".build/release/conclave": '#!/bin/sh\necho "served $*"\n',
        "deploy/debian.sh": debian_with_all_packages(),
        "deploy/start": (ROOT / "deploy/start").read_text(),
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
        (tmp_path / path).chmod(0o755)
    return tmp_path


def start(folder, **more):
    environment = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}", "CONCLAVE_STATE": str(folder / "state"), **more.pop("environment", {})}
    return subprocess.run(["deploy/start", "--workers"], cwd=folder, env=environment, text=True, timeout=60, stdout=subprocess.PIPE, **more)


def test_a_build_says_what_happens_and_the_server_runs(folder):
    done = start(folder, stderr=subprocess.PIPE)
    assert done.returncode == 0 and done.stdout.startswith("served serve --demo --state") and done.stdout.endswith("--workers\n")
    assert len(done.stderr.splitlines()) == 1 and "minutes" in done.stderr


def test_a_terminal_has_one_line_of_progress(folder):
    ours, its = pty.openpty()
    assert start(folder, stderr=its).returncode == 0
    os.close(its)
    told = b""
    try:
        while piece := os.read(ours, 1 << 16):
            told += piece
    except OSError:
        pass
    os.close(ours)
    shown = [line for line in told.decode().replace("\r\n", "\n").split("\n") if line]
    assert len(shown) == 2 and "\r100 of 100 steps, 0:0" in shown[1], shown


def test_a_build_that_fails_shows_all_and_nothing_is_served(folder):
    done = start(folder, stderr=subprocess.PIPE, environment={"FAULT": "missing return"})
    assert done.returncode == 1 and done.stdout == ""
    assert "[7/100] Compiling NIO file7.swift" in done.stderr and "error: missing return" in done.stderr


@pytest.mark.parametrize("document", ["README.md", "docs/scaling.md"])
def test_a_document_names_the_build_of_each_program_that_it_starts(document):
    text = (ROOT / document).read_text()
    flags = re.search(r'^swift_flags="(.*)"', (ROOT / "deploy/debian.sh").read_text(), re.M)[1]
    started = set(re.findall(r"\.build/release/([\w-]+)", text))
    # With other flags the compiler would build everything again.
    built = {program for options, program in re.findall(r"swift build (.*?) --product ([\w-]+)", text) if options == flags}
    if "deploy/start " in text:
        built |= set(re.findall(r"swift build \$swift_flags --product ([\w-]+)", (ROOT / "deploy/start").read_text()))
    assert started and started <= built
