"""Camera layers as simulcast and as SVC, in Chromium on an idle machine: `.build/venv/bin/pytest -s Tests/EndToEnd/svc_costs.py` prints the figures of docs/benchmarks.md."""

import pytest

from conftest import wait_for
from poor_path import EIGHT_PROCESSORS
from test_browsers import everybody_decodes, in_a_call
from test_browsers_layers import CODEC

HAS_SMALL_CAMERAS = False
SECONDS = 15

# Sends cameras in one stream with the layers of this mode.
SVC = """
(() => {
  const { addTransceiver } = RTCPeerConnection.prototype;
  RTCPeerConnection.prototype.addTransceiver = function (track, { sendEncodings, ...options } = {}) {
    const isLayered = sendEncodings?.length > 1;
    return addTransceiver.call(this, track, { ...options, ...(sendEncodings && { sendEncodings: isLayered ? [{ scalabilityMode: '%s' }] : sendEncodings }) });
  };
})();
"""

# Totals of the camera's encodings: CPU seconds of encoding, bytes, and the pictures of the highest encoding.
COSTS = """
(() => {
  window.conclaveCosts = async () => {
    const costs = { seconds: 0, bytes: 0, pictures: 0, modes: [], codec: '', height: 0 };
    for (const peer of conclavePeers) {
      if (peer.connectionState === 'closed') continue;
      const stats = await peer.getStats();
      for (const { type, kind, totalEncodeTime, bytesSent, framesEncoded, scalabilityMode, codecId, frameHeight } of stats.values()) {
        if (type !== 'outbound-rtp' || kind !== 'video' || !framesEncoded) continue;
        costs.seconds += totalEncodeTime;
        costs.bytes += bytesSent;
        costs.pictures = Math.max(costs.pictures, framesEncoded);
        costs.height = Math.max(costs.height, frameHeight ?? 0);
        costs.modes.push(scalabilityMode);
        costs.codec = stats.get(codecId)?.mimeType;
      }
    }
    return costs;
  };
})();
"""


@pytest.fixture
def server(fresh_server):
    return fresh_server


@pytest.mark.parametrize("mode", ["simulcast", "L3T3_KEY", "L1T3"])
@pytest.mark.parametrize("codec", ["VP9", "AV1"])
def test_a_camera_costs(person, server, codec, mode):
    svc = SVC % mode if mode != "simulcast" else ""
    alice, bob = tabs = in_a_call(lambda name: person(name, EIGHT_PROCESSORS, COSTS + svc, CODEC % codec), "Alice", "Bob")
    for tab in tabs:
        tab.driver.set_window_size(1920, 1200)
    everybody_decodes(*tabs, seconds=20)

    def costs():
        return bob.driver.execute_async_script("conclaveCosts().then(arguments[0])")

    wait_for(lambda: costs()["height"] == 720, 45, "Bob sends 720 lines")
    before = costs()
    bob.driver.execute_async_script("setTimeout(arguments[1], arguments[0])", 1_000 * SECONDS)
    after = costs()
    assert after["codec"] == f"video/{codec}" and after["pictures"] > before["pictures"], (before, after)
    everybody_decodes(*tabs, seconds=20)
    # With SVC Chromium counts a picture once for each layer, so times are given per second.
    encoding = 1_000 * (after["seconds"] - before["seconds"]) / SECONDS
    rate = (after["bytes"] - before["bytes"]) * 8 / SECONDS / 1_000
    print(f"\n{codec} {mode}: {encoding:.0f} ms of encoding a second, {rate:.0f} kbit/s; modes {after['modes']}")
