"""Layer switches in Chromium: `CONCLAVE_ROUNDS=200 .build/venv/bin/pytest -s Tests/EndToEnd/layer_switches.py` prints the figures of docs/benchmarks.md."""

import os
import random
import statistics

import pytest

from conftest import PATIENCE, wait_for
from test_browsers import everybody_decodes, in_a_call
from test_browsers_layers import RISE_SECONDS, height_of, resize_stage, shows
from poor_path import SHOWN, longest_gap

ROUNDS = int(os.environ.get("CONCLAVE_ROUNDS", "10"))

# The share of the picture with the colours of the test pattern, which is green: a frame decoded without its reference is grey or torn.
GREEN = """
const [user, done] = arguments;
const video = document.querySelector(`.tile[data-user=${user}] video`);
const canvas = new OffscreenCanvas(64, 36);
const context = canvas.getContext('2d');
context.drawImage(video, 0, 0, 64, 36);
const { data } = context.getImageData(0, 0, 64, 36);
let green = 0;
for (let at = 0; at < data.length; at += 4) if (data[at + 1] > data[at] + 40 && data[at + 1] > data[at + 2] + 40) green += 1;
done(green / (64 * 36));
"""


@pytest.fixture
def server(fresh_server):
    return fresh_server


def test_a_tile_that_changes_its_size_again_and_again_shows_every_layer(person, server):
    alice, bob = tabs = in_a_call(lambda name: person(name, SHOWN), "Alice", "Bob")
    everybody_decodes(*tabs)
    high = shows(alice, bob, "h", RISE_SECONDS)
    seed = int(os.environ.get("CONCLAVE_SEED", random.randrange(1_000_000)))
    pauses = random.Random(seed)
    begin = alice.driver.execute_script("return performance.now()")
    took, greens, heights = [], [], set()
    for number in range(ROUNDS):
        is_small = number % 2 == 0
        resize_stage(alice, "flex: 0 0 150px; width: 260px" if is_small else "")
        asked = alice.driver.execute_script("return performance.now()")
        wait_for(lambda: (height_of(alice, bob.user) < high) == is_small, 8, f"switch {number} of seed {seed}")
        took.append(alice.driver.execute_script("return performance.now()") - asked)
        heights.add(height_of(alice, bob.user))
        greens.append(alice.driver.execute_async_script(GREEN, bob.user))
        alice.driver.execute_async_script("setTimeout(arguments[1], arguments[0])", pauses.randrange(300))
    end = alice.driver.execute_script("return performance.now()")
    frames = alice.driver.execute_script("return conclaveShown.filter(({ at }) => at >= arguments[0] && at <= arguments[1])", begin, end)
    gap = longest_gap([(frame["at"] - begin, frame["height"]) for frame in frames], (end - begin) / 1_000)
    print(f"\nseed {seed}: {ROUNDS} switches in {(end - begin) / 1_000:.0f} s, {len(frames)} frames, the longest gap {gap * 1_000:.0f} ms")
    print(f"from the new size to the new layer: {statistics.median(took):.0f} ms ({min(took):.0f} to {max(took):.0f}); green {min(greens):.2f} to {max(greens):.2f}; heights {sorted(heights)}")
    assert len(heights) == 2
    assert min(greens) > 0.9
    assert gap < 0.5 * PATIENCE
