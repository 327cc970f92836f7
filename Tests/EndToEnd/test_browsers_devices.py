"""The web client on several devices: ringing, moving and holding calls, links, history, coming back, and keys that change."""

import subprocess

import pytest

from browser import Tab
from conftest import BINARY, Server, wait_for
from test_browsers import everybody_decodes, in_a_call


# Everybody is in one test alone: a call that another test has left behind would be theirs too, for some seconds.


def ringing(person, caller, callee):
    """A caller, and both of a callee's devices."""
    tabs = person(caller), person(callee), person(callee)
    tabs[0].call(callee)
    for tab in tabs[1:]:
        tab.sees("#ring")
    return tabs


def test_all_devices_ring_and_one_answers_then_the_call_moves_to_the_other(person):
    uma, laptop, phone = ringing(person, "Uma", "Vera")
    laptop.answer()
    phone.loses("#ring")
    phone.hears("Answered on another device")
    everybody_decodes(uma, laptop)
    phone.press("Take it here: Call with Uma")
    everybody_decodes(uma, phone, seconds=8)
    laptop.sees("#lobby")
    laptop.hears("The call goes on at another device of yours")
    assert uma.shown(".tile[data-user=vera]") == 1


def test_a_decline_on_one_device_is_one_on_all(person):
    carl, laptop, phone = ringing(person, "Carl", "Dave")
    phone.press("Decline")
    laptop.loses("#ring")
    laptop.hears("Declined on another device")
    carl.sees("#lobby")


def test_a_device_that_is_removed_is_out_of_the_call_and_stays_out(person):
    erin, laptop, phone = ringing(person, "Erin", "Frank")
    laptop.answer()
    everybody_decodes(erin, laptop)
    phone.press("Devices")
    phone.find("#own-device-list button", None).click()
    laptop.sees("#welcome")
    erin.loses(".tile[data-user=frank]")


def test_answering_while_in_a_call_holds_it_until_it_is_resumed(person):
    grace, heidi = in_a_call(person, "Grace", "Heidi")
    ivan = person("Ivan")
    everybody_decodes(grace, heidi)
    ivan.call("Grace")
    grace.answer()
    everybody_decodes(grace, ivan, seconds=8)
    grace.sees("#held [data-kind=held]")
    wait_for(lambda: "On hold" in heidi.text(".tile[data-user=grace]"), 5, "Heidi sees that he is on hold")
    grace.press("Resume: Call with Heidi")
    everybody_decodes(grace, heidi, seconds=8)
    wait_for(lambda: "On hold" in ivan.text(".tile[data-user=grace]"), 5, "Ivan sees that she is on hold")
    grace.press("Leave")
    grace.press("Resume: Call with Ivan")
    everybody_decodes(grace, ivan, seconds=8)


def test_a_link_lets_somebody_in_who_is_shown_as_such(person, url):
    judy, karl = in_a_call(person, "Judy", "Karl")
    liam = person("Liam")
    judy.press("Add people")
    judy.press("Make a link")
    link = wait_for(lambda: judy.driver.execute_script("return document.getElementById('link-text').value"), 5, "a link")
    judy.press("Close")
    assert link.startswith(url)
    liam.driver.get(link)
    liam.press("Join with video")
    everybody_decodes(judy, karl, liam, seconds=10)
    judy.press("Add people")
    assert "came by a link" in judy.text("#member-list [data-user=liam]")


def test_recent_calls_ring_back_and_show_how_people_are(person):
    mona, nils = in_a_call(person, "Mona", "Nils")
    everybody_decodes(mona, nils)
    mona.press("End for all")
    mona.find("#end-dialog button", "End for all").click()
    mona.sees("#history-list [data-outcome=answered]")
    mona.sees("#history-list .presence[data-state=available]")
    nils.press("Do not disturb")
    mona.sees("#history-list .presence[data-state=unavailable]")
    nils.press("Do not disturb")
    mona.find("#history-list button", "Details: Nils").click()
    wait_for(lambda: "call" in mona.text("#history-list .totals"), 5, "how much was spent with Nils")
    mona.press("Call back: Nils")
    nils.answer()
    everybody_decodes(mona, nils)
    nils.leave()
    mona.leave()
    mona.press("Delete all")
    mona.loses("#history-list li")


def test_a_message_reaches_the_other(person):
    olga, paul = in_a_call(person, "Olga", "Paul")
    everybody_decodes(olga, paul)
    olga.press("Chat")
    olga.fill("Message", "Shall we?")
    olga.press("Send")
    paul.hears("Olga: Shall we?")


FORGET_KEYS = "window.isOld = true; indexedDB.deleteDatabase('conclave'); location.reload();"


def test_a_changed_key_is_a_warning_and_that_device_hears_nothing_until_it_is_trusted(person):
    quinn, rita = in_a_call(person, "Quinn", "Rita")
    everybody_decodes(quinn, rita)
    quinn.press("End for all")
    quinn.find("#end-dialog button", "End for all").click()
    quinn.sees("#lobby")
    rita.sees("#lobby")
    rita.driver.execute_script(FORGET_KEYS)
    wait_for(lambda: rita.driver.execute_script("return !window.isOld"), 10, "Rita's page is loaded anew")
    rita.sees("#lobby")
    quinn.call("Rita")
    rita.answer()
    wait_for(lambda: "security key of Rita" in quinn.text("#warnings"), 8, "a warning of Rita's changed key")
    enough = lambda: rita.received()["packets"]["video"] > 30
    wait_for(enough, 15, "Quinn's media reaches Rita")
    assert rita.received()["frames"] == 0
    quinn.press("Trust the new key")
    everybody_decodes(quinn, rita, seconds=8)


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
    sven, tina = person("Sven"), person("Tina", profile=tmp_path)
    sven.call("Tina")
    tina.answer()
    everybody_decodes(sven, tina)
    tina.close()
    tina = person("Tina", profile=tmp_path, view="#call")
    everybody_decodes(sven, tina, seconds=10)
    assert sven.shown(".tile[data-user=tina]") == 1
