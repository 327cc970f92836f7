"""A cluster in virtual time: 2,000 worlds, and the model of the fence in all its interleavings."""

import pathlib
import subprocess

import pytest

MODEL = pathlib.Path(__file__).parent.parent / "ClusterTests/Model/fence.pml"
MUTANTS = ["FENCE_WITHOUT_LOCK", "FENCE_WITHOUT_DEAD", "CLAIM_FROM_THE_LIVING", "ANSWER_BEFORE_COMMIT", "DECLARE_WITHOUT_LOCK"]


def errors(folder, mutant):
    """spin tries everything: the number of errors, and its output."""
    subprocess.run(["spin", f"-DMUTANT_{mutant}", "-a", MODEL], cwd=folder, check=True, capture_output=True)
    subprocess.run(["clang", "-O1", "-w", "-DSAFETY", f"-DMUTANT_{mutant}", "-o", "pan", "pan.c"], cwd=folder, check=True)
    run = subprocess.run(["./pan", "-m20000"], cwd=folder, check=True, capture_output=True, text=True, timeout=300)
    assert "max search depth too small" not in run.stdout, "raise -m"
    (line,) = [line for line in run.stdout.splitlines() if "errors:" in line]
    return int(line.split("errors:")[1]), run.stdout


def test_no_interleaving_lets_two_owners_write(tmp_path):
    number, output = errors(tmp_path, "NONE")
    assert number == 0, output


@pytest.mark.parametrize("mutant", MUTANTS)
def test_spin_finds_the_mistake(tmp_path, mutant):
    number, output = errors(tmp_path, mutant)
    assert number > 0 and "assertion violated" in output, output


def test_the_guarantees_hold_in_two_thousand_worlds():
    (tests,) = pathlib.Path(".build/release").glob("*.xctest")
    run = subprocess.run(
        [tests, "--testing-library", "swift-testing", "--filter", "theGuaranteesHoldWhateverHappens"],
        env={"PATH": "/usr/bin:/bin", "CONCLAVE_CLUSTER_WORLDS": "2000"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1200,
    )
    assert run.returncode == 0 and "with 1 test " in run.stdout, run.stdout[-4000:]
