"""The signaling cost of a join, a leave and a rotation: bytes and envelopes, with a real server, and devices that do everything but the cryptography.

CONCLAVE_BINARY=.build/release/conclave python Tests/EndToEnd/key_costs.py 10 100 1000

With `--joins 50`, 50 devices join each second instead, and the time from a device's request to its first key is measured.
"""

import argparse
import base64
import hashlib
import json
import os
import pathlib
import random
import selectors
import socket
import sys
import tempfile
import time
import uuid

from conftest import Server  # first: it sets the path by which the others are found

import device
import words
from lying_proxy import Frame


def b64(size):
    return base64.b64encode(os.urandom(size)).decode()


class Costs:
    def __init__(self):
        self.begin()

    def begin(self):
        self.down, self.up, self.envelopes, self.confirmations = 0, 0, 0, 0

    def __str__(self):
        return f"{self.envelopes:,} envelopes, {self.confirmations:,} confirmations, {self.down:,} bytes down, {self.up:,} bytes up"


class Light:
    """A device: one socket, no thread. It hands out the keys that are requested, and confirms the epochs to which it switches."""

    def __init__(self, crowd, number):
        self.crowd, self.user, self.buffer, self.requests = crowd, f"u{number:04}", bytearray(), 0
        self.replies = 0
        self.participant = self.epoch = self.announced = 0
        self.mode, self.confirm_at, self.refreshed = None, None, 0
        self.asked = self.keyed = None  # when it asked to join, and when it had a key
        self.sent, self.refused = {}, []  # requests without a reply; those to be made again, with the time
        self.socket = socket.create_connection(("127.0.0.1", crowd.server.stomp_port))
        self.write("CONNECT", {"accept-version": "1.2", "host": "test", "passcode": device.token(crowd.server, self.user, 7200), "device": "phone"})
        self.write("SUBSCRIBE", {"id": "0", "destination": "/user/queue/replies", "ack": "auto"})
        self.sign_key, wrap = words.SignKey(), os.urandom(91)
        parts = self.user, "phone", HPKE, wrap, "ES256", self.sign_key.spki
        self.fingerprint = hashlib.sha256(b"conclave-device-v1" + b"".join(map(device.lp, parts))).digest()
        named = ("wrap", HPKE, wrap), ("sign", "ES256", self.sign_key.spki)
        keys = [{"use": use, "alg": alg, "publicKey": words.b64(key)} for use, alg, key in named]
        self.request("devices/register", {"name": "phone", "keys": keys})
        self.write("SUBSCRIBE", {"id": "1", "destination": "/user/queue/events", "ack": "auto"})

    def write(self, command, headers, body=b""):
        data = Frame(command, headers, body).encode()
        self.socket.sendall(data)
        return len(data)

    def request(self, path, body):
        self.requests += 1
        body = words.with_words(f"/app/{path}", body, self.user, self.sign_key, self.fingerprint)
        if path.endswith("/link"):
            self.link_body = body
        self.sent[str(self.requests)] = path, body
        size = self.write("SEND", {"destination": f"/app/{path}", "request-id": f"{self.requests}"}, json.dumps(body, separators=(",", ":")).encode())
        if "/keys" in path:
            self.crowd.costs.up += size

    def join_key(self, generation=0):
        return {"v": 2, "alg": HPKE, "publicKey": b64(91), "generation": generation, "at": int(time.time() * 1000), "signature": b64(64)}

    def join_credentials(self):
        return {"joinId": b64(16), "joinKey": self.join_key()}

    def read(self):
        self.buffer += self.socket.recv(1 << 20)
        before = len(self.buffer)
        while frame := Frame.take(self.buffer):
            size, before = before - len(self.buffer), len(self.buffer)
            if frame.command == "ERROR":
                raise AssertionError(frame.body or frame.headers)
            if "request-id" in frame.headers:
                self.replies += 1
                request = self.sent.pop(frame.headers["request-id"], None)
                if b'"rate.limited"' in frame.body:
                    self.refused.append((time.monotonic() + frame.json["error"]["retryAfterMs"] / 1000, *request))
                elif b'"participant"' in frame.body[:40] or b'"participant":' in frame.body and b'"ice"' in frame.body:
                    self.participant = frame.json["participant"]
                    self.crowd.call = frame.json["call"]["id"]
                elif frame.headers["status"] != "ok" and b"epoch-stale" not in frame.body:
                    raise AssertionError(frame.body)
                elif b'"link"' in frame.body:
                    self.crowd.link = frame.json["link"]
                    words.remember(self.link_body, frame.json)
                continue
            name = frame.headers.get("event", "")
            if name.startswith("keys."):
                self.crowd.costs.down += size
                self.key_event(name, frame.json)

    def key_event(self, name, body):
        if name == "keys.rotate":
            self.announced, self.mode = body["epoch"], body["mode"]
            if "deliver" in body:
                self.hand_out(body["epoch"], body["deliver"])
        elif name == "keys.request":
            self.hand_out(body["epoch"], [body["to"]])
        elif name == "keys.envelope":
            self.crowd.costs.envelopes += 1
        elif name == "keys.switch":
            self.epoch = body["epoch"]
            self.keyed = self.keyed or time.monotonic()
            if self.crowd.confirms:
                self.confirm_at = time.monotonic() + random.random() * max(0.5, len(self.crowd.devices) / 100)

    def hand_out(self, epoch, entries):
        envelopes = [{**device.envelope(epoch, entry["user"], entry["device"]), "key": b64(32)} for entry in entries]
        self.request(f"calls/{self.crowd.call}/keys", {"epoch": epoch, "envelopes": envelopes})

    def tick(self, now):
        for due in [refused for refused in self.refused if refused[0] <= now]:
            self.refused.remove(due)
            self.request(*due[1:])
        if not self.confirm_at or self.confirm_at > now:
            return
        self.confirm_at = None
        if self.announced > self.epoch or not self.participant:
            return
        body = {"epoch": self.epoch, "tag": b64(16)}
        if self.mode == "fresh" and (not self.refreshed or now - self.refreshed > 240):
            self.generation = getattr(self, "generation", 0) + 1
            body["joinKey"], self.refreshed = self.join_key(self.generation), now
        self.crowd.costs.confirmations += 1
        self.request(f"calls/{self.crowd.call}/keys/confirm", body)


HPKE = "HPKE-P256-SHA256-AES256GCM"


class Crowd:
    def __init__(self, server, count, confirms):
        self.server, self.confirms, self.costs = server, confirms, Costs()
        self.call = self.link = None
        self.selector = selectors.DefaultSelector()
        self.devices = []
        for number in range(count):
            one = Light(self, number)
            self.devices.append(one)
            self.selector.register(one.socket, selectors.EVENT_READ, one)
            if number % 20 == 19:
                self.run(lambda: all(one.replies for one in self.devices), 60)

    def run(self, until, seconds):
        end = time.monotonic() + seconds
        while not until():
            assert time.monotonic() < end, "not in time"
            for key, _ in self.selector.select(0.02):
                key.data.read()
            now = time.monotonic()
            for one in self.devices:
                one.tick(now)

    def start(self):
        """The first device starts the call and makes its link."""
        first = self.devices[0]
        policy = {"rotateMinutes": 1, "aloneSeconds": 600}
        first.request("calls/start", {"id": str(uuid.uuid4()), "callees": [], "media": "audio", "policy": policy, **first.join_credentials()})
        self.run(lambda: self.call, 20)
        first.request(f"calls/{self.call}/link", {})
        self.run(lambda: self.link, 20)

    def join(self, one):
        one.asked = time.monotonic()
        one.request(f"calls/{self.call}/join", {"link": self.link, **one.join_credentials()})

    def close(self):
        for one in self.devices:
            one.socket.close()

    def settle(self):
        """Whether all devices in the call have switched to the newest epoch, and no event about keys has come for a while."""
        joined = [one for one in self.devices if one.participant]
        newest = lambda: max(one.announced for one in joined)
        self.run(lambda: all(one.epoch == newest() for one in joined), 600)
        quiet = max(3.0, len(joined) / 100 * 1.2)
        last = [self.costs.down, time.monotonic()]

        def is_quiet():
            if self.costs.down != last[0] or any(one.confirm_at for one in joined):
                last[:] = self.costs.down, time.monotonic()
            return time.monotonic() - last[1] > quiet

        self.run(is_quiet, 600)

    def cost(self, what, action, epochs=1):
        before = max(one.announced for one in self.devices)
        self.costs.begin()
        action()
        self.run(lambda: max(one.announced for one in self.devices if one.participant) >= before + epochs, 120)
        self.settle()
        print(f"{what} of {len(self.devices)}: {self.costs}", flush=True)


def measure(server, count, confirms):
    crowd = Crowd(server, count, confirms)
    last, others = crowd.devices[-1], crowd.devices[1:-1]
    crowd.start()
    for start in range(0, len(others), 25):
        some = others[start : start + 25]
        for one in some:
            crowd.join(one)
        crowd.run(lambda: all(one.participant for one in some), 600)
    crowd.settle()
    crowd.cost("join", lambda: crowd.join(last))

    def leave():
        last.request(f"calls/{crowd.call}/leave", {})
        last.participant = 0

    crowd.cost("leave", leave)
    # The minute since the last switch has to pass.
    crowd.cost("rotation", lambda: None)
    crowd.close()


def join_times(server, count, rate, confirms):
    """Prints how long devices wait for their first key when `rate` of them join each second."""
    crowd = Crowd(server, count, confirms)
    crowd.start()
    began, others, spent = time.monotonic(), crowd.devices[1:], server.cpu_seconds()
    for place, one in enumerate(others):
        crowd.run(lambda: time.monotonic() >= began + place / rate, 60)
        crowd.join(one)
    took = time.monotonic() - began
    crowd.run(lambda: all(one.keyed for one in others), 120)
    times = sorted(1000 * (one.keyed - one.asked) for one in others)
    p50, p99 = (times[int(len(times) * share)] for share in (0.5, 0.99))
    epochs, cpu = max(one.announced for one in crowd.devices), 1000 * (server.cpu_seconds() - spent) / len(others)
    print(f"{count} joined in {took:.1f} s, {epochs} epochs, {cpu:.1f} ms of the server's CPU time for each join", flush=True)
    print(f"until the first key: p50 {p50:.0f}, p99 {p99:.0f}, longest {times[-1]:.0f} ms", flush=True)
    crowd.close()


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("counts", nargs="+", type=int, metavar="COUNT")
    arguments.add_argument("--confirm", action="store_true", help="devices confirm their keys")
    arguments.add_argument("--joins", type=float, metavar="RATE", help="measures joins at so many a second")
    arguments = arguments.parse_args()
    for count in arguments.counts:
        server = Server(pathlib.Path(tempfile.mkdtemp()), **json.loads(os.environ.get("CONCLAVE_CONFIG", "{}")))
        try:
            if arguments.joins:
                join_times(server, count, arguments.joins, arguments.confirm)
            else:
                measure(server, count, arguments.confirm)
        finally:
            server.stop()
