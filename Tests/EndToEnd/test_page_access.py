"""The page for people who use it without a mouse or cannot see it: axe-core finds nothing in any view, light or dark, left to right or right to left."""

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from browser import LONG_RING
from conftest import wait_for
from test_browsers import everybody_decodes, in_a_call
from views import PICTURES, is_accessible

# Views and dialogs that no step of the test reaches, as in the markup.
REST = """
const shown = new Set(arguments[0]);
return [...document.querySelectorAll('dialog')].map(({ id }) => id).filter((id) => !shown.has(id));
"""

# Shows one part of the page in place of another.
SWAP = "[...arguments].forEach((id, index) => (document.getElementById(id).hidden = index === 1))"


@pytest.fixture
def server(fresh_server):
    return fresh_server


class Tour:
    """Checks one view after the other, and remembers which dialogs it has seen."""

    def __init__(self, tab, look):
        self.tab = tab
        self.seen = set()
        self.look = lambda view: look(tab, view)

    def open(self, button, dialog, within="button"):
        """Opens a dialog by its button, and closes it by Escape."""
        if within == "button":
            self.tab.press(button)
        else:
            self.tab.click(f"{within} button", button)
        self.tab.sees(f"#{dialog}[open]")
        self.look(dialog)
        self.seen.add(dialog)

    def close(self, dialog):
        self.tab.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
        self.tab.loses(f"#{dialog}[open]")


def test_axe_finds_nothing_before_a_call_and_after_it(person, look):
    alice, bob = in_a_call(person, "Alice", "Bob")
    everybody_decodes(alice, bob)
    bob.leave()
    alice.sees("#history-list li")
    alice.press("Favourite: Bob")
    alice.fill("People", "Bob,")
    alice.sees("#call-form .chip")
    tour = Tour(alice, look)
    tour.look("the lobby with a call and a favourite")
    alice.click("button", "Details: Bob")
    alice.sees("#history-list .totals")
    tour.look("the totals of a person")
    for button, dialog in [("Camera and sound", "setup-dialog"), ("Delete all", "clear-dialog"), ("Devices", "devices-dialog"), ("Sign out", "sign-out-dialog")]:
        tour.open(button, dialog)
        tour.close(dialog)
    for dialog in alice.driver.execute_script(REST, list(tour.seen)):
        alice.driver.execute_script("document.getElementById(arguments[0]).showModal()", dialog)
        if dialog not in ("ring", "people-dialog", "code-dialog", "report-dialog", "remove-dialog", "remove-guest-dialog", "pair-dialog", "end-dialog", "more-dialog", "shortcuts-dialog", "permission-dialog", "player-dialog"):  # empty here
            tour.look(dialog)
        alice.driver.execute_script("document.getElementById(arguments[0]).close()", dialog)
    alice.press("Sign out")
    alice.click("#sign-out-dialog button", "Sign out")
    alice.sees("#welcome")
    alice.fill("Your name", "")
    alice.press("Sign in")
    tour.look("the sign-in")
    for view, shown, hidden in (("the sign-in with a token", "token-field", "name-field"), ("another tab", "elsewhere", "welcome")):
        alice.driver.execute_script(SWAP, shown, hidden)
        tour.look(view)
    alice.driver.execute_script(SWAP, "welcome", "elsewhere")
    if PICTURES:
        return
    alice.driver.execute_script("document.getElementById('sign-in-button').textContent = ''")
    with pytest.raises(AssertionError, match="button-name"):
        is_accessible(alice, "a button without a name")


def test_axe_finds_nothing_in_a_browser_that_cannot_encrypt(person, look):
    old = person("Old", "delete window.RTCRtpScriptTransform", words=None)
    wait_for(lambda: "cannot encrypt calls" in old.text("#sign-in-error"), 10, "what the browser lacks")
    look(old, "a browser that cannot encrypt")


def test_axe_finds_nothing_where_a_guest_comes_in(person, look):
    alice = person("Alice")
    alice.press("New call with a link")
    alice.sees("#link-made")
    link = alice.driver.execute_script("return document.getElementById('link-text').value")
    alice.press("Close")
    ana = person("Ana", at=link, words=None)
    ana.sees("#guest")
    tour = Tour(ana, look)
    tour.look("a guest with a link")
    ana.fill("Your name", "Ana")
    ana.press("Join")
    alice.sees(".tile:not(.own)[data-video=on]")
    ana.sees(".tile:not(.own)[data-video=on]")
    tour.look("the call of a guest")
    Tour(alice, look).look("a call with a guest")


def test_axe_finds_nothing_in_a_call(person, look):
    alice, bob, carol = in_a_call(person, "Alice", "Bob", "Carol")
    everybody_decodes(alice, bob, carol)
    tour = Tour(alice, look)
    carol.press("Raise hand")
    alice.sees(".tile-hand")
    tour.look("a call of three")
    for button, dialog in [("Call code", "code-dialog"), ("Add people", "people-dialog"), ("End for all", "end-dialog"), ("More", "more-dialog")]:
        tour.open(button, dialog)
        if dialog == "people-dialog":
            tour.open("Report: Carol", "report-dialog")
            tour.close("report-dialog")
        tour.close(dialog)
    alice.press("More")
    tour.open("Keyboard shortcuts", "shortcuts-dialog", within="#more-dialog")
    tour.close("shortcuts-dialog")
    alice.press("Chat")
    bob.press("Chat")
    bob.fill("Message", "Hello")
    bob.press("Send")
    alice.sees("#chat-list li")
    tour.look("the chat")
    bob.press("Share screen")
    alice.sees("#large .tile[data-source=screen]")
    tour.look("a shared screen")
    dave = person("Dave", LONG_RING)
    dave.call("Alice")
    alice.sees("#second-ring")
    tour.look("a second ring")


def test_axe_finds_nothing_while_it_rings_nor_in_arabic(person, look):
    amal, bob = person("Amal"), person("Bob", LONG_RING)
    Select(amal.driver.find_element(By.ID, "language")).select_by_value("ar")
    wait_for(lambda: amal.driver.execute_script("return document.documentElement.dir") == "rtl" and amal.shown("#lobby"), 10, "the lobby in Arabic")
    tour = Tour(amal, look)
    tour.look("the lobby in Arabic")
    bob.call("Amal")
    amal.sees("#ring[open]")
    tour.look("a ring")
    look(bob, "a call that rings")
    amal.driver.find_element(By.ID, "ring-accept-video").click()
    everybody_decodes(amal, bob)
    tour.look("a call in Arabic")


def test_the_keyboard_goes_through_the_lobby_in_the_order_of_the_page_and_back_to_where_a_dialog_was_opened(person):
    alice = person("Alice")
    order = []
    alice.driver.execute_script("document.activeElement.blur()")
    for _ in range(20):
        alice.driver.switch_to.active_element.send_keys(Keys.TAB)
        focused = alice.driver.execute_script("return document.activeElement.id")
        if focused in order:
            break
        order.append(focused)
    wanted = ["language", "availability", "show-devices", "sign-out", "people", "call-video", "call-audio", "call-link", "show-setup"]
    assert [name for name in order if name in wanted] == wanted[wanted.index(order[0]) :] + wanted[: wanted.index(order[0])], order
    alice.driver.find_element(By.ID, "show-setup").send_keys(Keys.ENTER)
    alice.sees("#setup-dialog[open]")
    assert alice.driver.execute_script("return document.getElementById('setup-dialog').contains(document.activeElement)")
    alice.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    alice.loses("#setup-dialog[open]")
    assert alice.driver.execute_script("return document.activeElement.id") == "show-setup"
