"""A client written only from the protocol's text: raw STOMP 1.2 over TCP or WebSocket, with made-up keys."""

import base64
import hashlib
import itertools
import json
import os
import socket
import time
import uuid

import websocket

import jwt_forge
import words
from client import RequestFailed
from waiting import PATIENCE

# Never the id of a call.
NO_CALL = "00000000-0000-4000-8000-000000000000"


def b64(data):
    return base64.b64encode(data).decode()


def lp(data):
    data = data.encode() if isinstance(data, str) else data
    return len(data).to_bytes(2, "big") + data


def roster_hash(entries):
    """The encoding of an epoch's list (section 5.2)."""
    assert entries == sorted(entries, key=lambda e: (e["user"].encode(), e["device"].encode())), "out of order"
    data = b"conclave-roster-v2" + len(entries).to_bytes(4, "big")
    for entry in entries:
        key = entry.get("joinKey")
        data += lp(entry["user"]) + lp(entry["device"]) + entry["participant"].to_bytes(4, "big")
        data += base64.b64decode(entry["fingerprint"])
        data += base64.b64decode(entry["joinId"]) if entry.get("joinId") else bytes(16)
        data += hashlib.sha256(base64.b64decode(key["publicKey"])).digest() if key else bytes(32)
    return hashlib.sha256(data).digest()


def list_hash(call, epoch, previous, entries):
    """The hash of the list in the chain. `previous` is the hash of the previously announced epoch, in base64, or None before epoch 1."""
    before = base64.b64decode(previous) if previous else bytes(32)
    data = b"conclave-list-v2" + lp(call) + epoch.to_bytes(4, "big") + before + roster_hash(entries)
    return b64(hashlib.sha256(data).digest())


def token(server, user, seconds=600, **claims):
    secret = (server.state / "secret").read_text().strip()
    return jwt_forge.sign(secret, {"sub": user, "exp": int(time.time()) + seconds, **claims})


class Frame:
    def __init__(self, command, headers, body):
        self.command, self.headers, self.body = command, headers, body

    def __repr__(self):
        return f"{self.command} {self.headers} {self.body[:300]!r}"

    @property
    def json(self):
        return json.loads(self.body)


class Wire:
    """STOMP frames over one connection, which are read only on request."""

    def __init__(self, server, transport="tcp", path="/stomp", subprotocols=("v12.stomp",)):
        self.buffer, self.web = b"", None
        if transport == "tcp":
            self.socket = socket.create_connection(("127.0.0.1", server.stomp_port), 10 * PATIENCE)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        else:
            address = f"ws://127.0.0.1:{server.http_port}{path}"
            self.web = websocket.create_connection(address, 10 * PATIENCE, subprotocols=list(subprotocols), suppress_origin=True)

    def write(self, data):
        if self.web:
            self.web.send_binary(data)
        else:
            self.socket.sendall(data)

    def send(self, command, headers=None, body=b""):
        body = body.encode() if isinstance(body, str) else body
        lines = [command] + [f"{name}:{value}" for name, value in (headers or {}).items()]
        if body:
            lines.append(f"content-length:{len(body)}")
        self.write("\n".join(lines).encode() + b"\n\n" + body + b"\0")

    def _more(self, seconds):
        try:
            if self.web:
                self.web.settimeout(seconds)
                data = self.web.recv()
                return data.encode() if isinstance(data, str) else data
            self.socket.settimeout(seconds)
            return self.socket.recv(1 << 16)
        except (websocket.WebSocketTimeoutException, TimeoutError):
            raise TimeoutError from None
        except (websocket.WebSocketConnectionClosedException, ConnectionError):
            return b""

    def read(self, seconds=5):
        """The next frame, or None when the server has closed."""
        return self._read_until(time.monotonic() + seconds * PATIENCE)

    def _read_until(self, end):
        while True:
            self.buffer = self.buffer.lstrip(b"\n")
            if frame := self._frame():
                return frame
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError
            data = self._more(left)
            if not data:
                return None
            self.buffer += data

    def _frame(self):
        head, found, rest = self.buffer.partition(b"\n\n")
        if not found:
            return None
        command, *lines = head.decode().split("\n")
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            assert name not in headers, f"{name} occurs twice in {lines}"
            headers[name] = value if command == "CONNECTED" else unescape(value)
        length = int(headers["content-length"]) if "content-length" in headers else rest.find(b"\0")
        if length < 0 or len(rest) <= length:
            return None
        assert rest[length] == 0
        self.buffer = rest[length + 1 :]
        return Frame(command, headers, rest[:length])

    def error(self, seconds=5):
        """Reads up to the ERROR frame and the end of the connection; returns the ERROR."""
        while frame := self.read(seconds):
            if frame.command == "ERROR":
                assert self.read(seconds) is None, "after an ERROR the server closes"
                return frame
        raise AssertionError("closed without an ERROR")

    def close(self):
        """Closes the connection as if the network had failed."""
        (self.web or self.socket).close()


def unescape(value):
    for escape, char in (("\\r", "\r"), ("\\n", "\n"), ("\\c", ":")):
        value = value.replace(escape, char)
    return value.replace("\\\\", "\\")


class Device(Wire):
    """A device of a user, signed in, registered and subscribed unless told otherwise."""

    def __init__(self, server, user, device="phone", ack="auto", keys=True, connect=None, claims=None, **wire):
        super().__init__(server, **wire)
        self.server, self.user, self.device, self.ack_mode = server, user, device, ack
        self.numbers, self.events, self.topics, self.receipts = itertools.count(1), [], [], set()
        self.sign_key = None
        headers = {"accept-version": "1.2", "host": "test", "passcode": token(server, user, **(claims or {}))}
        if device:
            headers["device"] = device
        self.send("CONNECT", {**headers, **(connect or {})})
        self.connected = self.read()
        assert self.connected.command == "CONNECTED", self.connected
        if ack:
            self.subscribe("/user/queue/replies", "replies")
        if keys:
            self.make_keys()
            assert self.register()["fingerprint"] == b64(self.fingerprint)
        if ack:
            self.subscribe("/user/queue/events", "events", ack)

    # STOMP

    def subscribe(self, destination, id, ack="auto"):
        """The server has processed it when this returns."""
        self.receipt("SUBSCRIBE", {"destination": destination, "id": id, "ack": ack})

    def receipt(self, command, headers, body=b""):
        name = f"r{next(self.numbers)}"
        self.send(command, {**headers, "receipt": name}, body)
        self._until(lambda: name in self.receipts, 5, f"no RECEIPT for {command} {headers}")

    def _until(self, is_there, seconds, what):
        end = time.monotonic() + seconds * PATIENCE
        while not is_there():
            try:
                frame = self._read_until(end)
            except TimeoutError:
                raise AssertionError(f"{self.user}: {what() if callable(what) else what}") from None
            assert frame is not None, f"{self.user}: closed; {what() if callable(what) else what}"
            self._sort(frame)

    def _sort(self, frame):
        assert frame.command != "ERROR", frame
        if frame.command == "RECEIPT":
            self.receipts.add(frame.headers["receipt-id"])
        elif frame.headers["destination"] == "/user/queue/replies":
            self.reply = frame
        elif frame.headers["destination"] == "/user/queue/events":
            self.events.append(frame)
        else:
            self.topics.append(frame)

    def ack(self, frame, command="ACK"):
        self.send(command, {"id": frame.headers["ack"]})

    # the protocol

    def request(self, destination, body=None, raw=None, **headers):
        """The reply's body; raises RequestFailed for `status: error`. A request that lets people in gets the words for them."""
        body = words.with_words(destination, body, self.user, self.sign_key, self.sign_key and self.device and self.fingerprint)
        number = f"q{next(self.numbers)}"
        text = raw if raw is not None else "" if body is None else json.dumps(body)
        self.reply = None
        self.send("SEND", {"destination": destination, "request-id": number, **headers}, text)
        self._until(lambda: self.reply, 10, f"no reply to {destination}")
        assert self.reply.headers["request-id"] == number and self.reply.headers["content-type"] == "application/json"
        content = self.reply.json
        if self.reply.headers["status"] == "error":
            assert content["error"]["message"]
            raise RequestFailed(content["error"])
        assert self.reply.headers["status"] == "ok"
        words.remember(body, content)
        return content

    def fails(self, destination, body=None, raw=None):
        """The error's code."""
        try:
            content = self.request(destination, body, raw)
        except RequestFailed as failed:
            self.error_body = failed.error
            return failed.code
        raise AssertionError(f"{destination} {body} was taken: {content}")

    def event(self, name, seconds=5, where=lambda body: True):
        """Removes and returns the body of the next such event; `frame` has the whole event."""

        def found():
            return next((f for f in self.events if f.headers["event"] == name and where(f.json)), None)

        self._until(found, seconds, lambda: f"no {name}, but {[(f.headers['event'], f.json) for f in self.events]}")
        self.frame = found()
        self.events.remove(self.frame)
        return self.frame.json

    def topic(self, seconds=5):
        """The next MESSAGE that is neither reply nor event."""
        self._until(lambda: self.topics, seconds, "no MESSAGE")
        return self.topics.pop(0)

    def sync(self):
        """Sends a request, so that everything the server wrote to this connection before it has been read."""
        self.request("/app/calls/list")
        return self

    def names(self):
        """Removes the events that came, and returns their names."""
        names = [f.headers["event"] for f in self.sync().events]
        self.events.clear()
        return names

    def make_keys(self, alg="ES256", **options):
        self.wrap, self.sign_key = os.urandom(91), words.SignKey(alg, **options)
        self.sign = self.sign_key.spki

    @property
    def fingerprint(self):
        parts = [self.user, self.device, "HPKE-P256-SHA256-AES256GCM", self.wrap, self.sign_key.alg, self.sign]
        return hashlib.sha256(b"conclave-device-v1" + b"".join(map(lp, parts))).digest()

    def register(self):
        wrap = {"use": "wrap", "alg": "HPKE-P256-SHA256-AES256GCM", "publicKey": b64(self.wrap)}
        sign = {"use": "sign", "alg": self.sign_key.alg, "publicKey": b64(self.sign)}
        return self.request("/app/devices/register", {"name": self.device, "keys": [wrap, sign]})

    def start(self, *callees, media="audio", **more):
        body = {"callees": list(callees), "media": media, **starting(), **more}
        reply = self.request("/app/calls/start", body)
        self.participant = reply["participant"]
        return reply["call"]["id"], reply

    def call(self, call, what, body=None):
        return self.request(f"/app/calls/{call}/{what}", body)

    def enter(self, call, how="accept", body=None):
        reply = self.call(call, how, body or join())
        self.participant = reply["participant"]
        return reply


def join_key(generation=0):
    return {
        "v": 2,
        "alg": "HPKE-P256-SHA256-AES256GCM",
        "publicKey": b64(os.urandom(91)),
        "generation": generation,
        "at": int(time.time() * 1000),
        "signature": b64(os.urandom(64)),
    }


def join():
    """`joinId` and `joinKey` as accept, join, rejoin and transfer have them."""
    return {"joinId": b64(os.urandom(16)), "joinKey": join_key()}


def starting():
    """The further fields of `start`: the call's id and those of a join."""
    return {"id": str(uuid.uuid4()), **join()}


def envelope(epoch, to, device="phone", size=113):
    return {
        "epoch": epoch,
        "to": {"user": to, "device": device},
        "key": b64(os.urandom(32)),
        "alg": "HPKE-P256-SHA256-AES256GCM",
        "ciphertext": b64(os.urandom(size)),
        "sigAlg": "ES256",
        "signature": b64(os.urandom(64)),
    }


def member(state, user):
    return next((m for m in state["members"] if m["user"] == user), None)


def states(state):
    return {m["user"]: m["state"] for m in state["members"]}
