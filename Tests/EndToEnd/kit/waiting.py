"""How long tests wait. Each wait has a condition and a time limit, and only the limit depends on the machine."""

import os
import time

import pytest

# Multiplies the limits of all waits, for a busy machine. It does not slow down a test that passes.
PATIENCE = float(os.environ.get("CONCLAVE_PATIENCE", "3"))


def wait_for(condition, seconds, what):
    """Waits until condition() is true and returns its value; fails with `what` (a text, or a function that makes it) after `seconds`."""
    end = time.monotonic() + seconds * PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            pytest.fail(f"not within {seconds * PATIENCE:g} s: {what() if callable(what) else what}")
        time.sleep(0.02)
