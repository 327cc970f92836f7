"""How long tests wait. Each wait has a condition and a bound, and only the bound depends on the machine."""

import os
import time

import pytest

# The bounds of all waits are so many times as long, for a machine that is busy with something else. A test that passes takes no longer.
PATIENCE = float(os.environ.get("CONCLAVE_PATIENCE", "3"))


def wait_for(condition, seconds, what):
    """Waits until condition() is true and returns its value; fails with `what` (words, or a function that makes them) after `seconds`."""
    end = time.monotonic() + seconds * PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            pytest.fail(f"not within {seconds * PATIENCE:g} s: {what() if callable(what) else what}")
        time.sleep(0.02)
