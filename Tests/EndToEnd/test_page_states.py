"""The page of a call: each tile says why two people do not hear or see each other, and what to do."""

import pytest
from selenium.webdriver.common.keys import Keys

from browser import LONG_RING, WRONG_KEY
from conftest import wait_for
from test_browsers import everybody_decodes, in_a_call
from test_browsers_devices import FORGET_KEYS

# A browser that plays sound only after a press in the call.
BLOCKED = """
(() => {
  let mayPlay = false;
  addEventListener('click', ({ target }) => (mayPlay ||= Boolean(target.closest('#hear'))), true);
  const { play } = HTMLMediaElement.prototype;
  HTMLMediaElement.prototype.play = function () {
    if (mayPlay || !(this instanceof HTMLAudioElement)) return play.call(this);
    this.pause();
    return Promise.reject(new DOMException('play() failed because the user did not interact with the document first', 'NotAllowedError'));
  };
})();
"""

# This browser opens no frame, since it does not get the sender's keys.
NO_ENVELOPES = """
(() => {
  const { set } = Object.getOwnPropertyDescriptor(WebSocket.prototype, 'onmessage');
  const isKept = (data) => typeof data === 'string' && /^event:keys\\\\.(rotate|envelope|switch)$/m.test(data.split('\\\\n\\\\n')[0]);
  Object.defineProperty(WebSocket.prototype, 'onmessage', {
    set(handler) {
      set.call(this, (event) => isKept(event.data) || handler(event));
    },
  });
  const { send } = WebSocket.prototype;
  WebSocket.prototype.send = function (data) {
    if (typeof data === 'string' && /destination:.*keys.list/.test(data)) return;
    send.call(this, data);
  };
})();
""".replace("\\\\", "\\")

REFUSED_CAMERA = """
(() => {
  const ask = MediaDevices.prototype.getUserMedia;
  MediaDevices.prototype.getUserMedia = function (wish) {
    if (wish.video) return Promise.reject(new DOMException('Permission denied', 'NotAllowedError'));
    return ask.call(this, wish);
  };
})();
"""


@pytest.fixture
def server(fresh_server):
    return fresh_server


def tile_says(tab, other, words, seconds=10):
    wait_for(lambda: words in tab.text(f".tile[data-user={other.user}]"), seconds, f"{tab.name}'s tile of {other.name} says “{words}”")


def test_without_a_key_nobody_is_shown_as_connected(person, look):
    alice, bob = person("Alice"), person("Bob")
    carol = person("Carol", NO_ENVELOPES)
    alice.call("Bob")
    bob.answer()
    everybody_decodes(alice, bob)
    alice.ring("Carol")
    carol.answer()
    for other in (alice, bob):
        tile_says(carol, other, "You have no key yet")
    carol.sees("#call-notice[data-cause=no-key]")
    look(carol, "a call without a key")
    assert "Waiting for the key" in carol.text("#call-path")
    everybody_decodes(alice, bob)


def test_blocked_sound_is_said_and_heard_after_a_tap(person, look):
    alice, bob = person("Alice"), person("Bob", BLOCKED)
    alice.call("Bob")
    bob.answer()
    bob.sees("#hear")
    tile_says(bob, alice, "Sound is blocked")
    look(bob, "blocked sound")
    paused = "return [...document.querySelectorAll('audio')].map((audio) => audio.paused)"
    assert all(bob.driver.execute_script(paused))
    bob.press("Tap to hear")
    bob.loses("#hear")
    wait_for(lambda: bob.driver.execute_script(paused) and not any(bob.driver.execute_script(paused)), 5, "the voices play")
    assert "blocked" not in bob.text(f".tile[data-user={alice.user}]")


def test_a_warning_of_an_unverified_device_and_its_tile_lead_to_the_call_code(person, look):
    alice, bob = person("Alice"), person("Bob")
    alice.only_verified()
    alice.call("Bob")
    bob.answer()
    tile_says(alice, bob, "Not trusted by you")
    look(alice, "a device that is not trusted")
    alice.press("Compare the call code")
    alice.sees("#code-dialog")
    alice.click("#code-dialog button", "Close")
    alice.click(".tile button", "Compare codes")
    alice.sees("#code-dialog")
    alice.press("They match: Bob")
    alice.hears("Bob is verified")
    alice.click("#code-dialog button", "Close")
    everybody_decodes(alice, bob, seconds=8)
    wait_for(lambda: "Not trusted" not in alice.text(".tile"), 5, "the tile no longer says so")


def test_a_refused_camera_is_said_with_a_next_step_and_the_call_has_sound(person, look):
    alice, bob = person("Alice"), person("Bob", REFUSED_CAMERA)
    alice.call("Bob")
    bob.answer()
    wait_for(lambda: "Allow it in the browser’s settings" in bob.text("#warnings"), 10, "the next step")
    assert "Permission denied" not in bob.text("body")
    look(bob, "a refused camera")
    alice.decodes(voices=1)
    bob.decodes("alice/camera", voices=1)


# The browser dies without notice, and loses what it had saved about the call.
FORGET_CALL = """
for (const key of Object.keys(localStorage)) if (key.startsWith('call/')) localStorage.removeItem(key);
Storage.prototype.setItem = () => {};
window.isOld = true;
location.reload();
"""


def test_a_call_whose_browsers_are_gone_is_listed_once(person, look):
    alice, bob = in_a_call(person, "Alice", "Bob")
    everybody_decodes(alice, bob)
    alice.driver.execute_script(FORGET_CALL)
    wait_for(lambda: alice.driver.execute_script("return !window.isOld && document.readyState === 'complete'"), 10, "Alice's page is reloaded")
    alice.sees("#running-list li")
    rows = lambda: alice.driver.execute_script("return [...document.querySelectorAll('#running-list li, #history-list li')].map(({ dataset }) => dataset.call)")
    assert len(rows()) == 1
    look(alice, "a running call")
    alice.press("Rejoin: Call with Bob")
    everybody_decodes(alice, bob, seconds=8)
    alice.press("End for all")
    alice.click("#end-dialog button", "End for all")
    alice.sees("#history-list li")
    alice.loses("#running-list li")
    assert len(rows()) == 1


# A browser that plays no video before a press in the call, like a phone that saves power.
NO_VIDEO = BLOCKED.replace("HTMLAudioElement", "HTMLVideoElement")

# The server assigns no slots.
NO_SLOTS = """
(() => {
  const without = (data) => (typeof data === 'string' ? data.replace(/"receive":\\\\[[^\\\\]]*\\\\]/g, (found) => '"receive":[]'.padEnd(found.length)) : data);
  const { set } = Object.getOwnPropertyDescriptor(WebSocket.prototype, 'onmessage');
  Object.defineProperty(WebSocket.prototype, 'onmessage', {
    set(handler) {
      set.call(this, ({ data }) => handler({ data: without(data) }));
    },
  });
})();
""".replace("\\\\", "\\")


def test_videos_that_the_browser_does_not_play_by_itself_are_shown_after_a_tap(person):
    alice, bob = person("Alice"), person("Bob", NO_VIDEO)
    alice.call("Bob")
    bob.answer()
    bob.sees("#hear")
    assert bob.text("#hear").strip() == "Tap to show"
    tile_says(bob, alice, "Picture is blocked")
    bob.press("Tap to show")
    bob.loses("#hear")
    paused = "return document.querySelector('.tile[data-user=alice] video').paused"
    wait_for(lambda: not bob.driver.execute_script(paused), 5, "the picture moves")
    wait_for(lambda: "blocked" not in bob.text(f".tile[data-user={alice.user}]"), 5, "the tile no longer says so")


# A browser without the call's codec.
NO_VP8 = """
(() => {
  const all = RTCRtpReceiver.getCapabilities.bind(RTCRtpReceiver);
  RTCRtpReceiver.getCapabilities = (kind) => ({ ...all(kind), codecs: all(kind).codecs.filter(({ mimeType }) => mimeType !== 'video/VP8') });
})();
"""


def test_a_browser_without_the_codec_of_the_call_has_sound_and_says_what_it_lacks(person, look):
    alice, bob = person("Alice"), person("Bob", NO_VP8)
    alice.call("Bob")
    bob.answer()
    tile_says(bob, alice, "This browser cannot show this picture")
    wait_for(lambda: "lacks the call’s video format" in bob.text("#warnings"), 10, "why Bob's camera is off")
    look(bob, "a picture in an unknown format")
    alice.sees(".tile[data-user=bob][data-video=off]")
    for tab in (alice, bob):
        tab.decodes(voices=1)
        assert tab.text("#call-path") == "Connected"
    bob.press("Share screen")
    bob.hears("This browser cannot send pictures")
    bob.sees("#toggle-screen:not(.on)")
    for tab in (alice, bob):
        tab.decodes(voices=1)


@pytest.mark.parametrize(
    "script,words",
    [
        (WRONG_KEY, "Picture cannot be shown: nothing that fits the key arrives"),
        (NO_SLOTS, "Picture is not sent to you now"),
    ],
    ids=["awaited", "unsent"],
)
def test_a_picture_that_cannot_be_shown_is_explained_on_its_tile(person, script, words):
    alice, bob = person("Alice"), person("Bob", script)
    alice.call("Bob")
    bob.answer()
    tile_says(bob, alice, words, seconds=15)


def test_a_tile_says_that_the_other_device_does_not_trust_this_one(person, look):
    alice, bob = in_a_call(person, "Alice", "Bob")
    everybody_decodes(alice, bob)
    alice.press("End for all")
    alice.click("#end-dialog button", "End for all")
    for tab in (alice, bob):
        tab.sees("#lobby")
    alice.driver.execute_script(FORGET_KEYS)
    wait_for(lambda: alice.driver.execute_script("return !window.isOld"), 10, "Alice's page is reloaded")
    alice.sees("#lobby")
    alice.call("Bob")
    bob.answer()
    tile_says(alice, bob, "Their device does not trust yours yet: may not hear you")
    look(alice, "a device that does not trust this one")
    look(bob, "a changed key")
    bob.press("It is this number: trust it")
    wait_for(lambda: "does not trust" not in alice.text(".tile"), 10, "the tile no longer says so")
    everybody_decodes(alice, bob, seconds=8)


def test_the_heading_names_the_one_whose_connection_is_lost(person, look):
    alice, bob = person("Alice"), person("Bob")
    alice.call("Bob")
    bob.answer()
    for tab in (alice, bob):
        tab.decodes(voices=1)
    wait_for(lambda: alice.text("#call-path") == "Connected", 5, "they are connected")
    bob.close()
    wait_for(lambda: alice.text("#call-path") == "Bob lost the connection, waiting…", 20, "the heading names Bob")
    tile_says(alice, bob, "Lost the connection, waiting…")
    look(alice, "a lost connection of the only other person")
    alice.click("#leave-lost", "Leave")
    alice.sees("#lobby")


# Records the open cameras.
OPEN_CAMERAS = """
(() => {
  const open = MediaDevices.prototype.getUserMedia;
  window.conclaveCameras = [];
  MediaDevices.prototype.getUserMedia = async function (wish) {
    const stream = await open.call(this, wish);
    conclaveCameras.push(...stream.getVideoTracks());
    return stream;
  };
})();
"""


def test_a_ring_shows_ones_own_picture_where_the_camera_is_allowed_and_leads_to_camera_and_sound(person, look):
    alice, bob = person("Alice", LONG_RING), person("Bob", OPEN_CAMERAS)
    may_use = lambda setting: bob.driver.execute_cdp_cmd("Browser.setPermission", {"permission": {"name": "camera"}, "setting": setting})
    may_use("prompt")
    cameras = lambda: bob.driver.execute_script("return conclaveCameras.filter(({ readyState }) => readyState === 'live').length")
    alice.call("Bob")
    bob.sees("#ring[open]")
    bob.press("Camera and sound")
    bob.sees("#setup-dialog[open]")
    bob.sees("#preview-ask")
    assert cameras() == 0, "it is explained before the browser asks"
    bob.press("Turn on camera and microphone")
    wait_for(lambda: cameras() == 1, 10, "a preview with a level")
    bob.click("#setup-dialog button", "Close")
    wait_for(lambda: cameras() == 0, 5, "the camera is closed again")
    assert not bob.shown("#ring #preview-picture"), "a ring does not ask for the camera"
    alice.leave()
    bob.loses("#ring[open]")

    may_use("granted")
    alice.call("Bob")
    bob.sees("#ring[open]")
    bob.sees("#ring #setup-video")
    wait_for(lambda: bob.driver.execute_script("return document.getElementById('setup-video').videoWidth"), 10, "the own picture")
    look(bob, "a ring with the own picture")
    bob.press("Decline")
    bob.loses("#ring[open]")
    wait_for(lambda: cameras() == 0, 5, "the camera is closed")
    alice.press("Call again")
    bob.sees("#ring #setup-video")
    bob.answer()
    everybody_decodes(alice, bob)
    assert cameras() == 1, "the call's own"


def test_both_of_two_rings_are_seen_and_either_can_be_answered(person, look):
    alice, bob, carol = person("Alice", LONG_RING), person("Bob"), person("Carol", LONG_RING)
    for caller in (alice, carol):
        caller.call("Bob")
    bob.sees("#ring[open] #ring-others button")
    first, second = ("Alice", "Carol") if bob.text("#ring-title") == "Alice is calling" else ("Carol", "Alice")
    assert f"{second} is calling" in bob.text("#ring-others")
    look(bob, "two rings")
    bob.press(f"{second} is calling")
    wait_for(lambda: bob.text("#ring-title") == f"{second} is calling" and f"{first} is calling" in bob.text("#ring-others"), 5, "they have changed places")
    bob.answer()
    everybody_decodes(alice if second == "Alice" else carol, bob)
    bob.sees("#second-ring")
    assert bob.text("#second-ring-title") == f"{first} is calling" and not bob.shown("#ring-others")


def outcome(tab, words):
    wait_for(lambda: tab.shown("#unanswered") and tab.text("#unanswered-title") == words, 15, f"{tab.name} is shown “{words}”")


def test_after_a_decline_the_caller_may_call_again_or_close(person, look):
    alice, bob = person("Alice", LONG_RING), person("Bob", LONG_RING)
    alice.fill("People", "Bob")
    alice.press("Audio call")
    bob.press("Decline")
    outcome(alice, "Bob declined")
    ask = alice.driver.execute_script
    assert ask("return document.activeElement.id") == "unanswered-title", "a screen reader says it"
    assert ask("return document.title") == "Bob declined · Conclave"
    wait_for(lambda: not alice.text("#notices"), 5, "no notice says it a second time")
    assert alice.text("#unanswered-facts").startswith("Audio call · ")
    look(alice, "a call that was declined")
    order = []
    for _ in range(2):
        alice.driver.switch_to.active_element.send_keys(Keys.TAB)
        order.append(ask("return document.activeElement.id"))
    assert order == ["unanswered-again", "unanswered-close"]

    # The same people are called with the same media, and a call replaces the view.
    alice.press("Call again")
    alice.sees("#call")
    assert not alice.shown("#unanswered")
    bob.sees("#ring")
    assert bob.text("#ring-text") == "Audio call"
    bob.press("Decline")
    outcome(alice, "Bob declined")
    alice.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    alice.sees("#lobby")
    assert ask("return document.title") == "Conclave"
    wait_for(lambda: "Was declined" in alice.text("#history-list"), 10, "the calls in the history")

    # A ring replaces the view.
    alice.call("Bob")
    bob.press("Decline")
    outcome(alice, "Bob declined")
    bob.find("input", "People").click()  # the closed dialog returned the focus to it, but in this browser without a caret
    bob.call("Alice")
    alice.sees("#ring")
    alice.press("Decline")
    alice.loses("#unanswered")
    assert alice.shown("#lobby")
    outcome(bob, "Alice declined")
    bob.press("Close")
    bob.sees("#lobby")

    # A caller who cancels does not see the view.
    alice.call("Bob")
    bob.sees("#ring")
    alice.leave()
    bob.loses("#ring")
    assert not alice.shown("#unanswered")


def test_after_a_call_to_several_people_each_has_an_outcome_and_it_is_over_with_the_last_one(person, look):
    alice, bob, carol, dora = person("Alice", LONG_RING), person("Bob"), person("Carol"), person("Dora")
    dora.do_not_disturb()
    alice.call("Bob", "Carol", "Dora")
    bob.press("Decline")
    alice.hears("Bob declined")
    assert alice.shown("#call") and not alice.shown("#unanswered"), "it still rings Carol"
    carol.press("Decline")
    outcome(alice, "Nobody answered")
    rows = alice.driver.execute_script("return [...document.querySelectorAll('#unanswered-list .row-text')].map(({ innerText }) => innerText)")
    assert rows == ["Bob declined", "Carol declined", "Dora is not available"]
    look(alice, "a call that nobody answered")
    alice.press("Close")
    row = lambda: alice.text("#history-list li")
    wait_for(lambda: all(name in row() for name in ("Bob", "Carol", "Dora")), 10, lambda: f"the call in the history: {row()}")
    assert not alice.shown("#running")
