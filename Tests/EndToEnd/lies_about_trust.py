"""Lies about devices, their keys, and what a user's devices say about each other. Every function returns the tabs that must warn."""

import base64
import json
import os
import time

from conftest import wait_for
from lies_about_lists import with_ghost
from lying_stage import row
from selenium.webdriver.common.by import By
from told_lists import Ghost, b64, layouts

PIN = """
    const [name, done] = arguments;
    const request = indexedDB.open('conclave');
    request.onsuccess = () => {
      const pin = request.result.transaction('pins').objectStore('pins').get(name);
      pin.onsuccess = () => {
        request.result.close();
        done(pin.result ? [pin.result.fingerprint, Boolean(pin.result.isVerified)] : null);
      };
    };
"""


def pin_of(tab, user, device):
    """(fingerprint, whether it is verified) of a device, as a page knows it; None for an unknown device."""
    return tab.driver.execute_async_script(PIN, f"{tab.user}>{user}/{device}")


def with_other_keys(stage, name="carol"):
    """The same device connects with other keys, which the server lists."""
    stage.others[0] = stage.member(name)
    return stage.others[0].ghost


def comes_with_other_keys(stage, members=("carol", "dave")):
    """Alice and Bob know Carol's device, which leaves and comes back with other keys. Returns these."""
    stage.call(members)
    stage.come()
    if "dave" in members:
        stage.come(1)
    stage.go()
    ghost = with_other_keys(stage)
    epoch = stage.come()
    handed = [body for _, _, _, body in stage.proxy.seen("request", f"calls/{stage.id}/keys")]
    given = {envelope["to"]["user"] for body in handed for envelope in body["envelopes"] if body["epoch"] >= epoch}
    assert ghost.user not in given, "a changed key gets the call's key"
    return ghost


def shows(tab, fingerprint):
    return fingerprint.hex() in tab.text("#warnings").replace(" ", "")


@row(50)
def a_known_device_has_another_key(stage):
    ghost = comes_with_other_keys(stage)
    for tab in (stage.alice, stage.bob):
        wait_for(lambda: shows(tab, ghost.fingerprint), 10, f"{tab.user} is shown the changed key")
    # When it leads, its envelope waits until the person trusts that key.
    withheld = stage.lie("event", "keys.envelope", lambda body, _: None, to=stage.bob.user)
    epoch = stage.go(1)
    wait_for(lambda: withheld.told, 10, "Alice's envelope for Bob is withheld")
    stage.proxy.tell(stage.bob.user, "keys.envelope", envelope_of(stage, ghost, epoch))
    stage.proxy.sees("request", f"calls/{stage.id}/keys/wait", user=stage.bob.user, where=lambda body: body["epoch"] == epoch)
    stage.silent_under(stage.bob, epoch, 2)
    stage.bob.press("It is this number: trust it")
    wait_for(lambda: epoch in stage.audit.epochs(stage.bob.user), 10, "Bob uses the envelope that waited")
    return [stage.alice, stage.bob]


def envelope_of(stage, ghost, epoch):
    """Makes the envelope that a device sends Bob instead of the leader."""
    body = stage.proxy.sees("event", "keys.rotate", user=stage.alice.user, where=lambda body: body["epoch"] == epoch and "deliver" in body)
    entry = next(entry for entry in body["deliver"] if entry["user"] == stage.bob.user)
    spki = base64.b64decode(entry.get("refresh", entry["joinKey"])["publicKey"])
    key, sealed = layouts.sha256(spki), layouts.hpke_seal(Ghost("zed").join, spki[-65:], b"conclave-envelope-v2", b"", os.urandom(32))
    names = (ghost.user, "phone"), (entry["user"], entry["device"])
    list_hash = stage.proxy.lists.chains[stage.bob.user, stage.bob_device, stage.id].epochs[epoch]["hash"]
    signature = ghost.sign.sign(layouts.transcript_of(stage.id, epoch, *names, layouts.HPKE, key, sealed, list_hash))
    (sender, to) = ({"user": user, "device": device} for user, device in names)
    envelope = {"epoch": epoch, "from": sender, "to": to, "alg": layouts.HPKE, "key": b64(key), "ciphertext": b64(sealed)}
    return {"call": stage.id, **envelope, "sigAlg": "ES256", "signature": b64(signature)}


@row(51, "a ghost", "another key")
def what_is_shown_changes_before_the_click(stage, how):
    if how == "another key":
        return another_key_before_the_click(stage)
    stage.call()
    stage.alice.press("Call code")
    stage.alice.sees(f"#person-list [data-device={stage.bob_device}]")
    ghost, change = with_ghost(stage, stage.bob.user, 77)
    stage.proxy.lists.lie_to(stage.alice.user, change)
    stage.hearers.add(stage.alice.user)
    stage.come()
    stage.alice.sees("#code-changed")
    clicks_all_the_same(stage.alice, f"They match: {stage.bob.name}")
    wait_for(lambda: pin_of(stage.alice, stage.bob.user, stage.bob_device)[1], 5, "Bob's device is verified")
    known = wait_for(lambda: pin_of(stage.alice, ghost.user, ghost.device), 5, "the ghost's device is known")
    assert known == [b64(ghost.fingerprint), False]
    return []


def clicks_all_the_same(tab, name):
    """The button is disabled while the view is out of date, but a click may already have been made."""
    click = """
        const button = [...document.querySelectorAll('#person-list button')].find(({ ariaLabel }) => ariaLabel === arguments[0]);
        button.disabled = false;
        button.click();
    """
    tab.driver.execute_script(click, name)


def another_key_before_the_click(stage):
    shown = comes_with_other_keys(stage, ("carol",))
    wait_for(lambda: shows(stage.bob, shown.fingerprint), 10, "Bob is shown the changed key")
    stage.bob.press("Call code")
    stage.bob.sees("#person-list [data-problem=changed-key]")
    stage.go()
    later = with_other_keys(stage)
    stage.come()
    stage.bob.sees("#code-changed")
    clicks_all_the_same(stage.bob, f"Trust: the new key of {later.user}")
    pinned = wait_for(lambda: pin_of(stage.bob, later.user, "phone"), 5, "a key of Carol's device")
    assert pinned[0] == b64(shown.fingerprint) != b64(later.fingerprint)
    return []


@row(52)
def a_stranger_with_a_known_name(stage):
    stage.people()

    def renamed(value, _):
        if isinstance(value, list):
            return [renamed(each, _) for each in value]
        if not isinstance(value, dict):
            return value
        named = {"name": stage.bob.name} if value.get("user") == stage.user("carol") and "state" in value else {}
        return {name: renamed(each, _) for name, each in value.items()} | named

    stage.lie("reply", "calls/*", renamed, to=stage.alice.user)
    stage.lie("event", "call.*", renamed, to=stage.alice.user)
    stage.call()
    stage.come()
    both = f"{stage.bob.name} ({stage.user('carol')})"
    wait_for(lambda: both in stage.alice.text(f".tile[data-user={stage.user('carol')}]"), 5, "the user id beside the name")
    wait_for(lambda: any("has the same name as" in text for text in stage.told(stage.alice)), 8, "Alice is told that they are two")
    return [stage.alice]


@row(71, "lost", "gained")
def a_guests_mark(stage, how):
    """A device whose keys are those of a guest is listed as a user's, or the other way around."""
    stage.call()
    ghost, change = with_ghost(stage, "guest~zed" if how == "lost" else "zed", 77)
    # The id after its keys have their fingerprint.
    ghost.user = "zed" if how == "lost" else "guest~zed"
    for person in (stage.alice, stage.bob):
        stage.proxy.lists.lie_to(person.user, change)
        tell_member(stage, person, ghost, "Zed")
    stage.come()
    asked = lambda body: ghost.user in body["users"]
    stage.proxy.sees("request", "devices/list", user=stage.alice.user, where=asked)
    stage.seals_on(stage.alice)
    assert not ghost.secrets, "a device whose fingerprint is of another id gets a key"
    return [stage.alice]


def tell_member(stage, person, ghost, name, **more):
    """The server claims that the ghost is in the call."""
    place = {"participant": 77, "device": ghost.device, "joinId": b64(ghost.join_id), "connected": True, "held": False, "tracks": []}
    member = {"call": stage.id, "user": ghost.user, "name": name, "state": "joined", "cause": "joined", "participants": [place]}
    stage.proxy.tell(person.user, "call.member", member | more)


@row(72)
def a_guest_without_its_link(stage):
    stage.call()
    guest, change = with_ghost(stage, "guest~zed", 77)
    stage.proxy.lists.lie_to(stage.alice.user, change)
    stage.hearers.add(stage.alice.user)
    tell_member(stage, stage.alice, guest, stage.bob.name)
    linked = lambda body, _: {**body, "link": True} if body["user"] == stage.user("carol") else body
    stage.lie("event", "call.member", linked, to=stage.alice.user)
    stage.come()
    wait_for(lambda: f"{stage.bob.name} (guest)" in stage.alice.text(".tile[data-user='guest~zed'] .tile-name"), 10, "the guest is marked")
    carol = f".tile[data-user={stage.user('carol')}] .tile-name"
    stage.alice.sees(carol)
    assert "guest" not in stage.alice.text(carol)
    return []


# Statements of a user's devices about each other: Alice's page, and other devices of hers, whose keys the test has.


def statement(kind, by, about, user=None):
    at = int(time.time() * 1000)
    data = layouts.vouch_bytes(f"conclave-{kind}-v1".encode(), user or about.user, by.fingerprint, about.fingerprint, at)
    about_fields = {"device": about.device, "fingerprint": b64(about.fingerprint)}
    by_fields = {"by": by.device, "byFingerprint": b64(by.fingerprint)}
    return {"user": about.user, **about_fields, **by_fields, "at": at, "sigAlg": "ES256", "signature": b64(by.sign.sign(data))}


class Statements:
    """Alice's page, three other devices of hers, of which `phone` is paired, and the statements that the server attributes to them."""

    def __init__(self, stage):
        self.tab = stage.tab("Alice")
        self.proxy = stage.proxy
        self.phone, self.tablet, self.desktop = (stage.member("alice", device).ghost for device in ("phone", "tablet", "desktop"))
        self.vouches, self.revokes, self.hidden = [], [], set()
        self.tab.devices()
        self._pair()
        stage.lie("reply", "devices/list", self._told, to=self.tab.user)

    def _pair(self):
        self.tab.of_device("Pair", self.phone.device)
        self.tab.driver.find_element(By.CSS_SELECTOR, "#pair-more summary").click()
        text = base64.urlsafe_b64encode(self.phone.fingerprint).decode().rstrip("=")
        self.tab.fill("The other device’s text", f"conclave-device:{text}")
        self.tab.press("Pair with this text")
        self.tab.sees("#own-device-list [data-device=phone][data-level=verified]")

    def _told(self, body, _):
        devices = [
            {**device, "vouches": [vouch for vouch in self.vouches if vouch["device"] == device["device"]]}
            for device in body["devices"]
            if device["device"] not in self.hidden
        ]
        return {"devices": devices, "revokes": self.revokes}

    def are(self, vouches=(), revokes=(), hidden=(), **levels):
        """Asserts that with these statements the devices have these levels. The list is requested again."""
        self.vouches, self.revokes, self.hidden = list(vouches), list(revokes), set(hidden)
        self.tab.click("#devices-dialog button", "Close")
        count = len(self.proxy.seen("reply", "devices/list", self.tab.user))
        self.tab.devices()
        wait_for(lambda: len(self.proxy.seen("reply", "devices/list", self.tab.user)) > count, 5, "the page asks for the devices")
        for device, level in levels.items():
            self.tab.sees(f"#own-device-list [data-device={device}][data-level={level}]", 5)


@row(53)
def vouches_that_count_for_nothing(stage):
    said = Statements(stage)
    phone, tablet, desktop = said.phone, said.tablet, said.desktop
    foreign, stranger = Ghost("zed", "phone"), Ghost(said.tab.user, "stranger")
    good = statement("vouch", phone, tablet)
    # Each is told after a good one, so that the level must drop.
    bad = {
        "for another user": statement("vouch", phone, tablet, user="zed"),
        "of another user's device": statement("vouch", foreign, tablet),
        "of an unknown device": statement("vouch", stranger, tablet),
        "of a device that is only known": statement("vouch", desktop, tablet),
    }
    for vouch in bad.values():
        said.are([good], tablet="vouched")
        said.are([vouch], tablet="known")
    said.are([good, statement("vouch", tablet, desktop)], tablet="vouched", desktop="known")
    said.are([good], hidden=["phone"], tablet="known")
    said.are([good], tablet="vouched")
    said.are([good], [statement("revoke", phone, phone)], phone="revoked", tablet="known")
    said.are([good], phone="revoked", tablet="known")
    return []


@row(54)
def a_vouched_device_revokes_the_verified_one(stage):
    said = Statements(stage)
    good = statement("vouch", said.phone, said.tablet)
    said.are([good], tablet="vouched")
    said.are([good], [statement("revoke", said.tablet, said.phone)], phone="verified", tablet="vouched")
    wait_for(lambda: any("devices disagree" in text for text in stage.told(said.tab)), 5, "Alice is told that her devices disagree")
    return [said.tab]


@row(55, "in open", "in reveal", "too early")
def pairing_is_changed_on_its_way(stage, where):
    new, existing = stage.tab("Alice"), stage.tab("Alice")
    names = {"in open": ["fingerprint", "nonce"], "in reveal": ["fingerprint", "nonce"], "too early": ["step"]}[where]
    changed = []

    def change(body, _):
        message = json.loads(base64.b64decode(body["body"]))
        if message["step"] != ("reveal" if where == "in reveal" else "open"):
            return body
        changed.append(name)
        message[name] = "reveal" if name == "step" else b64(os.urandom(32))
        return {**body, "body": b64(json.dumps(message).encode())}

    stage.lie("event", "device.pair", change, to=new.user)
    for name in names:
        for tab, other in ((new, existing), (existing, new)):
            tab.devices()
            tab.of_device("Pair", other.device)
        new.press("Show the digits here")
        existing.press("Type the digits here")
        if where == "too early":
            new.sees("#pair-dialog[data-state=failed]")
            assert not new.text("#pair-code").strip(), "digits are shown before the other key is known"
        elif where == "in reveal":
            existing.sees("#pair-dialog[data-state=failed]")
        else:
            code = wait_for(lambda: new.text("#pair-code").replace(" ", ""), 10, "six digits")
            existing.fill("Six digits", code)
            existing.click("#pair-form button", "Pair")
            wait_for(lambda: "not the digits" in existing.text("#pair-error"), 5, "the digits differ")
        assert changed[-1] == name
        for tab, other in ((new, existing), (existing, new)):
            # The dialog may still move while its text changes, so the mouse could miss the button.
            tab.driver.execute_script("arguments[0].click()", tab.find("#pair-dialog button", "Cancel"))
            tab.sees(f"#own-device-list [data-device={other.device}]:not([data-level=verified])")
            tab.click("#devices-dialog button", "Close")
    return []
