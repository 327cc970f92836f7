"""`.ci/wire-arithmetic` finds arithmetic that traps on a peer's numbers, and accepts arithmetic that cannot trap."""

import pathlib
import subprocess

import pytest

LINT = pathlib.Path(__file__).parents[2] / ".ci/wire-arithmetic"

# The clock of receivers' reports in its old form, in which reports could end the process.
CLOCK = """
package struct FeedbackClock: Sendable {
  private var last: UInt32?
  private var time: Int64 = 0

  package mutating func microseconds(_ referenceTime: UInt32) -> Int64 {
    if let last {
      let steps = Int32(bitPattern: (referenceTime &- last) << 8) >> 8
      time += Int64(steps)
    } else {
      time = Int64(referenceTime)
    }
    last = referenceTime
    return time * 64_000
  }
}
"""


def lint(*files):
    return subprocess.run([LINT, *files], capture_output=True, text=True)


def lines_found(tmp_path, text, name="Other.swift"):
    file = tmp_path / name
    file.write_text(text)
    run = lint(file)
    found = [int(line.split(":")[1]) for line in run.stdout.splitlines() if line.startswith(f"{file}:")]
    assert run.returncode == (1 if found else 0), run.stderr
    return found


def test_the_sources_are_clean():
    run = lint()
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_clock_that_ended_the_process_is_found(tmp_path):
    assert lines_found(tmp_path, CLOCK) == [9, 14]


@pytest.mark.parametrize(
    "line",
    [
        "let next = header.timestamp + 1",
        "sum += Int64(report.jitter)",
        "let age = now - Int64(header.timestamp)",
        "let read = bytes.uint32(at: 4)\nlet twice = read * 2",
        "let number: UInt16 = bytes.uint16(at: 4)\nlet next = number + 1",
        "var total = 0\ntotal = Int(report.transit)\ntotal -= 5",
        "let distance = abs(block.cumulativeLost)",
        "let opposite = -cumulativeLost",
        "// In range: another line.\n\nlet next = header.timestamp + 1",
    ],
)
def test_arithmetic_that_traps_is_found(tmp_path, line):
    assert lines_found(tmp_path, line) == [line.count("\n") + 1]


@pytest.mark.parametrize(
    "line",
    [
        "let next = header.timestamp &+ 1",
        "let half = header.timestamp >> 1 | header.timestamp << 31",
        "let length = 4 + 4 * Int(bytes.uint16(at: 2))",
        "let size = header.headerLength + header.payloadLength",
        'let text = "timestamp + 1"  // timestamp + 1',
        "let next = UInt64(header.timestamp) + 1  // in range: 32 bits",
        "// In range: 32 bits.\nlet next = UInt64(header.timestamp) + 1",
        "/// In range: 32 bits.\nfunc next() -> UInt64 {\n  if true { return 0 }\n  return UInt64(timestamp) + 1\n}",
    ],
)
def test_arithmetic_that_cannot_trap_is_taken(tmp_path, line):
    assert lines_found(tmp_path, line) == []


def test_a_reason_for_one_declaration_is_none_for_the_next(tmp_path):
    text = "/// In range: 32 bits.\nfunc a() -> UInt64 {\n  UInt64(timestamp) + 1\n}\nfunc b() -> UInt32 {\n  timestamp + 1\n}"
    assert lines_found(tmp_path, text) == [6]
