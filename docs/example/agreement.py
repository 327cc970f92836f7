"""Key agreement (docs/protocol.md section 5) as one device sees it: the devices that it trusts, the chain of lists, the secrets, and what they seal.

Nothing here knows a connection: events and replies come in as JSON, and what is to be sent goes out so. The byte layouts are in layouts.py.
"""

import itertools
import json
import os
import secrets
import time
from base64 import b64decode

import layouts
from admissions import Admissions
from layouts import HPKE, b64, sha256

SEALED_FOR = b"conclave-envelope-v2"


class Refused(Exception):
    """An honest server or member does not send this."""


def require(holds, otherwise):
    if not holds:
        raise Refused(otherwise)


def say(kind, text):
    """Prints one line. A line break or a terminal's escape from somebody else shows as U+FFFD, so it cannot forge another line."""
    print(f"{kind}: " + "".join(character if character.isprintable() else "\ufffd" for character in str(text)), flush=True)


def new_key():
    return layouts.Key(scalar=secrets.randbelow(layouts.P256_ORDER - 1) + 1)


def fingerprint_of(user, device, keys):
    """`keys` are as in `devices/register`."""
    wrap, sign = ({key["use"]: key for key in keys}[use] for use in ("wrap", "sign"))
    parts = wrap["alg"], b64decode(wrap["publicKey"]), sign["alg"], b64decode(sign["publicKey"])
    return sha256(layouts.fingerprint_bytes(user, device, *parts))


def device_of(entry):
    return entry["user"], entry["device"]


class Devices:
    """The keys of this device, and the fingerprints of others as they were at the first contact. `file` keeps both."""

    def __init__(self, file, user, device):
        self.file, self.user, self.device, self.keys_of = file, user, device, {}
        self.owners = {}
        stored = json.loads(file.read_text()) if file.exists() else {}
        scalars = [int.from_bytes(b64decode(stored[name]), "big") if stored else None for name in ("wrap", "sign")]
        self.wrap, self.sign = (layouts.Key(scalar=scalar) if scalar else new_key() for scalar in scalars)
        self.pins = stored.get("pins", {})
        named = ("wrap", HPKE, self.wrap), ("sign", "ES256", self.sign)
        self.keys = [{"use": use, "alg": alg, "publicKey": b64(key.spki)} for use, alg, key in named]
        self.fingerprint = fingerprint_of(user, device, self.keys)
        self.learn({"user": user, "device": device, "keys": self.keys})
        self.save()

    def save(self):
        new = self.file.with_suffix(".new")
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as output:
            json.dump({"wrap": b64(self.wrap.scalar), "sign": b64(self.sign.scalar), "pins": self.pins}, output)
        new.replace(self.file)

    def learn(self, device):
        """Keys that hash to a fingerprint are right, whoever sent them."""
        fingerprint = fingerprint_of(*device_of(device), device["keys"])
        self.keys_of[fingerprint], self.owners[fingerprint] = device["keys"], device_of(device)

    def sign_key(self, entry):
        """The key that verifies the signatures of an entry's device; None if it is not known, or another than at the first contact."""
        name, keys = " ".join(device_of(entry)), self.keys_of.get(b64decode(entry["fingerprint"]), [])
        key = next((key for key in keys if (key["use"], key["alg"]) == ("sign", "ES256")), None)
        if not key or self.pins.setdefault(name, entry["fingerprint"]) != entry["fingerprint"]:
            say("warning", f"the keys of {name} " + ("have changed" if key else "are not known"))
            return None
        self.save()
        return b64decode(key["publicKey"])


    def signer_key(self, fingerprint, is_listed):
        """The key that verifies a word (5.13). A device that is on no list counts if it is pinned, or if no device of its user is."""
        owner = self.owners.get(b64decode(fingerprint))
        if not owner:
            return None
        pin = self.pins.get(" ".join(owner))
        is_known = any(name.split(" ")[0] == owner[0] for name in self.pins)
        if pin != fingerprint if pin else is_known and not is_listed:
            return None
        key = next((key for key in self.keys_of[b64decode(fingerprint)] if (key["use"], key["alg"]) == ("sign", "ES256")), None)
        return key and b64decode(key["publicKey"])


class Epoch:
    def __init__(self, call, number, entries, previous, mode):
        self.number, self.entries, self.mode, self.secret = number, entries, mode, None
        self.roster = sha256(layouts.roster_bytes(entries))
        self.hash = sha256(layouts.list_bytes(call, number, previous, self.roster))

    def find(self, end):
        """The entry of a `from`, a `to` or an entry of `deliver`."""
        return next((entry for entry in self.entries if device_of(entry) == device_of(end)), None)


class CallKeys:
    """The keys of one call during one stay of this device: the chain of lists, the secrets, and what they seal."""

    def __init__(self, call, devices, root=None):
        self.call, self.devices, self.join_id, self.join = call, devices, os.urandom(16), new_key()
        self.admissions = Admissions(call, devices, root)
        at = time.time_ns() // 1_000_000
        signature = devices.sign.sign(layouts.join_bytes(call, devices.fingerprint, self.join_id, 0, at, HPKE, self.join.spki))
        key = {"v": 2, "alg": HPKE, "publicKey": b64(self.join.spki), "generation": 0, "at": at, "signature": b64(signature)}
        self.credentials = {"joinId": b64(self.join_id), "joinKey": key}
        self.participant = self.newest = self.used = None
        self.gone, self.counters, self.heard = set(), itertools.count(), {}

    def entry(self):
        names = {"user": self.devices.user, "device": self.devices.device, "participant": self.participant}
        return names | {"fingerprint": b64(self.devices.fingerprint)} | self.credentials

    def begin(self):
        """The device that starts a call makes epoch 1 (5.3)."""
        self.used = self.newest = Epoch(self.call, 1, [self.entry()], bytes(32), "fresh")
        self.newest.secret = os.urandom(32)

    def announce(self, event, links=()):
        """The epoch of `keys.rotate`, or of a reply to `keys/list` with the links before it, after the checks of 5.4. None: it is not for this stay."""
        old, number, entries = self.newest, event["epoch"], event.get("list")
        if old and number == old.number:
            require(event["listHash"] == b64(old.hash), "an epoch has two lists")
            return old
        if entries is None and old:
            kept = [entry for entry in old.entries if entry["participant"] not in event.get("removed", [])]
            entries = sorted(kept + event.get("added", []), key=lambda entry: [name.encode() for name in device_of(entry)])
        if not old and self.credentials["joinId"] not in [entry.get("joinId") for entry in entries or []]:
            return None
        epoch = Epoch(self.call, number, entries, b64decode(event["previous"]), event["mode"])
        self.check_list(entries)
        gone = self.check_chain(event, links, entries) if old else self.gone
        require(epoch.hash == b64decode(event["listHash"]), "the list does not have its hash")
        if old and not links and epoch.mode == "ratchet":
            require({entry["fingerprint"] for entry in old.entries} <= {entry["fingerprint"] for entry in entries}, "a ratchet lacks a device")
            require({entry["joinId"] for entry in entries} - {entry.get("joinId") for entry in old.entries}, "a ratchet has no newcomer")
            epoch.secret = old.secret and layouts.hkdf512(old.secret, self.call, layouts.ratchet_info(number, epoch.hash), 32)
        self.admissions.take(event, entries)
        self.newest, self.gone = epoch, gone
        return epoch

    def check_list(self, entries):
        require(self.entry() in entries, "this device is not on the list as it joined")
        for name in ("participant", "fingerprint", "joinId"):
            require(len({entry[name] for entry in entries}) == len(entries), f"a {name} is twice on the list")
        names = [[name.encode() for name in device_of(entry)] for entry in entries]
        require(all(one < next_one for one, next_one in itertools.pairwise(names)), "the list is not in order")

    def check_chain(self, event, links, entries):
        """A list follows from the newest one by its links. Gives the stays that are over."""
        old, epochs = self.newest, [*(link["epoch"] for link in links), event["epoch"]]
        require(epochs == [old.number + 1 + step for step in range(len(epochs))], "the chain of lists has a gap")
        expected = old.hash
        for link in links:
            expected = sha256(layouts.list_bytes(self.call, link["epoch"], expected, b64decode(link["roster"])))
        require(b64decode(event["previous"]) == expected, "the chain of lists is broken")
        stays = {entry["joinId"]: entry for entry in old.entries}
        gone = self.gone | set(stays) - {entry["joinId"] for entry in entries}
        for entry in entries:
            require(entry["joinId"] not in gone, "a joinId that was removed is back")
            require(stays.get(entry["joinId"], entry) == entry, "an entry that stays has changed")
        return gone

    def seal_for(self, receiver):
        """The newest epoch's envelope for an entry of `deliver` or `to` (5.6). None if its device is not trusted."""
        epoch, entry = self.newest, self.newest.find(receiver)
        require(entry and entry["joinId"] == receiver["joinId"], "a key is wanted for a device that is not on the list")
        self.devices.learn(receiver)
        self.admissions.judge()
        if self.admissions.is_uninvited(entry):
            return say("warning", f"nobody let {entry['user']} in: it gets no key")
        key, signer = receiver.get("refresh", entry["joinKey"]), self.devices.sign_key(entry)
        spki, stay = b64decode(key["publicKey"]), (b64decode(entry["fingerprint"]), b64decode(entry["joinId"]))
        signed = layouts.join_bytes(self.call, *stay, key["generation"], key["at"], key["alg"], spki)
        if not signer or key["alg"] != HPKE or not layouts.verify(signer, signed, b64decode(key["signature"])):
            return None
        # The SPKI of a P-256 key ends with its uncompressed point.
        sealed = layouts.hpke_seal(new_key(), spki[-65:], SEALED_FOR, b"", epoch.secret)
        names = (self.devices.user, self.devices.device), device_of(entry)
        signed = layouts.transcript_of(self.call, epoch.number, *names, HPKE, sha256(spki), sealed, epoch.hash)
        envelope = {"epoch": epoch.number, "to": {"user": entry["user"], "device": entry["device"]}, "key": b64(sha256(spki)), "alg": HPKE}
        return envelope | {"ciphertext": b64(sealed), "sigAlg": "ES256", "signature": b64(self.devices.sign.sign(signed))}

    def open_envelope(self, envelope):
        """Keeps the first valid secret of the newest epoch (5.6)."""
        epoch, sealed, key = self.newest, b64decode(envelope["ciphertext"]), b64decode(envelope["key"])
        require(epoch.find(envelope["to"]) == self.entry() and key == sha256(self.join.spki), "an envelope is for another device or stay")
        entry = epoch.find(envelope["from"])
        signer = entry and self.devices.sign_key(entry)
        names = device_of(envelope["from"]), device_of(envelope["to"])
        signed = layouts.transcript_of(self.call, epoch.number, *names, envelope["alg"], key, sealed, epoch.hash)
        require(signer and layouts.verify(signer, signed, b64decode(envelope["signature"])), "an envelope has no signature of a trusted member")
        secret = layouts.hpke_open(self.join, SEALED_FOR, b"", sealed)
        require(len(secret) == 32 and any(secret), "a secret has 32 bytes, which are not all zero")
        epoch.secret = epoch.secret or secret

    def uninvited(self, epoch):
        return [entry for entry in epoch.entries if self.admissions.is_uninvited(entry)]

    def tag(self):
        """The tag of `keys/confirm` (5.8)."""
        epoch = self.used
        key = layouts.hkdf512(epoch.secret, self.call, layouts.confirm_info(epoch.number, epoch.hash), 32)
        return layouts.tag_of(key, self.participant, self.devices.fingerprint, self.join_id)

    def message_key(self, entry):
        """An entry's base key and its KID for messages (5.5)."""
        epoch, stay = self.used, (b64decode(entry["fingerprint"]), b64decode(entry["joinId"]))
        info = layouts.sender_info(epoch.number, epoch.hash, entry["participant"], *stay)
        return layouts.hkdf512(epoch.secret, self.call, info, 64), layouts.kid_of(entry["participant"], 0, epoch.number)

    def seal_message(self, text):
        return b"\0" + layouts.sframe_seal(*self.message_key(self.entry()), next(self.counters), b"message", layouts.padded(json.dumps({"text": text}).encode()))

    def open_message(self, sender, body):
        """The sender's user id and the text (5.9, 5.10). Messages come in order, so a counter that does not rise is a replay."""
        require(self.used, "a message came before the key")
        entry = next((entry for entry in self.used.entries if entry["participant"] == sender), None)
        require(entry and sender != self.participant and body[:1] == b"\0", "a message is of no member, or not for all")
        kid, counter, _ = layouts.sframe_numbers(body[1:])
        base, expected = self.message_key(entry)
        require(kid == expected and counter > self.heard.get(kid, -1), "a message has the key of another member or epoch, or came twice")
        text = json.loads(layouts.unpadded(layouts.sframe_open(base, kid, counter, b"message", body[1:])))["text"]
        self.heard[kid] = counter
        return entry["user"], text
