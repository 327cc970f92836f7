"""The web client on several devices: ringing, moving and holding calls, links, history, coming back, and keys that change."""

import subprocess

import pytest

from browser import Tab
from conftest import BINARY, Server, wait_for
from test_browsers import everybody_decodes, in_a_call


def alice_and_two_of_bob(person):
    alice, laptop, phone = person("Alice"), person("Bob"), person("Bob")
    alice.call("Bob")
    for tab in (laptop, phone):
        tab.sees("#ring")
    return alice, laptop, phone


def test_all_devices_ring_and_one_answers_then_the_call_moves_to_the_other(person):
    alice, laptop, phone = alice_and_two_of_bob(person)
    laptop.answer()
    phone.loses("#ring")
    phone.hears("Answered on another device")
    everybody_decodes(alice, laptop)
    phone.press("Take it here: Call with Alice")
    everybody_decodes(alice, phone, seconds=8)
    laptop.sees("#lobby")
    laptop.hears("The call goes on at another device of yours")
    assert alice.shown(".tile[data-user=bob]") == 1


def test_a_decline_on_one_device_is_one_on_all(person):
    alice, laptop, phone = alice_and_two_of_bob(person)
    phone.press("Decline")
    laptop.loses("#ring")
    laptop.hears("Declined on another device")
    alice.sees("#lobby")


def test_a_device_that_is_removed_is_out_of_the_call_and_stays_out(person):
    alice, laptop, phone = alice_and_two_of_bob(person)
    laptop.answer()
    everybody_decodes(alice, laptop)
    phone.press("Devices")
    phone.find("#own-device-list button", None).click()
    laptop.sees("#welcome")
    alice.loses(".tile[data-user=bob]")


def test_answering_while_in_a_call_holds_it_until_it_is_resumed(person):
    alice, bob = in_a_call(person, "Alice", "Bob")
    carol = person("Carol")
    everybody_decodes(alice, bob)
    carol.call("Alice")
    alice.answer()
    everybody_decodes(alice, carol, seconds=8)
    alice.sees("#held [data-kind=held]")
    wait_for(lambda: "On hold" in bob.text(".tile[data-user=alice]"), 5, "Bob sees that he is on hold")
    alice.press("Resume: Call with Bob")
    everybody_decodes(alice, bob, seconds=8)
    wait_for(lambda: "On hold" in carol.text(".tile[data-user=alice]"), 5, "Carol sees that she is on hold")
    alice.press("Leave")
    alice.press("Resume: Call with Carol")
    everybody_decodes(alice, carol, seconds=8)


def test_a_link_lets_somebody_in_who_is_shown_as_such(person, url):
    alice, bob = in_a_call(person, "Alice", "Bob")
    carol = person("Carol")
    alice.press("Add people")
    alice.press("Make a link")
    link = wait_for(lambda: alice.driver.execute_script("return document.getElementById('link-text').value"), 5, "a link")
    alice.press("Close")
    assert link.startswith(url)
    carol.driver.get(link)
    carol.press("Join with video")
    everybody_decodes(alice, bob, carol, seconds=10)
    alice.press("Add people")
    assert "came by a link" in alice.text("#member-list [data-user=carol]")


def test_recent_calls_ring_back_and_show_how_people_are(person):
    alice, bob = in_a_call(person, "Alice", "Bob")
    everybody_decodes(alice, bob)
    alice.press("End for all")
    alice.find("#end-dialog button", "End for all").click()
    alice.sees("#history-list [data-outcome=answered]")
    alice.sees("#history-list .presence[data-state=available]")
    bob.press("Do not disturb")
    alice.sees("#history-list .presence[data-state=unavailable]")
    bob.press("Do not disturb")
    alice.find("#history-list button", "Details: Bob").click()
    wait_for(lambda: "call" in alice.text("#history-list .totals"), 5, "how much was spent with Bob")
    alice.press("Call back: Bob")
    bob.answer()
    everybody_decodes(alice, bob)
    bob.leave()
    alice.leave()
    alice.press("Delete all")
    alice.loses("#history-list li")


def test_a_message_reaches_the_other(person):
    alice, bob = in_a_call(person, "Alice", "Bob")
    everybody_decodes(alice, bob)
    alice.press("Chat")
    alice.fill("Message", "Shall we?")
    alice.press("Send")
    bob.hears("Alice: Shall we?")


FORGET_KEYS = "window.isOld = true; indexedDB.deleteDatabase('conclave'); location.reload();"


def test_a_changed_key_is_a_warning_and_that_device_hears_nothing_until_it_is_trusted(person):
    alice, bob = in_a_call(person, "Alice", "Bob")
    everybody_decodes(alice, bob)
    alice.press("End for all")
    alice.find("#end-dialog button", "End for all").click()
    alice.sees("#lobby")
    bob.sees("#lobby")
    bob.driver.execute_script(FORGET_KEYS)
    wait_for(lambda: bob.driver.execute_script("return !window.isOld"), 10, "Bob's page is loaded anew")
    bob.sees("#lobby")
    alice.call("Bob")
    bob.answer()
    wait_for(lambda: "security key of Bob" in alice.text("#warnings"), 8, "a warning of Bob's changed key")
    enough = lambda: bob.received()["packets"]["video"] > 30
    wait_for(enough, 15, "Alice's media reaches Bob")
    assert bob.received()["frames"] == 0
    alice.press("Trust the new key")
    everybody_decodes(alice, bob, seconds=8)


class Mortal(Server):
    """A server that may be killed, and started again on the same state and ports."""

    def kill(self):
        self.process.kill()
        self.process.wait()

    def start(self):
        command = [BINARY, "serve", "--demo", "--config", str(self.config)]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT)
        wait_for(self.is_ready, 20, "the server answers /readyz")


@pytest.fixture
def mortal(tmp_path):
    server = Mortal(tmp_path)
    yield server
    server.stop()


def test_a_killed_server_comes_back_and_so_do_all_with_media(mortal):
    tabs = [Tab(mortal.url, name) for name in ("Alice", "Bob")]
    try:
        alice, bob = tabs
        alice.call("Bob")
        bob.answer()
        everybody_decodes(*tabs)
        mortal.kill()
        wait_for(lambda: "Reconnecting" in alice.text("#call-path"), 10, "Alice sees that the server is gone")
        mortal.start()
        everybody_decodes(*tabs, seconds=8)  # 5 s of the protocol's clients, and what a browser under test takes longer
        for tab, other in ((alice, "bob"), (bob, "alice")):
            assert tab.shown(f".tile[data-user={other}]") == 1
    finally:
        for tab in tabs:
            tab.close()


def test_a_browser_that_is_started_again_comes_back_into_the_call(person, tmp_path):
    alice, bob = person("Alice"), person("Bob", profile=tmp_path)
    alice.call("Bob")
    bob.answer()
    everybody_decodes(alice, bob)
    bob.close()
    bob = person("Bob", profile=tmp_path, view="#call")
    everybody_decodes(alice, bob, seconds=10)
    assert alice.shown(".tile[data-user=bob]") == 1
