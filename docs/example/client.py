#!/usr/bin/env python3
"""A Conclave client: it signs in, rings or answers, agrees on keys, and exchanges sealed messages. It has no media.

    client.py --user alice --token "$(conclave token --user alice)" call bob
    client.py --user bob --token "$(conclave token --user bob)" answer

Each line of the standard input goes to the call; the end of the input leaves it. Beside this file, agreement.py has what the keys of a call rest on,
admissions.py who lets whom in, and layouts.py each byte layout. All need Python 3.11 and the packages `cryptography` (43 or later) and `websocket-client`. Sections are those of
docs/protocol.md; a client for people follows all the checklists there. This one trusts a device when it sees it for the first time, makes no ring envelopes
(5.7), does not refresh its join key (5.1), and comes by no link (5.13).
"""

import argparse
import collections
import itertools
import json
import os
import pathlib
import random
import select
import sys
import time
import uuid
from base64 import b64decode

import layouts
import websocket
from agreement import CallKeys, Devices, require, say
from layouts import b64


class RequestFailed(Exception):
    """The reply had `status: error`. The text begins with the error's code."""


class Connection:
    """STOMP 1.2 over WebSocket (sections 1 to 3): each message of the server's is one frame or one heart-beat."""

    def __init__(self, url, user, device, token):
        self.events, self.numbers = collections.deque(), itertools.count(1)
        self.web = websocket.create_connection(url, 10, subprotocols=["v12.stomp"])
        self.send("CONNECT", {"accept-version": "1.2", "host": "conclave", "heart-beat": "10000,10000", "passcode": token, "device": device})
        command, headers, _ = self.read(10)
        if command != "CONNECTED":
            raise ConnectionError(f"not signed in: {command} {headers.get('message', '')}")
        require((headers["user-name"], headers["device"]) == (user, device), "the server signed in another user or device")
        self.send("SUBSCRIBE", {"id": "replies", "destination": "/user/queue/replies", "ack": "auto"})

    def send(self, command, headers, body=""):
        lines = [command, *(f"{name}:{value}" for name, value in headers.items()), "", body]
        self.web.settimeout(10)
        self.web.send("\n".join(lines) + "\0")
        self.wrote = time.monotonic()

    def read(self, seconds):
        """The next frame as (command, headers, body), or one without a command after `seconds` or a heart-beat. Sends the heart-beats that are due."""
        if time.monotonic() > self.wrote + 5:
            self.web.send("\n")
            self.wrote = time.monotonic()
        self.web.settimeout(seconds)
        try:
            message = self.web.recv()
        except websocket.WebSocketTimeoutException:
            return "", {}, ""
        if not message:
            raise ConnectionError("the server closed the connection")
        head, _, body = message.partition("\n\n")
        command, *lines = head.split("\n")
        # The first of equal names counts.
        return command, dict(line.split(":", 1) for line in reversed(lines) if line), body.removesuffix("\0")

    def take(self, seconds):
        """Reads a frame. Returns a reply as (request-id, status, body); puts an event into `events` as (name, JSON, ack)."""
        command, headers, body = self.read(seconds)
        if command == "ERROR":
            raise ConnectionError(headers.get("message"))
        if "event" in headers:
            self.events.append((headers["event"], body, headers["ack"].replace("\\c", ":")))
        return (headers["request-id"], headers["status"], json.loads(body)) if "request-id" in headers else None

    def request(self, destination, body=None):
        number, end = f"r{next(self.numbers)}", time.monotonic() + 10
        self.send("SEND", {"destination": destination, "request-id": number, "content-type": "application/json"}, json.dumps(body or {}))
        while time.monotonic() < end:
            reply = self.take(1)
            if reply and reply[0] == number:
                if reply[1] != "ok":
                    raise RequestFailed(f"{reply[2]['error']['code']}: {reply[2]['error']['message']}")
                return reply[2]
        raise ConnectionError(f"no reply to {destination}")


class Client:
    def __init__(self, connection, devices):
        self.connection, self.devices, self.keys, self.waiting, self.confirm_at = connection, devices, None, [], None
        reply = connection.request("/app/devices/register", {"name": "client.py", "keys": devices.keys})
        require(b64decode(reply["fingerprint"]) == devices.fingerprint, "the server computes another fingerprint")
        connection.send("SUBSCRIBE", {"id": "events", "destination": "/user/queue/events", "ack": "client-individual"})

    def ask(self, what, body=None):
        return self.connection.request(f"/app/calls/{self.keys.call}/{what}", body)

    def start(self, callees):
        self.keys = CallKeys(str(uuid.uuid4()), self.devices, root=self.devices.user)
        words = self.keys.admissions.words_for([*callees, self.devices.user])
        body = {"id": self.keys.call, "callees": callees, "media": "audio", "admissions": words}
        reply = self.connection.request("/app/calls/start", body | self.keys.credentials)
        require((reply["call"]["id"], reply["participant"]) == (self.keys.call, 1), "the server started another call")
        self.keys.participant = 1
        self.keys.begin()
        say("started", " ".join(f"{user}: {result}" for user, result in reply["results"].items()))

    def accept(self, ring):
        require(str(uuid.UUID(ring["call"], version=4)) == ring["call"], "a call's id is a random UUID")
        self.keys = CallKeys(ring["call"], self.devices)
        self.keys.admissions.ring(ring)
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
        if epoch:
            self.judge(epoch)
        if epoch and event["leader"] == self.keys.participant and "deliver" in event:
            if epoch.mode == "fresh" and not epoch.secret:
                epoch.secret = os.urandom(32)
            if epoch.secret:
                self.hand_out(event["deliver"])
            else:
                self.ask("keys/request", {"epoch": epoch.number})

    def judge(self, epoch):
        """Says who is listed and was let in by nobody (5.13)."""
        unknown = self.keys.admissions.unknown_users(epoch.entries)
        for device in self.connection.request("/app/devices/list", {"users": unknown})["devices"] if unknown else []:
            self.devices.learn(device)
        had_root = self.keys.admissions.root
        self.keys.admissions.judge()
        if self.keys.admissions.root != had_root:
            say("invited", f"to the call of {self.keys.admissions.root}")
        for entry in self.keys.uninvited(epoch):
            say("warning", f"nobody let {entry['user']} in: nothing is sent")

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
        while self.waiting and self.keys and self.keys.used and len(self.keys.used.entries) > 1 and not self.keys.uninvited(self.keys.used):
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
        except (RequestFailed, OSError, websocket.WebSocketException):
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
    options.add_argument("--server", default="ws://127.0.0.1:8080/stomp", help="wss:// with TLS")
    options.add_argument("--user", required=True)
    options.add_argument("--device", default="client.py")
    options.add_argument("--token", required=True)
    options.add_argument("--keys", type=pathlib.Path, help="file that keeps the device's keys (default: USER.keys)")
    options.add_argument("what", choices=["call", "answer"])
    options.add_argument("callees", nargs="*")
    given = options.parse_args()
    devices = Devices(given.keys or pathlib.Path(f"{given.user}.keys"), given.user, given.device)
    client = Client(Connection(given.server, given.user, given.device, given.token), devices)
    say("ready", b64(devices.fingerprint))
    if given.what == "call":
        client.start(given.callees)
    # Unbuffered, so that `select` sees every line.
    client.run(open(sys.stdin.fileno(), "rb", buffering=0))


if __name__ == "__main__":
    main()
