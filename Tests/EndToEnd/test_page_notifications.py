"""Rings as notifications of the system while the page is in the background."""

import pytest

from conftest import wait_for

SHOWN = """
const done = arguments[0];
navigator.serviceWorker.ready.then((registration) => registration.getNotifications())
  .then((all) => done(all.map(({ title, body, actions, data }) => ({ title, body, actions: actions.map(({ action }) => action), call: data.call }))));
"""
# A test cannot press the system's buttons: this is the message that the service worker sends when a person does.
PRESS = "navigator.serviceWorker.dispatchEvent(new MessageEvent('message', { data: { type: arguments[0], call: arguments[1] } }))"


@pytest.fixture
def server(fresh_server):
    return fresh_server


def notifications(tab):
    return tab.driver.execute_async_script(SHOWN)


def in_background(tab, url):
    """Opens a second window in front of the tab; returns a function that brings the tab back."""
    ringing = tab.driver.current_window_handle
    tab.driver.switch_to.new_window("tab")
    front = tab.driver.current_window_handle
    tab.driver.switch_to.window(ringing)
    wait_for(lambda: tab.driver.execute_script("return document.hidden") or tab.driver.execute_cdp_cmd("Target.activateTarget", {"targetId": front}), 10, "the tab is hidden")


def test_a_ring_in_the_background_is_a_notification_until_it_is_over_and_can_be_answered_from_it(person, url):
    alice, bob = person("Alice"), person("Bob")
    bob.sees("#allow-notifications")
    bob.driver.execute_cdp_cmd("Browser.grantPermissions", {"origin": url.rstrip("/"), "permissions": ["notifications", "audioCapture", "videoCapture"]})
    bob.press("Notify me of calls")
    wait_for(lambda: not bob.shown("#allow-notifications"), 10, "the question is answered")

    alice.call("Bob")
    bob.sees("#ring")
    assert notifications(bob) == [], "in front the page itself rings"
    in_background(bob, url)
    (shown,) = wait_for(lambda: notifications(bob), 10, "a notification")
    assert shown["title"] == "Alice is calling" and shown["actions"] == ["answer", "decline"]
    alice.leave()
    wait_for(lambda: not notifications(bob), 10, "the notification is closed with the ring")

    alice.sees("#lobby")
    alice.call("Bob")
    (shown,) = wait_for(lambda: notifications(bob), 10, "a notification of the second ring")
    bob.driver.execute_script(PRESS, "answer", shown["call"])
    wait_for(lambda: bob.driver.execute_script("return !document.getElementById('call').hidden"), 10, "Bob is in the call")
    wait_for(lambda: not notifications(bob), 10, "an answered ring is no longer shown")
    alice.decodes("bob/camera", voices=1)


def test_the_page_can_be_installed_and_says_that_the_network_is_away(person, server, url):
    alice = person("Alice")
    manifest = alice.driver.execute_cdp_cmd("Page.getAppManifest", {})
    assert manifest["errors"] == [] and '"display": "standalone"' in manifest["data"]
    # The service worker controls the page from the next load on.
    alice.driver.execute_async_script("navigator.serviceWorker.ready.then(() => arguments[0]())")
    assert alice.driver.execute_cdp_cmd("Page.getInstallabilityErrors", {})["installabilityErrors"] == []
    server.die()
    alice.driver.refresh()
    assert "There is no connection to Conclave" in alice.driver.execute_script("return document.body.innerText")
