#!/usr/bin/env python3
"""A Conclave client: it signs in, rings or answers, agrees on keys, and exchanges sealed messages. It has no media.

    client.py --user alice --token "$(conclave token --user alice)" call bob
    client.py --user bob --token "$(conclave token --user bob)" answer

Each line of the standard input goes to the call; the end of the input leaves it. The byte layouts are in layouts.py beside this file. Both need Python 3.11
and the package `cryptography`, 43 or later. Sections are those of docs/protocol.md; a client for people follows all the checklists there. This one trusts a
device when it sees it for the first time, makes no ring envelopes (5.7), and does not refresh its join key (5.1).
"""

import argparse
import collections
import itertools
import json
import os
import pathlib
import random
import secrets
import select
import socket
import ssl
import sys
import time
import uuid
from base64 import b64decode

import layouts
from layouts import HPKE, b64, sha256

SEALED_FOR = b"conclave-envelope-v2"


class Refused(Exception):
    """An honest server or member does not send this."""


class RequestFailed(Exception):
    """The reply had `status: error`. The text begins with the error's code."""


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


class Connection:
    """STOMP 1.2 over TCP or TLS (sections 1 to 3)."""

    def __init__(self, address, user, device, token, use_tls=False):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), 10)
        if use_tls:
            self.socket = ssl.create_default_context().wrap_socket(self.socket, server_hostname=host)
        self.input, self.events, self.numbers = b"", collections.deque(), itertools.count(1)
        headers = {"accept-version": "1.2", "host": host, "heart-beat": "10000,10000", "passcode": token, "device": device}
        self.send("CONNECT", headers)
        command, headers, _ = self.read(10) or ("nothing", {}, b"")
        if command != "CONNECTED":
            raise ConnectionError(f"not signed in: {command} {headers.get('message', '')}")
        require((headers["user-name"], headers["device"]) == (user, device), "the server signed in another user or device")
        self.send("SUBSCRIBE", {"id": "replies", "destination": "/user/queue/replies", "ack": "auto"})

    def send(self, command, headers, body=b""):
        lines = [command, *(f"{name}:{value}" for name, value in headers.items()), f"content-length:{len(body)}"]
        self.socket.sendall("\n".join(lines).encode() + b"\n\n" + body + b"\0")
        self.wrote = time.monotonic()

    def read(self, seconds):
        """The next frame as (command, headers, body), or None after `seconds`. Sends the heart-beats that are due."""
        end = time.monotonic() + seconds
        while True:
            self.input = self.input.lstrip(b"\r\n")
            head, found, rest = self.input.partition(b"\n\n")
            if found:
                command, *lines = head.decode().split("\n")
                headers = dict(line.split(":", 1) for line in reversed(lines))  # the first of equal names counts
                length = int(headers.get("content-length", rest.find(b"\0")))
                if 0 <= length < len(rest):
                    self.input = rest[length + 1 :]
                    return command, headers, rest[:length]
            if time.monotonic() > self.wrote + 5:
                self.socket.sendall(b"\n")
                self.wrote = time.monotonic()
            self.socket.settimeout(max(0.01, min(5, end - time.monotonic())))
            try:
                data = self.socket.recv(1 << 16)
            except TimeoutError:
                if time.monotonic() > end:
                    return None
                continue
            if not data:
                raise ConnectionError("the server closed the connection")
            self.input += data

    def take(self, seconds):
        """Reads a frame. Returns a reply as (request-id, status, body); puts an event into `events` as (name, JSON, ack)."""
        command, headers, body = self.read(seconds) or ("nothing", {}, b"")
        if command == "ERROR":
            raise ConnectionError(headers.get("message"))
        if "event" in headers:
            self.events.append((headers["event"], body, headers["ack"].replace("\\c", ":")))
        return (headers["request-id"], headers["status"], json.loads(body)) if "request-id" in headers else None

    def request(self, destination, body=None):
        number, end = f"r{next(self.numbers)}", time.monotonic() + 10
        headers = {"destination": destination, "request-id": number, "content-type": "application/json"}
        self.send("SEND", headers, json.dumps(body or {}).encode())
        while time.monotonic() < end:
            reply = self.take(1)
            if reply and reply[0] == number:
                if reply[1] != "ok":
                    raise RequestFailed(f"{reply[2]['error']['code']}: {reply[2]['error']['message']}")
                return reply[2]
        raise ConnectionError(f"no reply to {destination}")


class Devices:
    """The keys of this device, and the fingerprints of others as they were at the first contact. `file` keeps both."""

    def __init__(self, file, user, device):
        self.file, self.user, self.device, self.keys_of = file, user, device, {}
        stored = json.loads(file.read_text()) if file.exists() else {}
        scalars = [int.from_bytes(b64decode(stored[name]), "big") if stored else None for name in ("wrap", "sign")]
        self.wrap, self.sign = (layouts.Key(scalar=scalar) if scalar else new_key() for scalar in scalars)
        self.pins = stored.get("pins", {})
        named = ("wrap", HPKE, self.wrap), ("sign", "ES256", self.sign)
        self.keys = [{"use": use, "alg": alg, "publicKey": b64(key.spki)} for use, alg, key in named]
        self.fingerprint = fingerprint_of(user, device, self.keys)
        self.save()

    def save(self):
        new = self.file.with_suffix(".new")
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as output:
            json.dump({"wrap": b64(self.wrap.scalar), "sign": b64(self.sign.scalar), "pins": self.pins}, output)
        new.replace(self.file)

    def learn(self, device):
        """Keys that hash to a fingerprint are right, whoever sent them."""
        self.keys_of[fingerprint_of(device["user"], device["device"], device["keys"])] = device["keys"]

    def sign_key(self, entry):
        """The key that verifies the signatures of an entry's device; None if it is not known, or another than at the first contact."""
        name, keys = f"{entry['user']} {entry['device']}", self.keys_of.get(b64decode(entry["fingerprint"]), [])
        key = next((key for key in keys if (key["use"], key["alg"]) == ("sign", "ES256")), None)
        if not key or self.pins.setdefault(name, entry["fingerprint"]) != entry["fingerprint"]:
            say("warning", f"the keys of {name} " + ("have changed" if key else "are not known"))
            return None
        self.save()
        return b64decode(key["publicKey"])


class Epoch:
    def __init__(self, call, number, entries, previous, mode):
        self.number, self.entries, self.mode, self.secret = number, entries, mode, None
        self.roster = sha256(layouts.roster_bytes(entries))
        self.hash = sha256(layouts.list_bytes(call, number, previous, self.roster))

    def find(self, end):
        """The entry of a `from`, a `to` or an entry of `deliver`."""
        return next((entry for entry in self.entries if (entry["user"], entry["device"]) == (end["user"], end["device"])), None)


class CallKeys:
    """The keys of one call during one stay of this device (section 5): the chain of lists, the secrets, and what they seal."""

    def __init__(self, call, devices):
        self.call, self.devices, self.join_id, self.join = call, devices, os.urandom(16), new_key()
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
        old, gone, number, previous = self.newest, self.gone, event["epoch"], b64decode(event["previous"])
        if old and number == old.number:
            require(b64decode(event["listHash"]) == old.hash, "an epoch has two lists")
            return old
        entries = event.get("list")
        if entries is None and old:
            kept = [entry for entry in old.entries if entry["participant"] not in event.get("removed", [])]
            entries = sorted(kept + event.get("added", []), key=lambda entry: (entry["user"].encode(), entry["device"].encode()))
        if not old and self.credentials["joinId"] not in [entry.get("joinId") for entry in entries or []]:
            return None
        require(self.entry() in entries, "this device is not on the list as it joined")
        for name in ("participant", "fingerprint", "joinId"):
            require(len({entry[name] for entry in entries}) == len(entries), f"a {name} is twice on the list")
        names = [(entry["user"].encode(), entry["device"].encode()) for entry in entries]
        require(names == sorted(set(names)), "the list is not in order")
        if old:
            numbers = [*(link["epoch"] for link in links), number]
            require(numbers == [old.number + 1 + step for step in range(len(numbers))], "the chain of lists has a gap")
            expected = old.hash
            for link in links:
                expected = sha256(layouts.list_bytes(self.call, link["epoch"], expected, b64decode(link["roster"])))
            require(previous == expected, "the chain of lists is broken")
            stays = {entry["joinId"]: entry for entry in old.entries}
            gone = gone | set(stays) - {entry["joinId"] for entry in entries}
            for entry in entries:
                require(entry["joinId"] not in gone, "a joinId that was removed is back")
                require(stays.get(entry["joinId"], entry) == entry, "an entry that stays has changed")
        epoch = Epoch(self.call, number, entries, previous, event["mode"])
        require(epoch.hash == b64decode(event["listHash"]), "the list does not have its hash")
        if old and not links and epoch.mode == "ratchet":
            require({entry["fingerprint"] for entry in old.entries} <= {entry["fingerprint"] for entry in entries}, "a ratchet lacks a device")
            epoch.secret = old.secret and layouts.hkdf512(old.secret, self.call, layouts.ratchet_info(number, epoch.hash), 32)
        self.newest, self.gone = epoch, gone
        return epoch

    def seal_for(self, receiver):
        """The newest epoch's envelope for an entry of `deliver` or `to` (5.6). None if its device is not trusted."""
        epoch, entry = self.newest, self.newest.find(receiver)
        require(entry and entry["joinId"] == receiver["joinId"], "a key is wanted for a device that is not on the list")
        self.devices.learn(receiver)
        key, signer = receiver.get("refresh", entry["joinKey"]), self.devices.sign_key(entry)
        spki, stay = b64decode(key["publicKey"]), (b64decode(entry["fingerprint"]), b64decode(entry["joinId"]))
        signed = layouts.join_bytes(self.call, *stay, key["generation"], key["at"], key["alg"], spki)
        if not signer or key["alg"] != HPKE or not layouts.verify(signer, signed, b64decode(key["signature"])):
            return None
        # The SPKI of a P-256 key ends with its uncompressed point.
        sealed, to = layouts.hpke_seal(new_key(), spki[-65:], SEALED_FOR, b"", epoch.secret), (entry["user"], entry["device"])
        names = (self.devices.user, self.devices.device), to
        signed = layouts.transcript_of(self.call, epoch.number, *names, HPKE, sha256(spki), sealed, epoch.hash)
        envelope = {"epoch": epoch.number, "to": {"user": to[0], "device": to[1]}, "key": b64(sha256(spki)), "alg": HPKE}
        return envelope | {"ciphertext": b64(sealed), "sigAlg": "ES256", "signature": b64(self.devices.sign.sign(signed))}

    def open_envelope(self, envelope):
        """Keeps the first valid secret of the newest epoch (5.6)."""
        epoch, sealed, key = self.newest, b64decode(envelope["ciphertext"]), b64decode(envelope["key"])
        names = [(envelope[end]["user"], envelope[end]["device"]) for end in ("from", "to")]
        require(epoch.find(envelope["to"]) == self.entry() and key == sha256(self.join.spki), "an envelope is for another device or stay")
        entry = epoch.find(envelope["from"])
        signer = entry and self.devices.sign_key(entry)
        signed = layouts.transcript_of(self.call, epoch.number, *names, envelope["alg"], key, sealed, epoch.hash)
        require(signer and layouts.verify(signer, signed, b64decode(envelope["signature"])), "an envelope has no signature of a trusted member")
        secret = layouts.hpke_open(self.join, SEALED_FOR, b"", sealed)
        require(len(secret) == 32, "a secret has 32 bytes")
        epoch.secret = epoch.secret or secret

    def tag(self):
        """The body of `keys/confirm` (5.8)."""
        epoch = self.used
        key = layouts.hkdf512(epoch.secret, self.call, layouts.confirm_info(epoch.number, epoch.hash), 32)
        return layouts.tag_of(key, self.participant, self.devices.fingerprint, self.join_id)

    def message_key(self, entry):
        """An entry's base key and its KID for messages (5.5)."""
        epoch, stay = self.used, (b64decode(entry["fingerprint"]), b64decode(entry["joinId"]))
        info = layouts.sender_info(epoch.number, epoch.hash, entry["participant"], *stay)
        return layouts.hkdf512(epoch.secret, self.call, info, 64), layouts.kid_of(entry["participant"], 0, epoch.number)

    def seal_message(self, text):
        return b"\0" + layouts.sframe_seal(*self.message_key(self.entry()), next(self.counters), b"message", json.dumps({"text": text}).encode())

    def open_message(self, sender, body):
        """The sender's user id and the text (5.9, 5.10). Messages come in order, so a counter that does not rise is a replay."""
        require(self.used, "a message came before the key")
        entry = next((entry for entry in self.used.entries if entry["participant"] == sender), None)
        require(entry and sender != self.participant and body[:1] == b"\0", "a message is of no member, or not for all")
        kid, counter, _ = layouts.sframe_numbers(body[1:])
        base, expected = self.message_key(entry)
        require(kid == expected and counter > self.heard.get(kid, -1), "a message has the key of another member or epoch, or came twice")
        text = json.loads(layouts.sframe_open(base, kid, counter, b"message", body[1:]))["text"]
        self.heard[kid] = counter
        return entry["user"], text


class Client:
    def __init__(self, connection, devices):
        self.connection, self.devices, self.keys, self.waiting, self.confirm_at = connection, devices, None, [], None
        reply = connection.request("/app/devices/register", {"name": "client.py", "keys": devices.keys})
        require(b64decode(reply["fingerprint"]) == devices.fingerprint, "the server computes another fingerprint")
        connection.send("SUBSCRIBE", {"id": "events", "destination": "/user/queue/events", "ack": "client-individual"})

    def ask(self, what, body=None):
        return self.connection.request(f"/app/calls/{self.keys.call}/{what}", body)

    def start(self, callees):
        self.keys = CallKeys(str(uuid.uuid4()), self.devices)
        body = {"id": self.keys.call, "callees": callees, "media": "audio"}
        reply = self.connection.request("/app/calls/start", body | self.keys.credentials)
        require((reply["call"]["id"], reply["participant"]) == (self.keys.call, 1), "the server started another call")
        self.keys.participant = 1
        self.keys.begin()
        say("started", " ".join(f"{user}: {result}" for user, result in reply["results"].items()))

    def accept(self, ring):
        require(str(uuid.UUID(ring["call"], version=4)) == ring["call"], "a call's id is a random UUID")
        self.keys = CallKeys(ring["call"], self.devices)
        self.keys.participant = self.ask("accept", self.keys.credentials)["participant"]
        say("answered", ring["from"])

    def handle(self, name, event):
        """Returns whether the call goes on."""
        if name == "call.ring" and not self.keys:
            self.accept(event)
        elif self.keys and event.get("call") == self.keys.call:
            newest = self.keys.newest.number if self.keys.newest else 0
            if name == "call.ended":
                say("ended", event["reason"])
                return False
            if name in ("call.member", "call.members"):
                for member in event.get("members", [event]):
                    say("member", f"{member['user']}: {member['cause']}")
            elif name == "keys.rotate" and event["epoch"] >= newest:
                self.rotate(event)
            elif name == "keys.request" and newest and event["epoch"] == newest and self.keys.newest.secret:
                self.hand_out([event["to"]])
            elif name == "keys.envelope" and newest and event["epoch"] == newest:
                for device in self.connection.request("/app/devices/list", {"users": [event["from"]["user"]]})["devices"]:
                    self.devices.learn(device)
                self.keys.open_envelope(event)
            elif name == "keys.switch" and newest and event["epoch"] == newest:
                self.switch()
            elif name == "message":
                say("message", "{}: {}".format(*self.keys.open_message(event["from"], b64decode(event["body"]))))
        return True

    def rotate(self, event):
        newest = self.keys.newest
        if newest and event["epoch"] > newest.number + 1:
            missed = self.ask("keys/list", {"since": newest.number})
            self.keys.announce(missed, [link for link in missed["links"] if link["epoch"] < missed["epoch"]])
        epoch = self.keys.announce(event)
        if epoch and event["leader"] == self.keys.participant and "deliver" in event:
            if epoch.mode == "fresh" and not epoch.secret:
                epoch.secret = os.urandom(32)
            if epoch.secret:
                self.hand_out(event["deliver"])
            else:
                self.ask("keys/request", {"epoch": epoch.number})

    def hand_out(self, receivers):
        sealed = [self.keys.seal_for(receiver) for receiver in receivers]
        self.ask("keys", {"epoch": self.keys.newest.number, "envelopes": [envelope for envelope in sealed if envelope]})

    def switch(self):
        epoch = self.keys.newest
        if not epoch.secret:
            say("waiting", "for the key")
            return self.ask("keys/request", {"epoch": epoch.number})
        self.keys.used = epoch
        say("code", layouts.code_of(self.keys.call, epoch.roster))
        self.confirm_at = time.monotonic() + random.uniform(0, max(0.5, 0.01 * len(epoch.entries)))
        self.send_waiting()

    def confirm(self):
        self.confirm_at = None
        if self.keys.used is self.keys.newest:
            self.ask("keys/confirm", {"epoch": self.keys.used.number, "tag": b64(self.keys.tag())})

    def send_waiting(self):
        """Messages wait until somebody else has the key."""
        while self.waiting and self.keys and self.keys.used and len(self.keys.used.entries) > 1:
            self.ask("message", {"body": b64(self.keys.seal_message(self.waiting.pop(0)))})

    def run(self, lines):
        """Goes on until the call is over, or `lines` ends: then this device leaves."""
        while True:
            try:
                while self.connection.events:
                    if not self.take_event(*self.connection.events.popleft()):
                        return
                if self.confirm_at and time.monotonic() > self.confirm_at:
                    self.confirm()
                if select.select([lines], [], [], 0)[0]:
                    line = lines.readline().decode()
                    if not line:
                        return self.keys and self.ask("leave")
                    self.waiting.append(line.rstrip("\n"))
                    self.send_waiting()
            except RequestFailed as error:
                # The call changed meanwhile: an event says how.
                say("refused", error)
            self.connection.take(0.1)

    def take_event(self, name, body, ack):
        """Returns whether the call goes on. A faulty server or member causes a warning."""
        answer = "ACK"
        try:
            return self.handle(name, json.loads(body))
        except (RequestFailed, OSError):
            raise
        except Exception as error:
            # Any value may be of another type, too large or nested too deeply.
            say("warning", f"{name}: {type(error).__name__} {error}")
            # Given back, so that another envelope comes.
            answer = "NACK" if name == "keys.envelope" else "ACK"
            return True
        finally:
            self.connection.send(answer, {"id": ack})


def main():
    options = argparse.ArgumentParser(description="A Conclave client without media.")
    options.add_argument("--server", default="127.0.0.1:61613", help="HOST:PORT of STOMP, with --tls of STOMP over TLS")
    options.add_argument("--tls", action="store_true")
    options.add_argument("--user", required=True)
    options.add_argument("--device", default="client.py")
    options.add_argument("--token", required=True)
    options.add_argument("--keys", type=pathlib.Path, help="file that keeps the device's keys (default: USER.keys)")
    options.add_argument("what", choices=["call", "answer"])
    options.add_argument("callees", nargs="*")
    given = options.parse_args()
    devices = Devices(given.keys or pathlib.Path(f"{given.user}.keys"), given.user, given.device)
    client = Client(Connection(given.server, given.user, given.device, given.token, given.tls), devices)
    say("ready", b64(devices.fingerprint))
    if given.what == "call":
        client.start(given.callees)
    # Unbuffered, so that `select` sees every line.
    client.run(open(sys.stdin.fileno(), "rb", buffering=0))


if __name__ == "__main__":
    main()
