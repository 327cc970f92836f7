"""The web client on several devices: ringing, moving and holding calls, links, history, coming back, and keys that change."""

import pytest
from selenium.webdriver.common.by import By

from client import Client
from conftest import wait_for
from test_browsers import everybody_decodes, in_a_call


@pytest.fixture
def server(fresh_server):
    return fresh_server


def ringing(person, caller, callee):
    """A caller, and both of a callee's devices."""
    tabs = person(caller), person(callee), person(callee)
    tabs[0].call(callee)
    for tab in tabs[1:]:
        tab.sees("#ring")
    return tabs


def test_all_devices_ring_and_one_answers_then_the_call_moves_to_the_other(person, look):
    uma, laptop, phone = ringing(person, "Uma", "Vera")
    laptop.answer()
    phone.loses("#ring")
    phone.hears("Answered on another device")
    everybody_decodes(uma, laptop)
    phone.press("Take it here: Call with Uma")
    everybody_decodes(uma, phone, seconds=8)
    laptop.sees("#lobby")
    laptop.hears("The call continues on another of your devices")
    assert uma.shown(".tile[data-user=vera]") == 1
    offered = "button[aria-label^='Take it here']"
    laptop.sees(offered)
    look(laptop, "a call on another device")
    assert phone.shown(offered) == 0, "the call is here"
    laptop.press("Take it here: Call with Uma")
    everybody_decodes(uma, laptop, seconds=8)
    laptop.loses(offered)
    phone.sees(offered)


def test_a_page_that_is_loaded_later_finds_the_call_that_runs_on_the_other_device(person):
    wanda, laptop = in_a_call(person, "Wanda", "Xaver")
    everybody_decodes(wanda, laptop)
    phone = person("Xaver")
    phone.press("Take it here: Call with Wanda")
    everybody_decodes(wanda, phone, seconds=8)
    laptop.sees("#lobby")


def test_a_decline_on_one_device_is_one_on_all(person):
    carl, laptop, phone = ringing(person, "Carl", "Dave")
    phone.press("Decline")
    laptop.loses("#ring")
    laptop.hears("Declined on another device")
    carl.sees("#unanswered")


def test_a_device_that_is_removed_is_out_of_the_call_and_stays_out(person):
    erin, laptop, phone = ringing(person, "Erin", "Frank")
    laptop.answer()
    everybody_decodes(erin, laptop)
    phone.devices()
    phone.of_device("Remove", laptop.device)
    phone.press("Remove it")
    laptop.sees("#welcome")
    erin.loses(".tile[data-user=frank]")


def test_all_other_devices_are_removed_at_once(person, look):
    laptop, phone, tablet = person("Nora"), person("Nora"), person("Nora")
    phone.devices()
    look(phone, "three devices")
    phone.click("#devices-dialog button", "Remove all others")
    look(phone, "removing devices")
    phone.click("#remove-dialog button", "Remove all others")
    phone.hears("Your other devices are removed")
    for gone in (laptop, tablet):
        gone.sees("#welcome")
    assert phone.shown("#own-device-list li") == 1 and phone.shown("#remove-others") == 0


def test_a_device_is_named_and_its_name_is_seen_on_the_other_one_and_outlives_a_reload(person):
    laptop, phone = person("Olga"), person("Olga")
    laptop.devices()
    laptop.click("#own-device-list [data-level=this] button", None)
    laptop.fill("Device name", "Kitchen laptop")
    laptop.press("Save")
    wait_for(lambda: "Kitchen laptop" in laptop.text("#own-device-list [data-level=this]"), 5, "the name is shown")
    laptop.driver.refresh()
    laptop.sees("#lobby")
    phone.devices()
    wait_for(lambda: "Kitchen laptop" in phone.text(f"#own-device-list [data-device='{laptop.device}']"), 5, "the name on the other device")


def test_the_list_of_devices_says_on_which_day_another_one_was_connected_last(person):
    laptop, phone = person("Petra"), person("Petra")
    device = phone.device
    phone.close()
    laptop.devices()
    wait_for(lambda: "last connected today" in laptop.text(f"#own-device-list [data-device='{device}']"), 5, "the day of the phone")
    assert "last connected" not in laptop.text("#own-device-list [data-level=this]")


def test_answering_while_in_a_call_holds_it_until_it_is_resumed(person, look):
    grace, heidi = in_a_call(person, "Grace", "Heidi")
    ivan = person("Ivan")
    everybody_decodes(grace, heidi)
    ivan.call("Grace")
    grace.press("Hold and accept")
    everybody_decodes(grace, ivan, seconds=8)
    grace.sees("#held [data-kind=held]")
    wait_for(lambda: "On hold" in heidi.text(".tile[data-user=grace]"), 5, "Heidi sees that he is on hold")
    look(grace, "a call on hold")
    look(heidi, "a person on hold")
    grace.press("Resume: Call with Heidi")
    everybody_decodes(grace, heidi, seconds=8)
    wait_for(lambda: "On hold" in ivan.text(".tile[data-user=grace]"), 5, "Ivan sees that she is on hold")
    heidi.press("Chat")
    heidi.fill("Message", "There you are")
    heidi.press("Send")
    grace.find("#toggle-chat", "Chat (1)")  # only once, though the call was shown twice
    grace.press("Leave")
    grace.press("Resume: Call with Ivan")
    everybody_decodes(grace, ivan, seconds=8)


def test_a_link_lets_somebody_in_who_is_shown_as_such(person, url, look):
    judy, karl = in_a_call(person, "Judy", "Karl")
    liam = person("Liam")
    judy.press("Add people")
    judy.press("Make a link")
    link = wait_for(lambda: judy.driver.execute_script("return document.getElementById('link-text').value"), 5, "a link")
    look(judy, "a link that was made")
    judy.press("Close")
    assert link.startswith(url)
    liam.driver.get(link)
    liam.sees("#invited")
    look(liam, "a link to a call")
    liam.press("Join")
    everybody_decodes(judy, karl, liam, seconds=10)
    judy.press("Add people")
    assert "came by Judy’s link" in judy.text("#member-list [data-user=liam]")


def test_recent_calls_ring_back_and_show_how_people_are(person):
    mona, nils = in_a_call(person, "Mona", "Nils")
    everybody_decodes(mona, nils)
    mona.press("End for all")
    mona.click("#end-dialog button", "End for all")
    mona.sees("#history-list [data-outcome=answered]")
    mona.sees("#history-list .presence[data-state=available]")
    nils.do_not_disturb()
    mona.sees("#history-list .presence[data-state=unavailable]")
    nils.press("Do not disturb")
    mona.click("#history-list button", "Details: Nils")
    wait_for(lambda: "call" in mona.text("#history-list .totals"), 5, "how much was spent with Nils")
    mona.press("Call back: Nils")
    nils.answer()
    everybody_decodes(mona, nils)
    nils.leave()
    mona.sees("#lobby")  # a call of two ends when one leaves
    nils.loses("#running")
    mona.press("Delete all")
    mona.click("#clear-dialog button", "Delete all")
    mona.loses("#history-list li")


def test_do_not_disturb_outlives_a_reload_is_the_same_on_all_devices_and_ends(person, look):
    laptop, phone = person("Yuri"), person("Yuri")
    laptop.press("Do not disturb")
    laptop.sees("#quiet-dialog[open]")
    look(laptop, "the duration of do not disturb")
    laptop.driver.find_element(By.ID, "quiet-hour").click()
    phone.sees("#availability[aria-pressed=true]")
    assert phone.shown("#quiet-sign") and phone.text("#quiet-end") == "", "another browser does not know when it ends"
    laptop.driver.refresh()
    laptop.sees("#availability[aria-pressed=true]")
    wait_for(lambda: laptop.text("#quiet-end").startswith("until "), 5, "the end beside the name")
    look(laptop, "do not disturb")
    zoe = person("Zoe")
    zoe.fill("People", "Yuri")
    zoe.press("Video call")
    wait_for(lambda: zoe.text("#unanswered-title") == "Yuri is not available", 10, "why nobody answered the call")
    phone.press("Do not disturb")
    laptop.sees("#availability[aria-pressed=false]")
    laptop.loses("#quiet-sign")
    # The page was closed at that time, and checks when it starts.
    laptop.press("Do not disturb")
    laptop.driver.find_element(By.ID, "quiet-hour").click()
    phone.sees("#quiet-sign")
    wait_for(lambda: laptop.text("#quiet-end"), 5, "the end beside the name")
    laptop.driver.execute_script("for (const key of Object.keys(localStorage)) if (key.startsWith('quiet-end/')) localStorage[key] = Date.now() - 1; location.reload()")
    phone.loses("#quiet-sign")
    laptop.sees("#availability[aria-pressed=false]")


def test_a_message_reaches_the_other(person):
    olga, paul = in_a_call(person, "Olga", "Paul")
    everybody_decodes(olga, paul)
    olga.press("Chat")
    olga.fill("Message", "Shall we?")
    olga.press("Send")
    paul.hears("Olga: Shall we?")


class Reports(Client):
    """The app's back end, which reads abuse reports and nothing else."""

    def __init__(self, server):
        self.as_service = server
        super().__init__(self, "app", "reports")

    @property
    def stomp_port(self):
        return self.as_service.stomp_port

    def token(self, user, device):
        return self.as_service.token(user, device, "--service")

    def subscribe(self, destination, identifier):
        if identifier == "events":
            super().subscribe("/topic/service/reports", identifier)


def test_an_abuse_report_reaches_the_app_and_the_connection_is_shown(person, server):
    wilma, xaver = in_a_call(person, "Wilma", "Xaver")
    everybody_decodes(wilma, xaver)
    app = Reports(server)
    wilma.press("Add people")
    wilma.press("Report: Xaver")
    wilma.find("textarea", "What happened?").send_keys("He swears.")
    wilma.click("#report-dialog button", "Report")
    wilma.hears("Your report was sent")
    report = app.event("report")
    assert (report["user"], report["text"]) == ("xaver", "He swears.")
    app.close()
    wilma.press("Close")
    wilma.sees("#call-quality[aria-label^=Connection]", seconds=15)


def test_with_verified_devices_only_others_hear_nothing_until_the_codes_are_compared(person):
    yara, zeno = person("Yara"), person("Zeno")
    yara.only_verified()
    yara.call("Zeno")
    zeno.answer()
    wait_for(lambda: "is not verified" in yara.text("#warnings"), 8, "a warning of Zeno's device")
    assert zeno.received()["frames"] == 0
    yara.verify("Zeno")
    everybody_decodes(yara, zeno, seconds=8)
    assert "not verified" not in yara.text("#warnings")


FORGET_KEYS = "window.isOld = true; indexedDB.deleteDatabase('conclave'); location.reload();"


def test_a_changed_key_is_a_warning_and_that_device_hears_nothing_until_it_is_trusted(person):
    quinn, rita = in_a_call(person, "Quinn", "Rita")
    everybody_decodes(quinn, rita)
    quinn.press("End for all")
    quinn.click("#end-dialog button", "End for all")
    quinn.sees("#lobby")
    rita.sees("#lobby")
    rita.driver.execute_script(FORGET_KEYS)
    wait_for(lambda: rita.driver.execute_script("return !window.isOld"), 10, "Rita's page is reloaded")
    rita.sees("#lobby")
    quinn.call("Rita")
    rita.answer()
    wait_for(lambda: "Rita’s device" in quinn.text("#warnings") and "in another way than before" in quinn.text("#warnings"), 8, "a warning of Rita's changed key")
    quinn.sees("#call-notice[data-cause=changed-key]", seconds=15)
    assert rita.received()["packets"]["video"] == rita.received()["frames"] == 0
    quinn.press("It is this number: trust it")
    everybody_decodes(quinn, rita, seconds=8)


def test_a_killed_server_comes_back_and_so_do_all_with_media(person, server, look):
    alice, bob = tabs = in_a_call(person, "Alice", "Bob")
    everybody_decodes(*tabs)
    server.die()
    wait_for(lambda: "Reconnecting" in alice.text("#call-path"), 10, "Alice sees that the server is gone")
    look(alice, "a lost connection")
    server.start()
    everybody_decodes(*tabs, seconds=5)
    for tab, other in ((alice, "bob"), (bob, "alice")):
        assert tab.shown(f".tile[data-user={other}]") == 1


def test_a_browser_that_is_started_again_comes_back_into_the_call(person, tmp_path):
    sven, tina = person("Sven"), person("Tina", profile=tmp_path)
    sven.call("Tina")
    tina.answer()
    everybody_decodes(sven, tina)
    tina.close()
    tina = person("Tina", profile=tmp_path, view="#call")
    everybody_decodes(sven, tina, seconds=10)
    assert sven.shown(".tile[data-user=tina]") == 1
