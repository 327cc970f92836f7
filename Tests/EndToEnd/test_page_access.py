"""The page for people who use it without a mouse, or without seeing it: axe-core finds nothing in any view, light or dark, left to right or right to left."""

import importlib.resources
import os
import pathlib
import re

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from conftest import PATIENCE, wait_for
from test_browsers import everybody_decodes, in_a_call

AXE = (importlib.resources.files("axe_playwright_python") / "axe.min.js").read_text()

# WCAG 2.2 AA and axe-core's own good practice. A page of dialogs has its landmarks behind them.
RUN = """
const done = arguments[0];
const options = { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'], rules: { 'target-size': { enabled: true } } };
axe.run(document, options).then(
  ({ violations, passes }) => done([violations.map(({ id, nodes }) => [id, nodes.map(({ html, any }) => [html.slice(0, 200), any.map(({ message }) => message)])]), passes.length]),
  (error) => done([[['error', String(error)]], 0]),
);
"""

# Views and dialogs that no step of the test leads to, as they are in the markup.
REST = """
const shown = new Set(arguments[0]);
return [...document.querySelectorAll('dialog')].map(({ id }) => id).filter((id) => !shown.has(id));
"""


@pytest.fixture
def server(fresh_server):
    return fresh_server


def is_accessible(tab, view):
    """axe-core finds nothing in what is shown. It looks at every element, which takes a busy machine a while."""
    tab.driver.set_script_timeout(60 * PATIENCE)
    if not tab.driver.execute_script("return Boolean(window.axe)"):
        tab.driver.execute_script(AXE)
    found, passed = tab.driver.execute_async_script(RUN)
    assert found == [] and passed > 10, f"{view}: {found}"


def emulate(tab, scheme):
    """Light or dark, and nothing that fades in: a colour in between would be measured."""
    features = [{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}]
    tab.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


# For `deploy/screenshots`: the folder that gets a picture of each view in each of these ways, instead of axe-core's findings.
PICTURES = os.environ.get("CONCLAVE_SCREENSHOTS")
WAYS = {
    "light": ("light", None, "ltr"),
    "dark": ("dark", None, "ltr"),
    "phone": ("light", {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}, "ltr"),
    # A page at 200 % has half as many pixels of its own.
    "zoom": ("light", {"width": 640, "height": 400, "deviceScaleFactor": 2, "mobile": False}, "ltr"),
    "right-to-left": ("light", None, "rtl"),
}


def photograph(tab, view):
    """Keeps a picture of the view in each way, and leaves the page as it was."""
    direction = tab.driver.execute_script("return document.documentElement.dir")
    name = re.sub(r"[^a-z0-9]+", "-", view.lower()).strip("-")
    for way, (scheme, metrics, wanted) in WAYS.items():
        emulate(tab, scheme)
        if metrics:
            tab.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        tab.driver.execute_script("document.documentElement.dir = arguments[0]", wanted)
        # The stage draws its tiles anew a moment after the page has another size.
        tab.driver.execute_async_script("setTimeout(arguments[0], 400)")
        tab.screenshot(pathlib.Path(PICTURES) / f"{name}-{way}.png")
        tab.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    tab.driver.execute_script("document.documentElement.dir = arguments[0]", direction)


class Tour:
    """Looks at one view after the other, in both colours, and remembers which dialogs it saw."""

    def __init__(self, tab):
        self.tab = tab
        self.seen = set()

    def look(self, view):
        if PICTURES:
            return photograph(self.tab, view)
        for scheme in ("light", "dark"):
            emulate(self.tab, scheme)
            is_accessible(self.tab, f"{view}, {scheme}")

    def open(self, button, dialog, within="button"):
        """A dialog by its button; closed again by Escape."""
        if within == "button":
            self.tab.press(button)
        else:
            self.tab.find(f"{within} button", button).click()
        self.tab.sees(f"#{dialog}[open]")
        self.look(dialog)
        self.seen.add(dialog)

    def close(self, dialog):
        self.tab.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
        self.tab.loses(f"#{dialog}[open]")


def test_axe_finds_nothing_before_a_call_and_after_it(person):
    alice, bob = in_a_call(person, "Alice", "Bob")
    everybody_decodes(alice, bob)
    bob.leave()
    alice.sees("#history-list li")
    alice.press("Favourite: Bob")
    alice.fill("People", "Bob,")
    alice.sees("#call-form .chip")
    tour = Tour(alice)
    tour.look("the lobby with a call and a favourite")
    alice.find("button", "Details: Bob").click()
    alice.sees("#history-list .totals")
    tour.look("the totals of a person")
    for button, dialog in [("Camera and sound", "setup-dialog"), ("Delete all", "clear-dialog"), ("Devices", "devices-dialog"), ("Sign out", "sign-out-dialog")]:
        tour.open(button, dialog)
        tour.close(dialog)
    for dialog in alice.driver.execute_script(REST, list(tour.seen)):
        alice.driver.execute_script("document.getElementById(arguments[0]).showModal()", dialog)
        if dialog not in ("ring", "people-dialog", "code-dialog", "report-dialog", "remove-dialog", "pair-dialog"):  # these are without their contents here
            tour.look(dialog)
        alice.driver.execute_script("document.getElementById(arguments[0]).close()", dialog)
    alice.press("Sign out")
    alice.find("#sign-out-dialog button", "Sign out").click()
    alice.sees("#welcome")
    tour.look("the sign-in")
    alice.driver.execute_script("document.getElementById('sign-in-button').textContent = ''")
    with pytest.raises(AssertionError, match="button-name"):
        is_accessible(alice, "a button without a name")


def test_axe_finds_nothing_where_a_guest_comes_in(person):
    alice = person("Alice")
    alice.press("New call with a link")
    alice.sees("#link-made")
    link = alice.driver.execute_script("return document.getElementById('link-text').value")
    alice.press("Close")
    ana = person("Ana", at=link, words=None)
    ana.sees("#guest")
    tour = Tour(ana)
    tour.look("a guest with a link")
    ana.fill("Your name", "Ana")
    ana.press("Join with video")
    alice.sees(".tile:not(.own)[data-video=on]")
    ana.sees(".tile:not(.own)[data-video=on]")
    tour.look("the call of a guest")
    Tour(alice).look("a call with a guest")


def test_axe_finds_nothing_in_a_call(person):
    alice, bob, carol = in_a_call(person, "Alice", "Bob", "Carol")
    everybody_decodes(alice, bob, carol)
    tour = Tour(alice)
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
    dave = person("Dave")
    dave.call("Alice")
    alice.sees("#second-ring")
    tour.look("a second ring")


def test_axe_finds_nothing_while_it_rings_nor_in_arabic(person):
    amal, bob = person("Amal"), person("Bob")
    Select(amal.driver.find_element(By.ID, "language")).select_by_value("ar")
    wait_for(lambda: amal.driver.execute_script("return document.documentElement.dir") == "rtl" and amal.shown("#lobby"), 10, "the lobby in Arabic")
    tour = Tour(amal)
    tour.look("the lobby in Arabic")
    bob.call("Amal")
    amal.sees("#ring[open]")
    tour.look("a ring")
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
