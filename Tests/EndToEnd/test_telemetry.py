"""Spans of calls, as an OpenTelemetry collector gets them (docs/operate.md, "Traces")."""

import http.server
import json
import os
import socket
import subprocess
import threading
import time

import pytest

from conftest import Server, free_port, wait_for
from device import Device
from test_webhooks import SECRET, BackEnd, is_signed


class Collector:
    """Accepts OTLP over HTTP as JSON. The first `fails` POSTs are answered with 503."""

    def __init__(self, fails=0):
        self.bodies, self.fails = [], fails
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                if collector.fails > 0:
                    collector.fails -= 1
                    self.send_response(503)
                else:
                    collector.bodies.append((self.path, self.headers["content-type"], body))
                    self.send_response(200)
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def spans(self):
        """All received spans, with attributes as a dictionary."""
        spans = []
        for path, kind, body in self.bodies:
            assert (path, kind) == ("/v1/traces", "application/json")
            for resource in json.loads(body)["resourceSpans"]:
                assert values(resource["resource"]["attributes"])["service.name"] == "conclave"
                for scope in resource["scopeSpans"]:
                    spans += [{**span, "attributes": values(span["attributes"])} for span in scope["spans"]]
        return spans

    def named(self, name):
        return [span for span in self.spans() if span["name"] == name]


def values(attributes):
    return {a["key"]: a["value"].get("stringValue", a["value"].get("intValue")) for a in attributes}


def milliseconds(span):
    return (int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"])) / 1e6


@pytest.fixture
def collector():
    running = Collector(fails=1)
    yield running
    running.server.shutdown()


def test_a_whole_call_is_one_trace(tmp_path, collector):
    back_end = BackEnd()
    back_end.allowed = ["bob-b", "carol-c"]
    hooks = {"url": back_end.url + "/hook", "secret": SECRET}
    server = Server(
        tmp_path, telemetry={"otlp": collector.url}, webhooks=hooks, authorize={"url": back_end.url + "/may"}
    )
    alice, bob, carol = (Device(server, user) for user in ("alice-a", "bob-b", "carol-c"))
    try:
        before = time.time()
        call, _ = alice.start("bob-b", "carol-c")
        bob.event("call.ring")
        carol.call(call, "decline")
        alice.event("call.member", where=lambda body: body["cause"] == "declined")
        ringing = time.time()
        wait_for(lambda: time.time() > ringing + 0.3, 1, "it keeps ringing")
        bob.enter(call)
        bob.call(call, "leave")
        bob.enter(call, "rejoin")
        alice.call(call, "end")
        root = wait_for(lambda: collector.named("call"), 10, "the call's own span")[0]
        after = time.time()
        attributes = dict(root["attributes"])
        assert 0 <= int(attributes.pop("conclave.call.talk_seconds")) <= after - before
        failed = int(attributes.pop("conclave.call.failed_joins"))
        assert failed == sum(span["name"] != "authorize" and span["status"].get("code") == 2 for span in collector.spans())
        assert attributes == {
            "conclave.call.id": call, "conclave.call.media": "audio", "conclave.call.end_reason": "ended-by-initiator",
            "conclave.call.participants": "3",
        }
        assert "parentSpanId" not in root and len(root["traceId"]) == 32 and len(root["spanId"]) == 16
        assert before - 1 <= int(root["startTimeUnixNano"]) / 1e9 and int(root["endTimeUnixNano"]) / 1e9 <= after + 1

        spans = collector.spans()
        assert sorted(span["name"] for span in spans) == ["authorize", "call", "join", "join", "rejoin", "ring", "ring"]
        assert len({span["spanId"] for span in spans}) == len(spans)
        for span in spans:
            assert span["traceId"] == root["traceId"] and span["attributes"]["conclave.call.id"] == call
            if span["spanId"] != root["spanId"]:
                assert span["parentSpanId"] == root["spanId"]
                # The query comes before the call.
                assert 0 <= milliseconds(span) <= (1_000 if span["name"] == "authorize" else milliseconds(root))
        rings = {span["attributes"]["conclave.ring.outcome"]: span for span in collector.named("ring")}
        assert rings.keys() == {"answered", "declined"} and milliseconds(rings["answered"]) >= 300
        assert milliseconds(rings["declined"]) <= milliseconds(rings["answered"])
        joins = collector.named("join") + collector.named("rejoin")
        assert {(s["attributes"]["conclave.participant"], s["attributes"]["conclave.member.role"]) for s in joins} == {
            ("1", "initiator"), ("2", "callee"), ("3", "callee"),
        }
        assert all(span["attributes"]["conclave.join.outcome"] == "never-connected" for span in joins)

        # The app's back end can continue the trace.
        asked = next((headers, body) for path, headers, body in back_end.received if path == "/may")
        assert asked[0]["traceparent"] == f"00-{root['traceId']}-{collector.named('authorize')[0]['spanId']}-01"
        wait_for(lambda: any(e["event"] == "call.ended" for e in back_end.events(call)), 10, "the last webhook")
        for path, headers, body in back_end.received:
            if path == "/hook" and json.loads(body).get("call") == call:
                assert headers["traceparent"] == f"00-{root['traceId']}-{root['spanId']}-01" and is_signed(headers, body)

        # The failed POST was repeated, and names nobody.
        wait_for(lambda: server.metric("conclave_spans_sent_total") == len(spans), 5, "all are counted")
        assert server.metric("conclave_spans_failed_total") == 1
        assert server.metric("conclave_spans_waiting") == 0 and server.metric("conclave_spans_dropped_total") == 0
        everything = b"".join(body for _, _, body in collector.bodies)
        for person in (b"alice", b"bob", b"carol", b"phone", b"127.0.0.1"):
            assert person not in everything
    finally:
        for device in (alice, bob, carol):
            device.close()
        server.stop()
        back_end.server.shutdown()


def test_media_that_comes_up_ends_a_join(tmp_path, collector):
    server = Server(tmp_path, telemetry={"otlp": collector.url})
    loadtest = os.environ.get("LOADTEST_BINARY", ".build/release/loadtest")
    command = [loadtest, "--url", f"stomp://127.0.0.1:{server.stomp_port}", "--state", str(server.state)]
    command += ["--participants", "2", "--duration", "2", "--json", str(tmp_path / "report.json")]
    try:
        subprocess.run(command, check=True, timeout=120, stdout=subprocess.DEVNULL)
        wait_for(lambda: collector.named("call"), 10, "the call's span")
        joins = collector.named("join")
        assert len(joins) == 2 and all(span["attributes"]["conclave.join.outcome"] == "connected" for span in joins)
        assert all(0 < milliseconds(span) < milliseconds(collector.named("call")[0]) for span in joins)
    finally:
        server.stop()


def test_a_call_that_goes_on_has_its_trace_ended_with_the_server(tmp_path, collector):
    collector.fails = 0
    server = Server(tmp_path, telemetry={"otlp": collector.url})
    alice = Device(server, "alice")
    call, _ = alice.start()
    alice.close()
    server.stop()
    assert [span["attributes"]["conclave.call.end_reason"] for span in collector.named("call")] == ["server-stopped"]


@pytest.mark.parametrize("kind", ["silent", "closed"])
def test_a_dead_collector_delays_nobody(tmp_path, kind):
    """It accepts connections and never answers, or does not listen at all."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1] if kind == "silent" else free_port()
        server = Server(tmp_path, telemetry={"otlp": f"http://127.0.0.1:{port}"})
        (tmp_path / "quick").mkdir()
        quick = Server(tmp_path / "quick")
        times = {}
        for running in (server, quick):
            alice = Device(running, "alice")
            begin = time.monotonic()
            for _ in range(20):
                call, _ = alice.start()
                alice.call(call, "end")
            times[running] = time.monotonic() - begin
            alice.close()
        waits = lambda: server.metric("conclave_spans_waiting")
        assert wait_for(lambda: waits() >= 40 and waits(), 10, "the spans wait") and server.metric("conclave_spans_sent_total") == 0
        if kind == "closed":
            wait_for(lambda: server.metric("conclave_spans_failed_total") >= 2, 20, "it is tried again")
        # Both did forty requests and their transactions; waiting for the collector would take seconds each.
        assert times[server] < 10 * times[quick] + 2, times
        begin = time.monotonic()
        server.stop()
        quick.stop()
        assert time.monotonic() - begin < 20 and server.process.returncode == 0


def test_nothing_is_made_without_the_configuration(fresh_server):
    assert "conclave_spans" not in fresh_server.get("/metrics")
