"""A client of the protocol on top of stomp.py, with device keys from Python's cryptography package. It shares no code with the project's own clients."""

import base64
import itertools
import json
import os
import queue
import threading
import time
import uuid

import stomp

import words
from waiting import PATIENCE

CONNECTIONS = {"1.0": stomp.StompConnection10, "1.1": stomp.StompConnection11, "1.2": stomp.StompConnection12}


class RequestFailed(Exception):
    def __init__(self, error):
        super().__init__(error["code"])
        self.code, self.error = error["code"], error


class Client(stomp.ConnectionListener):
    def __init__(self, server, user, device, version="1.2"):
        self.user, self.device, self.version = user, device, version
        self.sign_key = self.fingerprint = None
        self.numbers = itertools.count(1)
        self.replies, self.waiting = {}, threading.Condition()
        self.events, self.seen = queue.Queue(), []
        self.errors = queue.Queue()
        self.closed = threading.Event()
        arguments = {} if version == "1.0" else {"heartbeats": (5000, 5000)}
        self.connection = CONNECTIONS[version]([("127.0.0.1", server.stomp_port)], **arguments)
        self.connection.set_listener("", self)
        self.connection.connect(user, server.token(user, device), wait=True)
        self.subscribe("/user/queue/replies", "replies")
        self.subscribe("/user/queue/events", "events")

    def subscribe(self, destination, identifier):
        self.connection.subscribe(destination, id=identifier, ack="auto")

    # stomp.py's callbacks

    def on_connected(self, frame):
        self.connected = frame.headers

    def on_message(self, frame):
        if "request-id" in frame.headers:
            with self.waiting:
                self.replies[frame.headers["request-id"]] = frame
                self.waiting.notify_all()
        else:
            self.events.put((frame.headers["event"], json.loads(frame.body), frame.headers))

    def on_error(self, frame):
        self.errors.put(frame)

    def on_disconnected(self):
        self.closed.set()

    # actions of a test

    def request(self, destination, body=None, raw=None):
        """Sends a request and returns the reply's body; raises RequestFailed for `status: error`. A request that lets people in gets the words for them."""
        number = str(next(self.numbers))
        body = words.with_words(destination, body, self.user, self.sign_key, self.fingerprint)
        text = raw if raw is not None else json.dumps(body or {})
        self.connection.send(destination, text, content_type="application/json", headers={"request-id": number})
        with self.waiting:
            assert self.waiting.wait_for(lambda: number in self.replies, 10 * PATIENCE), f"no reply to {destination}"
            frame = self.replies.pop(number)
        content = json.loads(frame.body)
        if frame.headers["status"] == "error":
            raise RequestFailed(content["error"])
        words.remember(body, content)
        return content

    def event(self, name, seconds=5, where=lambda body: True):
        """The next event of that name; others before it are kept in `seen`."""
        for kind, body in self.seen:
            if kind == name and where(body):
                self.seen.remove((kind, body))
                return body
        while True:
            try:
                kind, body, _ = self.events.get(timeout=seconds * PATIENCE)
            except queue.Empty:
                raise AssertionError(f"{self.user} got no {name}, but {[kind for kind, _ in self.seen]}") from None
            if kind == name and where(body):
                return body
            self.seen.append((kind, body))

    def register(self):
        """Registers fresh public keys; nobody opens what is wrapped for them."""
        self.sign_key = words.SignKey()
        named = [("wrap", "HPKE-P256-SHA256-AES256GCM", words.SignKey()), ("sign", "ES256", self.sign_key)]
        keys = [{"use": use, "alg": alg, "publicKey": words.b64(key.spki)} for use, alg, key in named]
        reply = self.request("/app/devices/register", {"name": self.device, "keys": keys})
        self.fingerprint = base64.b64decode(reply["fingerprint"])
        return reply

    def join(self):
        """`joinId` and `joinKey` of a join."""
        key = {
            "v": 2,
            "alg": "HPKE-P256-SHA256-AES256GCM",
            "publicKey": base64.b64encode(os.urandom(91)).decode(),
            "generation": 0,
            "at": int(time.time() * 1000),
            "signature": base64.b64encode(os.urandom(64)).decode(),
        }
        return {"joinId": base64.b64encode(os.urandom(16)).decode(), "joinKey": key}

    def starting(self):
        """The further fields of `start`: the call's id and those of a join."""
        return {"id": str(uuid.uuid4()), **self.join()}

    def start(self, *callees, media="audio", **more):
        return self.request("/app/calls/start", {"callees": list(callees), "media": media, **self.starting(), **more})

    def close(self):
        if not self.closed.is_set():
            self.connection.disconnect()
