"""The page: choosing camera and microphone, people to call, keyboard shortcuts and sizes."""

import pytest
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from conftest import wait_for
from test_browsers import everybody_decodes, in_a_call

# Records what the page asks the browser to open, and whether it keeps the screen on.
ASKED = """
(() => {
  window.conclaveOpened = [];
  window.conclaveAwake = 0;
  const ask = MediaDevices.prototype.getUserMedia;
  MediaDevices.prototype.getUserMedia = async function (wish) {
    const stream = await ask.call(this, wish);
    window.conclaveOpened.push(...stream.getTracks());
    return stream;
  };
  const lock = () => {
    window.conclaveAwake += 1;
    return { released: false, release: async () => void (window.conclaveAwake -= 1) };
  };
  Object.defineProperty(navigator, 'wakeLock', { value: { request: async () => lock() } });
})();
"""


@pytest.fixture
def server(fresh_server):
    return fresh_server


def live(tab):
    """The labels of the open devices."""
    return tab.driver.execute_script("return conclaveOpened.filter(({ readyState }) => readyState === 'live').map(({ label }) => label)")


def preview(tab):
    """The label of the camera in the dialog; None if it says that the camera is off."""
    return tab.driver.execute_script("return document.getElementById('setup-video').srcObject?.getVideoTracks()[0].label")


def choose(tab, field, which):
    """Chooses a device by its name or its index in a list, which the page may be redrawing; returns its name."""

    def chosen():
        try:
            select = Select(tab.driver.find_element(By.ID, f"setup-{field}"))
            names = [option.text for option in select.options]
            index = names.index(which) if isinstance(which, str) else which
            if index < len(names):
                select.select_by_index(index)
                return names[index]
        except (ValueError, StaleElementReferenceException):
            return None

    return wait_for(chosen, 10, f"{tab.name} may choose {which}")


def test_devices_are_chosen_with_a_preview_and_a_level_before_the_call_and_in_it(person, artifacts):
    alice, bob = person("Alice", ASKED), person("Bob")
    alice.open_setup()
    level = lambda: alice.driver.execute_script("return document.getElementById('setup-level').value")
    wait_for(lambda: level() > 0.01, 10, "the level of the microphone moves")
    # The second fake camera is a depth camera, whose pictures are not encoded.
    depth = choose(alice, "camera", 2)
    wait_for(lambda: depth in live(alice), 10, f"{depth} is open")
    camera = choose(alice, "camera", 1)
    wait_for(lambda: camera in live(alice) and depth not in live(alice), 10, f"{camera} is open instead of {depth}")
    alice.screenshot(artifacts / "setup.png")
    alice.click("#setup-dialog button", "Close")
    wait_for(lambda: not live(alice), 5, "the preview is closed")

    alice.call("Bob")
    bob.answer()
    everybody_decodes(alice, bob)
    assert camera in live(alice)
    assert alice.driver.execute_script("return conclaveAwake") == 1
    alice.press("More")
    alice.click("#more-dialog button", "Camera and sound")
    wait_for(lambda: preview(alice) == camera, 10, "the preview shows the call's camera")
    microphone = choose(alice, "microphone", 2)
    wait_for(lambda: microphone in live(alice), 10, f"{microphone} is open")
    wait_for(lambda: level() > 0.01, 10, f"the level of {microphone} moves")
    choose(alice, "camera", 2)
    wait_for(lambda: depth in live(alice) and camera not in live(alice), 10, f"{depth} is open instead of {camera}")
    wait_for(lambda: preview(alice) == depth and not alice.shown("#setup-off"), 10, f"the preview shows {depth}")
    assert choose(alice, "camera", 1) == camera
    wait_for(lambda: camera in live(alice) and depth not in live(alice), 10, f"{camera} is open again")
    wait_for(lambda: preview(alice) == camera and not alice.shown("#setup-off"), 10, f"the preview shows {camera} again")
    alice.click("#setup-dialog button", "Close")
    everybody_decodes(alice, bob)
    alice.press("End for all")
    alice.click("#end-dialog button", "End for all")
    alice.sees("#lobby")
    wait_for(lambda: not live(alice), 5, "nothing is open after the call")
    assert alice.driver.execute_script("return conclaveAwake") == 0
    alice.driver.refresh()
    alice.sees("#lobby")
    alice.open_setup()
    select = lambda: Select(alice.driver.find_element(By.ID, "setup-camera")).first_selected_option.text
    wait_for(lambda: select() == camera, 10, "the choice is remembered")


def test_a_new_call_with_a_link_lets_somebody_in(person):
    judy, liam = person("Judy"), person("Liam")
    judy.press("New call with a link")
    judy.sees("#link-made")
    link = judy.driver.execute_script("return document.getElementById('link-text').value")
    judy.press("Close")
    liam.driver.get(link)
    liam.press("Join")
    everybody_decodes(judy, liam, seconds=10)


def test_a_link_goes_to_the_systems_sheet_where_there_is_one(person):
    judy = person("Judy")
    judy.press("New call with a link")
    judy.sees("#link-made")
    judy.driver.execute_script("window.shared = []; navigator.share = async (data) => void shared.push(data)")
    judy.press("Close")
    judy.press("Add people")
    judy.press("Share")
    link, shared = judy.driver.execute_script("return [document.getElementById('link-text').value, window.shared]")
    assert [one["url"] for one in shared] == [link] and "#join=" in link
    # Closing the sheet is not an error; in a browser without one there is no button.
    judy.driver.execute_script("navigator.share = async () => { throw new DOMException('', 'AbortError') }")
    judy.press("Share")
    assert judy.shown("#notices .notice") == 0
    judy.driver.execute_script("navigator.share = undefined")
    judy.press("Close")
    judy.press("Add people")
    judy.sees("#link-copy")
    assert not judy.shown("#link-share")


def test_people_are_suggested_checked_and_kept_as_favourites(person, artifacts, look):
    mona, nils = in_a_call(person, "Mona", "Nils")
    everybody_decodes(mona, nils)
    nils.leave()
    mona.sees("#history-list li")
    suggested = "return [...document.querySelectorAll('#known-people option')].map(({ value }) => value)"
    wait_for(lambda: "nils" in mona.driver.execute_script(suggested), 10, "Nils is suggested")
    mona.find("input", "People").send_keys("Nisl,")
    wait_for(lambda: "Nobody called “Nisl” has signed in here" in mona.text("#call-error"), 10, "a typing error is reported")
    mona.sees(".chip[data-doubtful=true]")
    look(mona, "a name that nobody has")
    mona.press("Remove Nisl")
    mona.press("Favourite: Nils")
    mona.sees("#history-list [aria-label='Favourite: Nils'][aria-pressed=true]")
    mona.driver.refresh()
    mona.sees("#faces [data-user=nils][data-favourite=true]")
    # While people are chosen, a press adds to them.
    mona.find("input", "People").send_keys("Olga,")
    mona.sees(".chip[data-doubtful=true]")
    mona.press("Add Nils")
    mona.sees("#call-form .chip[data-doubtful=false]")
    mona.screenshot(artifacts / "lobby.png")
    mona.press("Remove Olga")
    mona.press("Remove Nils")
    # Otherwise it calls, with the same media as last time.
    mona.press("Video call: Nils")
    mona.sees("#call")
    nils.answer()
    everybody_decodes(mona, nils)


def type_key(tab, key):
    tab.driver.find_element(By.TAG_NAME, "body").send_keys(key)


def test_keys_work_the_call_are_listed_and_can_be_switched_off(person, artifacts):
    alice, bob = in_a_call(person, "Alice", "Bob")
    everybody_decodes(alice, bob)
    type_key(alice, "m")
    alice.sees("#toggle-microphone.off")
    bob.sees(".tile[data-user=alice][data-muted=true]")
    type_key(alice, "m")
    alice.sees("#toggle-microphone:not(.off)")
    type_key(alice, "c")
    alice.fill("Message", "hm")  # text, not a shortcut
    alice.sees("#chat")
    assert alice.shown("#toggle-microphone:not(.off)") and alice.shown("#toggle-hand:not(.on)")
    alice.click("#chat button", "Close the chat")
    type_key(alice, "?")
    alice.sees("#shortcuts-dialog")
    listed = alice.text("#shortcut-list")
    assert all(words in listed for words in ("Mute or unmute", "Raise or lower your hand", "Share a screen"))
    alice.screenshot(artifacts / "shortcuts.png")
    alice.driver.find_element(By.ID, "shortcuts-on").click()
    alice.click("#shortcuts-dialog button", "Close")
    type_key(alice, "m")
    alice.press("Raise hand")  # the typed keys have been handled by now
    alice.sees("#toggle-hand.on")
    assert alice.shown("#toggle-microphone:not(.off)")


# All controls and fields that the window shows.
CONTROLS = """
return [...document.querySelectorAll(arguments[0])].filter((one) => one.checkVisibility({ visibilityProperty: true })).map((one) => {
  const { left, top, right, bottom, width, height } = one.getBoundingClientRect();
  const at = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  return { name: one.ariaLabel || one.innerText, width, height, isInside: left >= 0 && right <= innerWidth + 1, isReached: Boolean(at && (one.contains(at) || at.contains(one))) };
});
"""


@pytest.mark.parametrize("width,height", [(640, 400), (320, 640)])
def test_at_200_percent_and_on_a_phone_every_control_is_in_the_window_and_large_enough(person, artifacts, width, height):
    alice, bob = in_a_call(person, "Alice", "Bob")
    everybody_decodes(alice, bob)
    # 200 % of 1280 x 800, or a small phone: to the page both are the same.
    metrics = {"width": width, "height": height, "deviceScaleFactor": 2, "mobile": False}
    alice.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    wait_for(lambda: alice.driver.execute_script("return innerWidth") == width, 5, "the size takes effect")
    alice.screenshot(artifacts / f"call-{width}.png")
    controls = alice.driver.execute_script(CONTROLS, "#toolbar button, #show-code")
    assert len(controls) >= 8
    for control in controls:
        assert control["isInside"] and control["isReached"], control
        assert min(control["width"], control["height"]) >= 24, control  # WCAG 2.2, 2.5.8
    assert alice.driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    rows = alice.driver.execute_script("return [...document.querySelectorAll('#toolbar button')].filter((one) => one.checkVisibility()).map((one) => one.offsetTop)")
    assert len(set(rows)) == 1, f"one row of buttons; they are at {rows}"
    alice.press("More")
    alice.click("#more-dialog button", "Raise hand")
    bob.sees(".tile[data-user=alice][data-hand=true]")
    alice.loses("#more-dialog[open]")
    stage = alice.driver.execute_script("return document.getElementById('stage').clientHeight")
    assert stage > 100, stage
    alice.press("Leave")
    alice.sees("#lobby")
    assert alice.driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    alice.screenshot(artifacts / f"lobby-{width}.png")


def test_with_reduced_motion_nothing_moves(person):
    alice, bob = person("Alice"), person("Bob")
    alice.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]})
    alice.fill("People", "Bob")
    alice.press("Video call")
    alice.sees("#call")
    alice.sees(".tile[data-source=ringing]")
    bob.sees("#ring")
    running = "return document.getAnimations().filter(({ playState }) => playState === 'running').length"
    assert alice.driver.execute_script(running) == 0
    durations = "return [...document.querySelectorAll('*')].map((one) => getComputedStyle(one).animationName).filter((name) => name !== 'none')"
    assert alice.driver.execute_script(durations) == []


# A phone with a camera on each side that can blur, and two speakers. Records what the browser is asked for.
PHONE = """
(() => {
  Object.assign(window, { conclaveWishes: [], conclaveBlurs: [], conclaveSinks: [], conclaveMore: [] });
  const ask = MediaDevices.prototype.getUserMedia;
  MediaDevices.prototype.getUserMedia = function (wish) {
    conclaveWishes.push(wish);
    return ask.call(this, wish);
  };
  const { getCapabilities, applyConstraints } = MediaStreamTrack.prototype;
  MediaStreamTrack.prototype.getCapabilities = function () {
    return { ...getCapabilities.call(this), ...(this.kind === 'video' ? { backgroundBlur: [false, true] } : {}) };
  };
  MediaStreamTrack.prototype.applyConstraints = function (constraints) {
    if (!('backgroundBlur' in constraints)) return applyConstraints.call(this, constraints);
    conclaveBlurs.push([this, constraints.backgroundBlur]);
    return Promise.resolve();
  };
  const list = MediaDevices.prototype.enumerateDevices;
  MediaDevices.prototype.enumerateDevices = async function () {
    const found = (await list.call(this)).filter(({ kind }) => kind !== 'audiooutput');
    const made = ([kind, deviceId]) => ({ kind, deviceId, label: deviceId });
    return [...found, ...[['audiooutput', 'Desk speaker'], ['audiooutput', 'Headset'], ...conclaveMore].map(made)];
  };
  HTMLMediaElement.prototype.setSinkId = async function (id) {
    conclaveSinks.push([this, id]);
  };
  const match = window.matchMedia;
  window.matchMedia = (query) => (query === '(pointer: coarse)' ? { matches: true } : match.call(window, query));
})();
"""


def test_background_blur_the_speaker_and_a_phones_other_camera_are_used_in_the_call(person, look):
    alice, bob = person("Alice", PHONE), person("Bob")
    ask = alice.driver.execute_script
    alice.open_setup()
    alice.sees("#setup-blur-field")
    alice.driver.find_element(By.ID, "setup-blur").click()
    wait_for(lambda: ask("return conclaveBlurs.some(([track, isOn]) => isOn && track.readyState === 'live')"), 10, "the preview is blurred")
    choose(alice, "speaker", "Headset")
    look(alice, "camera and sound with blur")
    alice.click("#setup-dialog button", "Close")
    ask("conclaveBlurs.length = 0")
    alice.call("Bob")
    bob.answer()
    everybody_decodes(alice, bob)
    assert ask("return conclaveBlurs.length === 1 && conclaveBlurs[0][1] && conclaveBlurs[0][0].readyState === 'live'"), "the camera of the call is blurred"
    through = "return [...document.querySelectorAll('audio')].map((audio) => conclaveSinks.findLast(([one]) => one === audio)?.[1])"
    wait_for(lambda: (sinks := ask(through)) and set(sinks) == {"Headset"}, 5, "voices come from the headset")
    alice.press("More")
    alice.click("#more-dialog button", "Camera and sound")
    choose(alice, "speaker", "Desk speaker")
    wait_for(lambda: set(ask(through)) == {"Desk speaker"}, 5, "voices come from the other speaker")
    alice.click("#setup-dialog button", "Close")

    facing = "return conclaveWishes.filter(({ video }) => video).at(-1).video.facingMode?.ideal"
    assert ask(facing) == "user"
    for side in ("environment", "user"):
        alice.press("More")
        alice.click("#more-dialog button", "Other camera")
        wait_for(lambda: ask(facing) == side, 10, f"the camera on the side {side} is asked for")
        bob.decodes("alice/camera", voices=1, seconds=8)


def test_a_device_that_is_unplugged_in_a_call_is_replaced_and_a_new_one_can_be_chosen_at_once(person):
    alice, bob = person("Alice", ASKED, PHONE), person("Bob")
    alice.call("Bob")
    bob.answer()
    everybody_decodes(alice, bob)
    # Browsers end the track of an unplugged device.
    unplug = """
      const track = conclaveOpened.findLast(({ kind, readyState }) => kind === arguments[0] && readyState === 'live');
      track.stop();
      track.dispatchEvent(new Event('ended'));
      return conclaveOpened.length;
    """
    for kind, name in (("audio", "microphone"), ("video", "camera")):
        opened = alice.driver.execute_script(unplug, kind)
        alice.hears(f"The {name} was disconnected")
        wait_for(lambda: alice.driver.execute_script("return conclaveOpened.length") > opened, 5, f"another {name} is opened")
        everybody_decodes(alice, bob, seconds=8)
    alice.press("More")
    alice.click("#more-dialog button", "Camera and sound")
    alice.sees("#setup-dialog[open]")
    # A list that a person has open stays: only the list of speakers is redrawn.
    wait_for(lambda: preview(alice), 10, "the preview shows the call's camera")
    automatic = alice.driver.find_element(By.CSS_SELECTOR, "#setup-camera option")
    alice.driver.execute_script("conclaveMore.push(['audiooutput', 'Car']); navigator.mediaDevices.dispatchEvent(new Event('devicechange'))")
    choose(alice, "speaker", "Car")
    assert automatic.text == "Automatic"
    alice.driver.execute_script("conclaveMore.length = 0; navigator.mediaDevices.dispatchEvent(new Event('devicechange'))")
    # In one step: otherwise the list might be redrawn in between.
    chosen = lambda: alice.driver.execute_script("return document.getElementById('setup-speaker').selectedOptions[0]?.textContent")
    wait_for(lambda: chosen() == "Automatic", 5, "a missing device is no longer shown as the choice")


def test_each_key_presses_its_button(person):
    alice, bob = in_a_call(person, "Alice", "Bob")
    everybody_decodes(alice, bob)
    for key, button, told in (("v", "camera", "[data-video=off]"), ("h", "hand", "[data-hand=true]"), ("s", "screen", "[data-source=screen]")):
        type_key(alice, key)
        turned = ".off" if button == "camera" else ".on"
        alice.sees(f"#toggle-{button}{turned}")
        bob.sees(f".tile[data-user=alice]{told}")
        type_key(alice, key)
        alice.sees(f"#toggle-{button}:not({turned})")
        bob.loses(f".tile[data-user=alice]{told}")
    type_key(alice, "c")
    alice.sees("#chat")
    alice.click("#chat button", "Close the chat")
    type_key(alice, "p")
    alice.sees("#people-dialog[open]")
