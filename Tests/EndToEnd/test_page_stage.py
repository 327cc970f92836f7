"""The page of a call: where people and screens are placed, and what is shown beside them."""

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from browser import LONG_RING, gather
from conftest import wait_for
from test_browsers import everybody_decodes, in_a_call


@pytest.fixture
def server(fresh_server):
    return fresh_server


def box(tab, selector):
    """The left, top, right and bottom of a shown element."""
    script = "const { left, top, right, bottom } = document.querySelector(arguments[0]).getBoundingClientRect(); return [left, top, right, bottom]"
    return tab.driver.execute_script(script, selector)


def boxes(tab, selector):
    script = """return [...document.querySelectorAll(arguments[0])].filter((node) => node.checkVisibility()).map((node) => {
      const { left, top, right, bottom } = node.getBoundingClientRect();
      return [left, top, right, bottom];
    })"""
    return tab.driver.execute_script(script, selector)


def area(tab, selector):
    left, top, right, bottom = box(tab, selector)
    return (right - left) * (bottom - top)


def overlaps(one, other):
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def use_tool(tab, selector, name):
    """Presses a tile's button by the keyboard."""
    script = """
      const button = [...document.querySelectorAll(`${arguments[0]} .tile-tool`)].find(({ ariaLabel, hidden }) => !hidden && ariaLabel === arguments[1]);
      button?.focus();
      return Boolean(button) && document.activeElement === button;
    """
    wait_for(lambda: tab.driver.execute_script(script, selector, name), 5, f"{tab.name} reaches “{name}”")
    tab.driver.switch_to.active_element.click()


def receives_only(tab, *tracks, seconds=8):
    """Waits until frames of exactly these `tracks` were decoded between two readings, within `seconds`."""
    before = {}

    def others_rest():
        received = tab.received()
        if not set(tracks) <= set(received["video"]):
            return False
        shown = {(track, received["video"][track][0]): received["video"][track][1] for track in tracks}
        rest = received["frames"] - sum(shown.values())
        if before.get("rest") != rest or before["shown"].keys() != shown.keys():
            before.update(rest=rest, shown=shown)
        return all(frames > before["shown"][key] + 4 for key, frames in shown.items())

    wait_for(others_rest, seconds, lambda: f"{tab.name} receives only {', '.join(tracks)}; from {before} to {tab.received()}")


def test_in_a_call_of_two_the_other_fills_the_stage_and_ones_own_picture_moves_and_hides(person, look):
    alice, bob = in_a_call(person, "Alice", "Bob")
    everybody_decodes(alice, bob)
    alice.sees("#stage[data-mode=pair]")
    window = alice.driver.execute_script("return [0, 0, innerWidth, innerHeight]")
    assert box(alice, ".tile[data-user=bob]") == box(alice, "#stage") == window, "edge to edge"
    own = box(alice, ".tile.own")
    assert (own[2] - own[0]) * (own[3] - own[1]) < window[2] * window[3] / 10
    assert corner_of(alice) == ("top", "right")
    for part in ("#toolbar", "#call-bar"):
        assert not overlaps(own, box(alice, part)), part
    look(alice, "a call of two")

    # Dropped on the other person's face, it moves to the nearest corner.
    tile = alice.driver.find_element(By.CSS_SELECTOR, ".tile.own")
    # Controls that appear move it.
    ActionChains(alice.driver).move_to_element(tile).perform()
    alice.sees("#call:not(.idle)")
    ActionChains(alice.driver).click_and_hold(tile).move_by_offset(-700, 60).release().perform()
    wait_for(lambda: corner_of(alice) == ("top", "left"), 5, lambda: f"it snaps to a corner; it is in {corner_of(alice)}")
    use_tool(alice, ".tile.own", "Move your picture to the next corner")
    wait_for(lambda: corner_of(alice) == ("top", "right"), 5, lambda: f"the next corner; it is in {corner_of(alice)}")
    tile.send_keys(Keys.ARROW_DOWN)
    wait_for(lambda: corner_of(alice) == ("bottom", "right"), 5, lambda: f"by the keyboard; it is in {corner_of(alice)}")
    assert not overlaps(box(alice, ".tile.own"), box(alice, "#toolbar"))

    use_tool(alice, ".tile.own", "Hide your picture")
    alice.loses(".tile.own")
    look(alice, "a call without the own picture")
    bob.decodes("alice/camera", voices=1)
    alice.press("Show your picture")
    alice.sees(".tile.own")


def corner_of(tab):
    """The corner of the stage with one's own picture; None if it is in no corner."""
    stage, own = box(tab, "#stage"), box(tab, ".tile.own")
    row = "top" if own[1] - stage[1] < 90 else "bottom" if stage[3] - own[3] < 150 else None
    column = "left" if own[0] - stage[0] < 20 else "right" if stage[2] - own[2] < 20 else None
    return row and column and (row, column)


def test_controls_leave_when_nobody_touches_anything_and_come_back(person):
    alice, bob = in_a_call(person, "Alice", "Bob")
    everybody_decodes(alice, bob)
    opacity = lambda: float(alice.driver.execute_script("return getComputedStyle(document.getElementById('toolbar')).opacity"))
    stage = alice.driver.find_element(By.ID, "stage")
    ActionChains(alice.driver).move_to_element(stage).perform()
    assert opacity() > 0
    wait_for(lambda: opacity() == 0, 20, "the controls have disappeared")
    ActionChains(alice.driver).move_to_element_with_offset(stage, 30, 30).perform()
    wait_for(lambda: opacity() == 1, 5, "a pointer brings them back")
    wait_for(lambda: opacity() == 0, 20, "the controls have disappeared again")
    alice.driver.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    wait_for(lambda: opacity() == 1, 5, "the keyboard brings them back")
    # The touch that brings them back presses none of them.
    alice.driver.execute_script("document.activeElement.blur()")
    wait_for(lambda: opacity() == 0, 20, "the controls have disappeared once more")
    touch = """
      const button = document.getElementById('leave');
      button.dispatchEvent(new PointerEvent('pointerdown', { bubbles: true, pointerType: 'touch' }));
      button.click();
    """
    alice.driver.execute_script(touch)
    wait_for(lambda: opacity() == 1, 5, "a finger brings them back")
    everybody_decodes(alice, bob)


def test_more_people_have_tiles_beside_the_small_own_one_and_one_can_be_pinned(person, look):
    tabs = alice, bob, carol = in_a_call(person, "Alice", "Bob", "Carol")
    everybody_decodes(*tabs)
    alice.sees("#stage[data-mode=grid]")
    tiles = boxes(alice, ".tile:not(.own)")
    assert len(tiles) == 2
    for left, top, right, bottom in tiles:
        assert 1.31 < (right - left) / (bottom - top) < 1.8
    assert sum((right - left) * (bottom - top) for left, top, right, bottom in tiles) > 0.7 * area(alice, "#stage")
    own = box(alice, ".tile.own")
    assert own[2] - own[0] < (tiles[0][2] - tiles[0][0]) / 2 and corner_of(alice) == ("top", "right")
    use_tool(alice, ".tile.own", "Move your picture to the next corner")
    wait_for(lambda: corner_of(alice) == ("bottom", "right"), 5, lambda: f"it moves without dragging, too; it is in {corner_of(alice)}")
    fit = lambda: alice.driver.execute_script("return getComputedStyle(document.querySelector('.tile[data-user=bob] video')).objectFit")
    assert fit() == "cover"
    bobs = alice.driver.find_element(By.CSS_SELECTOR, ".tile[data-user=bob]")
    ActionChains(alice.driver).double_click(bobs).perform()
    assert fit() == "contain", "a double press shows all of the picture"
    ActionChains(alice.driver).double_click(bobs).perform()
    assert fit() == "cover"

    use_tool(alice, ".tile[data-user=carol]", "Pin: Carol")
    alice.sees("#large .tile[data-user=carol].pinned")
    alice.sees(".tile-tool[aria-pressed=true]")
    assert area(alice, ".tile[data-user=carol]") > 4 * area(alice, ".tile[data-user=bob]")
    alice.decodes("carol/camera", "bob/camera", voices=2)
    look(alice, "a pinned person")
    use_tool(alice, ".tile[data-user=carol]", "Pin: Carol")
    alice.sees("#grid .tile[data-user=carol]")


def test_a_small_window_has_pages_and_what_is_on_another_one_is_not_sent(person, look):
    tabs = alice, bob, carol, dave = in_a_call(person, "Alice", "Bob", "Carol", "Dave")
    alice.decodes("bob/camera", "carol/camera", "dave/camera", voices=3, seconds=8)
    alice.driver.set_window_size(500, 520)
    # As on a small phone in landscape: two tiles fit.
    alice.driver.execute_script("Object.assign(document.getElementById('stage').style, { flex: '0 0 150px', width: '430px' })")
    wait_for(lambda: alice.shown("#pages") and alice.shown(".tile:not(.own)") == 2, 10, "pages of people")
    look(alice, "pages of people")
    users = lambda: set(alice.driver.execute_script("return [...document.querySelectorAll('.tile:not(.own)')].map(({ dataset }) => dataset.user)"))
    first = users()
    shown = [f"{user}/camera" for user in first]
    alice.decodes(*shown, voices=3, seconds=8)
    receives_only(alice, *shown)
    alice.press("Next page")
    wait_for(lambda: users().isdisjoint(first), 5, "the other people")
    others = [f"{user}/camera" for user in users()]
    assert others
    alice.decodes(*others, voices=3, seconds=8)  # with a key frame, though it was not sent meanwhile
    receives_only(alice, *others)


CROWD = """Bruno Carmen Dmitri Emeka Fatima Giulia Hiroshi Ingrid Jorge Kavita Leila Mateus Nadia Oskar Priya Quentin Rosa Samuel Tereza Umar Valentina Wanjiru
Xavier Yuki""".split()
LINES = "return [...document.querySelectorAll('.tile-line')].filter((line) => line.checkVisibility()).map(({ offsetHeight }) => offsetHeight)"


@pytest.mark.parametrize("count", [9, 25])
def test_a_call_of_many_has_readable_tiles_on_a_desktop_and_a_phone(person, look, count):
    alice, crowd = person("Alice"), person("Crowd", words=None)
    names = CROWD[: count - 1]
    gather(crowd, names)
    alice.call(*names)
    joined = lambda: alice.driver.execute_script("return document.querySelectorAll('.tile.own, .tile[data-participant]:not(.away)').length")
    wait_for(lambda: joined() == count, 30, lambda: f"all {count} have tiles; {joined()} do")
    pictures = lambda: alice.driver.execute_script("return [...document.querySelectorAll('.tile[data-video=on] video')].filter(({ videoWidth }) => videoWidth === 0).length")
    wait_for(lambda: pictures() == 0, 30, lambda: f"all pictures are there; {pictures()} are not")

    def readable(width):
        stage, tiles = box(alice, "#stage"), boxes(alice, ".tile:not(.floating)")
        for index, tile in enumerate(tiles):
            assert tile[0] >= stage[0] and tile[1] >= stage[1] and tile[2] <= stage[2] and tile[3] <= stage[3], (tile, stage)
            assert tile[2] - tile[0] >= width, tile
            assert not any(overlaps(tile, other) for other in tiles[:index])
        assert max(alice.driver.execute_script(LINES)) < 30, "each name has one line"
        return len(tiles)

    assert readable(150) >= count - 1 and not alice.shown("#pages")
    look(alice, f"a call of {count}")
    alice.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    wait_for(lambda: box(alice, "#stage")[2] < 400, 5, "the page has the size of a phone")
    settled = lambda: alice.driver.execute_async_script("setTimeout(arguments[0], 400)")
    settled()
    shown = readable(100)
    assert alice.shown("#pages") == (count == 25) and shown >= 9
    alice.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_shared_screen_is_large_and_everybody_is_told_when_it_begins_and_ends(person, artifacts):
    tabs = alice, bob, carol = in_a_call(person, "Alice", "Bob", "Carol")
    everybody_decodes(*tabs)
    carol.press("Share screen")
    for tab in (alice, bob):
        tab.hears("Carol is sharing a screen")
        tab.sees("#large .tile[data-source=screen]")
    carol.sees("#toggle-screen.on")
    alice.decodes("carol/screen", "bob/camera", "carol/camera", voices=2)
    wide = box(alice, ".tile[data-source=screen]")
    assert wide[2] - wide[0] > 700
    assert len(boxes(alice, "#grid .tile")) == 3, "people beside it"
    carol.press("Stop sharing")
    for tab in (alice, bob):
        tab.hears("Carol stopped sharing the screen")
        tab.loses(".tile[data-source=screen]")


PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
SCREEN = ".tile[data-source=screen]"


def touch(tab, kind, *points):
    """Sets the fingers on the page; none at the end of a touch."""
    fingers = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
    tab.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": fingers})


def test_a_shared_screen_on_a_phone_is_enlarged_and_moved_by_fingers_and_turned(person, artifacts):
    alice, bob = in_a_call(person, "Alice", "Bob")
    bob.press("Share screen")
    alice.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    alice.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True, "maxTouchPoints": 2})
    alice.sees(f"#large {SCREEN} video")
    alice.decodes("bob/screen", voices=1)

    def seen():
        return box(alice, f"{SCREEN} video")

    def settled(condition, what):
        return wait_for(lambda: condition(*seen()), 5, lambda: f"{what}: {seen()}")

    left, top, right, bottom = whole = box(alice, SCREEN)
    assert seen() == whole
    x, y = (left + right) / 2, (top + bottom) / 2
    touch(alice, "touchStart", (x - 20, y), (x + 20, y))
    touch(alice, "touchMove", (x - 60, y), (x + 60, y))
    touch(alice, "touchEnd")
    settled(lambda l, t, r, b: r - l > 2.5 * (right - left), "two fingers enlarge it")
    before = seen()
    touch(alice, "touchStart", (x, y))
    touch(alice, "touchMove", (x + 50, y))
    touch(alice, "touchEnd")
    settled(lambda l, t, r, b: l > before[0] + 40 and r - l == before[2] - before[0], "one finger moves it")
    touch(alice, "touchStart", (x, y))
    touch(alice, "touchMove", (x + 5_000, y))
    touch(alice, "touchEnd")
    settled(lambda l, t, r, b: l <= left + 1 and r >= right, "no edge of it enters the tile")
    alice.screenshot(artifacts / "screen-enlarged.png")

    use_tool(alice, SCREEN, "Turn: Bob’s screen")
    wait_for(lambda: (now := box(alice, SCREEN))[3] - now[1] > bottom - top + 50, 5, lambda: f"turned, it has more of the height: {box(alice, SCREEN)}, before {whole}")
    left, top, right, bottom = whole = box(alice, SCREEN)
    upright = "const { offsetWidth, offsetHeight } = document.querySelector(arguments[0]); return [offsetWidth, offsetHeight]"
    settled(lambda *edges: all(abs(edge - side) < 2 for edge, side in zip(edges, whole)), "it fills the tile")
    width, height = alice.driver.execute_script(upright, f"{SCREEN} video")
    assert abs(width - (bottom - top)) < 2 and abs(height - (right - left)) < 2, "its rows are along the longer side"
    alice.screenshot(artifacts / "screen-turned.png")
    use_tool(alice, SCREEN, "Enlarge: Bob’s screen")
    settled(lambda l, t, r, b: b - t > 1.9 * (bottom - top), "a press enlarges it")
    before = seen()
    alice.driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    settled(lambda l, t, r, b: l < before[0], "an arrow key shows what is to its right")


def test_hands_reactions_and_the_speaker_are_shown_on_tiles_and_said(person, artifacts):
    alice, bob = in_a_call(person, "Alice", "Bob")
    everybody_decodes(alice, bob)
    alice.press("Mute")  # see SHARED
    wait_for(lambda: "Bob is speaking" in alice.driver.find_element(By.ID, "speaker").get_attribute("textContent"), 10, "the speaker is announced")
    bob.press("Raise hand")
    bob.sees("#toggle-hand.on")
    alice.hears("Bob raised a hand")
    alice.sees(".tile[data-user=bob] .tile-hand")
    bob.press("Lower hand")
    alice.loses(".tile-hand")
    bob.press("React")
    bob.press("Applause")
    bob.loses("#reactions")
    wait_for(lambda: "👏" in alice.text(".tile[data-user=bob] .tile-reaction"), 5, "the reaction on Bob's tile")
    assert not overlaps(box(alice, ".tile[data-user=bob] .tile-reaction"), box(alice, ".tile.own")), "one's own picture hides it"
    alice.screenshot(artifacts / "reaction.png")
    wait_for(lambda: not alice.text(".tile-reaction").strip(), 10, "it passes")


def test_notices_cover_no_control_and_none_of_the_call_before_is_seen_in_the_next(person):
    alice, bob = in_a_call(person, "Alice", "Bob")
    everybody_decodes(alice, bob)
    bob.press("Chat")
    bob.fill("Message", "Shall we?")
    bob.press("Send")
    alice.hears("Bob: Shall we?")
    lines = boxes(alice, ".notice")
    assert lines
    for line in lines:
        for covered in boxes(alice, ".tile.own, #toolbar, #show-code"):
            assert not overlaps(line, covered), (line, covered)
        assert line[3] < box(alice, "#stage")[3] / 6, "above the face"
    alice.press("End for all")
    alice.click("#end-dialog button", "End for all")
    alice.sees("#lobby")
    alice.call("Bob")
    assert "Shall we?" not in alice.text("#notices")


def test_a_second_call_is_a_banner_and_end_and_accept_leaves_the_first(person, artifacts, look):
    grace, heidi = in_a_call(person, "Grace", "Heidi")
    ivan, judy = person("Ivan", LONG_RING), person("Judy")
    everybody_decodes(grace, heidi)
    ivan.call("Grace", "Judy")
    grace.sees("#second-ring")
    assert not grace.shown("#ring")
    assert "also rings Judy" in grace.text("#second-ring-text")
    wait_for(lambda: "also rings Grace" in judy.text("#ring-text"), 5, "who else is rung")
    grace.screenshot(artifacts / "second-ring.png")
    grace.press("Mute")  # the call can be used meanwhile
    heidi.sees(".tile[data-user=grace][data-muted=true]")
    grace.press("Unmute")
    judy.close()
    grace.press("Call code")
    grace.sees("#code-dialog #second-ring")  # behind the dialog it could not be clicked
    look(grace, "a second ring in a dialog")
    assert grace.driver.execute_script("const { scrollWidth, clientWidth } = document.getElementById('code-dialog'); return scrollWidth <= clientWidth")
    grace.click("#code-dialog button", "Close")
    grace.sees("#call > #second-ring")
    grace.press("Call code")
    grace.press("End and accept")
    grace.loses("#second-ring")
    grace.loses("#code-dialog")
    everybody_decodes(grace, ivan, seconds=8)
    assert not grace.shown("#held li")
    heidi.sees("#lobby")


def set_hidden(tab, is_hidden):
    """As when the person switches to another tab of the browser, or back to this one."""
    script = """
      Object.defineProperty(document, 'hidden', { value: arguments[0], configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    """
    tab.driver.execute_script(script, is_hidden)


def receives_sound_alone(tab, seconds=15):
    """Waits until no frame was decoded while a second of sound arrived, within `seconds`."""
    before = {}

    def is_still():
        received = tab.received()
        if before.get("frames") != received["frames"]:
            before.update(frames=received["frames"], packets=received["packets"]["audio"])
        return received["packets"]["audio"] > before["packets"] + 50

    wait_for(is_still, seconds, lambda: f"{tab.name} receives only sound; from {before} to {tab.received()}")


def test_a_tile_fills_the_screen_or_has_a_window_of_its_own_and_a_hidden_page_receives_that_one_alone(person):
    alice, bob = in_a_call(person, "Alice", "Bob")
    everybody_decodes(alice, bob)
    is_full = "return document.fullscreenElement?.dataset.user ?? ''"
    use_tool(alice, ".tile[data-user=bob]", "Full screen: Bob")
    wait_for(lambda: alice.driver.execute_script(is_full) == "bob", 5, "Bob fills the screen")
    alice.decodes("bob/camera", voices=1)
    use_tool(alice, ".tile[data-user=bob]", "Full screen: Bob")
    wait_for(lambda: alice.driver.execute_script(is_full) == "", 5, "the page is back")

    in_window = "return document.pictureInPictureElement?.closest('.tile').dataset.user ?? ''"
    use_tool(alice, ".tile[data-user=bob]", "Small window: Bob")
    wait_for(lambda: alice.driver.execute_script(in_window) == "bob", 5, "Bob has his own window")
    set_hidden(alice, True)
    alice.driver.execute_async_script("setTimeout(arguments[0], 6_000)")  # longer than the page waits
    alice.decodes("bob/camera", voices=1)
    use_tool(alice, ".tile[data-user=bob]", "Small window: Bob")
    wait_for(lambda: alice.driver.execute_script(in_window) == "", 5, "the window is closed")
    receives_sound_alone(alice)
    set_hidden(alice, False)
    everybody_decodes(alice, bob, seconds=8)


# Evaluates an expression in the small window of a call, with its document as `page`; None without a window.
IN_WINDOW = "const page = window.documentPictureInPicture.window?.document; return page ? ({}) : null;"


def open_small_window(tab):
    tab.press("More")
    tab.click("#more-dialog button", "Small window")
    tab.loses("#more-dialog[open]")


def test_a_call_has_a_small_window_with_faces_and_its_buttons_and_a_hidden_page_receives_what_it_shows(person):
    alice, bob = in_a_call(person, "Alice", "Bob")
    everybody_decodes(alice, bob)
    inside = lambda question: alice.driver.execute_script(IN_WINDOW.format(question))
    labels = lambda: inside("[...page.querySelectorAll('button')].map(({ textContent }) => textContent.trim())")
    open_small_window(alice)
    wait_for(lambda: inside("[...page.querySelectorAll('.window-face video')].filter(({ videoWidth }) => videoWidth > 0).length") == 2, 10, "two faces")
    assert inside("[...page.querySelectorAll('.window-face .face-name')].map(({ textContent }) => textContent)") == ["You", "Bob"]
    assert labels() == ["Mute", "Stop camera", "Leave", "Back to the call"]
    assert inside("[page.title, page.documentElement.lang, page.querySelector('h1').textContent]") == ["Bob", "en", "Bob"]
    assert inside("[page.querySelector('[role=group]').ariaLabel, page.querySelector('ul').ariaLabel].every(Boolean)")
    assert inside("page.activeElement.textContent.trim()") == "Mute", "it has the keyboard focus at first"
    sizes = "[...page.querySelectorAll('button')].map((one) => one.getBoundingClientRect()).every(({ width, height }) => width >= 24 && height >= 24)"
    wait_for(lambda: inside(sizes), 5, "its buttons are large enough")

    # The state is shared: a press in either changes both.
    inside("page.activeElement.click()")
    bob.sees(".tile[data-user=alice][data-muted=true]")
    alice.sees("#toggle-microphone.off")
    wait_for(lambda: labels()[0] == "Unmute", 5, "the window says so, too")
    alice.press("Unmute")
    wait_for(lambda: labels()[0] == "Mute", 5, "the window follows the page")
    inside("page.querySelectorAll('button')[1].click()")
    bob.sees(".tile[data-user=alice][data-video=off]")
    wait_for(lambda: labels()[1] == "Start camera", 5, "the camera is off")
    inside("page.querySelectorAll('button')[1].click()")
    bob.sees(".tile[data-user=alice][data-video=on]")

    set_hidden(alice, True)
    alice.driver.execute_async_script("setTimeout(arguments[0], 6_000)")  # longer than the page waits
    alice.decodes("bob/camera", voices=1)
    # A press or Escape returns to the call.
    inside("page.querySelectorAll('button')[3].click()")
    wait_for(lambda: inside("true") is None, 5, "the window is closed")
    receives_sound_alone(alice)
    set_hidden(alice, False)
    everybody_decodes(alice, bob, seconds=8)
    open_small_window(alice)
    wait_for(labels, 10, "the window is open again")
    inside("page.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }))")
    wait_for(lambda: inside("true") is None, 5, "Escape closes it")

    # It closes with the call.
    open_small_window(alice)
    wait_for(labels, 10, "the window is open once more")
    inside("page.querySelectorAll('button')[2].click()")
    alice.sees("#lobby")
    wait_for(lambda: inside("true") is None, 5, "the window is closed with the call")


def test_a_browser_without_small_windows_has_no_button_for_them(person):
    alice, bob = person("Alice", "delete window.documentPictureInPicture;"), person("Bob")
    alice.call("Bob")
    bob.answer()
    for tab, count in ((alice, 0), (bob, 1)):
        tab.press("More")
        tab.sees("#more-dialog[open]")
        assert tab.shown("#small-window") == count
        tab.click("#more-dialog button", "Camera and sound")
        tab.sees("#setup-dialog[open]")
        assert tab.shown("#auto-window") == count
        assert not tab.driver.execute_script("return document.getElementById('auto-window').checked"), "off at first"


# Every fake microphone beeps in the same way, so an echo canceller mistakes a person's beeps for the echo of those that it plays. Therefore a person who must
# be heard hears nobody: the listener is muted, and a shared screen has no sound.
SHARED = """
(() => {
  const share = MediaDevices.prototype.getDisplayMedia;
  MediaDevices.prototype.getDisplayMedia = async function (wish) {
    const stream = await share.call(this, wish);
    [window.conclaveScreen] = stream.getVideoTracks();
    stream.getAudioTracks().forEach((track) => stream.removeTrack(track));
    return stream;
  };
  const set = RTCRtpSender.prototype.setParameters;
  RTCRtpSender.prototype.setParameters = function (parameters) {
    if (this.track === window.conclaveScreen) window.conclavePreference = parameters.degradationPreference;
    return set.call(this, parameters);
  };
})();
"""


def test_a_shared_screen_is_sent_with_all_its_pixels_and_the_speaker_is_beside_it(person):
    alice, bob, carol = person("Alice"), person("Bob"), person("Carol", SHARED)
    alice.call("Bob", "Carol")
    bob.answer()
    carol.answer()
    everybody_decodes(alice, bob, carol)
    alice.press("Mute")
    carol.press("Share screen")
    alice.decodes("carol/screen", voices=2)
    sent = carol.driver.execute_script("return [conclaveScreen.contentHint, conclavePreference, conclaveScreen.getSettings().height]")
    assert sent[:2] == ["detail", "maintain-resolution"]
    height = lambda: alice.driver.execute_script("return document.querySelector('.tile[data-source=screen] video').videoHeight")
    wait_for(lambda: height() == sent[2], 10, lambda: f"a picture of {sent[2]} lines; it has {height()}")

    # Room for one person beside the screen.
    alice.driver.execute_script("document.getElementById('stage').style.cssText = 'flex: 0 0 150px; width: 260px'")
    beside = lambda: alice.driver.execute_script("return [...document.querySelectorAll('#grid .tile')].map(({ dataset }) => dataset.user)")
    bob.press("Mute")
    wait_for(lambda: beside() == ["carol"], 10, lambda: f"Carol, who speaks, is beside the screen; it is {beside()}")
    carol.press("Mute")
    bob.press("Unmute")
    wait_for(lambda: beside() == ["bob"], 10, lambda: f"Bob, who speaks, is beside the screen; it is {beside()}")
