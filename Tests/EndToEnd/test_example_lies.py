"""docs/example/client.py refuses what an honest server or member does not send. No server: two devices, and somebody between them."""

import base64
import copy
import importlib.util
import pathlib
import sys

import pytest
from cryptography.exceptions import InvalidTag

FOLDER = pathlib.Path(__file__).parents[2] / "docs/example"
sys.path.insert(0, str(FOLDER))
# The tests have a module `client` of their own.
spec = importlib.util.spec_from_file_location("example_client", FOLDER / "client.py")
example = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)
CALL = "6f0c2f6e-4d5e-4b52-9f0c-1f2a3b4c5d6e"


class Pair:
    """Alice has started a call, Bob has joined it, and epoch 2 is about to be announced."""

    def __init__(self, folder):
        self.alice, self.bob = (example.CallKeys(CALL, example.Devices(folder / f"{user}.keys", user, "pc")) for user in ("alice", "bob"))
        self.alice.participant, self.bob.participant = 1, 2
        self.alice.begin()
        self.event = self.rotate([self.alice.entry(), self.bob.entry()])

    def rotate(self, entries):
        last = self.alice.newest
        epoch = example.Epoch(CALL, last.number + 1, entries, last.hash, "ratchet")
        hashes = {"previous": base64.b64encode(last.hash).decode(), "listHash": base64.b64encode(epoch.hash).decode()}
        return {"epoch": epoch.number, "mode": "ratchet", "leader": 1, "list": entries} | hashes

    def envelope(self):
        """Alice's for Bob, as the server passes it on."""
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


LISTS = {
    "another hash": lambda event: event.update(listHash=flipped(event["listHash"])),
    "another chain": lambda event: event.update(previous=flipped(event["previous"])),
    "a number for another": lambda event: event["list"][0].update(participant=9),
    "one's own number": lambda event: event["list"][1].update(participant=9),
    "one's own join key": lambda event: event["list"][1]["joinKey"].update(publicKey=event["list"][0]["joinKey"]["publicKey"]),
    "twice": lambda event: event["list"].append(event["list"][0]),
    "out of order": lambda event: event["list"].reverse(),
    "not there": lambda event: event["list"].pop(1),
}


@pytest.mark.parametrize("lie", LISTS.values(), ids=LISTS)
def test_a_list_that_lies_is_refused_and_changes_nothing(pair, lie):
    pair.bob.newest = copy.deepcopy(pair.alice.newest)
    pair.bob.newest.entries.append(pair.bob.entry())
    event = copy.deepcopy(pair.event)
    lie(event)
    before = pair.bob.newest
    with pytest.raises(example.Refused):
        pair.bob.announce(event)
    assert pair.bob.newest is before


def test_an_epoch_has_one_list(pair):
    pair.alice.announce(pair.event)
    with pytest.raises(example.Refused, match="two lists"):
        pair.alice.announce(pair.event | {"listHash": flipped(pair.event["listHash"])})


ENVELOPES = {
    "signature": lambda envelope: envelope.update(signature=flipped(envelope["signature"])),
    "ciphertext": lambda envelope: envelope.update(ciphertext=flipped(envelope["ciphertext"])),
    "another key": lambda envelope: envelope.update(key=flipped(envelope["key"])),
    "for another": lambda envelope: envelope.update(to={"user": "carol", "device": "pc"}),
    "by another": lambda envelope: envelope.update({"from": {"user": "bob", "device": "pc"}}),
    "by a stranger": lambda envelope: envelope.update({"from": {"user": "zed", "device": "pc"}}),
}


@pytest.mark.parametrize("lie", ENVELOPES.values(), ids=ENVELOPES)
def test_an_envelope_that_lies_brings_no_secret(pair, lie):
    envelope = pair.envelope()
    lie(envelope)
    with pytest.raises(example.Refused):
        pair.bob.open_envelope(envelope)
    assert pair.bob.newest.secret is None


def test_a_device_with_other_keys_than_at_first_gets_none(pair, tmp_path):
    pair.agree()
    (tmp_path / "bob.keys").unlink()
    stranger = example.CallKeys(CALL, example.Devices(tmp_path / "bob.keys", "bob", "pc"))
    stranger.participant = 3
    pair.alice.announce(pair.rotate([pair.alice.entry(), stranger.entry()]) | {"mode": "fresh"})
    pair.alice.newest.secret = bytes(32)
    assert pair.alice.seal_for(stranger.entry() | {"keys": stranger.devices.keys}) is None


def test_messages_that_come_twice_or_in_anothers_name_are_refused(pair):
    pair.agree()
    message = pair.alice.seal_message("once")
    assert pair.bob.open_message(1, message)[1] == "once"
    for sender, body in ((1, message), (2, message), (9, message), (1, b"\1" + message[1:]), (1, b"\0"), (1, b"")):
        with pytest.raises((example.Refused, ValueError, LookupError)):
            pair.bob.open_message(sender, body)
    with pytest.raises(InvalidTag):
        pair.bob.open_message(1, pair.alice.seal_message("changed")[:-1] + b"\0")
    assert pair.bob.open_message(1, pair.alice.seal_message("again"))[1] == "again"
