"""Recordings for others on the page: they leave the device while they are made, contacts are alerted and watch, and what had left survives the device."""

import time

import pytest

from conftest import Server, wait_for
from network import Network
from test_page_recordings import DRAWN, close_player, has_recorded, press_in_list, rows, script, shows_moving_pictures

SECONDS = 60


@pytest.fixture
def server(tmp_path_factory):
    """Each test has its own: the lists are empty."""
    running = Server(tmp_path_factory.mktemp("own"), recordings={"reserveMiB": 0})
    yield running
    running.stop()


@pytest.fixture
def somebody(person):
    return lambda name, *scripts, **options: person(name, DRAWN, *scripts, **options)


def acquainted(one, other):
    """They have had a call, so the server passes on what one records for the other."""
    one.call(other.name)
    other.press("Decline")
    one.sees("#unanswered")
    one.press("Close")
    one.sees("#lobby")


def choose(tab, *people, **switches):
    """Opens the choices and makes them: `sound`, and the switches `alert`, `place`, `away`, `call`."""
    tab.press("Record", seconds=20)
    tab.sees("#record-form")
    if people:
        tab.fill("Who can play it", ",".join(people))
    for name, is_on in switches.items():
        script(tab, "const box = document.getElementById(`record-${arguments[0]}`); if (box.checked !== arguments[1]) box.click();", name, is_on)


def start(tab):
    tab.press("Start recording")
    tab.sees("#record-stop", 20)


def recorded(tab):
    """Seconds."""
    minutes, _, seconds = tab.text("#record-time").partition(":")
    return int(minutes or 0) * 60 + int(seconds or 0)


def contact(tab, user):
    """What is known of somebody for whom is recorded."""
    return script(tab, "return document.querySelector(`#record-contacts [data-user='${arguments[0]}']`)?.dataset.state", user)


def becomes(tab, user, *states):
    wait_for(lambda: contact(tab, user) in states, SECONDS, lambda: f"{tab.name} sees {user} {states}: {contact(tab, user)}; {tab.text('#record-live')}")


def has_left(tab):
    wait_for(lambda: "has left this device" in tab.text("#record-gone"), SECONDS, lambda: f"something leaves {tab.name}'s device: {tab.text('#record-live')}")


def watch(tab, name):
    wait_for(lambda: f"{name} needs you" in tab.text("#warnings"), SECONDS, f"{tab.name} is alerted")
    tab.press("Watch")
    tab.sees("#player-dialog[open]")


def length(tab):
    """ms, of what is open in the player."""
    return int(script(tab, "return document.getElementById('player-time').max"))


def test_a_contact_is_alerted_watches_while_it_is_made_and_the_person_sees_what_came_of_it(somebody, look):
    alice, bob = somebody("Alice"), somebody("Bob")
    acquainted(alice, bob)
    choose(alice, "Bob")
    look(alice, "the choices of a recording for others")
    pressed = time.monotonic()
    start(alice)
    watch(bob, "Alice")
    drawn = lambda: script(bob, "return conclaveDrawn")
    wait_for(lambda: drawn() > 0, SECONDS, "Bob sees a picture")
    print(f"from the press to a contact's first picture: {time.monotonic() - pressed:.1f} s")
    becomes(alice, "bob", "seen")
    has_left(alice)
    wait_for(lambda: script(alice, "return document.getElementById('record-video').videoWidth > 2"), 10, "Alice sees what she records")
    look(alice, "a recording for others")
    shows_moving_pictures(bob)
    before = length(bob)
    wait_for(lambda: length(bob) > before + 4_000, SECONDS, "it grows while Bob watches")
    wait_for(lambda: "behind" in bob.text("#player-live-state"), 20, lambda: f"it is live: {bob.text('#player-live')}")
    shows_moving_pictures(bob, 20)
    look(bob, "a recording that is followed")
    alice.press("Stop recording")
    alice.hears("complete", SECONDS)
    alice.sees("#lobby")
    wait_for(lambda: "The recording is over" in bob.text("#player-live-state"), SECONDS, "Bob is told that it is over")
    wait_for(lambda: script(bob, "return document.getElementById('player-play').ariaLabel") == "Play", SECONDS, "it plays to its end")
    assert bob.text("#player-worth") == "" and bob.text("#player-problem") == ""
    close_player(bob)
    assert not bob.text("#warnings")
    # Both have it in their lists.
    wait_for(lambda: len(rows(alice)) == 1 and "For Bob" in rows(alice)[0], 20, "Alice has it")
    press_in_list(alice, "Play")
    shows_moving_pictures(alice)
