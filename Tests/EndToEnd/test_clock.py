"""The machine's clock is set while the server runs, as on a machine that was paused or that started without knowing the time."""

import base64
import json
import pathlib
import subprocess
import time

import pytest

from conftest import BINARY, Server, wait_for
from device import Device
from push_service import PushService, check_signature
from test_webhooks import SECRET, back_end, is_signed  # noqa: F401: a fixture

HERE = pathlib.Path(__file__).parent


@pytest.fixture
def push(tmp_path):
    running = PushService(tmp_path)
    yield running
    running.stop()


@pytest.fixture
def clocks(tmp_path):
    """The file that sets the clocks of a server, and the command that starts the server with them."""
    preload, offset = tmp_path / "set_clock.so", tmp_path / "offset"
    subprocess.run(["clang", "-shared", "-fPIC", "-O1", "-o", preload, HERE / "set_clock.c", "-ldl"], check=True)
    return offset, ["env", f"LD_PRELOAD={preload}", f"CLOCK_OFFSET={offset}"]


@pytest.fixture(params=[-3_600, 3_600], ids=["behind", "ahead"])
def server(request, tmp_path, clocks, back_end, push):
    """The clock was an hour slow or fast at the start, and was corrected as soon as the server ran."""
    offset, command = clocks
    offset.write_text(str(request.param))
    running = Server(
        tmp_path, command=command, webPush=push.configuration,
        webhooks={"url": back_end.url + "/hook", "secret": SECRET}, turn={"urls": ["turn:turn.example:3478"], "secret": SECRET, "seconds": 1_800},
    )
    try:
        offset.write_text("0")
        wait_for(lambda: "the machine's clock was set" in (tmp_path / "server.log").read_text(), 10, "a warning")
        yield running
    finally:
        running.stop()


def is_now(milliseconds):
    return abs(milliseconds / 1_000 - time.time()) < 60


def test_clients_back_ends_and_push_services_are_told_times_of_the_clock_that_was_set(server, back_end, push, connect):
    away = connect("carol")
    key = away.register()["pushKey"]
    subscription = push.subscription("carol")
    away.request("/app/devices/push", {"subscription": subscription.body})
    away.close()
    alice, bob = connect("alice"), connect("bob")
    reply = alice.start("bob", "carol")
    call = reply["call"]["id"]
    assert is_now(reply["call"]["startedAt"])
    until = int(reply["ice"]["servers"][0]["username"].split(":")[0])
    assert 1_700 < until - time.time() <= 1_801, "a TURN credential"
    ring = bob.event("call.ring")
    assert is_now(ring["at"]) and ring["expiresAt"] - ring["at"] == 30_000
    (headers, _) = wait_for(lambda: push.of("carol"), 10, "a push")[0]
    assert 0 < int(headers["ttl"]) <= 30, "the push service keeps the ring while it lasts"
    check_signature(headers["authorization"], base64.b64decode(key), push.origin, time.time())
    bob.request(f"/app/calls/{call}/accept", bob.join())
    state = alice.request(f"/app/calls/{call}/state")
    assert is_now(state["startedAt"]) and 0 <= state["answeredAt"] - state["startedAt"] < 60_000
    link = alice.request(f"/app/calls/{call}/link", {"expiresIn": 60})
    assert 0 < link["expiresAt"] / 1_000 - time.time() <= 60
    calls = json.loads(subprocess.run([BINARY, "calls", "--json", "--config", server.config], capture_output=True, text=True, check=True).stdout)
    assert is_now(calls["calls"][0]["startedAt"])
    alice.request(f"/app/calls/{call}/end")
    wait_for(lambda: any(e["event"] == "call.ended" for e in back_end.events(call)), 10, lambda: back_end.received)
    assert all(is_signed(headers, body) for path, headers, body in back_end.received if path == "/hook")
    assert all(is_now(event["at"]) for event in back_end.events(call))
    entry = wait_for(lambda: [e for e in bob.request("/app/history/list")["calls"] if e["id"] == call], 10, "the history")[0]
    assert is_now(entry["startedAt"]) and entry["seconds"] < 60


def test_the_time_for_which_the_machine_was_suspended_counts(tmp_path, clocks):
    offset, command = clocks
    offset.write_text("0 0")
    server = Server(tmp_path, command=command)
    try:
        alice, bob = Device(server, "alice"), Device(server, "bob")
        call, _ = alice.start("bob", policy={"ringSeconds": 120})
        assert bob.event("call.ring")["call"] == call
        offset.write_text("130 130")
        assert bob.event("call.missed", 30)["call"] == call, "a ring from before the suspension is over"
    finally:
        server.stop()
