"""The page before a call: one's own picture, the level, the switches, and the browser's permissions."""

import pytest

from conftest import wait_for
from test_page_guests import link_of

# Records what the page opens. `conclaveRefuses` has the sources that the browser denies.
OPENED = """
(() => {
  Object.assign(window, { conclaveOpened: [], conclaveRefuses: [] });
  const open = MediaDevices.prototype.getUserMedia;
  MediaDevices.prototype.getUserMedia = async function (wish) {
    if (conclaveRefuses.includes(wish.audio ? 'audio' : 'video')) throw new DOMException('', 'NotAllowedError');
    const stream = await open.call(this, wish);
    conclaveOpened.push(...stream.getTracks());
    return stream;
  };
})();
"""
LIVE = "return conclaveOpened.filter(({ readyState }) => readyState === 'live').map(({ kind }) => kind).sort()"


@pytest.fixture
def server(fresh_server):
    return fresh_server


def allow(tab, setting):
    """Sets the person's earlier decision: `granted`, `denied`, or `prompt`."""
    for name in ("camera", "microphone"):
        tab.driver.execute_cdp_cmd("Browser.setPermission", {"permission": {"name": name}, "setting": setting})


def live(tab):
    return tab.driver.execute_script(LIVE)


@pytest.fixture
def guest(person):
    """A browser in which nobody is signed in, with its permission: guest("Ana", link, "prompt")."""

    def make(name, link, setting):
        tab = person(name, OPENED, at="data:,", words=None)
        allow(tab, setting)
        tab.driver.get(link)
        tab.sees("#guest")
        return tab

    return make


def test_a_guest_reads_why_the_browser_asks_sees_the_own_picture_and_joins_with_what_is_on(person, guest, look):
    judy = person("Judy")
    ana = guest("Ana", link_of(judy), "prompt")
    ana.sees("#guest #preview-ask")
    assert live(ana) == [] and "Your browser will ask" in ana.text("#preview-ask")
    look(ana, "a guest before the browser asks")
    ana.press("Turn on camera and microphone")
    ana.sees("#guest #setup-video")
    assert live(ana) == ["audio", "video"]
    level = lambda: ana.driver.execute_script("return document.getElementById('setup-level').value")
    wait_for(lambda: level() > 0.01, 10, "the level of the microphone moves")
    ana.click("summary", None)
    ana.sees("#guest #setup-camera")
    look(ana, "a guest who sees the own picture")
    ana.press("Mute")
    wait_for(lambda: live(ana) == ["video"], 5, "the microphone is closed")
    ana.press("Stop camera")
    wait_for(lambda: live(ana) == [], 5, "the camera is closed, too")
    ana.sees("#setup-off")
    ana.press("Start camera")
    wait_for(lambda: live(ana) == ["video"], 5, "the camera is open again")
    ana.fill("Your name", "Ana")
    ana.press("Join")
    ana.sees("#call")
    user = ana.driver.execute_script("return JSON.parse(sessionStorage.getItem('sign-in')).user")
    judy.decodes(f"{user}/camera", voices=0, seconds=10)
    assert live(ana) == ["video"], "the call's own, and no microphone"
    ana.sees("#toggle-microphone.off")
    ana.press("Unmute")
    judy.decodes(f"{user}/camera", voices=1, seconds=10)


def test_a_denied_permission_has_a_way_back_before_a_call_and_in_it(person, guest, look):
    judy = person("Judy")
    ana = guest("Ana", link_of(judy), "granted")
    refuse = lambda *sources: ana.driver.execute_script("window.conclaveRefuses = [...arguments]", *sources)
    refuse("audio", "video")
    ana.press("Stop camera")
    ana.press("Start camera")
    wait_for(lambda: "does not allow the camera" in ana.text("#setup-problem"), 5, "what is denied")
    look(ana, "a guest whose browser denies the camera")
    ana.press("Show how to allow it")
    ana.sees("#permission-dialog[open]")
    assert "Site settings" in ana.text("#permission-steps"), "the steps of Chromium"
    look(ana, "the steps to allow the camera")
    refuse()
    ana.press("Try again")
    ana.loses("#permission-dialog[open]")
    ana.sees("#setup-video")
    assert not ana.shown("#preview-how")

    refuse("video")
    ana.fill("Your name", "Ana")
    ana.press("Join")
    ana.sees("#call")
    wait_for(lambda: "does not allow the camera" in ana.text("#warnings"), 10, "what is denied in the call")
    ana.press("Show how to allow it")
    ana.sees("#permission-dialog[open]")
    refuse()
    ana.press("Try again")
    user = ana.driver.execute_script("return JSON.parse(sessionStorage.getItem('sign-in')).user")
    judy.decodes(f"{user}/camera", voices=1, seconds=10)
    wait_for(lambda: "does not allow" not in ana.text("#warnings"), 5, "the warning has disappeared")


def test_somebody_who_opens_a_link_in_the_lobby_sees_the_own_picture_and_joins_muted(person, look):
    judy, liam = person("Judy"), person("Liam", OPENED)
    allow(liam, "granted")
    liam.driver.get(link_of(judy))
    liam.sees("#invited #setup-video")
    look(liam, "a link in the lobby")
    # A dialog takes over the picture, and gives it back.
    liam.open_setup()
    liam.click("#setup-dialog button", "Close")
    liam.sees("#invited #setup-video")
    liam.press("Mute")
    liam.press("Join")
    judy.decodes("liam/camera", voices=0, seconds=10)
    liam.sees("#toggle-microphone.off")
    assert live(liam) == ["video"]


def test_a_ring_can_be_answered_muted(person):
    alice, bob = person("Alice"), person("Bob", OPENED)
    alice.call("Bob")
    bob.sees("#ring[open]")
    bob.click("#ring button", "Mute")
    bob.click("#ring button", "Accept with video")
    alice.decodes("bob/camera", voices=0, seconds=10)
    alice.sees(".tile[data-user=bob][data-muted=true]")
    assert live(bob) == ["video"]


def test_the_lobby_and_a_ring_say_that_the_browser_will_ask_until_it_has(person):
    alice, bob = person("Alice"), person("Bob")
    allow(bob, "prompt")
    bob.driver.refresh()
    bob.sees("#call-form .before-asking")
    alice.call("Bob")
    bob.sees("#ring .before-asking")
    bob.press("Decline")
    bob.loses("#ring[open]")
    allow(bob, "granted")
    bob.driver.refresh()
    bob.sees("#call-form")
    bob.loses("#call-form .before-asking")
