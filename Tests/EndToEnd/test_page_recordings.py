"""Video messages on the page: recorded after a call that was not answered, sent, played with real decoded pictures, kept, deleted, and the texts for what goes wrong."""

import re
import time

import pytest
from selenium.webdriver.common.keys import Keys

from browser import LONG_RING
from conftest import Server, wait_for
from network import Network
from test_contract_recordings import Device, Recording
from test_page_states import REFUSED_CAMERA, outcome

MIB = 1 << 20

# Counts the decoded pictures that the page draws.
DRAWN = """
(() => {
  window.conclaveDrawn = 0;
  const draw = CanvasRenderingContext2D.prototype.drawImage;
  CanvasRenderingContext2D.prototype.drawImage = function (picture, ...place) {
    if (picture instanceof VideoFrame) window.conclaveDrawn += 1;
    return draw.call(this, picture, ...place);
  };
})();
"""

# The file comes by a link, whose blob the test reads.
BLOBS = """
(() => {
  window.conclaveBlobs = [];
  window.showSaveFilePicker = undefined;
  const make = URL.createObjectURL;
  URL.createObjectURL = (blob) => {
    window.conclaveBlobs.push(blob);
    return make.call(URL, blob);
  };
})();
"""


@pytest.fixture
def server(tmp_path_factory):
    """Each test has its own: the lists are empty."""
    running = Server(tmp_path_factory.mktemp("messages"), recordings={"reserveMiB": 0})
    yield running
    running.stop()


@pytest.fixture
def somebody(person):
    return lambda name, *scripts, **options: person(name, LONG_RING, DRAWN, *scripts, **options)


@pytest.fixture
def small_server(tmp_path_factory):
    """A server with room for 1 MiB of each user."""
    running = Server(tmp_path_factory.mktemp("small"), recordings={"reserveMiB": 0, "userMiB": 1})
    yield running
    running.stop()


def script(tab, text, *values):
    return tab.driver.execute_script(text, *values)


def declined(caller, callee):
    """A call that is declined, and the button to record a message."""
    caller.call(callee.name)
    callee.press("Decline")
    outcome(caller, f"{callee.name} declined")
    caller.sees("#unanswered-record")


def start_now(tab):
    """Does not wait for the end of the countdown, which may be over by now."""
    press = """
      const shown = (name) => document.getElementById(`message-${name}`).checkVisibility();
      if (shown('now')) document.getElementById('message-now').click();
      return shown('stop');
    """
    wait_for(lambda: script(tab, press), 20, f"{tab.name} records")


def record(tab, seconds=3):
    """Records for some seconds, without waiting for the countdown, and stops by the button."""
    tab.press("Record a video message")
    start_now(tab)
    has_recorded(tab, seconds)
    tab.press("Stop recording")
    tab.sees("#message-send", 20)


def has_recorded(tab, seconds):
    # "0:04 · 2:55 left"
    length = lambda: int(tab.text("#message-time").partition(" ")[0].rpartition(":")[2] or 0)
    wait_for(lambda: length() >= seconds, 20 + seconds, f"{tab.name} has recorded {seconds} s")


def send(tab, reader):
    tab.press("Send")
    tab.hears(f"Sent to {reader.name}", 20)
    tab.sees("#lobby")


def press_in_list(tab, action, row="#recordings-list > li"):
    """Presses a button in a row of the list, which may be drawn again meanwhile."""
    press = """
      const button = document.querySelector(`${arguments[0]} [aria-label^='${arguments[1]}']`);
      if (!button?.checkVisibility() || button.disabled) return false;
      button.click();
      return true;
    """
    wait_for(lambda: script(tab, press, row, action), 10, f"{tab.name} presses “{action}” in the list")


def rows(tab):
    return script(tab, "return [...document.querySelectorAll('#recordings-list > li')].filter((row) => row.checkVisibility()).map((row) => row.innerText)")


# Whether the picture on the canvas is one: at least some of its pixels differ much.
IS_A_PICTURE = """
const canvas = document.getElementById('player-picture');
if (!canvas.checkVisibility() || canvas.width < 100) return false;
const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
const [least, most] = [[255, 255, 255], [0, 0, 0]];
for (let i = 0; i < data.length; i += 1) {
  if (i % 4 === 3) continue;
  least[i % 4] = Math.min(least[i % 4], data[i]);
  most[i % 4] = Math.max(most[i % 4], data[i]);
}
return most.some((value, color) => value - least[color] > 60);
"""


def shows_moving_pictures(tab, count=5):
    """The player draws decoded pictures, more and more of them."""
    drawn = lambda: script(tab, "return conclaveDrawn")
    first = drawn()
    wait_for(lambda: drawn() >= first + count, 20, f"{tab.name}'s player draws pictures")
    wait_for(lambda: script(tab, IS_A_PICTURE), 10, f"{tab.name}'s player shows a picture")


def position(tab):
    """ms"""
    return int(script(tab, "return document.getElementById('player-time').value"))


def close_player(tab):
    tab.click("#player-dialog button", "Close")
    tab.loses("#player-dialog[open]")


def test_after_a_declined_call_a_message_is_recorded_sent_and_played(somebody, look):
    alice, bob = somebody("Alice"), somebody("Bob")
    declined(alice, bob)
    look(alice, "a call that was declined, with the offer to record a message")
    alice.press("Record a video message")
    alice.sees("#message")
    alice.press("Pause", seconds=20)
    wait_for(lambda: script(alice, "return document.getElementById('message-video').videoWidth > 2"), 10, "Alice sees herself")
    count = alice.text("#message-count")
    assert count in "12345" and count, "the countdown stands still"
    look(alice, "the countdown of a message")
    assert alice.text("#message-count") == count
    alice.press("Continue")
    has_recorded(alice, 5)
    assert script(alice, "return document.getElementById('message-said').textContent") == "Recording"
    look(alice, "a message that is recorded")
    alice.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    alice.sees("#message-send", 20)
    assert not rows(bob), "nothing was sent yet"
    look(alice, "a message that was recorded")
    alice.press("Play")
    shows_moving_pictures(alice)
    close_player(alice)
    send(alice, bob)

    bob.hears("New video message from Alice", 20)
    bob.sees("#recordings-list [data-new=true]")
    look(bob, "the list of messages")
    assert "Alice" in rows(bob)[0] and "New" in rows(bob)[0]
    wait_for(lambda: re.search(r"· \d:\d\d", rows(bob)[0]), 10, "how long it is")
    press_in_list(bob, "Play")
    bob.sees("#player-dialog[open]")
    shows_moving_pictures(bob, count=10)
    assert bob.text("#player-title") == "Message from Alice"
    wait_for(lambda: position(bob) > 1_000, 10, "the time goes on")
    bob.driver.switch_to.active_element.send_keys("m")
    wait_for(lambda: script(bob, "return document.getElementById('player-mute').ariaLabel") == "Sound on", 5, "the sound is off")
    # It plays to its end, which the device that recorded has signed.
    wait_for(lambda: script(bob, "return document.getElementById('player-play').ariaLabel") == "Play", 120, "the message is over")
    length = int(script(bob, "return document.getElementById('player-time').max"))
    assert length >= 5_000 and position(bob) >= length - 300
    assert bob.text("#player-worth") == "" and bob.text("#player-gap") == "" and bob.text("#player-problem") == ""
    look(bob, "a player at the end of a message")
    drawn = script(bob, "return conclaveDrawn")
    bob.driver.switch_to.active_element.send_keys(Keys.ARROW_LEFT)
    wait_for(lambda: position(bob) <= length - 4_500, 10, "five seconds back")
    wait_for(lambda: script(bob, "return conclaveDrawn") > drawn, 10, "the picture of that time, although it stands still")
    bob.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    bob.loses("#player-dialog[open]")
    bob.sees("#recordings-list [data-new=false]")

    # It is answered by a call.
    press_in_list(bob, "Details")
    press_in_list(bob, "Call back")
    alice.sees("#ring[open]")
    assert "Bob" in alice.text("#ring-title")


def test_a_ring_is_answered_with_a_message(somebody, look):
    alice, bob = somebody("Alice"), somebody("Bob")
    declined(bob, alice)  # Bob's page knows by now that the server takes messages
    bob.press("Close")
    alice.call("Bob")
    bob.sees("#ring-reply")
    look(bob, "a ring that can be answered with a message")
    bob.press("Reply with a message")
    bob.sees("#message")
    outcome(alice, "Bob declined")
    start_now(bob)
    has_recorded(bob, 3)
    bob.press("Stop recording")
    bob.sees("#message-send", 20)
    send(bob, alice)
    alice.press("Close")
    wait_for(lambda: len(rows(alice)) == 1 and "Bob" in rows(alice)[0], 20, lambda: f"Alice has the message: {rows(alice)}")


def test_retake_replaces_a_message_keep_keeps_it_and_cancel_deletes_it(somebody):
    alice, bob = somebody("Alice"), somebody("Bob")
    declined(alice, bob)
    record(alice)
    alice.press("Record again")
    start_now(alice)
    has_recorded(alice, 2)
    alice.press("Stop recording")
    alice.press("Keep for myself", seconds=20)
    alice.hears("Kept in your messages", 20)
    alice.sees("#recordings-list > li")
    assert len(rows(alice)) == 1, "the first one is gone"
    wait_for(lambda: "For Bob" in rows(alice)[0], 10, "the row names its reader")
    press_in_list(alice, "Play")
    shows_moving_pictures(alice)
    close_player(alice)

    declined(alice, bob)
    record(alice)
    alice.press("Cancel")
    outcome(alice, "Bob declined")
    alice.press("Close")
    alice.sees("#lobby")
    alice.driver.refresh()
    alice.sees("#recordings-list > li", 20)
    assert len(rows(alice)) == 1, "a message that was cancelled is not offered again"
    assert not rows(bob)


def test_a_reader_deletes_for_itself_and_the_sender_for_everybody(somebody):
    alice, bob = somebody("Alice"), somebody("Bob")
    for _ in range(2):
        declined(alice, bob)
        record(alice, 1)
        send(alice, bob)
    wait_for(lambda: len(rows(bob)) == 2, 20, "Bob has two messages")
    press_in_list(bob, "Delete")
    assert len(rows(bob)) == 2, "not before it is confirmed"
    bob.click("#delete-recording-dialog button", "Delete")
    wait_for(lambda: len(rows(bob)) == 1, 10, "Bob has one message")
    bob.driver.refresh()
    wait_for(lambda: len(rows(bob)) == 1, 20, "Bob still has one")
    wait_for(lambda: len(rows(alice)) == 2, 10, "Alice keeps hers")
    for left in (1, 0):
        press_in_list(alice, "Delete")
        alice.click("#delete-recording-dialog button", "Delete")
        wait_for(lambda: len(rows(alice)) == left, 10, "Alice deletes hers")
    bob.driver.refresh()
    bob.sees("#lobby")
    bob.sees("#history-list")
    time.sleep(1)
    assert not rows(bob), "the sender deletes it for everybody"


def test_without_room_at_the_server_it_is_said_before_anybody_speaks(somebody, small_server, look):
    alice, bob = somebody("Alice", at=small_server.url), somebody("Bob", at=small_server.url)
    phone = Device(small_server, "alice")
    full = Recording(phone, "alice", kind="own")
    full.start()
    overhead = len(Recording(phone, "alice", kind="own").seal(b"")[0])
    status, _, _ = full.put(0, *full.seal(bytes(MIB - overhead)))
    assert status == 201
    declined(alice, bob)
    alice.press("Record a video message")
    wait_for(lambda: "no room left for your messages" in alice.text("#message-problem"), 20, "Alice is told that there is no room")
    assert not alice.shown("#message-stop"), "nothing is recorded"
    look(alice, "no room for a message")
    # She makes room, as the text says.
    assert phone.request("/app/recordings/delete", {"ids": [str(full.id)]}) is not None
    alice.press("Try again")
    start_now(alice)
    has_recorded(alice, 1)
    alice.press("Stop recording")
    alice.sees("#message-send", 20)
    send(alice, bob)
    phone.close()


def test_a_message_goes_on_when_the_network_is_back(somebody, server):
    network = Network(server)
    try:
        alice, bob = somebody("Alice", at=network.url), somebody("Bob")
        declined(alice, bob)
        alice.press("Record a video message")
        start_now(alice)
        has_recorded(alice, 1)
        network.refuse_signaling()
        has_recorded(alice, 6)
        wait_for(lambda: "goes on by itself" in alice.text("#message-network"), 20, "Alice is told that there is no connection")
        alice.press("Stop recording")
        alice.press("Send", seconds=20)
        wait_for(lambda: "goes on by itself" in alice.text("#message-network"), 20, "it waits")
        assert not rows(bob)
        network.allow_signaling()
        alice.hears("Sent to Bob", 60)
        bob.hears("New video message from Alice", 20)
        press_in_list(bob, "Play")
        shows_moving_pictures(bob)
        wait_for(lambda: int(script(bob, "return document.getElementById('player-time').max")) >= 5_000, 10, "all of it has arrived")
    finally:
        network.close()


def test_a_message_of_a_closed_tab_is_offered_played_and_sent(somebody, look):
    alice, bob = somebody("Alice"), somebody("Bob")
    declined(alice, bob)
    record(alice, 5)
    alice.driver.refresh()
    alice.sees("#recordings-list [data-draft=true]", 20)
    assert "Not sent yet" in rows(alice)[0]
    look(alice, "a message that was not sent yet")
    press_in_list(alice, "Play")
    shows_moving_pictures(alice)
    close_player(alice)
    press_in_list(alice, "Send")
    bob.hears("New video message from Alice", 20)
    alice.loses("#recordings-list [data-draft=true]")
    press_in_list(bob, "Play")
    shows_moving_pictures(bob)


def test_without_a_camera_a_message_has_sound_and_without_a_decoder_it_is_downloaded(somebody, look):
    alice = somebody("Alice", REFUSED_CAMERA)
    bob = somebody("Bob", BLOBS)
    alice.fill("People", "Bob")
    alice.press("Audio call")
    bob.press("Decline")
    outcome(alice, "Bob declined")
    alice.sees("#unanswered-record")
    alice.press("Record a video message")
    wait_for(lambda: "Allow it in the browser’s settings" in alice.text("#message-problem"), 20, "Alice is told what to do")
    look(alice, "a message without a camera")
    alice.press("Sound only")
    start_now(alice)
    has_recorded(alice, 2)
    alice.press("Stop recording")
    alice.sees("#message-send", 20)
    send(alice, bob)

    bob.hears("New video message from Alice", 20)
    press_in_list(bob, "Play")
    wait_for(lambda: position(bob) > 1_000, 20, "the sound plays")
    assert bob.shown("#player-off") and not bob.shown("#player-picture")
    close_player(bob)
    script(bob, "window.AudioDecoder = undefined")
    press_in_list(bob, "Play")
    wait_for(lambda: "Download it" in bob.text("#player-problem"), 10, "Bob is told what to do")
    assert not bob.shown("#player-controls")
    look(bob, "a browser that cannot play")
    bob.press("Download")
    wait_for(lambda: script(bob, "return conclaveBlobs.length"), 20, "Bob has a file")
    head = bob.driver.execute_async_script("const done = arguments[0]; conclaveBlobs[0].arrayBuffer().then((bytes) => done([bytes.byteLength, ...new Uint8Array(bytes.slice(0, 4))]));")
    assert head[0] > 1_000 and head[1:] == [0x1A, 0x45, 0xDF, 0xA3], "WebM (RFC 8794, the EBML head)"


def test_a_message_is_passed_on_to_somebody_else(somebody):
    alice, bob, carol = somebody("Alice"), somebody("Bob"), somebody("Carol")
    declined(bob, carol)
    bob.press("Close")
    declined(alice, bob)
    record(alice, 2)
    send(alice, bob)
    bob.hears("New video message from Alice", 20)
    press_in_list(bob, "Details")
    press_in_list(bob, "Share")
    bob.sees("#share-dialog[open]")
    bob.driver.find_element("id", "share-people").send_keys("Carol")
    bob.click("#share-dialog button", "Send")
    bob.hears("Sent to Carol", 20)
    carol.hears("New video message from Alice", 20)
    press_in_list(carol, "Play")
    shows_moving_pictures(carol)
    assert "Alice" in carol.text("#player-title"), "it is still hers"


HIDE = """
Object.defineProperty(document, 'hidden', { get: () => arguments[0], configurable: true });
document.dispatchEvent(new Event('visibilitychange'));
"""


def test_nothing_of_the_messages_is_seen_while_the_page_is_in_the_background(somebody):
    alice, bob = somebody("Alice"), somebody("Bob")
    declined(alice, bob)
    record(alice, 2)
    send(alice, bob)
    bob.sees("#recordings-list > li", 20)
    hide = lambda is_hidden: script(bob, HIDE.replace("arguments[0]", "true" if is_hidden else "false"))
    hide(True)
    assert not bob.shown("#recordings-list > li")
    hide(False)
    assert bob.shown("#recordings-list > li")
    press_in_list(bob, "Play")
    shows_moving_pictures(bob)
    hide(True)
    assert not bob.shown("#player-title, #player-picture")
    hide(False)
    assert bob.shown("#player-title") and bob.shown("#player-picture")


def test_a_ring_stops_the_recording_and_nothing_of_it_is_lost(somebody):
    alice, bob = somebody("Alice"), somebody("Bob")
    declined(alice, bob)
    alice.press("Record a video message")
    start_now(alice)
    has_recorded(alice, 2)
    bob.call("Alice")
    alice.sees("#ring[open]")
    wait_for(lambda: alice.shown("#message-send"), 20, "it is stopped")
    alice.answer()
    alice.leave()
    alice.sees("#recordings-list [data-draft=true]", 20)
