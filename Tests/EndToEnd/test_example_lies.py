"""docs/example refuses what an honest server or member does not send. There is no server, only two devices and somebody between them."""

import base64
import copy
import importlib.util
import json
import pathlib
import sys

import pytest
from cryptography.exceptions import InvalidTag

FOLDER = pathlib.Path(__file__).parents[2] / "docs/example"
sys.path.insert(0, str(FOLDER))
# The tests also have a module `client`.
spec = importlib.util.spec_from_file_location("example_client", FOLDER / "client.py")
example = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)
agreement, layouts = sys.modules["agreement"], example.layouts
CALL = "6f0c2f6e-4d5e-4b52-9f0c-1f2a3b4c5d6e"


class Pair:
    """Alice has started a call, Bob has joined it, and epoch 2 is about to be announced."""

    def __init__(self, folder):
        self.alice, self.bob = (agreement.CallKeys(CALL, agreement.Devices(folder / f"{user}.keys", user, "pc")) for user in ("alice", "bob"))
        self.alice.participant, self.bob.participant = 1, 2
        self.alice.begin()
        self.event = self.rotate([self.alice.entry(), self.bob.entry()])

    def rotate(self, entries):
        last = self.alice.newest
        epoch = agreement.Epoch(CALL, last.number + 1, entries, last.hash, "ratchet")
        hashes = {"previous": base64.b64encode(last.hash).decode(), "listHash": base64.b64encode(epoch.hash).decode()}
        return {"epoch": epoch.number, "mode": "ratchet", "leader": 1, "list": entries} | hashes

    def envelope(self):
        """Alice's envelope for Bob, as forwarded by the server."""
        self.alice.announce(self.event)
        sealed = self.alice.seal_for(self.bob.entry() | {"keys": self.bob.devices.keys})
        self.bob.announce(self.event)
        self.bob.devices.learn({"user": "alice", "device": "pc", "keys": self.alice.devices.keys})
        return sealed | {"from": {"user": "alice", "device": "pc"}}

    def agree(self):
        self.bob.open_envelope(self.envelope())
        self.alice.used, self.bob.used = self.alice.newest, self.bob.newest


@pytest.fixture
def pair(tmp_path):
    return Pair(tmp_path)


def test_without_lies_both_have_the_secret(pair):
    pair.agree()
    assert pair.alice.used.secret == pair.bob.used.secret
    assert pair.bob.open_message(1, pair.alice.seal_message("Hello")) == ("alice", "Hello")
    assert pair.alice.open_message(2, pair.bob.seal_message("Hello, too")) == ("bob", "Hello, too")


def flipped(text):
    data = bytearray(base64.b64decode(text))
    data[-1] ^= 1
    return base64.b64encode(data).decode()


def hashed(event):
    """The event with the hash of its changed list, as computed by a server."""
    epoch = agreement.Epoch(CALL, event["epoch"], event["list"], base64.b64decode(event["previous"]), event["mode"])
    event["listHash"] = base64.b64encode(epoch.hash).decode()


def again(event, **other):
    """Alice's entry again, as another user's, and in the right order."""
    event["list"].insert(1, event["list"][0] | {"user": "alice2", "participant": 3} | other)


# Each lie, and the check that detects it.
LISTS = {
    "another chain": (lambda event: event.update(previous=flipped(event["previous"])), "chain of lists is broken"),
    "a gap": (lambda event: event.update(epoch=3), "has a gap"),
    "a number beyond all": (lambda event: event.update(epoch=(1 << 32) - 1), "has a gap"),
    "a number for another": (lambda event: event["list"][0].update(participant=9), "an entry that stays has changed"),
    "one's own number": (lambda event: event["list"][1].update(participant=9), "not on the list as it joined"),
    "one's own join key": (
        lambda event: event["list"][1]["joinKey"].update(publicKey=event["list"][0]["joinKey"]["publicKey"]),
        "not on the list as it joined",
    ),
    "a participant twice": (lambda event: again(event, participant=1), "a participant is twice"),
    "a fingerprint twice": (lambda event: again(event, joinId=layouts.b64(bytes(16))), "a fingerprint is twice"),
    "a stay twice": (lambda event: again(event, fingerprint=layouts.b64(bytes(32))), "a joinId is twice"),
    "a device twice": (
        lambda event: again(event, user="alice", fingerprint=layouts.b64(bytes(32)), joinId=layouts.b64(bytes(16))),
        "not in order",
    ),
    "out of order": (lambda event: event["list"].reverse(), "not in order"),
    "not there": (lambda event: event["list"].pop(1), "not on the list as it joined"),
    "a ratchet that removes": (lambda event: (event.update(mode="ratchet"), event["list"].pop(0)), "a ratchet lacks a device"),
    "a ratchet that nobody came for": (lambda event: event.update(mode="ratchet"), "a ratchet has no newcomer"),
}


@pytest.fixture
def both_were_there(pair):
    """Bob knows the epoch before the announced one, with both on the list."""
    pair.bob.newest = copy.deepcopy(pair.alice.newest)
    pair.bob.newest.entries.append(pair.bob.entry())
    pair.event["mode"] = "fresh"
    return pair


def refuses(keys, event, why):
    before = keys.newest, set(keys.gone)
    with pytest.raises(agreement.Refused, match=why):
        keys.announce(event)
    assert (keys.newest, keys.gone) == before, "a refused list changes nothing"


@pytest.mark.parametrize(("lie", "why"), LISTS.values(), ids=LISTS)
def test_a_list_that_lies_is_refused_and_changes_nothing(both_were_there, lie, why):
    event = copy.deepcopy(both_were_there.event)
    lie(event)
    hashed(event)
    refuses(both_were_there.bob, event, why)


def test_a_list_has_its_hash(both_were_there):
    event = both_were_there.event
    refuses(both_were_there.bob, event | {"listHash": flipped(event["listHash"])}, "does not have its hash")
    assert both_were_there.bob.announce(event), "the same list without the lie"


def test_a_stay_that_ended_does_not_come_back(both_were_there):
    pair = both_were_there
    without = {"mode": "fresh", "list": [pair.bob.entry()]}
    event = pair.event | without
    hashed(event)
    assert pair.bob.announce(event)
    back = event | {"epoch": 3, "previous": event["listHash"], "list": pair.event["list"]}
    hashed(back)
    refuses(pair.bob, back, "a joinId that was removed is back")


def test_an_epoch_has_one_list(pair):
    pair.alice.announce(pair.event)
    with pytest.raises(agreement.Refused, match="two lists"):
        pair.alice.announce(pair.event | {"listHash": flipped(pair.event["listHash"])})


OTHERS, UNSIGNED = "for another device or stay", "no signature of a trusted member"
# Each lie, whether Alice signs it, and the check that detects it.
ENVELOPES = {
    "signature": (lambda envelope: envelope.update(signature=flipped(envelope["signature"])), False, UNSIGNED),
    "ciphertext": (lambda envelope: envelope.update(ciphertext=flipped(envelope["ciphertext"])), False, UNSIGNED),
    "by another": (lambda envelope: envelope.update({"from": {"user": "bob", "device": "pc"}}), True, UNSIGNED),
    "by a stranger": (lambda envelope: envelope.update({"from": {"user": "zed", "device": "pc"}}), True, UNSIGNED),
    "another key": (lambda envelope: envelope.update(key=flipped(envelope["key"])), True, OTHERS),
    "for another": (lambda envelope: envelope.update(to={"user": "alice", "device": "pc"}), True, OTHERS),
    "for a stranger": (lambda envelope: envelope.update(to={"user": "carol", "device": "pc"}), True, OTHERS),
}


def signed(pair, envelope):
    """Alice's signature of the envelope in its current form."""
    ends = ((envelope[end]["user"], envelope[end]["device"]) for end in ("from", "to"))
    parts = (base64.b64decode(envelope[part]) for part in ("key", "ciphertext"))
    transcript = layouts.transcript_of(CALL, 2, *ends, layouts.HPKE, *parts, pair.alice.newest.hash)
    envelope["signature"] = layouts.b64(pair.alice.devices.sign.sign(transcript))


@pytest.mark.parametrize(("lie", "is_signed", "why"), ENVELOPES.values(), ids=ENVELOPES)
def test_an_envelope_that_lies_brings_no_secret(pair, lie, is_signed, why):
    envelope = pair.envelope()
    lie(envelope)
    if is_signed:
        signed(pair, envelope)
    with pytest.raises(agreement.Refused, match=why):
        pair.bob.open_envelope(envelope)
    assert pair.bob.newest.secret is None


@pytest.mark.parametrize("secret", [bytes(31), bytes(32), bytes([1]) * 33])
def test_a_secret_has_32_bytes_that_are_not_all_zero(pair, secret):
    pair.alice.announce(pair.event)
    pair.alice.newest.secret = secret
    with pytest.raises(agreement.Refused, match="a secret has 32 bytes"):
        pair.bob.open_envelope(pair.envelope())
    assert pair.bob.newest.secret is None


def test_a_device_that_is_not_on_the_list_gets_no_key(pair):
    pair.alice.announce(pair.event)
    bob = pair.bob.entry() | {"keys": pair.bob.devices.keys}
    for receiver in (bob | {"user": "carol"}, bob | {"joinId": layouts.b64(bytes(16))}):
        with pytest.raises(agreement.Refused, match="a device that is not on the list"):
            pair.alice.seal_for(receiver)


def test_a_device_with_other_keys_than_at_first_gets_none(pair, tmp_path):
    pair.agree()
    (tmp_path / "bob.keys").unlink()
    stranger = agreement.CallKeys(CALL, agreement.Devices(tmp_path / "bob.keys", "bob", "pc"))
    stranger.participant = 3
    pair.alice.announce(pair.rotate([pair.alice.entry(), stranger.entry()]) | {"mode": "fresh"})
    pair.alice.newest.secret = bytes(32)
    assert pair.alice.seal_for(stranger.entry() | {"keys": stranger.devices.keys}) is None


@pytest.mark.parametrize(("made", "shown"), [("guest~carol", "carol"), ("carol", "guest~carol")])
def test_a_guests_mark_is_part_of_its_keys(pair, tmp_path, capsys, made, shown):
    pair.agree()
    carol = agreement.CallKeys(CALL, agreement.Devices(tmp_path / "carol.keys", made, "pc"))
    carol.participant = 3
    listed = carol.entry() | {"user": shown}
    entries = sorted([pair.alice.entry(), pair.bob.entry(), listed], key=lambda entry: entry["user"])
    pair.alice.announce(pair.rotate(entries))
    assert pair.alice.seal_for(listed | {"keys": carol.devices.keys}) is None
    assert f"the keys of {shown} pc are not known" in capsys.readouterr().out


def words_of_a_guest(pair, tmp_path, admitter):
    """Alice's view of Ana, a guest who comes by a link of Alice's whose guests wait and was admitted by `admitter`; with the word and Ana's entry."""
    devices = lambda user: agreement.Devices(tmp_path / f"{user}.keys", user, "pc")
    alice, bob, ana, zed = pair.alice.devices, pair.bob.devices, devices("guest~ana"), devices("guest~zed")
    view = sys.modules["admissions"].Admissions(CALL, alice, root="alice")
    key = layouts.link_key(CALL, bytes(16))
    link = key.public_key().public_bytes_raw()
    b64 = layouts.b64

    def signed(by, data):
        return {"fingerprint": b64(by.fingerprint), "sigAlg": "ES256", "signature": b64(by.sign.sign(data))}

    def coming(guest):
        signature = key.sign(layouts.link_join_bytes(CALL, link, guest.fingerprint, guest.user))
        return {"user": guest.user, "fingerprint": b64(guest.fingerprint), "link": b64(link), "signature": b64(signature)}

    open_link = layouts.link_key(CALL, bytes([1] * 16)).public_key().public_bytes_raw()
    by_open = layouts.link_key(CALL, bytes([1] * 16)).sign(layouts.link_join_bytes(CALL, open_link, zed.fingerprint, zed.user))
    word = coming(ana)
    if admitter:
        by = {"bob": bob, "guest~zed": zed}[admitter]
        word["admittedBy"] = signed(by, layouts.guest_admission_bytes(CALL, by.fingerprint, link, ana.fingerprint, ana.user))
    body = {
        "signers": [{"user": each.user, "device": "pc", "keys": each.keys} for each in (bob, zed)],
        "admissions": [
            word,
            view.word_for("bob"),
            {"link": b64(link), "waits": True, **signed(alice, layouts.waiting_link_bytes(CALL, alice.fingerprint, link))},
            {"link": b64(open_link), **signed(alice, layouts.call_link_bytes(CALL, alice.fingerprint, open_link))},
            {"user": zed.user, "fingerprint": b64(zed.fingerprint), "link": b64(open_link), "signature": b64(by_open)},
        ],
    }
    return view, body, {"user": ana.user, "fingerprint": b64(ana.fingerprint)}


@pytest.mark.parametrize(("admitter", "is_uninvited"), [("bob", False), (None, True), ("guest~zed", True)])
def test_a_guest_who_waits_needs_a_member(pair, tmp_path, admitter, is_uninvited):
    view, body, ana = words_of_a_guest(pair, tmp_path, admitter)
    view.take(body)
    view.judge()
    assert {"bob", "guest~zed"} <= view.let_in.keys(), "by a word, and by a link whose guests need not wait"
    assert view.is_uninvited(ana) == is_uninvited


def test_an_admission_is_for_one_device_and_by_one_who_may_sign(pair, tmp_path):
    for change in (
        lambda body: body["admissions"][0]["admittedBy"].update(signature=body["admissions"][1]["signature"]),
        lambda body: body["admissions"][2].pop("waits"),
        lambda body: body.update(admissions=[{**body["admissions"][1], "user": "guest~ana"}, *body["admissions"][1:]]),
    ):
        view, body, ana = words_of_a_guest(pair, tmp_path, "bob")
        change(body)
        view.take(body)
        view.judge()
        assert view.is_uninvited(ana)


def test_messages_that_come_twice_or_in_anothers_name_are_refused(pair):
    pair.agree()
    message = pair.alice.seal_message("once")
    assert pair.bob.open_message(1, message)[1] == "once"
    for sender, body in ((1, message), (2, message), (9, message), (1, b"\1" + message[1:]), (1, b"\0"), (1, b"")):
        with pytest.raises((agreement.Refused, ValueError, LookupError)):
            pair.bob.open_message(sender, body)
    with pytest.raises(InvalidTag):
        pair.bob.open_message(1, pair.alice.seal_message("changed")[:-1] + b"\0")
    assert pair.bob.open_message(1, pair.alice.seal_message("again"))[1] == "again"


def test_a_message_with_another_padding_is_refused(pair, monkeypatch):
    pair.agree()
    whole, padded = b'{"text": "bare"}', layouts.padded
    for other in (whole, whole + b"\x80", whole + bytes(-len(whole) % 64), padded(whole) + bytes(64), padded(whole)[:-1] + b"\1", b""):
        monkeypatch.setattr(layouts, "padded", lambda text, other=other: other)
        body = pair.alice.seal_message("bare")
        monkeypatch.setattr(layouts, "padded", padded)
        with pytest.raises(ValueError, match="without its padding"):
            pair.bob.open_message(1, body)
    assert pair.bob.open_message(1, pair.alice.seal_message("bare"))[1] == "bare"


class Line:
    """The server's end of a client's connection."""

    def __init__(self, devices):
        self.fingerprint, self.answers = layouts.b64(devices.fingerprint), []

    def request(self, destination, body=None):
        return {"fingerprint": self.fingerprint}

    def send(self, command, headers, body=b""):
        if command != "SUBSCRIBE":
            self.answers.append((command, headers["id"]))


@pytest.fixture
def client(pair):
    """Bob's client, which has accepted the call and has no epoch yet."""
    client = example.Client(Line(pair.bob.devices), pair.bob.devices)
    client.keys = pair.bob
    return client


def passes(client, capsys, name, **event):
    """The lines that the client prints for an event. It keeps running, and acknowledges the event."""
    assert client.take_event(name, json.dumps({"call": CALL} | event).encode(), "e1")
    assert client.connection.answers.pop() in (("ACK", "e1"), ("NACK", "e1"))
    return capsys.readouterr().out.splitlines()


def test_a_message_before_the_key_is_refused(client, capsys):
    told = passes(client, capsys, "message", **{"from": 1, "body": layouts.b64(bytes(40))})
    assert told == ["warning: message: Refused a message came before the key"]


@pytest.mark.parametrize("name", ["keys.request", "keys.envelope", "keys.switch"])
def test_there_is_no_epoch_0(client, capsys, name):
    assert passes(client, capsys, name, epoch=0) == []


def test_events_of_any_form_cause_a_warning(pair, client, capsys):
    beyond = json.dumps(pair.event | {"call": CALL, "epoch": 1 << 70}).encode()
    for body in (b"[]", b"1", b"{", b"\xff", b"[" * 16_384, beyond):
        assert client.take_event("keys.rotate", body, "e1")
        assert capsys.readouterr().out.startswith("warning: keys.rotate: "), body


def sealed(pair, text):
    """Alice's message with this JSON, padded."""
    return b"\0" + layouts.sframe_seal(*pair.alice.message_key(pair.alice.entry()), next(pair.alice.counters), b"message", layouts.padded(text))


def test_a_message_that_is_nested_deeply_causes_a_warning(pair, client, capsys):
    pair.agree()
    told = passes(client, capsys, "message", **{"from": 1, "body": layouts.b64(sealed(pair, b"[" * 16_384))})
    assert told[0].startswith("warning: message: RecursionError")
    assert passes(client, capsys, "message", **{"from": 1, "body": layouts.b64(pair.alice.seal_message("Hello"))}) == ["message: alice: Hello"]


def test_a_message_cannot_forge_another_line(pair, client, capsys):
    pair.agree()
    for text in ("x\ncode: 1234", "x\rcode: 1234", "x\u2028code: 1234", "x\x1b[2Jcode: 1234", "x\u202ecode: 1234", "x\ud800code: 1234"):
        told = passes(client, capsys, "message", **{"from": 1, "body": layouts.b64(pair.alice.seal_message(text))})
        assert len(told) == 1 and told[0].startswith("message: alice: x\ufffd") and told[0].endswith("code: 1234"), told
