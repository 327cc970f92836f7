"""The page: somebody without an account opens a link."""

import pytest

from conftest import wait_for

# Counts a person's presses, except the one for the camera's permission, which is in the browser's own dialog.
PRESSES = """
window.conclavePresses = 0;
addEventListener('pointerdown', () => (window.conclavePresses += 1), true);
"""
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}


@pytest.fixture
def server(fresh_server):
    return fresh_server


def link_of(tab):
    """Starts a call with a link; returns the link."""
    tab.press("New call with a link")
    tab.sees("#link-made")
    link = tab.driver.execute_script("return document.getElementById('link-text').value")
    tab.press("Close")
    return link


@pytest.fixture
def phone(person):
    """A phone's browser in which nobody is signed in: phone("Ana", link)."""

    def make(name, link):
        tab = person(name, PRESSES, at="data:,", words=None)
        tab.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
        tab.driver.get(link)
        tab.sees("#guest")
        return tab

    return make


def test_a_guest_on_a_phone_is_in_the_call_after_three_presses(person, phone, artifacts, look):
    judy = person("Judy")
    link = link_of(judy)
    ana = phone("Ana", link)
    ana.screenshot(artifacts / "guest.png")
    ana.click("input", "Your name")
    ana.driver.switch_to.active_element.send_keys("Ana")
    ana.press("Join")
    ana.sees("#call")
    assert ana.driver.execute_script("return conclavePresses") == 2, "and one for the camera"
    guest = ana.driver.execute_script("return JSON.parse(sessionStorage.getItem('sign-in')).user")
    judy.decodes(f"{guest}/camera", voices=1, seconds=10)
    ana.decodes("judy/camera", voices=1, seconds=10)
    assert ana.call_code() == judy.call_code()

    # Everybody sees that Ana is a guest; the name alone identifies nobody.
    assert "Ana (guest)" in judy.text(".tile .tile-name")
    judy.press("Add people")
    assert "Ana (guest)" in judy.text(f"#member-list [data-user='{guest}']")
    assert not judy.shown(f"#member-list [data-user='{guest}'] [aria-label^='Ring again']")
    judy.click("#people-dialog button", "Close")
    # The page does not offer what a guest may not do.
    ana.press("More")
    ana.click("#more-dialog button", "Add people")
    assert not ana.shown("#add-form") and not ana.shown("#link-part") and not ana.shown("#account")
    ana.click("#people-dialog button", "Close")
    ana.press("More")
    assert not ana.shown("#toggle-hold")
    ana.click("#more-dialog button", "Close")
    ana.screenshot(artifacts / "guest-call.png")

    # After a reload it is the same guest.
    ana.driver.refresh()
    ana.sees("#call")
    judy.decodes(f"{guest}/camera", voices=1, seconds=15)
    ana.press("Leave")
    ana.sees("#farewell")
    assert "You have left the call" in ana.text("#farewell-title") and not ana.shown("form")
    assert ana.driver.execute_script("return sessionStorage.getItem('sign-in')") is None
    look(ana, "a guest who has left")
    # The call continues, and the name need not be typed again.
    ana.press("Join again")
    ana.sees("#guest")
    assert ana.driver.execute_script("return document.getElementById('guest-name').value") == "Ana"


def test_a_guest_hears_that_the_call_or_the_link_is_over(person, phone, server, look):
    judy = person("Judy")
    link = link_of(judy)
    ana = phone("Ana", link)
    ana.fill("Your name", "Ana")
    ana.press("Stop camera")
    ana.press("Join")
    ana.sees("#call")
    judy.sees(".tile:not(.own)")
    judy.press("End for all")
    judy.click("#end-dialog button", "End for all")
    ana.sees("#farewell")
    assert "Judy ended the call" in ana.text("#farewell-title") and not ana.shown("#farewell-again") and not ana.shown("form")
    ana.driver.refresh()  # the farewell is shown once
    ana.sees("#guest")
    ana.fill("Your name", "Ana")
    ana.press("Stop camera")
    ana.press("Join")
    wait_for(lambda: "no longer good" in ana.text("#guest-error"), 10, "the link is over")
    look(ana, "a link that is no longer good")
    wait_for(lambda: server.metric_of("conclave_guest_tokens_total", 'result="refused"') == 1, 5, "one is counted")


def test_any_member_removes_a_guest_who_cannot_come_straight_back(person, phone, look):
    judy, bob = person("Judy"), person("Bob")
    link = link_of(judy)
    bob.driver.get(link)
    bob.press("Join")
    bob.sees("#call")
    ana = phone("Ana", link)
    ana.fill("Your name", "Ana")
    ana.press("Stop camera")
    ana.press("Join")
    ana.sees("#call")
    guest = ana.driver.execute_script("return JSON.parse(sessionStorage.getItem('sign-in')).user")
    bob.sees(f".tile[data-user='{guest}']")
    bob.press("Add people")
    bob.sees("#people-dialog[open]")
    rows = "return [...document.querySelectorAll('#member-list button')].map(({ ariaLabel }) => ariaLabel).filter((label) => label.startsWith('Remove'))"
    assert bob.driver.execute_script(rows) == ["Remove: Ana (guest)"], "only guests can be removed"
    ana.press("More")
    ana.click("#more-dialog button", "Add people")
    ana.sees("#people-dialog[open]")
    assert ana.driver.execute_script(rows) == [], "and guests can remove nobody"
    ana.click("#people-dialog button", "Close")
    bob.click("#member-list button", "Remove: Ana (guest)")
    bob.sees("#remove-guest-dialog[open]")
    order = "return [...document.querySelectorAll('#remove-guest-dialog button')].map(({ innerText }) => innerText)"
    assert bob.driver.execute_script(order) == ["Cancel", "Remove"]
    look(bob, "the question before a guest is removed")
    bob.click("#remove-guest-dialog button", "Remove")
    ana.sees("#farewell")
    assert "You were removed" in ana.text("#farewell-title") and not ana.shown("#farewell-again")
    wait_for(lambda: "Bob removed Ana (guest)" in judy.text("#notices"), 8, "Judy reads who did it")
    judy.loses(f".tile[data-user='{guest}']")
    # The same person, with the same link, under another name.
    ana.driver.refresh()
    ana.sees("#guest")
    ana.fill("Your name", "Zoe")
    ana.press("Stop camera")
    ana.press("Join")
    wait_for(lambda: "no longer good" in ana.text("#guest-error"), 10, "the link is void")
    judy.press("Add people")
    judy.sees("#link-make")
    assert not judy.shown("#link-made"), "Judy's link is void, and she can make another"


def waiting_link_of(tab):
    """Starts a call with a link whose guests wait; gives the link."""
    link_of(tab)
    tab.press("Add people")
    tab.press("Revoke all links")
    tab.click("#link-waits", "Guests wait until somebody in the call lets them in")
    tab.press("Make a link")
    tab.sees("#link-made")
    link = tab.driver.execute_script("return document.getElementById('link-text').value")
    tab.press("Close")
    return link


def knocks(tab, name):
    tab.fill("Your name", name)
    tab.press("Stop camera")
    tab.press("Join")
    tab.sees("#waiting")


def test_a_guest_waits_until_somebody_lets_it_in(person, phone, look):
    judy, bob = person("Judy"), person("Bob")
    link = waiting_link_of(judy)
    bob.driver.get(link)
    bob.press("Join")
    bob.sees("#call")
    ana = phone("Ana", link)
    knocks(ana, "Ana")
    look(ana, "a guest who waits")
    for tab in (judy, bob):
        tab.sees("#door")
        assert "Ana (guest) asks to join" in tab.text("#door-title") and "This name is not checked" in tab.text("#door-text")
    look(bob, "a guest at the door")
    guest = ana.driver.execute_script("return JSON.parse(sessionStorage.getItem('sign-in')).user")
    assert not bob.shown(f".tile[data-user='{guest}']")
    wait_for(lambda: bob.driver.execute_script("return !document.getElementById('door-admit').disabled"), 5, "a press counts after two seconds")
    bob.click("#door button", "Let in")
    ana.sees("#call")
    bob.sees(f".tile[data-user='{guest}']")
    judy.loses("#door")
    wait_for(lambda: "Bob let Ana (guest) in" in judy.text("#notices"), 8, "Judy reads whose act it was")
    judy.press("Add people")
    wait_for(lambda: "let in by Bob" in judy.text(f"#member-list [data-user='{guest}']"), 5, "the list of people says so, too")
    judy.click("#people-dialog button", "Close")
    judy.decodes(voices=2, seconds=10)


def test_a_guest_is_refused_or_stops_waiting(person, phone, look):
    judy = person("Judy")
    link = waiting_link_of(judy)
    ana = phone("Ana", link)
    knocks(ana, "Ana")
    judy.sees("#door")
    ana.press("Stop waiting")
    ana.sees("#guest")
    judy.loses("#door")
    knocks(ana, "Ana")
    judy.sees("#door")
    wait_for(lambda: judy.driver.execute_script("return !document.getElementById('door-refuse').disabled"), 5, "a press counts after two seconds")
    judy.click("#door button", "Refuse")
    ana.sees("#guest")
    wait_for(lambda: "You were not let in" in ana.text("#guest-error"), 10, "the guest is told")
    look(ana, "a guest who was refused")


def test_a_link_with_a_name_says_what_it_opens(person, phone):
    judy = person("Judy")
    judy.press("New call with a link")
    judy.sees("#link-made")
    judy.fill("Name of the call (optional)", "Böll & friends")
    link = judy.driver.execute_script("return document.getElementById('link-text').value")
    judy.press("Close")
    ana = phone("Ana", link)
    assert "Böll & friends" in ana.text("#guest-title")
    ana.fill("Your name", "Ana")
    ana.press("Stop camera")
    ana.press("Join")
    ana.sees("#call")
    bob = person("Bob")
    bob.driver.execute_script("location.hash = new URL(arguments[0]).hash", link)
    bob.sees("#invited")
    assert "Böll & friends" in bob.text("#invited-title")
