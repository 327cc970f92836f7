"""No stranger and no single user can deny service to others (protocol section 10): the answer to each attack, and that somebody else is served meanwhile."""

import json
import os
import pathlib
import resource
import socket
import threading
import uuid

import pytest

import words
from conftest import Server, wait_for
from device import Device, Wire, envelope, starting, token


@pytest.fixture
def small_server(tmp_path):
    """Makes servers with given limits, and with few file descriptors."""
    running = []

    def make(files=None, **more):
        folder = tmp_path / str(len(running))
        folder.mkdir()
        limit = ["prlimit", f"--nofile={files}"] if files else []
        running.append(Server(folder, command=limit, **more))
        return running[-1]

    yield make
    for server in running:
        server.stop()


@pytest.fixture
def keep():
    """Closes at the end the connections that a test keeps open."""
    kept = []
    yield lambda thing: kept.append(thing) or thing
    for thing in kept:
        thing.close()


def open_files(server):
    return len(os.listdir(f"/proc/{server.pid}/fd"))


def resident(server):
    """Bytes."""
    pages = int(pathlib.Path(f"/proc/{server.pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def dropped(server, reason):
    return server.metric_of("conclave_signaling_dropped_total", f'reason="{reason}"')


def login(server, user, device):
    """A raw connection that has sent CONNECT; nothing is read."""
    wire = Wire(server)
    wire.send("CONNECT", {"accept-version": "1.2", "host": "x", "passcode": token(server, user, device=device)})
    return wire


def test_silent_connections_of_a_stranger_shut_out_nobody(small_server, keep):
    server = small_server(limits={"connections": 40})
    for _ in range(80):
        keep(Wire(server))
    alice = keep(Device(server, "alice", "phone"))
    for _ in range(80):
        keep(Wire(server))
    assert alice.request("/app/calls/list") == {"calls": []}

    def have_made_room():
        try:
            return dropped(server, "connectionsFull") >= 100
        except ConnectionError:
            return False  # the connection of this query displaced one that came late

    wait_for(have_made_room, 10, "all connected, and displaced each other")


def test_one_token_opens_so_many_connections_and_others_are_let_in(small_server, keep):
    server = small_server()
    wires = [keep(login(server, "eve", f"d{n}")) for n in range(100)]
    answers = [wire.read().command for wire in wires]
    assert answers.count("CONNECTED") == 64 and answers.count("ERROR") == 36
    alice = keep(Device(server, "alice", "phone"))
    assert alice.request("/app/calls/list") == {"calls": []}


def test_a_users_flood_is_answered_up_to_the_users_share(small_server, keep):
    server = small_server()
    wires = [keep(login(server, "eve", f"d{n}")) for n in range(50)]
    for wire in wires:
        assert wire.read().command == "CONNECTED"
        wire.send("SUBSCRIBE", {"id": "r", "destination": "/user/queue/replies"})
    alice = keep(Device(server, "alice", "phone"))
    body = json.dumps({"id": str(uuid.uuid4()), "callees": [f"c{n}" for n in range(100)], "media": "audio"})
    request = f"SEND\ndestination:/app/calls/start\nrequest-id:1\n\n{body}\0".encode()

    def flood(wire):
        try:
            wire.write(request * 100)
        except OSError:
            pass

    before = server.cpu_seconds()
    threads = [threading.Thread(target=flood, args=(wire,), daemon=True) for wire in wires]
    for thread in threads:
        thread.start()
    for _ in range(20):
        assert alice.request("/app/presence/set", {"state": "available"}) is not None
    refused = wait_for(lambda: dropped(server, "userRateLimited"), 10, "the flood is refused")
    # A start with 100 callees costs 53 units, and the burst is 1,000. If they were served, 5,000 of them would cost seconds of a core.
    assert refused > 0
    assert server.metric("conclave_signaling_requests_total") < 5_000, "a user who continues is read more slowly"
    assert server.cpu_seconds() - before < 2


def test_the_backlog_of_all_slow_readers_is_bounded_and_a_reader_gets_everything(small_server, keep):
    server = small_server(destinations=["/topic/"], limits={"totalOutbound": 8 << 20})
    for n in range(100):
        wire = Wire.__new__(Wire)
        wire.buffer, wire.web, wire.socket = b"", None, socket.socket()
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.socket.connect(("127.0.0.1", server.stomp_port))
        keep(wire)
        wire.send("CONNECT", {"accept-version": "1.2", "host": "x", "passcode": token(server, f"slow{n}")})
        wire.send("SUBSCRIBE", {"id": "1", "destination": "/topic/news"})
    reader, writer = keep(login(server, "reader", "d")), keep(login(server, "writer", "d"))
    for wire in (reader, writer):
        assert wire.read().command == "CONNECTED"
    reader.send("SUBSCRIBE", {"id": "1", "destination": "/topic/news", "receipt": "r"})
    assert reader.read().headers["receipt-id"] == "r"
    before = resident(server)
    for n in range(40):
        writer.send("SEND", {"destination": "/topic/news"}, f"{n} ".encode() + b"x" * 100_000)
        assert reader.read().body.startswith(f"{n} ".encode())
    assert server.metric_of("conclave_signaling_endings_total", 'cause="backlogFull"') > 0
    # Without the bound: 100 times 4 MB.
    assert resident(server) - before < 100 << 20
    assert server.metric("conclave_signaling_backlog_bytes") <= 8 << 20


def test_connections_are_lowered_to_the_files_that_there_are(small_server, keep):
    server = small_server(files=400)
    assert "limits.connections is lowered" in (server.folder / "server.log").read_text()
    for _ in range(500):
        keep(Wire(server))
    assert open_files(server) < 400
    alice = keep(Device(server, "alice", "phone"))
    assert alice.request("/app/calls/list") == {"calls": []}
    assert dropped(server, "acceptPaused") == 0


def test_running_out_of_files_does_not_keep_the_server_busy(small_server, keep):
    server = small_server()
    files = open_files(server)
    soft, hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (files, hard))
    before = server.cpu_seconds()
    waiting = [keep(Wire(server)) for _ in range(20)]
    # The first ones may get the free file descriptors. The last one gets no answer for a second.
    waiting[-1].socket.settimeout(1)
    with pytest.raises(TimeoutError):
        waiting[-1].socket.recv(1)
    assert server.cpu_seconds() - before < 0.4, "accept(2) fails over and over"
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (soft, hard))
    alice = keep(Device(server, "alice", "phone"))
    assert alice.request("/app/calls/list") == {"calls": []}
    assert 1 <= dropped(server, "acceptPaused") <= 40


def test_rings_are_paid_for_by_whoever_rings(small_server, keep):
    server = small_server(limits={"userEvents": 20_000, "userEventBurst": 200_000})
    phones = [keep(Device(server, f"bob{n}", "phone")) for n in range(20)]
    eve, alice = keep(Device(server, "eve", "phone")), keep(Device(server, "alice", "phone"))
    envelopes = [envelope(1, phone.user) for phone in phones]
    # All at once: when the first is charged, the others are already queued.
    for number in range(40):
        body = {"callees": [phone.user for phone in phones], "media": "audio", "envelopes": envelopes, **starting()}
        body = words.with_words("/app/calls/start", body, eve.user, eve.sign_key, eve.fingerprint)
        eve.send("SEND", {"destination": "/app/calls/start", "request-id": f"s{number}"}, json.dumps(body))
    codes = []
    while len(codes) < 40:
        frame = eve.read()
        if frame.headers["destination"] == "/user/queue/replies":
            codes.append("ok" if frame.headers["status"] == "ok" else frame.json["error"]["code"])
    # A ring takes 6 kB, so a start takes 120 kB.
    assert 1 <= codes.count("ok") <= 3 and set(codes) == {"ok", "rate.limited"}
    assert dropped(server, "userEventsFull") >= 30
    assert alice.start("bob0")[1]["results"] == {"bob0": "ringing"}
    wire = keep(login(server, "eve", "tablet"))
    assert wire.read().command == "ERROR", "another connection does not help"


def test_a_start_with_too_many_envelopes_rings_nobody(small_server, keep):
    server = small_server()
    phone, eve = keep(Device(server, "bob", "phone")), keep(Device(server, "eve", "phone"))
    envelopes = [envelope(1, "bob", f"d{n}") for n in range(256)]
    assert eve.fails("/app/calls/start", {"callees": ["bob"], "media": "audio", "envelopes": envelopes, **starting()}) == "keys.too-large"
    assert eve.error_body["field"] == "envelopes"
    assert phone.names() == []
