"""People on the page: who is remembered, whose device is new, calls that ring nobody, calls that others have left, and links."""

import json
import socket
import threading

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from conftest import free_port, wait_for

# Shortens the two minutes that somebody alone has for an answer to half a second.
SHORT_PATIENCE = "(() => { const set = window.setTimeout; window.setTimeout = (action, ms, ...rest) => set(action, ms === 120_000 ? 500 : ms, ...rest); })();"
# Records all warnings and notices, even those that disappeared.
WARNINGS = """
(() => {
  window.warned = [];
  new MutationObserver((changes) => {
    for (const node of changes.flatMap(({ addedNodes }) => [...addedNodes])) if (node.className === 'warning' || node.className === 'notice') window.warned.push(node.textContent);
  }).observe(document, { childList: true, subtree: true });
})();
"""


@pytest.fixture
def server(fresh_server):
    return fresh_server


def told(tab, words):
    return [text for text in tab.driver.execute_script("return window.warned") if words in text]


def audio_call(caller, callee):
    caller.fill("People", callee.name)
    caller.press("Audio call")
    caller.sees("#call")
    callee.answer("Accept with audio")
    for tab in (caller, callee):
        wait_for(lambda: tab.text("#call-path") == "Connected" and tab.shown("#call-timer"), 15, f"{tab.name} is connected")


def remembered(tab):
    """The people whom the page knows from earlier calls: (id, name) of each."""
    saved = tab.driver.execute_script("return localStorage.getItem(Object.keys(localStorage).find((key) => key.startsWith('names/')))")
    return [tuple(entry) for entry in json.loads(saved or "[]")]


def history(tab):
    return tab.text("#history-list")


def test_people_are_remembered_and_their_new_devices_are_told_once(person, look):
    # In demo mode the id of "Ro bert" is "ro-bert": a label shows it to people who have not met him.
    pia, rob = person("Pia", WARNINGS), person("Ro bert")
    audio_call(pia, rob)
    pia.press("Call code")
    wait_for(lambda: "not been in a call" in pia.text("#person-list"), 10, "he is somebody new")
    pia.click("#code-dialog button", "Close")
    pia.leave()
    rob.sees("#lobby")
    for tab in (pia, rob):
        assert len(remembered(tab)) == 1, f"{tab.name} remembers {remembered(tab)}"

    # The same after a reload.
    pia.driver.refresh()
    pia.sees("#lobby")
    audio_call(pia, rob)
    pia.press("Call code")
    pia.press("They match: Ro bert", seconds=15)
    pia.hears("Ro bert is verified")
    assert "not been in a call" not in pia.text("#person-list")
    pia.click("#code-dialog button", "Close")
    assert told(pia, "new device") == [], "somebody's first device is not reported"
    pia.leave()
    rob.sees("#lobby")

    # His next device calls. She has verified another one, and anybody with his sign-in could speak through this one.
    other = person("Ro bert", WARNINGS)
    audio_call(other, pia)
    warning = "#warnings [data-key^='new-device/']"
    pia.sees(warning)
    assert "not verified" in pia.text(warning) and other.device not in pia.text(warning), "it is shown by its name"
    look(pia, "a new device of somebody verified")
    other.leave()
    pia.sees("#lobby")
    assert pia.shown(warning), "it stays until it is dismissed"
    pia.driver.find_element(By.CSS_SELECTOR, f"{warning} button").click()
    audio_call(other, pia)
    assert len(told(pia, "not verified")) == 1, "once"
    assert told(other, "new device") == [], "the new device does not report his older one"


def test_a_page_that_is_closed_in_a_call_remembers_its_people(person):
    pia, rob = person("Pia"), person("Ro bert")
    audio_call(pia, rob)
    pia.press("Call code")
    pia.sees("#confirmation[data-state=confirmed]")
    assert remembered(pia) == []
    pia.driver.refresh()
    assert remembered(pia) == [("ro-bert", "Ro bert")]
    # It is in the call again, and knows the people.
    pia.sees("#call")
    wait_for(lambda: pia.text("#call-path") == "Connected", 15, "the call continues")
    pia.press("Call code")
    pia.sees("#person-list [data-user=ro-bert]", 15)
    assert "not been in a call" not in pia.text("#person-list")
    pia.click("#code-dialog button", "Close")
    pia.leave()


def test_somebody_who_does_not_want_to_be_disturbed_has_a_missed_call_and_the_caller_a_name(person, look):
    wes, xia = person("Wes", WARNINGS), person("Xia")
    xia.do_not_disturb()
    wes.fill("People", "Xia")
    wes.press("Audio call")
    wait_for(lambda: wes.shown("#unanswered") and wes.text("#unanswered-title") == "Xia is not available", 10, "why nobody answered the call")
    assert not wes.shown("#lobby, #call") and told(wes, "") == [], "no notice says it, too"
    look(wes, "a call to somebody who is not available")
    wes.press("Close")
    wait_for(lambda: "Xia" in history(wes) and "No answer" in history(wes), 10, "the call in the history of Wes")
    assert wes.shown("#history-list [aria-label^='Call back']")
    xia.press("Do not disturb")
    wait_for(lambda: "Wes" in history(xia) and "Missed" in history(xia), 10, "the missed call")
    # If none of several people rings, there is no call to wait in either.
    xia.do_not_disturb()
    wes.fill("People", "Xia,nobody-of-that-name,")
    wes.press("Audio call")
    wes.sees("#unanswered-list [data-user=xia]")
    assert "Xia is not available" in wes.text("#unanswered-list") and not wes.shown("#call")


def test_calls_in_a_row_with_somebody_share_a_row_that_opens_them(person, look):
    ada, ben = person("Ada"), person("Ben")
    for _ in range(2):
        audio_call(ada, ben)
        ada.leave()
        ben.sees("#lobby")
    ada.sees("#history-list li[data-count='2']")
    assert ada.shown("#history-list > li") == 1 and "(2)" in history(ada)
    ada.press("Details: Ben (2)")
    ada.sees("#history-list .totals")
    lines = ada.driver.execute_script("return [...document.querySelectorAll('.single-calls li')].map(({ innerText }) => innerText)")
    assert len(lines) == 2 and all("Outgoing" in line and "today" in line for line in lines), lines
    look(ada, "the single calls with a person")
    ada.press("Call back: Ben")
    ben.answer("Accept with audio")
    ada.leave()
    # It stays open, with one more call.
    ada.sees("#history-list li[data-count='3'] .single-calls")
    ada.driver.execute_script("document.querySelector('.single-calls button').click()")
    ada.sees("#history-list li[data-count='2']")
    ada.press("Delete: Ben (2)")
    ada.loses("#history-list li")


def test_a_face_tells_the_presence_calls_as_last_time_and_is_kept_as_a_favourite(person, look):
    ada, ben = person("Ada"), person("Ben")
    audio_call(ada, ben)
    ada.leave()
    ben.sees("#lobby")
    ada.sees("#faces [data-user=ben] .presence[data-state=available]")
    assert "available" in ada.text("#faces [data-user=ben] .face-sub")
    ben.do_not_disturb()
    wait_for(lambda: "not available" in ada.text("#faces [data-user=ben] .face-sub"), 10, "Ben's presence in words")
    ben.press("Do not disturb")
    wait_for(lambda: "not available" not in ada.text("#faces [data-user=ben] .face-sub"), 10, "Ben can be called again")
    look(ada, "the faces of the lobby")

    # The keyboard reaches the face and the star, and the focus stays when the presence changes.
    face = "document.querySelector('#faces [data-user=ben] .face')"
    ada.driver.execute_script(f"{face}.focus()")
    ben.do_not_disturb()
    wait_for(lambda: "not available" in ada.text("#faces [data-user=ben] .face-sub"), 10, "Ben's presence")
    assert ada.driver.execute_script(f"return document.activeElement === {face}")
    ben.press("Do not disturb")
    wait_for(lambda: "not available" not in ada.text("#faces [data-user=ben] .face-sub"), 10, "Ben can be called again")
    ada.driver.switch_to.active_element.send_keys(Keys.TAB)
    ada.driver.switch_to.active_element.send_keys(Keys.SPACE)
    ada.sees("#faces [data-user=ben][data-favourite=true]")
    assert ada.driver.execute_script("return document.activeElement.ariaPressed") == "true"

    # The favourite stays when the history is deleted.
    ada.press("Delete all")
    ada.click("#clear-dialog button", "Delete all")
    ada.loses("#history-list li")
    assert ada.shown("#faces [data-user=ben]")
    ada.driver.refresh()
    ada.sees("#faces [data-user=ben]")
    ada.press("Video call: Ben")
    ben.answer("Accept with audio")
    wait_for(lambda: ada.text("#call-path") == "Connected", 15, "one press called")
    ada.leave()
    ada.press("Favourite: Ben")
    ada.sees("#faces [data-user=ben][data-favourite=false]")


def test_the_code_is_read_as_words_and_one_press_says_whether_they_match(person, look):
    ada, ben = person("Ada"), person("Ben")
    audio_call(ada, ben)
    ada.press("Call code")
    ben.press("Call code")
    words = "return [...document.querySelectorAll('#call-code .code-line span')].map(({ textContent }) => textContent)"
    read = lambda tab: tab.driver.execute_script(words)
    wait_for(lambda: len(read(ada)) == 12 and read(ada) == read(ben), 10, "the same twelve words on both pages")
    look(ada, "the words of a call code")
    ada.driver.execute_script("document.getElementById('code-details').open = true")
    digits = ada.text("#code-digits").split()
    assert len(digits) == 8 and all(len(group) == 5 and group.isdigit() for group in digits), digits
    assert ada.shown("#fingerprint-list .fingerprint") == 2
    look(ada, "the details of a call code")

    ada.press("They differ: Ben")
    ada.loses("#code-dialog")
    warning = "#warnings [data-key='code-differs/ben']"
    assert "somebody may be listening in" in ada.text(warning)
    look(ada, "codes that differ")
    ada.click(f"{warning} button", "Compare the call code")
    ada.press("They match: Ben")
    ada.sees("#person-list [data-user=ben] .shield")
    ada.loses(warning)
    ada.click("#code-dialog button", "Close")
    ada.sees(".tile[data-user=ben] .shield")


def test_a_page_in_another_language_shows_the_digits_of_the_words(person):
    ada, ben = person("Ada"), person("Ben")
    audio_call(ada, ben)
    ben.press("Call code")
    ben.sees("#call-code[data-form=words]")
    ada.driver.execute_script("localStorage.setItem('setting/language', JSON.stringify('de'))")
    ada.driver.refresh()
    ada.sees("#call")
    ada.press("Anrufcode", seconds=20)
    ada.sees("#call-code[data-form=digits]")
    assert "Details" in ada.text("#code-digits-help")
    ben.press("Close")
    code = lambda tab: tab.driver.execute_script("return document.getElementById('call-code').dataset.code")
    ada.driver.execute_script("document.getElementById('code-dialog').close()")
    ada.press("Anrufcode")

    def same():
        ben.press("Call code")
        digits = code(ben)
        ben.press("Close")
        return len(digits) == 40 and digits == code(ada)

    wait_for(same, 15, "the same digits under the words")


def test_a_name_that_nobody_has_is_not_called(person):
    yara = person("Yara", WARNINGS)
    yara.fill("People", "Nobody")
    yara.press("Audio call")
    wait_for(lambda: "Nobody called “Nobody” has signed in here" in yara.text("#call-error"), 10, "the typing error is reported")
    yara.driver.refresh()
    yara.sees("#lobby")
    yara.fill("People", "Nobody")
    yara.press("Video call")
    wait_for(lambda: "Nobody called “Nobody” has signed in here" in yara.text("#call-error"), 10, "and reported again")
    assert yara.shown("#lobby") and history(yara) == "" and told(yara, "") == []
    zoe = person("Zoe")
    yara.fill("People", "Zoe")
    yara.driver.find_element(By.CSS_SELECTOR, ".chip-list button").click()  # Nobody
    yara.press("Audio call")
    zoe.answer("Accept with audio")


def test_the_timer_begins_when_the_second_person_has_joined(person):
    alice, bob = person("Alice"), person("Bob")
    alice.fill("People", "Bob")
    alice.press("Audio call")
    bob.sees("#ring")
    assert not alice.shown("#call-timer")
    started = alice.driver.execute_script("return Date.now()")
    wait_for(lambda: alice.driver.execute_script("return Date.now()") - started > 4_000, 10, "it has rung for a while")
    bob.answer("Accept with audio")
    alice.sees("#call-timer")
    first = alice.text("#call-timer")
    rung = (alice.driver.execute_script("return Date.now()") - started) / 1_000
    minutes, seconds = (int(part) for part in first.split(":"))
    assert 60 * minutes + seconds < rung - 3, f"{first} after {rung} s since the ring"
    wait_for(lambda: alice.text("#call-timer") > first, 5, "it runs")


def with_link(person, *scripts):
    """Alice and Bob in a call with a link; also returns the link."""
    alice, bob = person("Alice", *scripts), person("Bob")
    audio_call(alice, bob)
    alice.press("Add people")
    alice.press("Make a link")
    alice.sees("#link-made")
    link = alice.driver.execute_script("return document.getElementById('link-text').value")
    alice.click("#people-dialog button", "Close")
    return alice, bob, link


def test_a_link_does_not_keep_somebody_alone_in_a_call_unasked(person, look):
    alice, bob, _ = with_link(person, SHORT_PATIENCE)
    bob.leave()
    alice.sees("#lobby", seconds=15)
    alice.hears("Everybody has left the call")
    wait_for(lambda: "Bob" in history(alice), 10, "the call is over")
    assert not alice.shown("#running")


def test_somebody_who_is_left_alone_may_wait_or_leave(person, look):
    alice, bob, _ = with_link(person)
    bob.leave()
    alice.sees("#warnings [data-key=alone]")
    look(alice, "alone in a call with a link")
    alice.press("Wait for others")
    alice.loses("#warnings [data-key=alone]")
    bob.press("Rejoin: Call with Alice")
    wait_for(lambda: "Bob" in alice.text("#call-title"), 15, "Bob is back")
    bob.press("Leave")
    alice.sees("#warnings [data-key=alone]")
    alice.click("#warnings button", "Leave")
    alice.sees("#lobby")
    assert not alice.shown("#running")


def test_a_link_in_a_new_tab_finds_the_person_who_is_signed_in(person, look):
    alice, bob, link = with_link(person)
    carol = person("Carol")
    first = carol.driver.current_window_handle
    carol.driver.switch_to.new_window("tab")
    carol.driver.get(link)
    carol.sees("#guest-known")
    assert "Join as Carol" in carol.text("#guest-known")
    look(carol, "a link in another tab of somebody who is signed in")
    carol.press("Stop camera")
    carol.press("Join as Carol")
    carol.sees("#call")
    wait_for(lambda: "Carol" in alice.text("#call-title"), 15, "Carol is in the call")
    assert "guest" not in alice.text("#call-title") + alice.text(".tile-name")
    carol.press("Leave")
    carol.sees("#lobby")
    # In a browser where nobody is signed in, it makes a guest.
    carol.driver.close()
    carol.driver.switch_to.window(first)
    carol.driver.execute_script("sessionStorage.clear()")
    carol.driver.get("data:,")
    carol.driver.get(link)
    carol.sees("#guest-form")
    assert not carol.shown("#guest-known")


def test_a_call_of_a_browser_that_was_closed_is_lost_and_can_be_had_back(person, look):
    alice, bob = person("Alice"), person("Bob")
    audio_call(alice, bob)
    other = person("Bob")
    other.sees("#running-list [data-kind=elsewhere]")
    bob.driver.get("data:,")  # the page is gone without telling the server
    other.sees("#running-list [data-kind=lost]", seconds=30)
    look(other, "a call whose other device is lost")
    # It is not above another call.
    zed = person("Zed")
    audio_call(zed, other)
    assert not other.shown("#held")
    other.leave()
    other.sees("#running-list [data-kind=lost]", seconds=15)
    other.press("Rejoin: Call with Alice")
    wait_for(lambda: "Bob" in alice.text("#call-title") and alice.text("#call-path") == "Connected", 20, "Bob is back")


class Proxy:
    """Forwards HTTP to a server, with each line of a head changed by `change`; None ends the connection."""

    def __init__(self, server, change):
        self.change, self.target = change, ("127.0.0.1", server.http_port)
        self.port = free_port()
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        head = b""
        while b"\r\n\r\n" not in head:
            part = client.recv(65_536)
            if not part:
                return client.close()
            head += part
        lines, rest = head.split(b"\r\n\r\n", 1)
        changed = self.change(lines.decode())
        if changed is None:
            return client.close()
        upstream = socket.create_connection(self.target)
        upstream.sendall(changed.encode() + b"\r\n\r\n" + rest)
        threading.Thread(target=self.copy, args=(client, upstream), daemon=True).start()
        self.copy(upstream, client)
        return None

    @staticmethod
    def copy(source, target):
        try:
            while data := source.recv(65_536):
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            end.close()

    def close(self):
        self.listener.close()


def with_another_host(head):
    """Like a proxy that passes the inner server's name instead of the one that the browser asked for. One request per connection."""
    lines = [line for line in head.split("\r\n") if not line.lower().startswith(("host:", "connection: keep-alive"))]
    is_handshake = "upgrade: websocket" in head.lower()
    return "\r\n".join([lines[0], "Host: 127.0.0.1", *([] if is_handshake else ["Connection: close"]), *lines[1:]])


def without_websockets(head):
    if "upgrade: websocket" in head.lower():
        return None
    return "\r\n".join([*(line for line in head.split("\r\n") if not line.lower().startswith("connection:")), "Connection: close"])


@pytest.mark.parametrize(
    "change, words",
    [(with_another_host, "does not accept calls from the address"), (without_websockets, "WebSocket")],
    ids=["origin", "websocket"],
)
def test_a_connection_that_is_refused_is_told_with_what_to_do(person, server, look, change, words):
    proxy = Proxy(server, change)
    try:
        url = f"http://localhost:{proxy.port}"
        nora = person("Nora", at=url, words=None)
        nora.fill("Your name", "Nora")
        nora.press("Sign in")
        nora.sees("#warnings [data-key=obstacle]", seconds=15)
        text = nora.text("#warnings [data-key=obstacle]")
        assert words in text
        look(nora, f"a connection that is refused, {change.__name__}")
        # The server lets it through: the message disappears by itself.
        proxy.change = lambda head: head
        nora.sees("#lobby", seconds=20)
        nora.loses("#warnings [data-key=obstacle]")
    finally:
        proxy.close()


PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
# Whether the latest notice of a call covers the title, the facts below it, and the button beside it, and whether it is within the page.
COVERED = """
(() => {
  const box = (selector) => document.querySelector(selector).getBoundingClientRect();
  const overlap = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  new MutationObserver((changes) => {
    const [notice] = changes.flatMap(({ addedNodes }) => [...addedNodes]).filter(({ className }) => className === 'notice');
    if (!notice?.closest('#call-bar')) return;
    // It moves into its place.
    notice.getAnimations().forEach((animation) => animation.finish());
    const own = notice.getBoundingClientRect();
    window.covered = [...['#call-title', '.call-facts', '#show-code'].map((selector) => overlap(own, box(selector))), own.left >= 0 && own.right <= innerWidth];
  }).observe(document, { childList: true, subtree: true });
})();
"""


def test_a_notice_covers_no_heading_on_a_phone(person):
    alice, bob = person("Alice", COVERED), person("Bob")
    alice.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    audio_call(alice, bob)
    assert wait_for(lambda: alice.driver.execute_script("return window.covered"), 10, "Bob joined") == [False, False, False, True]


def test_the_logo_of_the_welcome_page_stands_above_the_middle_of_its_title(person, url):
    tab = person("Ida", words=None)
    tab.sees("#welcome")
    middle = "const { left, right } = document.querySelector(arguments[0]).getBoundingClientRect(); return (left + right) / 2"
    assert abs(tab.driver.execute_script(middle, "#welcome .logo") - tab.driver.execute_script(middle, "#welcome-title")) < 2
