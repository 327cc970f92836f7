"""The uplink of a browser: the server reports the arrival times of its packets, so that the browser knows its bandwidth within seconds."""

import pytest

from conftest import wait_for
from test_browsers import in_a_call

HAS_SMALL_CAMERAS = False

# Samples of the browser's own estimate, with the time in ms since its PeerConnection was connected.
ESTIMATES = """
(() => {
  window.uplink = [];
  window.RTCPeerConnection = class extends RTCPeerConnection {
    constructor(...parameters) {
      super(...parameters);
      this.addEventListener('connectionstatechange', () => this.connectionState === 'connected' && this.#sample(performance.now()));
    }
    async #sample(start) {
      while (this.connectionState === 'connected') {
        for (const { type, availableOutgoingBitrate: rate } of (await this.getStats()).values()) {
          if (type === 'candidate-pair' && rate) window.uplink.push({ time: performance.now() - start, rate });
        }
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  };
})();
"""


@pytest.fixture
def server(fresh_server):
    return fresh_server


def test_the_outgoing_estimate_rises_above_a_megabit_within_seconds(person, server):
    """Without transport-wide feedback it would begin at 300 kbit/s and rise by 8 % a second, to 650 kbit/s in ten seconds."""
    tabs = in_a_call(lambda name: person(name, ESTIMATES), "Alice", "Bob")
    for tab in tabs:
        samples = lambda: tab.driver.execute_script("return window.uplink")
        early = lambda: [sample["rate"] for sample in samples() if sample["time"] <= 10_000]
        is_over = lambda: any(sample["time"] > 10_000 for sample in samples())
        wait_for(lambda: max(early(), default=0) > 1_000_000 or is_over(), 20, f"{tab.name} has sent for 10 s")
        assert max(early()) > 1_000_000, f"{tab.name}: {[round(rate / 1000) for rate in early()]} kbit/s"
    # Two browsers, each with at least four reports a second.
    wait_for(lambda: server.metric("conclave_media_arrival_reports_sent_total") > 2 * 5 * 4, 10, "reports of five seconds")
