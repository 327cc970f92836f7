"""The camera in layers between real browsers: a small tile receives the lower layer, a large tile the higher one, all end-to-end encrypted."""

import pytest

from conftest import wait_for
from test_browsers import everybody_decodes, in_a_call

HAS_SMALL_CAMERAS = False

# Without bandwidth feedback Chromium begins at 300 kbit/s, too little for both layers, and adds 8 % a second.
RISE_SECONDS = 45


@pytest.fixture
def server(fresh_server):
    return fresh_server


def height_of(tab, user):
    """The height in pixels of the frames decoded for somebody's tile."""
    return tab.driver.execute_script("return document.querySelector(`.tile[data-user=${arguments[0]}] video`)?.videoHeight ?? 0", user)


def shows(viewer, sender, rid, seconds):
    """Waits until the viewer's tile gets frames of that layer's height, and keeps getting them, within `seconds`."""
    seen = {}

    def fits():
        layers = sender.sent()
        seen.update(layers=layers, height=height_of(viewer, sender.user))
        return rid in layers and seen["height"] == layers[rid]["height"] > 0

    wait_for(fits, seconds, lambda: f"{viewer.name} is shown layer {rid} of {sender.name}; {seen}")
    viewer.decodes(f"{sender.user}/camera", voices=1)
    return seen["height"]


def rests(sender, rid, seconds):
    """Waits until the layer is not encoded for 2 s, and the lowest one is, within `seconds`."""
    before = {}

    def is_still():
        layers = sender.sent()
        frames = layers.get(rid, {}).get("frames")
        if "lowest" not in before or frames != before["frames"]:
            before.update(frames=frames, lowest=layers["q"]["frames"])
        return layers["q"]["frames"] > before["lowest"] + 20  # 10 a second

    wait_for(is_still, seconds, lambda: f"{sender.name} no longer encodes layer {rid}; from {before} to {sender.sent()}")


def resize_stage(tab, style):
    tab.driver.execute_script("document.getElementById('stage').style.cssText = arguments[0]", style)


def test_a_small_tile_receives_the_lower_layer_and_a_large_one_the_higher(person, server, artifacts):
    alice, bob = tabs = in_a_call(person, "Alice", "Bob")
    everybody_decodes(*tabs)
    assert set(bob.sent()) == {"q", "h"}
    large = shows(alice, bob, "h", RISE_SECONDS)

    resize_stage(alice, "flex: 0 0 150px; width: 260px")
    small = shows(alice, bob, "q", 15)
    alice.screenshot(artifacts / "small-tile.png")
    assert small < large
    rests(bob, "h", 20)  # the server reports this 5 s after the last receiver wanted it
    everybody_decodes(*tabs)

    resize_stage(alice, "")
    shows(alice, bob, "h", RISE_SECONDS)
    everybody_decodes(*tabs)
    assert server.metric("conclave_media_layer_switches_total") >= 2


# Calls started by the page ask for one codec (`policy.codecs`, protocol section 4).
CODEC = """
(() => {
  const { stringify } = JSON;
  const asked = (value) => (value?.callees ? { ...value, policy: { ...value.policy, codecs: ['%s'] } } : value);
  JSON.stringify = (value, ...rest) => stringify(asked(value), ...rest);
})();
"""

@pytest.mark.parametrize("codec", ["VP9", "AV1"])
def test_a_call_with_another_codec_has_the_same_layers(person, server, codec):
    alice, bob = tabs = in_a_call(lambda name: person(name, CODEC % codec), "Alice", "Bob")
    everybody_decodes(*tabs, seconds=10)
    assert {layer["codec"] for layer in bob.sent().values()} == {f"video/{codec}"}
    large = shows(alice, bob, "h", RISE_SECONDS)
    resize_stage(alice, "flex: 0 0 150px; width: 260px")
    assert shows(alice, bob, "q", 15) < large
    everybody_decodes(*tabs)
    assert server.metric("conclave_media_layer_switches_total") >= 1
