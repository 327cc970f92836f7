"""The page: links that last for days, made in the lobby without a call, and the people who come by them."""

import pytest

from conftest import wait_for


@pytest.fixture
def server(fresh_server):
    return fresh_server


def new_link(tab, name="Office hours", look=lambda *_: None):
    """Makes a lasting link in the lobby; returns its address."""
    tab.sees("#links")
    tab.click("#links button", "New link")
    tab.sees("#lasting-form")
    tab.fill("Name of the call (optional)", name)
    look(tab, "a new link that lasts")
    tab.click("#lasting-dialog button", "Make a link")
    tab.sees("#lasting-made")
    look(tab, "a link that lasts")
    address = tab.driver.execute_script("return document.getElementById('lasting-text').value")
    tab.click("#lasting-dialog button", "Close")
    return address


def guest_at(person, name, address):
    """Somebody without an account, who has opened the link and pressed *Join*."""
    tab = person(name, at="data:,", words=None)
    tab.driver.get(address)
    tab.sees("#guest")
    tab.fill("Your name", name)
    tab.press("Join")
    return tab


def test_one_link_serves_two_calls_and_guests_wait_for_each(person, look):
    judy = person("Judy")
    address = new_link(judy, look=look)
    assert "#meet=" in address and address.endswith("/Office%20hours")
    look(judy, "the lobby with a link")
    ana = guest_at(person, "Ana", address)
    ana.sees("#waiting")
    wait_for(lambda: "Judy" in ana.text("#waiting-title"), 10, "it says for whom")
    look(ana, "a guest who waits for the start")
    wait_for(lambda: "Somebody is waiting" in judy.text("#links-list"), 10, "its owner is told")
    for _ in range(2):
        judy.click("#links-list button", "Start the call: Office hours")
        judy.sees("#call")
        ana.sees("#call", 15)
        guest = ana.driver.execute_script("return JSON.parse(sessionStorage.getItem('sign-in')).user")
        judy.decodes(f"{guest}/camera", voices=1, seconds=15)
        ana.decodes("judy/camera", voices=1, seconds=15)
        assert ana.call_code() == judy.call_code()
        judy.press("Add people")
        assert judy.driver.execute_script("return document.getElementById('link-text').value") == address, "the call's link is the lasting one"
        judy.click("#people-dialog button", "Close")
        ana.driver.refresh()  # the same guest comes back
        ana.sees("#call", 15)
        judy.decodes(f"{guest}/camera", voices=1, seconds=15)
        judy.press("End for all")
        judy.click("#end-dialog button", "End for all")
        judy.sees("#lobby")
        ana.sees("#farewell")
        ana.driver.get("data:,")
        ana.driver.get(address)
        ana.sees("#guest")
        ana.fill("Your name", "Ana")
        ana.press("Join")
        ana.sees("#waiting")
    ana.press("Stop waiting")
    ana.sees("#guest")


def test_a_person_with_an_account_comes_as_that_person(person):
    judy, carl = person("Judy"), person("Carl")
    address = new_link(judy, "Choir")
    carl.driver.get("data:,")
    carl.driver.get(address)
    carl.sees("#invited")
    assert "Choir" in carl.text("#invited-title")
    carl.click("#invited button", "Join")
    carl.sees("#waiting")
    judy.click("#links-list button", "Start the call: Choir")
    carl.sees("#call", 10)
    judy.decodes("carl/camera", voices=1, seconds=15)
    assert not carl.shown("#warnings .warning") and not judy.shown("#warnings .warning")


def test_a_link_is_deleted_and_outlives_a_reload_before(person, server):
    judy = person("Judy")
    address = new_link(judy, "Surgery")
    judy.driver.refresh()
    judy.sees("#links-list li")
    assert "Surgery" in judy.text("#links-list")
    ana = guest_at(person, "Ana", address)
    ana.sees("#waiting")
    judy.click("#links-list button", "Show the link: Surgery")
    judy.click("#lasting-dialog button", "Delete the link")
    wait_for(lambda: not judy.shown("#links-list li"), 5, "the link is gone")
    wait_for(lambda: "no longer good" in ana.text("#guest-error"), 15, "who waits is told")
    assert server.metric("conclave_lasting_links") == 0


def test_the_link_of_another_device_is_started_there(person):
    judy, again = person("Judy"), person("Judy")
    new_link(judy, "Tutorial")
    again.driver.refresh()
    again.sees("#links-list li")
    assert "Can only be started on" in again.text("#links-list") and not again.shown("#links-list button[aria-label^='Start the call']")


def test_without_lasting_links_the_lobby_has_no_place_for_them(person, tmp_path_factory):
    from conftest import Server

    other = Server(tmp_path_factory.mktemp("without-links"), links={"days": 0})
    try:
        judy = person("Judy", at=other.url)
        judy.sees("#lobby")
        judy.press("New call with a link")
        judy.sees("#link-made")
        judy.click("#people-dialog button", "Close")
        assert not judy.shown("#links")
    finally:
        other.stop()
