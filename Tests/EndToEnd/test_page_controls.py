"""The page of a call: speech into a muted microphone, push to talk, reactions, captions, the mode with one large button, and video first."""

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

from browser import LONG_RING
from conftest import wait_for
from test_browsers import everybody_decodes, in_a_call

# A microphone that can be silent or loud, and the copies made of its track.
VOICE = """
(() => {
  window.conclaveCopies = [];
  const open = MediaDevices.prototype.getUserMedia;
  MediaDevices.prototype.getUserMedia = async function (wish) {
    if (!wish.audio) return open.call(this, wish);
    const context = new AudioContext();
    const tone = new OscillatorNode(context, { frequency: 300 });
    const volume = new GainNode(context, { gain: 0 });
    const to = context.createMediaStreamDestination();
    tone.connect(volume).connect(to);
    tone.start();
    window.conclaveSpeak = (isLoud) => (volume.gain.value = isLoud ? 0.5 : 0);
    const [track] = to.stream.getAudioTracks();
    const copy = track.clone.bind(track);
    track.clone = () => {
      conclaveCopies.push(copy());
      return conclaveCopies.at(-1);
    };
    return to.stream;
  };
})();
"""

# The sent audio tracks, and whether they are enabled.
SENT = """
return conclavePeers.filter(({ connectionState }) => connectionState !== 'closed')
  .flatMap((peer) => peer.getSenders()).map(({ track }) => track).filter((track) => track?.kind === 'audio').map(({ id, enabled }) => [id, enabled]);
"""
COPIES = "return conclaveCopies.map(({ id, readyState }) => [id, readyState])"
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}


@pytest.fixture
def server(fresh_server):
    return fresh_server


def calling(person, *scripts):
    """Alice, whose browser has `scripts`, and Bob, in a call."""
    alice, bob = person("Alice", *scripts), person("Bob")
    alice.call("Bob")
    bob.answer()
    alice.decodes("bob/camera", voices=1, seconds=8)
    return alice, bob


def choose(tab, switch):
    """Turns a switch of "Camera and sound" in a call."""
    tab.press("More")
    tab.click("#more-dialog button", "Camera and sound")
    tab.sees("#setup-dialog[open]")
    tab.driver.find_element(By.ID, switch).click()
    tab.click("#setup-dialog button", "Close")
    tab.loses("#setup-dialog[open]")
    tab.driver.execute_script("document.activeElement.blur()")


def hint(tab):
    return tab.driver.execute_script("return document.getElementById('muted-hint').innerText")


def test_speech_into_a_muted_microphone_is_told_and_never_sent(person, look):
    alice, bob = calling(person, VOICE)
    speak = lambda is_loud: alice.driver.execute_script("conclaveSpeak(arguments[0])", is_loud)
    speak(True)
    assert not alice.driver.execute_script(COPIES), "a microphone that is on is not copied"
    alice.press("Mute")
    bob.sees(".tile[data-user=alice][data-muted=true]")
    wait_for(lambda: "nobody hears you" in hint(alice), 5, "the hint")
    assert alice.driver.execute_script("return document.getElementById('muted-hint').role") == "status"
    look(alice, "speech into a muted microphone")
    (copy, state), = alice.driver.execute_script(COPIES)
    sent = alice.driver.execute_script(SENT)
    assert state == "live" and copy not in [track for track, _ in sent] and not any(is_on for _, is_on in sent)
    wait_for(lambda: hint(alice) == "", 20, "it disappears though she keeps speaking")
    # Once per utterance: the next one begins after five seconds of silence.
    speak(False)
    alice.driver.set_script_timeout(30)
    alice.driver.execute_async_script("setTimeout(arguments[0], 8000)")
    assert hint(alice) == ""
    speak(True)
    wait_for(lambda: "nobody hears you" in hint(alice), 5, "the hint for the next utterance")
    alice.click(".muted-hint button", "Unmute")
    bob.sees(".tile[data-user=alice][data-muted=false]")
    wait_for(lambda: hint(alice) == "", 5, "the hint has disappeared")
    assert alice.driver.execute_script("return document.activeElement.id") == "toggle-microphone"
    assert [state for _, state in alice.driver.execute_script(COPIES)] == ["ended"], "the copy is closed"


def test_push_to_talk_is_heard_while_the_space_bar_is_held(person, look):
    alice, bob = calling(person)
    choose(alice, "push-to-talk")
    alice.hears("Hold the space bar to speak")
    bob.sees(".tile[data-user=alice][data-muted=true]")
    keys = lambda: ActionChains(alice.driver)
    keys().key_down(" ").perform()
    bob.sees(".tile[data-user=alice][data-muted=false]")
    alice.sees("#talk-sign")
    look(alice, "push to talk")
    keys().key_up(" ").perform()
    bob.sees(".tile[data-user=alice][data-muted=true]")
    alice.loses("#talk-sign")
    # A window without focus does not see the key's release.
    keys().key_down(" ").perform()
    bob.sees(".tile[data-user=alice][data-muted=false]")
    alice.driver.execute_script("dispatchEvent(new Event('blur'))")
    bob.sees(".tile[data-user=alice][data-muted=true]")
    keys().key_up(" ").perform()
    # In a field it is a space, and on a button it is a press.
    alice.press("Chat")
    alice.driver.find_element(By.ID, "chat-text").send_keys("a b")
    assert alice.driver.execute_script("return document.getElementById('chat-text').value") == "a b"
    alice.driver.execute_script("document.getElementById('toggle-hand').focus()")
    alice.driver.switch_to.active_element.send_keys(" ")
    alice.sees("#toggle-hand.on")
    assert alice.shown("#toggle-microphone.off")
    # The next call begins muted, too, and so does this one after a reload.
    alice.driver.refresh()
    alice.decodes("bob/camera", voices=1, seconds=15)
    bob.sees(".tile[data-user=alice][data-muted=true]")


def test_push_to_talk_is_heard_while_a_finger_holds_the_microphone(person):
    alice, bob = calling(person)
    choose(alice, "push-to-talk")
    bob.sees(".tile[data-user=alice][data-muted=true]")
    touch = """
      const button = document.getElementById('toggle-microphone');
      const event = (name) => button.dispatchEvent(new PointerEvent(name, { bubbles: true, pointerType: 'touch', pointerId: 1 }));
      if (arguments[0] === 'down') {
        event('pointerdown');
        window.conclaveDown = performance.now();
      }
      else {
        event('pointerup');
        button.dispatchEvent(new MouseEvent('click', { bubbles: true, detail: 1 }));
      }
    """
    alice.driver.execute_script(touch, "down")
    bob.sees(".tile[data-user=alice][data-muted=false]")
    held = "return performance.now() - conclaveDown > 400"
    wait_for(lambda: alice.driver.execute_script(held), 5, "it is a hold, and not a tap")
    alice.driver.execute_script(touch, "up")
    bob.sees(".tile[data-user=alice][data-muted=true]")
    assert alice.shown("#toggle-microphone.off")


def test_reactions_stand_beside_the_hand_and_on_a_phone_in_more(person, look):
    alice, bob = calling(person)
    order = "return [...document.querySelectorAll('#toolbar > button:not([hidden])')].map(({ id }) => id)"
    ids = alice.driver.execute_script(order)
    assert ids.index("show-reactions") == ids.index("toggle-hand") + 1
    alice.press("React")
    alice.sees("#toolbar #reactions")
    assert alice.driver.execute_script("return document.getElementById('show-reactions').ariaExpanded") == "true"
    look(alice, "reactions")
    # Taking a picture at a phone's width closes them.
    if not alice.shown("#toolbar #reactions"):
        alice.press("React")
    alice.press("Heart")
    alice.loses("#reactions")
    assert alice.driver.execute_script("return document.activeElement.id") == "show-reactions"
    wait_for(lambda: "❤️" in bob.text(".tile[data-user=alice] .tile-reaction"), 5, "the reaction on her tile")
    alice.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    alice.loses("#show-reactions")
    alice.press("More")
    alice.sees("#more-dialog #reactions")
    alice.press("Party")
    alice.loses("#more-dialog[open]")
    wait_for(lambda: "🎉" in bob.text(".tile[data-user=alice] .tile-reaction"), 5, "the other reaction")


def test_with_hang_up_alone_a_call_has_one_large_button_which_stays_and_the_others_behind_another(person, look):
    alice, bob = calling(person)
    choose(alice, "hang-up-only")
    alice.sees("#call.simple")
    shown = "return [...document.querySelectorAll('#call button')].filter((one) => one.checkVisibility()).map(({ id }) => id)"
    assert set(alice.driver.execute_script(shown)) == {"leave", "all-controls"}
    width = alice.driver.execute_script("return document.querySelector('#leave svg').getBoundingClientRect().width")
    assert width >= 80
    look(alice, "a call with one button")
    alice.press("All controls")
    alice.sees("#toggle-microphone")
    look(alice, "all controls of a call with one button")
    alice.press("Fewer controls")
    alice.loses("#toggle-microphone")
    # It does not disappear with the other controls.
    idle = "return document.getElementById('call').classList.contains('idle')"
    alice.driver.set_script_timeout(30)
    alice.driver.execute_async_script("setTimeout(arguments[0], 9000)")
    assert alice.driver.execute_script(idle) is False
    alice.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    wait_for(lambda: alice.driver.execute_script("return innerWidth") == 390, 5, "a phone")
    assert alice.driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    alice.press("Hang up")
    alice.sees("#lobby")


def test_on_a_touch_screen_no_button_names_a_key(person):
    coarse = "const match = window.matchMedia; window.matchMedia = (query) => (query === '(pointer: coarse)' ? { matches: true, addEventListener() {} } : match.call(window, query));"
    alice, bob = person("Alice", coarse), person("Bob")
    titles = "return ['toggle-microphone', 'toggle-camera', 'toggle-hand'].map((id) => document.getElementById(id).title)"
    assert alice.driver.execute_script(titles) == ["", "", ""]
    assert bob.driver.execute_script(titles) == ["M", "V", "H"]


# The browser is told what to preserve of a camera under constraints; this records everything that it was told.
PREFERENCES = """
(() => {
  window.conclavePreferences = [];
  const set = RTCRtpSender.prototype.setParameters;
  RTCRtpSender.prototype.setParameters = function (parameters) {
    if (this.track?.kind === 'video' && parameters.degradationPreference) conclavePreferences.push(parameters.degradationPreference);
    return set.call(this, parameters);
  };
})();
"""
HINTS = """
return conclavePeers.filter(({ connectionState }) => connectionState !== 'closed')
  .flatMap((peer) => peer.getSenders()).map(({ track }) => track).filter((track) => track?.kind === 'video').map(({ contentHint }) => contentHint);
"""


def test_with_video_first_frames_come_before_pixels_controls_stay_and_it_is_remembered(person, look):
    alice, bob = calling(person, PREFERENCES)
    assert alice.driver.execute_script(HINTS) == [""]
    choose(alice, "video-first")
    alice.sees("#call.calm")
    wait_for(lambda: alice.driver.execute_script(HINTS) == ["motion"], 10, "the camera is opened for movement")
    wait_for(lambda: alice.driver.execute_script("return conclavePreferences.at(-1)") == "maintain-framerate", 10, "the frame rate is kept")
    bob.decodes("alice/camera", voices=1, seconds=8)
    look(alice, "a call with video first")
    # With two people the controls would otherwise disappear after four seconds.
    alice.driver.set_script_timeout(30)
    alice.driver.execute_async_script("setTimeout(arguments[0], 9000)")
    assert alice.driver.execute_script("return document.getElementById('call').classList.contains('idle')") is False
    alice.driver.refresh()
    alice.decodes("bob/camera", voices=1, seconds=15)
    wait_for(lambda: alice.driver.execute_script(HINTS) == ["motion"], 10, "the same after a reload")
    choose(alice, "video-first")
    wait_for(lambda: alice.driver.execute_script(HINTS) == [""], 10, "the usual camera")
    wait_for(lambda: alice.driver.execute_script("return conclavePreferences.at(-1)") == "balanced", 10, "the usual balance")
    alice.loses("#call.calm")


VIDEO_FIRST = "localStorage.setItem('setting/video-first', 'true');"
RING_LIGHTS = """
return document.getAnimations().filter(({ animationName }) => animationName?.startsWith('ring-light'))
  .map(({ animationName, effect }) => [animationName, effect.pseudoElement, effect.getTiming().duration]).sort();
"""
RING_COLOURS = """
return [getComputedStyle(document.body, '::after').borderTopColor, getComputedStyle(document.getElementById('ring'), '::backdrop').backgroundColor];
"""


def test_with_video_first_a_ring_is_seen_as_a_flash_and_with_reduced_motion_as_a_colour(person, look):
    alice, bob = person("Alice", LONG_RING), person("Bob", VIDEO_FIRST)
    alice.call("Bob")
    bob.sees("#ring[open]")
    lights = bob.driver.execute_script(RING_LIGHTS)
    assert [name for name, _, _ in lights] == ["ring-light", "ring-light-behind"]
    assert all(duration > 1000 / 3 for _, _, duration in lights), "three flashes a second at most (WCAG 2.3.1)"
    reduced = {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}
    bob.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", reduced)
    wait_for(lambda: bob.driver.execute_script(RING_LIGHTS) == [], 5, "nothing flashes")
    assert bob.driver.execute_script(RING_COLOURS) == ["rgb(242, 182, 50)"] * 2
    look(bob, "a visible ring")
    bob.answer()
    bob.loses("#ring[open]")
    assert not bob.shown("body.ring-light")
    alice.sees("#call")
    assert not alice.shown("body.ring-light"), "the caller sees none"


# A browser that recognises English on the device; `conclaveSay(words, isFinal)` sets what it hears.
RECOGNISER = """
window.SpeechRecognition = class extends EventTarget {
  static async available({ langs, processLocally }) { return processLocally && langs[0].startsWith('en') ? 'available' : 'unavailable'; }
  get processLocally() { return this.isLocal; }
  set processLocally(value) { this.isLocal = value; }
  start(track) {
    window.conclaveHeard = track.kind;
    window.conclaveSay = (transcript, isFinal) => this.dispatchEvent(Object.assign(new Event('result'), { resultIndex: 0, results: [Object.assign([{ transcript }], { isFinal })] }));
  }
  abort() { window.conclaveSay = undefined; }
};
"""
NO_RECOGNISER = "delete window.SpeechRecognition; delete window.webkitSpeechRecognition;"


def captions(tab):
    """Opens the dialog of captions."""
    tab.press("More")
    tab.click("#more-dialog button", "Captions")
    tab.sees("#captions-dialog[open]")


def test_captions_go_sealed_to_those_who_want_them_and_stop_with_the_microphone(person, look):
    alice, bob = person("Alice", RECOGNISER), person("Bob", NO_RECOGNISER)
    alice.call("Bob")
    bob.answer()
    alice.decodes("bob/camera", voices=1, seconds=8)
    captions(bob)
    assert bob.driver.execute_script("return document.getElementById('captions-share').disabled")
    assert "cannot recognise speech on the device" in bob.text("#captions-state")
    look(bob, "captions where the browser has none")
    bob.driver.find_element(By.ID, "captions-on").click()
    bob.click("#captions-dialog button", "Close")
    captions(alice)
    order = "return [...document.querySelectorAll('#captions-dialog :is(button, input, select)')].map(({ id }) => id)"
    assert alice.driver.execute_script(order)[1:] == ["captions-on", "captions-share", "captions-language"]
    assert alice.driver.execute_script("return window.conclaveHeard") is None, "nothing is recognised before it is chosen"
    alice.driver.find_element(By.ID, "captions-share").click()
    wait_for(lambda: "can read what you say" in alice.text("#captions-state"), 5, "captions are shared")
    alice.click("#captions-dialog button", "Close")
    assert alice.driver.execute_script("return window.conclaveHeard") == "audio"
    say = lambda *words: alice.driver.execute_script("conclaveSay(...arguments)", *words)
    read = "return document.getElementById('captions-read').textContent"
    say("Good", False)
    wait_for(lambda: bob.text("#captions li") == "Alice Good", 5, "an interim caption")
    assert bob.driver.execute_script(read) == "", "interim words are not read out"
    say("Good morning.", True)
    wait_for(lambda: bob.text("#captions li") == "Alice Good morning.", 5, "the final one")
    wait_for(lambda: bob.driver.execute_script(read) == "Alice: Good morning.", 5, "it is read out")
    assert not alice.shown("#captions"), "Alice has not asked for captions"
    look(bob, "a caption")
    bob.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    assert bob.driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    bob.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    bob.loses("#captions", 12)
    alice.press("Mute")
    wait_for(lambda: alice.driver.execute_script("return window.conclaveSay === undefined"), 5, "a muted microphone is not recognised")
