"""Firefox in an end-to-end encrypted call with Chromium: the most common actions, and the camera in layers in both directions."""

import pytest

from conftest import wait_for
from firefox import Firefox
from test_browsers import everybody_decodes
from test_browsers_layers import CODEC, RISE_SECONDS, resize_stage, shows
from test_browsers_trust import pair as pair_devices
from test_page_guests import link_of
from test_page_states import tile_says

HAS_SMALL_CAMERAS = False


@pytest.fixture
def server(fresh_server):
    return fresh_server


@pytest.fixture
def pair(person):
    """Alice in Firefox and Bob in Chromium, in a call that she has started."""
    alice, bob = person("Alice", driver=Firefox()), person("Bob")
    alice.call("Bob")
    bob.answer()
    everybody_decodes(alice, bob, seconds=15)
    return alice, bob


def test_firefox_and_chromium_talk_share_mute_come_back_decline_and_meet_by_a_link(pair, artifacts):
    alice, bob = pair
    same = lambda: len(codes := {tab.call_code() for tab in pair}) == 1 and len(codes.pop()) == 40
    wait_for(same, 5, "the same call code on both screens")
    alice.screenshot(artifacts / "firefox.png")

    alice.press("Share screen")
    bob.decodes("alice/screen", "alice/camera", voices=1, seconds=15)
    alice.press("Stop sharing")
    bob.loses(".tile[data-source=screen]")
    bob.press("Share screen")
    alice.decodes("bob/screen", "bob/camera", voices=1, seconds=15)
    bob.press("Stop sharing")
    alice.loses(".tile[data-source=screen]")

    alice.press("Mute")
    bob.sees(".tile[data-user=alice][data-muted=true]")
    alice.press("Stop camera")
    bob.sees(".tile[data-user=alice][data-video=off]")
    alice.press("Unmute")
    alice.press("Start camera")
    everybody_decodes(alice, bob, seconds=15)

    alice.driver.refresh()
    alice.sees("#call")
    everybody_decodes(alice, bob, seconds=15)
    alice.leave()
    bob.sees("#lobby")
    bob.call("Alice")
    alice.answer()
    everybody_decodes(alice, bob, seconds=15)
    bob.leave()
    alice.sees("#lobby")
    bob.call("Alice")
    alice.press("Decline")
    bob.sees("#unanswered")
    bob.press("Close")
    bob.sees("#lobby")

    # Signs in as a guest with a link.
    link = link_of(bob)
    alice.press("Sign out")
    alice.click("#sign-out-dialog button", "Sign out")
    alice.sees("#welcome")
    alice.driver.get("about:blank")
    alice.driver.get(link)
    alice.sees("#guest")
    alice.fill("Your name", "Ana")
    alice.press("Join")
    alice.sees("#call")
    guest = alice.driver.execute_script("return JSON.parse(sessionStorage.getItem('sign-in')).user")
    alice.decodes("bob/camera", voices=1, seconds=15)
    bob.decodes(f"{guest}/camera", voices=1, seconds=15)
    assert "Ana (guest)" in bob.text(".tile .tile-name")


def test_both_browsers_send_layers_and_receive_the_others(pair, server):
    alice, bob = pair
    for viewer, sender in ((alice, bob), (bob, alice)):
        assert set(sender.sent()) == {"q", "h"}, sender.name
        large = shows(viewer, sender, "h", RISE_SECONDS)
        resize_stage(viewer, "flex: 0 0 150px; width: 260px")
        assert shows(viewer, sender, "q", 15) < large
        resize_stage(viewer, "")
        shows(viewer, sender, "h", RISE_SECONDS)
    assert server.metric("conclave_media_layer_switches_total") >= 4


@pytest.mark.parametrize("codec", ["VP9", "AV1"])
def test_firefox_and_chromium_see_each_other_in_codecs_whose_defaults_only_one_of_them_writes(person, codec):
    """Chromium offers `profile-id=0` and `profile=0`; Firefox offers neither."""
    alice, bob = person("Alice", CODEC % codec), person("Bob", driver=Firefox())
    alice.call("Bob")
    bob.answer()
    everybody_decodes(alice, bob, seconds=30)


def test_people_with_a_device_in_each_browser_pair_revoke_a_stolen_one_and_see_the_truth_on_tiles(person, artifacts):
    alice, stolen = person("Alice", driver=Firefox()), person("Alice")
    bob, other = person("Bob"), person("Bob", driver=Firefox())
    pair_devices(stolen, alice)
    pair_devices(other, bob)
    for tab in (alice, bob, other):
        tab.only_verified()

    def call(caller, callee):
        caller.call(callee.name)
        callee.answer()

    def is_trusted(tab, user):
        return tab.driver.execute_script("return document.querySelector(`.tile[data-user=${arguments[0]}]`)?.dataset.doubt", user) == ""

    def end(caller, *tabs):
        caller.press("End for all")
        caller.click("#end-dialog button", "End for all")
        for tab in (caller, *tabs):
            tab.sees("#lobby")

    call(alice, bob)
    tile_says(alice, bob, "Not trusted by you")
    alice.screenshot(artifacts / "two-browsers-not-verified.png")
    alice.verify("Bob")
    bob.verify("Alice")
    everybody_decodes(alice, bob, seconds=15)
    end(alice, bob)
    # Each of Bob's devices compares the code once, with one of Alice's, which vouches for her others.
    call(alice, other)
    other.verify("Alice")
    everybody_decodes(alice, other, seconds=15)
    end(alice, other)
    call(stolen, other)
    everybody_decodes(stolen, other, seconds=15)
    wait_for(lambda: is_trusted(other, "alice"), 10, "Bob's other device trusts Alice's")
    other.screenshot(artifacts / "two-browsers-vouched.png")
    end(stolen, other)
    removed = stolen.device
    alice.devices()
    alice.of_device("Remove", removed)
    alice.press("Remove it")
    alice.loses(f"#own-device-list [data-device={removed}]")
    alice.click("#devices-dialog button", "Close")
    stolen.sees("#welcome")
    # The thief has the password: only the server says that the new device is Alice's.
    stolen.fill("Your name", "Alice")
    stolen.press("Sign in")
    stolen.sees("#lobby")
    assert stolen.device != removed
    for victim in (bob, other):
        call(stolen, victim)
        tile_says(victim, stolen, "Not trusted by you")
        wait_for(lambda: "new device that you have not verified" in victim.text("#warnings"), 10, "a warning of the new device")
        victim.screenshot(artifacts / f"two-browsers-thief-{'chromium' if victim is bob else 'firefox'}.png")
        assert not stolen.received()["video"], "the thief sees nobody"
        end(stolen, victim)
    # The device that Alice kept is still trusted.
    call(alice, other)
    everybody_decodes(alice, other, seconds=15)
    assert is_trusted(other, "alice")
    other.screenshot(artifacts / "two-browsers-kept.png")
