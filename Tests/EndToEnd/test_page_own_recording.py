"""Recordings for others on the page: they leave the device while they are made, contacts are alerted and watch, and what had left survives the device."""

import os
import pathlib
import signal
import time

import pytest

from conftest import Server, wait_for
from network import Network
from test_page_recordings import DRAWN, close_player, position, press_in_list, rows, script, shows_moving_pictures

SECONDS = 60
PRAGUE = {"latitude": 50.08804, "longitude": 14.42076, "accuracy": 12}

# The clock of this browser is two hours ahead.
AHEAD = """
(() => {
  const now = Date.now;
  Date.now = () => now() + 7_200_000;
})();
"""


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
    """Opens the choices and makes them: `sound`, and the switches `alert`, `place`, `away` and `call`."""
    tab.press("Record", seconds=20)
    tab.sees("#record-form")
    if people:
        tab.fill("People who can play it", ",".join(people))
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
    """The state of a contact."""
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


def press_left(tab, action):
    press_in_list(tab, action, "#record-left-list > li")


def kill(tab, profile):
    """The browser is gone from one moment to the next, with all its processes."""
    mine = f"--user-data-dir={profile}"
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mine in (folder / "cmdline").read_bytes().decode(errors="replace").split("\0"):
                os.kill(int(folder.name), signal.SIGKILL)
        except (OSError, ProcessLookupError):
            continue  # it has ended by itself
    tab.is_closed = True
    tab.driver.service.stop()


def test_a_lost_phone_the_contact_plays_what_had_left(somebody, tmp_path):
    alice, bob = somebody("Alice", profile=tmp_path), somebody("Bob")
    acquainted(alice, bob)
    choose(alice, "Bob")
    start(alice)
    wait_for(lambda: recorded(alice) >= 9, SECONDS, "Alice has recorded for nine seconds")
    left = lambda: int(alice.text("#record-gone").partition(" has left")[0].rpartition(":")[2] or 0)
    wait_for(lambda: left() >= 6, SECONDS, lambda: f"six seconds have left: {alice.text('#record-gone')}")
    gone = left()
    kill(alice, tmp_path)
    watch(bob, "Alice")
    wait_for(lambda: script(bob, "return conclaveDrawn > 0"), SECONDS, "Bob sees a picture")
    # From its beginning, as a person would who wants to know what happened.
    script(bob, "const line = document.getElementById('player-time'); line.value = 0; line.dispatchEvent(new Event('input'));")
    shows_moving_pictures(bob, 20)
    wait_for(lambda: position(bob) >= (gone - 1) * 1_000, SECONDS, lambda: f"Bob sees all of the {gone} s that had left: {position(bob)}")
    assert length(bob) >= (gone - 1) * 1_000
    assert bob.text("#player-problem") == "" and bob.text("#player-worth") == ""


def test_after_a_killed_browser_the_rest_is_uploaded_and_it_is_finished(somebody, server, tmp_path, look):
    network = Network(server)
    try:
        alice, bob = somebody("Alice", at=network.url, profile=tmp_path), somebody("Bob")
        acquainted(alice, bob)
        choose(alice, "Bob")
        start(alice)
        has_left(alice)
        becomes(alice, "bob", "reached", "seen", "told")
        network.refuse_signaling()
        before = recorded(alice)
        wait_for(lambda: recorded(alice) >= before + 7, SECONDS, "Alice records on without a network")
        wait_for(lambda: "Record on" in alice.text("#record-network"), SECONDS, "Alice is told that there is no connection")
        kill(alice, tmp_path)
        network.allow_signaling()

        alice = somebody("Alice", at=network.url, profile=tmp_path)
        alice.sees("#record-left-list > li", SECONDS)
        wait_for(lambda: "Everything has left" in alice.text("#record-left-list"), SECONDS, lambda: f"the rest leaves: {alice.text('#record-left')}")
        look(alice, "a recording that was interrupted")
        press_left(alice, "Finish")
        alice.hears("complete", SECONDS)
        alice.loses("#record-left")
        watch(bob, "Alice")
        wait_for(lambda: script(bob, "return document.getElementById('player-play').ariaLabel") == "Play", SECONDS, "Bob has seen it to its end")
        assert length(bob) >= (before + 2) * 1_000, "the part without a network is there, too, up to the segment that was being made"
        assert bob.text("#player-worth") == ""
    finally:
        network.close()


def test_a_recording_that_was_interrupted_is_gone_on_with_or_deleted(somebody):
    alice, bob = somebody("Alice"), somebody("Bob")
    acquainted(alice, bob)
    choose(alice, "Bob", sound=True)
    start(alice)
    has_left(alice)
    alice.driver.refresh()
    alice.sees("#record-left-list > li", SECONDS)
    press_left(alice, "Record on")
    alice.sees("#record-stop", SECONDS)
    before = recorded(alice)
    wait_for(lambda: recorded(alice) >= before + 3, SECONDS, "it goes on")
    alice.driver.refresh()
    alice.sees("#record-left-list > li", SECONDS)
    press_left(alice, "Delete")
    alice.click("#delete-recording-dialog button", "Delete")
    alice.loses("#record-left", SECONDS)
    bob.driver.refresh()
    bob.sees("#history-list", SECONDS)
    time.sleep(1)
    assert not rows(bob), "it is deleted for everybody"


def test_without_a_network_it_is_recorded_and_leaves_when_there_is_one(somebody, server):
    network = Network(server)
    try:
        alice, bob = somebody("Alice", at=network.url), somebody("Bob")
        acquainted(alice, bob)
        choose(alice, "Bob")
        network.refuse_signaling()
        start(alice)
        wait_for(lambda: recorded(alice) >= 5, SECONDS, "Alice records")
        wait_for(lambda: "Nothing has left this device yet" in alice.text("#record-gone"), 10, lambda: alice.text("#record-gone"))
        assert contact(alice, "bob") == "waiting" and not bob.text("#warnings")
        network.allow_signaling()
        has_left(alice)
        watch(bob, "Alice")
        shows_moving_pictures(bob)
        becomes(alice, "bob", "seen")
        # Another address: nobody tells the page that the old connections are dead.
        network.move()
        before = recorded(alice)
        wait_for(lambda: recorded(alice) >= before + 3, SECONDS, "Alice records on")
        alice.press("Stop recording")
        alice.hears("complete", SECONDS)
        wait_for(lambda: "is over" in bob.text("#player-live-state"), SECONDS, "Bob has it all")
        assert length(bob) >= (before + 2) * 1_000
    finally:
        network.close()


def test_sound_only_with_a_call_beside_it_and_nothing_kept_on_the_device(somebody, look):
    alice, bob = somebody("Alice"), somebody("Bob")
    acquainted(alice, bob)
    choose(alice, "Bob", sound=True, away=True, call=True)
    alice.press("Start recording")
    bob.sees("#ring[open]", SECONDS)
    bob.answer("Accept with audio")
    alice.sees("#call", SECONDS)
    alice.sees("#record-bar")
    look(alice, "a call beside a recording")
    wait_for(lambda: "has left" in alice.text("#record-bar-text"), SECONDS, lambda: alice.text("#record-bar-text"))
    alice.click("#record-bar button", "Show")
    alice.sees("#record-stop")
    assert alice.shown("#record-off"), "sound only"
    becomes(alice, "bob", "reached", "told", "seen")
    alice.press("Stop recording")
    alice.hears("complete", SECONDS)
    kept = """
      const done = arguments[0];
      indexedDB.open('conclave-recordings').onsuccess = ({ target: { result } }) => {
        result.transaction('segments').objectStore('segments').getAll().onsuccess = ({ target }) => done(target.result.length);
      };
    """
    assert alice.driver.execute_async_script(kept) == 0
    bob.leave()
    watch(bob, "Alice")
    wait_for(lambda: position(bob) > 1_000, SECONDS, "Bob hears it")
    wait_for(lambda: len(rows(alice)) == 1, SECONDS, "Alice's list has it")
    wait_for(lambda: "no key for it" in rows(alice)[0], SECONDS, lambda: f"and this device cannot play it: {rows(alice)}")


def test_the_place_is_told_as_text_and_the_page_asks_no_map(somebody):
    alice, bob = somebody("Alice"), somebody("Bob")
    acquainted(alice, bob)
    alice.driver.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["geolocation", "audioCapture", "videoCapture"]})
    alice.driver.execute_cdp_cmd("Emulation.setGeolocationOverride", PRAGUE)
    choose(alice, "Bob", place=True)
    start(alice)
    wait_for(lambda: "Your place was told" in alice.text("#record-where"), SECONDS, lambda: alice.text("#record-where"))
    watch(bob, "Alice")
    wait_for(lambda: "50.08804, 14.42076, within 12" in bob.text("#player-place"), SECONDS, lambda: f"Bob reads the place: {bob.text('#player-live')}")
    link = script(bob, "const { href, target, rel } = document.getElementById('player-map'); return [href, target, rel]")
    assert link == ["https://www.openstreetmap.org/?mlat=50.08804&mlon=14.42076#map=17/50.08804/14.42076", "_blank", "noopener noreferrer"]
    asked = script(bob, "return performance.getEntriesByType('resource').map(({ name }) => new URL(name).host).filter((host) => host !== location.host)")
    assert asked == [], "the page itself asks nobody"
    alice.driver.execute_cdp_cmd("Emulation.clearGeolocationOverride", {})


def test_a_full_disk_a_place_that_is_refused_and_a_missing_choice_say_what_to_do(somebody, server):
    network = Network(server)
    try:
        alice = somebody("Alice", "navigator.geolocation.getCurrentPosition = (_, failed) => failed({ code: 1 });", at=network.url)
        choose(alice, place=True)
        wait_for(lambda: "Allow it in the browser’s settings" in alice.text("#record-error"), 10, "the place is refused")
        assert not script(alice, "return document.getElementById('record-place').checked")
        script(alice, "document.getElementById('record-away').click()")
        alice.press("Start recording")
        wait_for(lambda: "Choose somebody first" in alice.text("#record-error"), 10, lambda: alice.text("#record-error"))
        script(alice, "document.getElementById('record-away').click()")
        start(alice)
        network.refuse_signaling()
        alice.driver.execute_cdp_cmd("Storage.overrideQuotaForOrigin", {"origin": network.url, "quotaSize": 200_000})
        wait_for(lambda: "no room left" in alice.text("#record-problem"), SECONDS, lambda: f"Alice is told that the disk is full: {alice.text('#record-live')}")
        assert not alice.shown("#record-stop")
        alice.driver.execute_cdp_cmd("Storage.overrideQuotaForOrigin", {"origin": network.url})
        network.allow_signaling()
        alice.hears("complete", SECONDS)
    finally:
        network.close()


def test_a_device_without_a_key_cannot_check_an_alert_and_one_without_a_decoder_downloads_it(somebody, look):
    alice, bob = somebody("Alice"), somebody("Bob")
    acquainted(alice, bob)
    other = somebody("Bob")  # another device of Bob's, which Alice's does not know
    choose(alice, "Bob")
    start(alice)
    wait_for(lambda: "The server says that Alice needs you" in other.text("#warnings"), SECONDS, lambda: f"the other device is alerted: {other.text('#warnings')}")
    look(other, "an alert that this device cannot check")
    has_left(alice)
    script(bob, "window.VideoDecoder = undefined")
    watch(bob, "Alice")
    wait_for(lambda: "Download it" in bob.text("#player-problem"), SECONDS, "Bob is told what to do")
    close_player(bob)
    other.press("Call Alice")
    alice.sees("#ring[open]", SECONDS)
    alice.press("Decline")
    assert alice.shown("#record-stop"), "a ring does not end it"


def test_a_wrong_clock_is_said_on_both_sides(somebody):
    alice, bob = somebody("Alice", AHEAD), somebody("Bob")
    acquainted(alice, bob)
    choose(alice, "Bob")
    start(alice)
    wait_for(lambda: "wrong by 12" in alice.text("#record-clock"), SECONDS, lambda: f"Alice's clock: {alice.text('#record-live')}")
    wait_for(lambda: "Set the clock of this device right" in bob.text("#warnings"), SECONDS, lambda: f"Bob is told why: {bob.text('#warnings')}")
