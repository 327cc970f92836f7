"""Recording a call on the page: the question, the answers, the signs while it lasts, the withdrawal, a newcomer, the list and the player. Sound alone but where a picture is asserted."""

import time

import pytest
from selenium.webdriver.common.keys import Keys

from conftest import Server, wait_for
from test_page_recordings import DRAWN, press_in_list, rows, script


@pytest.fixture
def server(tmp_path_factory):
    """Each test has its own: the lists are empty."""
    running = Server(tmp_path_factory.mktemp("recorded-calls"), recordings={"reserveMiB": 0})
    yield running
    running.stop()


@pytest.fixture
def somebody(person):
    return lambda name, *scripts, **options: person(name, DRAWN, *scripts, **options)


def calls(caller, callee, *, camera=False):
    """A call of two in which both have the key."""
    caller.fill("People", callee.name)
    caller.press("Video call" if camera else "Audio call")
    callee.answer("Accept with video" if camera else "Accept with audio")
    for tab in (caller, callee):
        wait_for(lambda tab=tab: tab.text("#call-path") == "Connected", 30, f"{tab.name} is connected")


def all_leave(*tabs):
    """A call that only one is left in ends by itself."""
    leave = "if (!document.getElementById('call').hidden) document.getElementById('leave').click(); return !document.getElementById('lobby').hidden"
    for tab in tabs:
        wait_for(lambda tab=tab: script(tab, leave), 20, f"{tab.name} is back in the lobby")


def starts(tab, *, what="voices", who="all"):
    """Asks everybody, by the menu."""
    wait_for(lambda: script(tab, "return document.body.classList.contains('keeps-recordings')"), 20, "the page knows that the server keeps recordings")
    tab.press("More")
    tab.click("#more-menu button", "Record this call")
    tab.sees("#call-record-dialog[open]")
    script(tab, "document.getElementById('call-record-what').value = arguments[0]; document.getElementById('call-record-who').value = arguments[1]", what, who)
    tab.click("#call-record-dialog button", "Ask everybody")
    tab.loses("#call-record-dialog[open]")


def answers(tab, words):
    tab.sees("#consent-dialog[open]", 20)
    press = """
      const button = [...document.querySelectorAll('#consent-dialog button')].find((each) => each.textContent === arguments[0] && each.checkVisibility());
      if (!button || button.disabled) return false;
      button.click();
      return true;
    """
    wait_for(lambda: script(tab, press, words), 10, f"{tab.name} answers “{words}”")
    tab.loses("#consent-dialog[open]")


def line(tab):
    return tab.text("#recorded-text") if tab.shown("#recorded-bar") else ""


def says(tab, words, seconds=30):
    wait_for(lambda: words in line(tab), seconds, lambda: f"{tab.name}'s line says “{words}”, not “{line(tab)}”")


def mark(tab, user):
    """The sign on somebody's tile, as it is read out."""
    return script(tab, "return document.querySelector(`.tile[data-user='${arguments[0]}'] .tile-recorded:not([hidden])`)?.textContent ?? ''", user)


def marked(tab, other, words):
    wait_for(lambda: mark(tab, other.user) == words, 20, lambda: f"{tab.name} sees “{words}” on {other.name}'s tile, not “{mark(tab, other.user)}”")


def people(tab):
    return script(tab, "return [...document.querySelectorAll('#player-people > li')].map((tile) => tile.dataset.user).sort()")


def plays(tab):
    wait_for(lambda: rows(tab), 60, f"{tab.name} has the recording in the list")
    press_in_list(tab, "Play")
    tab.sees("#player-dialog[open]")


def test_everybody_is_asked_and_only_those_who_agree_are_in_the_recording(somebody, look):
    alice, bob = somebody("Alice"), somebody("Bob")
    calls(alice, bob)
    starts(alice)
    bob.sees("#consent-dialog[open]", 20)
    assert "Alice" in bob.text("#consent-title") and "You" in bob.text("#consent-readers")
    look(bob, "the question whether one agrees to be recorded")
    # Escape is no answer, and nothing is recorded before there is one.
    for _ in range(2):
        bob.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    bob.sees("#consent-dialog[open]")
    says(alice, "You record this call. You are recorded.")
    assert mark(alice, bob.user) == ""
    answers(bob, "Agree")
    says(bob, "You are recorded.")
    marked(bob, bob, "Recorded")
    marked(bob, alice, "Recorded")
    marked(alice, bob, "Agreed to be recorded")
    look(bob, "a call that is recorded")
    time.sleep(4)
    alice.press("Stop the recording")
    wait_for(lambda: line(bob) == "" and line(alice) == "", 30, "the line is gone")
    all_leave(alice, bob)
    plays(bob)
    wait_for(lambda: people(bob) == sorted([alice.user, bob.user]), 20, lambda: f"both are heard: {people(bob)}")
    assert bob.text("#player-title") == "Call, recorded by Alice"
    wait_for(lambda: int(script(bob, "return document.getElementById('player-time').value")) > 1_500, 20, "the time goes on")
    assert bob.text("#player-problem") == "" and bob.text("#player-worth") == ""
    look(bob, "a player of a call's recording")


def test_a_person_who_declines_is_not_in_it_and_may_agree_later(somebody):
    alice, bob = somebody("Alice"), somebody("Bob")
    calls(alice, bob)
    starts(alice)
    answers(bob, "Don’t agree")
    says(bob, "You are not recorded.")
    says(alice, "You are recorded.")
    time.sleep(3)
    assert mark(bob, bob.user) == ""
    alice.press("Stop the recording")
    wait_for(lambda: line(bob) == "", 30, "the line is gone")
    starts(alice)
    answers(bob, "Don’t agree")
    bob.press("Agree after all")
    answers(bob, "Agree")
    says(bob, "You are recorded.")
    all_leave(alice, bob)
    wait_for(lambda: len(rows(alice)) == 2, 60, "two recordings")
    press_in_list(alice, "Play", row="#recordings-list > li:last-child")
    alice.sees("#player-dialog[open]")
    wait_for(lambda: people(alice) == [alice.user], 20, lambda: f"only Alice is in the first: {people(alice)}")


def test_a_withdrawal_with_erasure_leaves_nothing_and_what_stays_is_erased_from_the_list(somebody, look):
    alice, bob = somebody("Alice"), somebody("Bob")
    calls(alice, bob)
    starts(alice)
    answers(bob, "Agree")
    says(bob, "You are recorded.")
    time.sleep(3)
    bob.press("Stop recording me")
    bob.sees("#withdraw-dialog[open]")
    look(bob, "the question whether one’s own part is erased")
    bob.click("#withdraw-dialog button", "Stop and erase my part")
    says(bob, "You are not recorded.")
    wait_for(lambda: mark(alice, bob.user) == "", 20, "the sign is gone from Bob's tile")
    # He agrees again: that is another part.
    bob.press("Agree after all")
    answers(bob, "Agree")
    says(bob, "You are recorded.")
    time.sleep(3)
    all_leave(alice, bob)
    wait_for(lambda: rows(bob), 60, "Bob has the recording")
    press_in_list(bob, "Details")
    press_in_list(bob, "Erase my part")
    bob.click("#erase-recording-dialog button", "Erase my part")
    bob.hears("Your part is erased", 20)
    plays(bob)
    wait_for(lambda: people(bob) == [alice.user], 20, lambda: f"only Alice is left: {people(bob)}")


def test_a_newcomer_is_asked_and_pictures_are_played(somebody):
    alice, bob, carol = somebody("Alice"), somebody("Bob"), somebody("Carol")
    calls(alice, bob, camera=True)
    starts(alice, what="all")
    answers(bob, "Only my voice")
    says(bob, "You are recorded.")
    alice.ring("Carol")
    carol.answer()
    carol.sees("#consent-dialog[open]", 30)
    assert "Alice" in carol.text("#consent-title")
    says(carol, "You are not recorded.")
    assert mark(carol, carol.user) == ""
    answers(carol, "Agree")
    says(carol, "You are recorded.")
    marked(carol, carol, "Recorded")
    time.sleep(8)
    all_leave(alice, bob, carol)
    plays(alice)
    wait_for(lambda: people(alice) == sorted([alice.user, bob.user, carol.user]), 20, lambda: f"all three are in it: {people(alice)}")
    seen = lambda user: script(alice, "return document.querySelector(`#player-people > li[data-user='${arguments[0]}']`).dataset.picture === 'on'", user)  # noqa: E731
    wait_for(lambda: seen(alice.user), 30, "Alice's picture is drawn")
    assert not seen(bob.user), "Bob agreed to his voice only"
    wait_for(lambda: script(alice, "return conclaveDrawn") > 10, 20, "pictures move")
