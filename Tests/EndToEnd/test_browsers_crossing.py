"""Calls that cross: two people call each other at the same moment, or somebody calls again after a browser crash. One call remains."""

import pytest

from conftest import wait_for
from test_browsers import everybody_decodes, in_a_call

# Presses a button at a time that both pages are given.
PRESS_AT = "const [button, at] = arguments; setTimeout(() => document.getElementById(button).click(), at - Date.now());"
NOW = "return Date.now()"
# The call to which the page would return.
CALL_ID = "return JSON.parse(localStorage.getItem(arguments[0])).id"
# The rings that a page has shown, even briefly.
WATCH_RINGS = """
window.rings = [];
for (const id of ['ring', 'second-ring']) {
  const node = document.getElementById(id);
  new MutationObserver(() => node.checkVisibility() && rings.push(document.getElementById(`${id}-title`).textContent)).observe(node, { attributes: true });
}
"""


@pytest.fixture
def server(fresh_server):
    return fresh_server


def press_together(*pressed):
    """Presses a button in each page at the same moment: `(tab, id)` each."""
    at = pressed[0][0].driver.execute_script(NOW) + 1_000
    for tab, button in pressed:
        tab.driver.execute_script(PRESS_AT, button, at)


def are_in_one_call(*tabs):
    for tab in tabs:
        wait_for(lambda: tab.text("#call-path") == "Connected", 10, f"{tab.name} is connected")
        assert tab.shown("#second-ring") == 0 and tab.shown("#held li") == 0
    assert len({tab.driver.execute_script(CALL_ID, f"call/{tab.device}") for tab in tabs}) == 1


@pytest.mark.parametrize("alice_presses,bob_presses", [("call-video", "call-video"), ("call-audio", "call-video"), ("call-video", "call-audio")], ids=["video", "audio-video", "video-audio"])
def test_two_people_who_call_each_other_at_once_are_in_one_call(person, alice_presses, bob_presses):
    alice, bob = person("Alice"), person("Bob")
    for tab, other in ((alice, "Bob"), (bob, "Alice")):
        tab.driver.execute_script(WATCH_RINGS)
        tab.fill("People", other + ",")
    press_together((alice, alice_presses), (bob, bob_presses))
    are_in_one_call(alice, bob)
    for tab, other, theirs in ((alice, bob, bob_presses), (bob, alice, alice_presses)):
        cameras = [f"{other.user}/camera"] if theirs == "call-video" else []
        tab.decodes(*cameras, voices=1, seconds=10)
    # Each sends what its own person has pressed.
    for tab, own in ((alice, alice_presses), (bob, bob_presses)):
        assert tab.shown("#toggle-camera:not(.off)") == (own == "call-video")
    # The second person's page may have got the ring before it pressed.
    shown = [title for tab in (alice, bob) for title in tab.driver.execute_script("return rings")]
    assert len(shown) <= 1
    alice.leave()
    bob.sees("#lobby")


@pytest.mark.parametrize("alice_presses,bob_presses", [("second-ring-end", "second-ring-end"), ("second-ring-hold", "second-ring-hold"), ("second-ring-end", "second-ring-hold")])
def test_rings_that_cross_between_a_group_and_one_person_become_one_call(person, alice_presses, bob_presses):
    alice, bob, carol = person("Alice"), person("Bob"), person("Carol")
    # Bob is not calling Carol, so both calls ring.
    alice.fill("People", "Bob,Carol,")
    bob.fill("People", "Alice,")
    press_together((alice, "call-audio"), (bob, "call-audio"))
    for tab in (alice, bob):
        tab.sees("#second-ring")
    press_together((alice, alice_presses), (bob, bob_presses))
    for tab in (alice, bob):
        wait_for(lambda: tab.text("#call-path") == "Connected", 10, f"{tab.name} is connected")
        tab.decodes(voices=1, seconds=10)
        assert tab.shown("#second-ring") == 0
    carol.sees("#lobby")


def test_a_caller_whose_browser_dies_and_who_calls_again_has_one_call(person):
    caller, callee, again = person("Ria"), person("Sam"), person("Ria")
    caller.call("Sam")
    callee.sees("#ring")
    caller.close()
    again.call("Sam")
    again.sees("#call")
    wait_for(lambda: callee.shown("#ring") == 1, 5, "one ring is shown")
    callee.answer()
    everybody_decodes(again, callee, seconds=10)
    are_in_one_call(again, callee)


def test_somebody_whose_browser_dies_in_a_call_comes_back_into_it_by_calling(person):
    alice, bob = in_a_call(person, "Alice", "Bob")
    everybody_decodes(alice, bob)
    bob.close()
    wait_for(lambda: alice.text("#call-path") == "Bob lost the connection, waiting…", 20, "the heading names Bob")
    alice.sees("#leave-lost")
    again = person("Bob")
    alice.driver.execute_script(WATCH_RINGS)
    again.call("Alice")
    everybody_decodes(alice, again, seconds=10)
    are_in_one_call(alice, again)
    assert alice.driver.execute_script("return rings") == [] and alice.shown("#leave-lost") == 0
    assert alice.shown(".tile[data-user=bob]") == 1
