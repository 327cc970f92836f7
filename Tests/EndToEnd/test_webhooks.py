"""A small Python HTTP server as an app's back end: signed webhooks, and the authorize hook."""

import hashlib
import hmac
import http.server
import json
import threading
import time

import pytest

from client import Client
from conftest import Server, wait_for

SECRET = "a secret of the app's back end, long enough"


class BackEnd:
    """Records what is POSTed. The first `fails` POSTs of webhooks are answered with 503; `allowed` has the users whom authorize allows."""

    def __init__(self):
        self.received, self.fails, self.allowed, self.is_gone = [], 0, None, False
        back_end = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                if back_end.is_gone:
                    self.close_connection = True
                    return
                body = self.rfile.read(int(self.headers["content-length"]))
                back_end.received.append((self.path, dict(self.headers.items()), body))
                status, reply = 200, b"{}"
                if self.path == "/may":
                    reply = json.dumps({"allowed": back_end.allowed or []}).encode()
                elif back_end.fails > 0:
                    back_end.fails -= 1
                    status = 503
                self.send_response(status)
                self.send_header("content-length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def go(self):
        """Accepts no further connections, and answers on none."""
        self.is_gone = True
        self.server.shutdown()
        self.server.server_close()

    def events(self, call):
        """The events of a call in the order of their first arrival, each once."""
        seen, events = set(), []
        for path, headers, body in self.received:
            if path == "/hook" and headers["conclave-id"] not in seen:
                event = json.loads(body)
                if event.get("call") == call:
                    seen.add(headers["conclave-id"])
                    events.append(event)
        return events


def is_signed(headers, body):
    time_part, code = headers["conclave-signature"].split(",")
    seconds = time_part.removeprefix("t=")
    expected = hmac.new(SECRET.encode(), seconds.encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(code, "v1=" + expected) and abs(time.time() - int(seconds)) < 60


@pytest.fixture
def back_end():
    running = BackEnd()
    yield running
    running.server.shutdown()


@pytest.fixture
def hooked(back_end, tmp_path):
    secret = tmp_path / "hook-secret"
    secret.touch(mode=0o600)
    secret.write_text(SECRET)
    options = {
        "webhooks": {"url": back_end.url + "/hook", "secretFile": str(secret)},
        "authorize": {"url": back_end.url + "/may"},
    }
    server = Server(tmp_path, **options)
    yield server
    server.stop()


def people(server, *names):
    clients = [Client(server, name, "laptop") for name in names]
    for client in clients:
        client.register()
    return clients


def test_a_calls_events_arrive_signed_and_in_order_through_failures(hooked, back_end):
    back_end.allowed, back_end.fails = ["bob"], 2
    alice, bob = people(hooked, "alice", "bob")
    body = {"callees": ["bob"], "media": "audio", "metadata": "c2VjcmV0", **alice.starting()}
    call = alice.request("/app/calls/start", body)["call"]["id"]
    bob.event("call.ring", 5)
    bob.request(f"/app/calls/{call}/accept", bob.join())
    alice.request(f"/app/calls/{call}/end")
    wait_for(lambda: any(e["event"] == "call.ended" for e in back_end.events(call)), 20, lambda: back_end.received)
    hooks = [(headers, body) for path, headers, body in back_end.received if path == "/hook"]
    assert all(is_signed(headers, body) for headers, body in hooks)
    assert all(headers["conclave-event"] == json.loads(body)["event"] for headers, body in hooks)
    assert not any(b"c2VjcmV0" in body for _, body in hooks), "metadata is only for the members"
    events = back_end.events(call)
    assert [e["at"] for e in events] == sorted(e["at"] for e in events)
    assert events[-1]["event"] == "call.ended" and events[-1]["reason"] == "ended-by-initiator"
    assert len({headers["conclave-id"] for headers, _ in hooks}) == len(hooks) - 2, "two were repeated"
    assert hooked.metric("conclave_webhooks_failed_total") == 2
    for client in (alice, bob):
        client.close()


def test_users_that_the_back_end_does_not_allow_are_offline(hooked, back_end):
    back_end.allowed = ["bob"]
    alice, bob, carol = people(hooked, "alice", "bob", "carol")
    reply = alice.request("/app/calls/start", {"callees": ["bob", "carol"], "media": "audio", **alice.starting()})
    assert reply["results"] == {"bob": "ringing", "carol": "offline"}
    asked = [(headers, body) for path, headers, body in back_end.received if path == "/may"]
    assert all(is_signed(headers, body) for headers, body in asked)
    question = json.loads(asked[0][1])
    assert question["action"] == "ring" and question["from"] == "alice" and sorted(question["to"]) == ["bob", "carol"]
    back_end.go()
    reply = alice.request("/app/calls/start", {"callees": ["bob"], "media": "audio", **alice.starting()})
    assert reply["results"] == {"bob": "offline"}, "no answer allows nobody"
    for client in (alice, bob, carol):
        client.close()
