"""The web client in real browsers: three people in one end-to-end encrypted group call."""

import pytest

from browser import TCP_ONLY, WRONG_KEY
from conftest import wait_for


@pytest.fixture
def server(fresh_server):
    return fresh_server


def in_a_call(person, *names):
    """All of them join one call that the first has started."""
    tabs = [person(name) for name in names]
    tabs[0].call(*names[1:])
    for tab in tabs[1:]:
        tab.answer()
    return tabs


def everybody_decodes(*tabs, seconds=5):
    for tab in tabs:
        others = [other for other in tabs if other is not tab]
        tab.decodes(*[f"{other.user}/camera" for other in others], voices=len(others), seconds=seconds)


def only_the_page_runs(tab):
    """The header's policy is the only one, and markup and workers made from text are refused."""
    assert tab.driver.execute_script("return document.querySelectorAll('meta[http-equiv]').length") == 0
    attempts = {
        "markup": "document.createElement('p').innerHTML = '<b>'",
        "worker": "new Worker(location.origin + '/conclave/sframe-worker.js')",
        "policy": "trustedTypes.createPolicy('other', {})",
    }
    for name, attempt in attempts.items():
        caught = tab.driver.execute_script(f"try {{ {attempt}; return 'done'; }} catch (error) {{ return error.name; }}")
        assert caught == "TypeError", (name, caught)


def nothing_is_loaded_twice(tab):
    """
    A reload transfers no file again: an answer without a body counts 300 bytes (Resource Timing, `transferSize`). The page itself is left out: it comes through
    the service worker, which counts cached files in full.
    """
    script = "return performance.getEntriesByType('resource').map((e) => [e.name, e.transferSize])"
    files = [entry for entry in tab.driver.execute_script(script) if "/demo" not in entry[0]]
    assert len(files) > 70
    again = [entry for entry in files if entry[1] > 300]
    assert not again, again


def test_three_people_call_share_leave_return_and_end(person, artifacts):
    alice, bob, carol = tabs = in_a_call(person, "Alice", "Bob", "Carol")
    everybody_decodes(*tabs)
    codes = lambda: {tab.call_code() for tab in tabs}
    same = lambda: len(seen := codes()) == 1 and len(seen.pop()) == 40
    wait_for(same, 5, "the same call code on all screens")
    alice.screenshot(artifacts / "call.png")
    only_the_page_runs(alice)

    carol.press("Share screen")
    for tab in (alice, bob):
        tab.decodes("carol/screen", "carol/camera", voices=2)
    alice.screenshot(artifacts / "screen.png")
    carol.press("Stop sharing")
    alice.loses(".tile[data-source=screen]")

    bob.leave()
    for tab, other in ((alice, "carol"), (carol, "alice")):
        tab.loses(".tile[data-user=bob]")
        tab.decodes(f"{other}/camera", voices=1)

    alice.ring("Bob")
    bob.answer()
    everybody_decodes(*tabs)

    alice.press("End for all")
    alice.click("#end-dialog button", "End for all")
    for tab in tabs:
        tab.sees("#lobby")


def test_a_tab_with_a_wrong_key_decodes_nothing(person):
    alice, bob = person("Alice"), person("Bob")
    mallory = person("Mallory", WRONG_KEY)
    alice.call("Bob", "Mallory")
    bob.answer()
    mallory.answer()
    for tab, other in ((alice, "bob"), (bob, "alice")):
        tab.decodes(f"{other}/camera", voices=1)
    # With the right key, enough has arrived to decode something.
    enough = lambda: min(mallory.received()["packets"].values()) > 150
    wait_for(enough, 15, "media reaches the tab with the wrong key")
    received = mallory.received()
    assert (received["frames"], received["samples"]) == (0, 0)
    for tab in (alice, bob):
        assert "mallory/camera" not in tab.received()["video"]


def test_a_browser_without_udp_talks_over_tcp(person, server):
    alice, bob, carol = person("Alice", TCP_ONLY), person("Bob", TCP_ONLY), person("Carol")
    alice.call("Bob", "Carol")
    bob.answer()
    carol.answer()
    everybody_decodes(alice, bob, carol)
    alice.press("Share screen")
    for tab in (bob, carol):
        tab.decodes("alice/screen", "alice/camera", voices=2)
    assert server.metric("conclave_media_tcp_connections") >= 2
    alice.press("End for all")
    alice.click("#end-dialog button", "End for all")
    # The connections end with the call, closed by the browser or by the server.
    gone = lambda: server.metric("conclave_media_tcp_connections") == 0
    wait_for(gone, 20, "no connection is left")


def test_a_reload_comes_back_into_the_call(person):
    alice, bob = tabs = in_a_call(person, "Alice", "Bob")
    everybody_decodes(*tabs)
    bob.driver.refresh()
    bob.sees("#call")
    nothing_is_loaded_twice(bob)
    only_the_page_runs(bob)  # with the headers of a 304
    everybody_decodes(*tabs, seconds=8)
    assert alice.shown(".tile[data-user=bob]") == 1


def test_mute_and_camera_are_seen_by_the_other(person, look):
    alice, bob = tabs = in_a_call(person, "Alice", "Bob")
    everybody_decodes(*tabs)
    bob.press("Mute")
    alice.sees(".tile[data-user=bob][data-muted=true]")
    bob.press("Stop camera")
    alice.sees(".tile[data-user=bob][data-video=off]")
    look(alice, "a person who is muted and not seen")
    bob.press("Unmute")
    alice.sees(".tile[data-user=bob][data-muted=false]")
    bob.press("Start camera")
    everybody_decodes(*tabs)


def test_a_decline_and_a_ring_that_is_taken_back(person):
    alice, bob, carol = person("Alice"), person("Bob"), person("Carol")
    alice.call("Bob", "Carol")
    bob.press("Decline")
    alice.hears("Bob declined")
    carol.sees("#ring")
    alice.leave()
    carol.loses("#ring")
    carol.hears("Alice stopped ringing")
