"""The page of a call: where people and screens stand, and what is said and shown beside them."""

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

from browser import LONG_RING
from conftest import wait_for
from test_browsers import everybody_decodes, in_a_call


@pytest.fixture
def server(fresh_server):
    return fresh_server


def box(tab, selector):
    """Left, top, right and bottom of what is shown there."""
    script = "const { left, top, right, bottom } = document.querySelector(arguments[0]).getBoundingClientRect(); return [left, top, right, bottom]"
    return tab.driver.execute_script(script, selector)


def boxes(tab, selector):
    script = """return [...document.querySelectorAll(arguments[0])].filter((node) => node.checkVisibility()).map((node) => {
      const { left, top, right, bottom } = node.getBoundingClientRect();
      return [left, top, right, bottom];
    })"""
    return tab.driver.execute_script(script, selector)


def overlaps(one, other):
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def use_tool(tab, selector, name):
    """Presses a tile's button, which the keyboard reaches."""
    script = """
      const button = [...document.querySelectorAll(`${arguments[0]} .tile-tool`)].find(({ ariaLabel, hidden }) => !hidden && ariaLabel === arguments[1]);
      button?.focus();
      return Boolean(button) && document.activeElement === button;
    """
    wait_for(lambda: tab.driver.execute_script(script, selector, name), 5, f"{tab.name} reaches “{name}”")
    tab.driver.switch_to.active_element.click()


def receives_only(tab, *tracks, seconds=8):
    """Within `seconds`: between two readings frames of each of `tracks` were decoded, and of no other track."""
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

    wait_for(others_rest, seconds, lambda: f"{tab.name} receives {', '.join(tracks)} alone; from {before} to {tab.received()}")


def test_in_a_call_of_two_the_other_fills_the_stage_and_ones_own_picture_moves_and_hides(person, look):
    alice, bob = in_a_call(person, "Alice", "Bob")
    everybody_decodes(alice, bob)
    alice.sees("#stage[data-mode=pair]")
    assert box(alice, ".tile[data-user=bob]") == box(alice, "#stage")
    stage, own = box(alice, "#stage"), box(alice, ".tile.own")
    assert (own[2] - own[0]) * (own[3] - own[1]) < (stage[2] - stage[0]) * (stage[3] - stage[1]) / 10
    assert own[0] > (stage[0] + stage[2]) / 2 and own[1] > (stage[1] + stage[3]) / 2, "in the lower right corner"
    look(alice, "a call of two")

    tile = alice.driver.find_element(By.CSS_SELECTOR, ".tile.own")
    ActionChains(alice.driver).click_and_hold(tile).move_by_offset(-300, -200).release().perform()
    dragged = box(alice, ".tile.own")
    assert [round(dragged[i] - own[i]) for i in (0, 1)] == [-300, -200]
    use_tool(alice, ".tile.own", "Move your picture to the next corner")
    wait_for(lambda: box(alice, ".tile.own")[0] < stage[0] + 40, 5, "it stands on the left")
    ActionChains(alice.driver).move_to_element(alice.driver.find_element(By.CSS_SELECTOR, ".tile.own")).click_and_hold().move_by_offset(3_00, 0).release().perform()
    inside = box(alice, ".tile.own")
    assert inside[2] <= stage[2] and inside[3] <= stage[3]

    use_tool(alice, ".tile.own", "Hide your picture")
    alice.loses(".tile.own")
    look(alice, "a call without the own picture")
    bob.decodes("alice/camera", voices=1)
    alice.press("Show your picture")
    alice.sees(".tile.own")


def test_more_people_have_tiles_of_16_9_the_own_one_last_and_one_can_be_pinned(person, look):
    tabs = alice, bob, carol = in_a_call(person, "Alice", "Bob", "Carol")
    everybody_decodes(*tabs)
    alice.sees("#stage[data-mode=grid]")
    tiles = boxes(alice, ".tile")
    assert len(tiles) == 3
    for left, top, right, bottom in tiles:
        assert abs((right - left) / (bottom - top) - 16 / 9) < 0.03
    order = alice.driver.execute_script("return [...document.querySelectorAll('.tile')].map(({ dataset }) => dataset.user)")
    assert order[-1] == "alice"
    fits = alice.driver.execute_script("return [...document.querySelectorAll('.tile video')].map((video) => getComputedStyle(video).objectFit)")
    assert set(fits) == {"contain"}

    use_tool(alice, ".tile[data-user=carol]", "Pin: Carol")
    alice.sees("#large .tile[data-user=carol].pinned")
    alice.sees(".tile-tool[aria-pressed=true]")
    area = lambda selector: (lambda b: (b[2] - b[0]) * (b[3] - b[1]))(box(alice, selector))
    assert area(".tile[data-user=carol]") > 4 * area(".tile[data-user=bob]")
    alice.decodes("carol/camera", "bob/camera", voices=2)
    look(alice, "a pinned person")
    use_tool(alice, ".tile[data-user=carol]", "Pin: Carol")
    alice.sees("#grid .tile[data-user=carol]")


def test_a_small_window_has_pages_and_what_is_on_another_one_is_not_sent(person, look):
    tabs = alice, bob, carol, dave = in_a_call(person, "Alice", "Bob", "Carol", "Dave")
    alice.decodes("bob/camera", "carol/camera", "dave/camera", voices=3, seconds=8)
    alice.driver.set_window_size(500, 520)
    # As on a small phone held sideways: two tiles fit.
    alice.driver.execute_script("Object.assign(document.getElementById('stage').style, { flex: '0 0 150px', width: '330px' })")
    wait_for(lambda: alice.shown("#pages") and alice.shown(".tile") == 2, 10, "pages of people")
    look(alice, "pages of people")
    users = lambda: set(alice.driver.execute_script("return [...document.querySelectorAll('.tile')].map(({ dataset }) => dataset.user)"))
    first = users()
    shown = [f"{user}/camera" for user in first - {"alice"}]
    alice.decodes(*shown, voices=3, seconds=8)
    receives_only(alice, *shown)
    alice.press("Next page")
    wait_for(lambda: users().isdisjoint(first), 5, "the other people")
    others = [f"{user}/camera" for user in users() - {"alice"}]
    assert others
    alice.decodes(*others, voices=3, seconds=8)  # with a key frame, though nothing of it was sent meanwhile
    receives_only(alice, *others)


def test_a_shared_screen_is_large_and_everybody_is_told_when_it_begins_and_ends(person, artifacts):
    tabs = alice, bob, carol = in_a_call(person, "Alice", "Bob", "Carol")
    everybody_decodes(*tabs)
    carol.press("Share screen")
    for tab in (alice, bob):
        tab.hears("Carol is sharing a screen")
        tab.sees("#large .tile[data-source=screen]")
    carol.sees("#toggle-screen[aria-pressed=true]")
    alice.decodes("carol/screen", "bob/camera", "carol/camera", voices=2)
    wide = box(alice, ".tile[data-source=screen]")
    assert wide[2] - wide[0] > 700
    assert len(boxes(alice, "#grid .tile")) == 3, "people beside it"
    carol.press("Share screen")
    for tab in (alice, bob):
        tab.hears("Carol stopped sharing the screen")
        tab.loses(".tile[data-source=screen]")


def test_hands_reactions_and_the_speaker_are_shown_on_tiles_and_said(person, artifacts):
    alice, bob = in_a_call(person, "Alice", "Bob")
    everybody_decodes(alice, bob)
    alice.press("Mute")  # see SHARED
    wait_for(lambda: "Bob is speaking" in alice.driver.find_element(By.ID, "speaker").get_attribute("textContent"), 10, "the speaker is said")
    bob.press("Raise hand")
    bob.sees("#toggle-hand[aria-pressed=true]")
    alice.hears("Bob raised a hand")
    alice.sees(".tile[data-user=bob] .tile-hand")
    bob.press("Raise hand")
    alice.loses(".tile-hand")
    bob.press("Chat")
    bob.press("Applause")
    wait_for(lambda: "👏" in alice.text(".tile[data-user=bob] .tile-reaction"), 5, "the reaction on Bob's tile")
    assert not overlaps(box(alice, ".tile[data-user=bob] .tile-reaction"), box(alice, ".tile.own")), "one's own picture hides it"
    alice.screenshot(artifacts / "reaction.png")
    wait_for(lambda: not alice.text(".tile-reaction").strip(), 10, "it passes")


def test_notices_cover_no_tile_and_none_of_the_call_before_is_seen_in_the_next(person):
    alice, bob = in_a_call(person, "Alice", "Bob")
    everybody_decodes(alice, bob)
    bob.press("Chat")
    bob.fill("Message", "Shall we?")
    bob.press("Send")
    alice.hears("Bob: Shall we?")
    lines = boxes(alice, ".notice")
    assert lines
    for line in lines:
        for covered in boxes(alice, ".tile, #toolbar, #show-code"):
            assert not overlaps(line, covered), (line, covered)
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
    grace.press("Mute")
    judy.close()
    grace.press("Call code")
    grace.sees("#code-dialog #second-ring")  # behind the dialog it could not be pressed
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
    """As when the person looks at another tab of the browser, or at this one again."""
    script = """
      Object.defineProperty(document, 'hidden', { value: arguments[0], configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    """
    tab.driver.execute_script(script, is_hidden)


def receives_sound_alone(tab, seconds=15):
    """Within `seconds`: no frame was decoded while a second of sound came."""
    before = {}

    def is_still():
        received = tab.received()
        if before.get("frames") != received["frames"]:
            before.update(frames=received["frames"], packets=received["packets"]["audio"])
        return received["packets"]["audio"] > before["packets"] + 50

    wait_for(is_still, seconds, lambda: f"{tab.name} receives sound alone; from {before} to {tab.received()}")


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
    wait_for(lambda: alice.driver.execute_script(in_window) == "bob", 5, "Bob has a window of his own")
    set_hidden(alice, True)
    alice.driver.execute_async_script("setTimeout(arguments[0], 6_000)")  # longer than the page waits
    alice.decodes("bob/camera", voices=1)
    use_tool(alice, ".tile[data-user=bob]", "Small window: Bob")
    wait_for(lambda: alice.driver.execute_script(in_window) == "", 5, "the window is closed")
    receives_sound_alone(alice)
    set_hidden(alice, False)
    everybody_decodes(alice, bob, seconds=8)


# Every fake microphone beeps in the same way, so an echo canceller takes the beeps of a person for the echo of those that it plays. So a person
# who is to be heard hears nobody: the listener is muted, and a shared screen has no sound.
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
    alice.driver.execute_script("document.getElementById('stage').style.cssText = 'flex: 0 0 150px'")
    beside = lambda: alice.driver.execute_script("return [...document.querySelectorAll('#grid .tile')].map(({ dataset }) => dataset.user)")
    bob.press("Mute")
    wait_for(lambda: beside() == ["carol"], 10, lambda: f"Carol, who speaks, is beside the screen; it is {beside()}")
    carol.press("Mute")
    bob.press("Mute")
    wait_for(lambda: beside() == ["bob"], 10, lambda: f"Bob, who speaks, is beside the screen; it is {beside()}")
