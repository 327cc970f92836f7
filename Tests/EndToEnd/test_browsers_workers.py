"""Browsers in a call that several workers share: each tab's media goes to a different worker, and everything works as with one."""

import pytest

from conftest import Server
from test_browsers import everybody_decodes, in_a_call
from test_browsers_layers import RISE_SECONDS, resize_stage, shows

HAS_SMALL_CAMERAS = False


@pytest.fixture
def server(tmp_path, artifacts, request):
    running = Server(tmp_path, media={"port": 0, "workers": 3, "callShare": 1})
    yield running
    running.stop()
    (artifacts / f"{request.node.name}-server.log").write_bytes((tmp_path / "server.log").read_bytes())


def test_people_on_different_workers_see_and_hear_each_other(person, server):
    alice, bob = tabs = in_a_call(person, "Alice", "Bob")
    everybody_decodes(*tabs)
    shows(alice, bob, "h", RISE_SECONDS)
    resize_stage(alice, "flex: 0 0 150px; width: 260px")
    shows(alice, bob, "q", 15)
    resize_stage(alice, "")
    shows(alice, bob, "h", RISE_SECONDS)

    carol = person("Carol")
    alice.ring("Carol")
    carol.answer()
    everybody_decodes(alice, bob, carol)
    for worker in range(3):
        assert server.metric_of("conclave_media_relayed_packets_total", f'worker="{worker}"') > 50
    carol.press("Share screen")
    for tab in tabs:
        tab.decodes("carol/screen", "carol/camera", voices=2)
    carol.leave()
    for tab, other in ((alice, "bob"), (bob, "alice")):
        tab.loses(".tile[data-user=carol]")
        tab.decodes(f"{other}/camera", voices=1)
    alice.ring("Carol")
    carol.answer()
    everybody_decodes(alice, bob, carol)
    assert server.metric_of("conclave_media_dropped_packets_total", 'reason="relayFull"') == 0
