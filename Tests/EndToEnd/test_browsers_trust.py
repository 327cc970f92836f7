"""The web client: devices that vouch for each other, people who verify each other, and devices that can hear although the server hides them."""

import base64

import pytest
from selenium.webdriver.common.by import By

from conftest import wait_for
from test_browsers import everybody_decodes, in_a_call

# Hides a user's membership from the page: its key list has that user's device, its members do not.
HIDE = """
(() => {
  const hidden = '%s';
  const without = (value) => {
    if (Array.isArray(value)) return value.filter((one) => !(one?.user === hidden && one.participants)).map(without);
    if (value === null || typeof value !== 'object') return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, without(one)]));
  };
  const change = (frame) => {
    const end = frame.indexOf('\\n\\n');
    if (!frame.startsWith('MESSAGE') || end < 0) return frame;
    let head = frame.slice(0, end);
    const body = JSON.parse(frame.slice(end + 2, frame.lastIndexOf('\\0')) || '{}');
    if (/^event:call.member$/m.test(head) && body.user === hidden) head = head.replace('event:call.member', 'event:kept.away');
    const text = JSON.stringify(without(body));
    head = head.replace(/^content-length:.*$/m, `content-length:${new TextEncoder().encode(text).length}`);
    return `${head}\\n\\n${text}\\0`;
  };
  const { set } = Object.getOwnPropertyDescriptor(WebSocket.prototype, 'onmessage');
  Object.defineProperty(WebSocket.prototype, 'onmessage', {
    set(handler) {
      set.call(this, ({ data }) => handler({ data: typeof data === 'string' ? change(data) : data }));
    },
  });
})();
"""


# Signs in with another name than the one from which the user id is made.
NAMED_BOB = """
(() => {
  const ask = window.fetch;
  window.fetch = (url, options) =>
    ask(url, url === 'demo/token' ? { ...options, body: JSON.stringify({ ...JSON.parse(options.body), name: 'Bob' }) } : options);
})();
"""


@pytest.fixture
def server(fresh_server):
    return fresh_server


def pair(new, existing):
    """The new device shows six digits, and the person types them into the existing one."""
    for tab, other in ((new, existing), (existing, new)):
        tab.devices()
        tab.of_device("Pair", other.device)
    new.press("Show the digits here")
    existing.press("Type the digits here")
    code = wait_for(lambda: new.text("#pair-code").replace(" ", ""), 10, "six digits")
    assert len(code) == 6
    existing.fill("Six digits", code)
    existing.click("#pair-form button", "Pair")
    new.press("Yes, it does")
    for tab, other in ((new, existing), (existing, new)):
        tab.press("Done")
        tab.sees(f"#own-device-list [data-device={other.device}][data-level=verified]")
        tab.click("#devices-dialog button", "Close")


def test_paired_devices_say_so_and_a_wrong_code_pairs_nothing(person, look):
    laptop, phone = person("Alice"), person("Alice")
    for tab, other in ((laptop, phone), (phone, laptop)):
        tab.devices()
        tab.of_device("Pair", other.device)
    laptop.press("Show the digits here")
    phone.press("Type the digits here")
    code = wait_for(lambda: laptop.text("#pair-code").replace(" ", ""), 10, "six digits")
    look(laptop, "digits to pair")
    look(phone, "typing the digits")
    wrong = f"{(int(code) + 1) % 1_000_000:06}"
    for _ in range(3):
        phone.fill("Six digits", wrong)
        phone.click("#pair-form button", "Pair")
        wait_for(lambda: not phone.driver.find_element(By.ID, "pair-digits").get_attribute("value"), 5, "the digits are judged")
    phone.sees("#pair-dialog[data-state=failed]")
    look(phone, "pairing that failed")
    phone.press("Cancel")
    assert phone.shown(f"#own-device-list [data-device={laptop.device}]:not([data-level=verified])")
    laptop.press("Cancel")
    for tab in (laptop, phone):
        tab.click("#devices-dialog button", "Close")
    pair(laptop, phone)
    phone.devices()
    look(phone, "paired devices")


def test_a_copied_text_pairs_too(person, look):
    laptop, phone = person("Bea"), person("Bea")
    for tab, other in ((laptop, phone), (phone, laptop)):
        tab.devices()
        tab.of_device("Pair", other.device)
        tab.driver.find_element(By.CSS_SELECTOR, "#pair-more summary").click()
    text = laptop.driver.execute_script("return document.getElementById('pair-own-text').value")
    assert text.startswith("conclave-device:")
    phone.fill("The other device’s text", "conclave-device:" + "A" * 43)
    phone.press("Pair with this text")
    wait_for(lambda: "not the text" in phone.text("#pair-error"), 5, "a text of no device pairs nothing")
    look(phone, "pairing by a text")
    phone.fill("The other device’s text", text)
    phone.press("Pair with this text")
    phone.sees(f"#own-device-list [data-device={laptop.device}][data-level=verified]")


def test_with_verified_only_on_both_sides_each_is_silent_until_it_has_verified_the_other(person):
    alice, bob = person("Alice"), person("Bob")
    for tab in (alice, bob):
        tab.only_verified()
    alice.call("Bob")
    bob.answer()
    for tab, other in ((alice, bob), (bob, alice)):
        wait_for(lambda: "is not verified" in tab.text("#warnings"), 8, f"a warning of {other.name}'s device")
        tab.sees("#call-notice[data-cause=unverified], #call-notice[data-cause=no-key]")
    assert bob.received()["frames"] == 0
    alice.verify("Bob")
    bob.decodes("alice/camera", voices=1, seconds=8)  # Bob hears people whom he has not verified
    assert alice.received()["frames"] == 0
    bob.verify("Alice")
    everybody_decodes(alice, bob, seconds=8)
    for tab in (alice, bob):
        tab.loses("#call-notice")
        assert "not verified" not in tab.text("#warnings")


def test_two_people_with_three_devices_each_pair_verify_and_call_each_other_with_verified_only(person, artifacts):
    alices = [person("Alice") for _ in range(3)]
    bobs = [person("Bob") for _ in range(3)]
    for devices in (alices, bobs):
        for new in devices[1:]:
            pair(new, devices[0])
        for tab in devices:
            tab.only_verified()

    def call(caller, callee, verifying):
        caller.call(callee.name)
        callee.answer()
        if verifying:
            caller.verify(callee.name)
            callee.verify(caller.name)
        everybody_decodes(caller, callee, seconds=10)
        for tab in (caller, callee):
            assert "not verified" not in tab.text("#warnings")
        caller.press("End for all")
        caller.click("#end-dialog button", "End for all")
        for tab in (*alices, *bobs):
            tab.sees("#lobby")

    # Each device compares the code once, with one of the other person's devices.
    for alice in alices:
        call(alice, bobs[0], verifying=True)
    for bob in bobs[1:]:
        call(alices[0], bob, verifying=True)
    # All others are vouched for by that one.
    call(alices[1], bobs[2], verifying=False)
    call(bobs[1], alices[2], verifying=False)
    alices[2].screenshot(artifacts / "vouched.png")


def test_a_removed_device_stays_out_for_those_who_verified_the_one_that_removed_it(person):
    alice = person("Alice")
    bob, lost = person("Bob"), person("Bob")
    pair(lost, bob)
    alice.call("Bob")
    bob.answer()
    alice.verify("Bob")
    bob.leave()
    alice.sees("#lobby")
    removed = lost.device
    bob.devices()
    digits = bob.text(f"#own-device-list [data-device={removed}] .fingerprint")
    fingerprint = base64.b64encode(bytes.fromhex(digits)).decode()
    bob.of_device("Remove", removed)
    bob.press("Remove it")
    bob.loses(f"#own-device-list [data-device={removed}]")
    lost.sees("#welcome")
    alice.call("Bob")
    bob.answer()
    remembered = """
      const done = arguments[0];
      const request = indexedDB.open('conclave');
      request.onsuccess = () => {
        const statements = request.result.transaction('statements').objectStore('statements').getAll();
        statements.onsuccess = () => done(statements.result.flatMap(({ revoked }) => revoked));
      };
    """
    revoked = lambda: alice.driver.execute_async_script(remembered)
    wait_for(lambda: fingerprint in revoked(), 10, "Alice remembers the revocation")
    # The thief signs in again: as another device, which nobody has verified.
    lost.fill("Your name", "Bob")
    lost.press("Sign in")
    lost.sees("#lobby")
    assert lost.device != removed


def test_a_device_that_the_server_hides_has_a_tile_a_warning_and_stops_the_sending(person, look):
    alice = person("Alice", HIDE % "mallory")
    bob, mallory = person("Bob"), person("Mallory")
    alice.call("Bob")
    bob.answer()
    alice.ring("Mallory")
    mallory.answer()
    alice.sees(".tile[data-user=mallory][data-doubt=stranger]")
    wait_for(lambda: "mallory" in alice.text("#warnings").lower(), 5, "a warning of Mallory's device")
    alice.sees("#call-notice[data-cause=stranger]", seconds=15)
    look(alice, "a device that the server hides")
    frames = lambda user: mallory.received()["video"].get(f"{user}/camera", (None, 0))[1]

    def is_bob_alone():
        of_alice, of_bob = frames("alice"), frames("bob")
        wait_for(lambda: frames("bob") > of_bob + 10, 10, "Mallory still sees Bob")
        return frames("alice") == of_alice

    wait_for(is_bob_alone, 20, "nothing further from Alice reaches Mallory")
    mallory.leave()
    alice.loses(".tile[data-user=mallory]")
    alice.loses("#call-notice")
    everybody_decodes(alice, bob, seconds=10)


def test_signing_out_forgets_keys_people_and_names_when_asked_to(person, url):
    bob, alice = in_a_call(person, "Bob", "Alice")
    everybody_decodes(alice, bob)
    bob.leave()
    alice.sees("#lobby")
    device = alice.device
    # A second device of hers, in the same browser.
    first = alice.driver.current_window_handle
    alice.driver.switch_to.new_window("tab")
    alice.driver.get(url)
    alice.fill("Your name", "Alice")
    alice.press("Sign in")
    alice.sees("#lobby")
    second = alice.device
    assert second != device
    alice.driver.close()
    alice.driver.switch_to.window(first)
    count = """
      const done = arguments[0];
      const request = indexedDB.open('conclave');
      request.onsuccess = async () => {
        const { result } = request;
        const counts = [...result.objectStoreNames].map((name) => new Promise((resolve) => {
          const count = result.transaction(name).objectStore(name).count();
          count.onsuccess = () => resolve([name, count.result]);
        }));
        const found = Object.fromEntries(await Promise.all(counts));
        result.close();
        done([found, Object.keys(localStorage), Object.keys(sessionStorage)]);
      };
    """
    kept = alice.driver.execute_async_script(count)
    assert kept[0]["identities"] == 2 and kept[0]["pins"] >= 1 and kept[0]["rings"] == 1
    alice.press("Sign out")
    alice.press("Sign out and forget")
    alice.sees("#welcome")
    kept = alice.driver.execute_async_script(count)
    assert set(kept[0].values()) == {0}, kept[0]
    assert (kept[1], kept[2]) == ([], [])
    alice.fill("Your name", "Alice")
    alice.press("Sign in")
    alice.sees("#lobby")
    assert alice.device not in (device, second)
    alice.devices()
    assert alice.shown("#own-device-list li") == 1


def test_a_stranger_with_a_known_name_is_shown_with_the_user_id(person, look):
    alice, bob = in_a_call(person, "Alice", "Bob")
    everybody_decodes(alice, bob)
    bob.leave()
    alice.sees("#lobby")
    other = person("b0b", NAMED_BOB)
    other.call("Alice")
    alice.answer()
    wait_for(lambda: "Bob (b0b)" in alice.text(".tile[data-user=b0b]"), 5, "the user id beside the name")
    wait_for(lambda: "same name" in alice.text("#warnings"), 8, "a warning that this is somebody else")
    alice.press("Call code")
    wait_for(lambda: "Not the same person as bob" in alice.text("#person-list"), 5, "the same in the list of devices")
    look(alice, "a person with the name of another")
