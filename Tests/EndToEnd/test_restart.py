"""State that survives `kill -9` (rule 11 of the protocol), data that `conclave forget` deletes, and the effects of a failing disk."""

import base64
import contextlib
import itertools
import json
import os
import sqlite3
import subprocess
import threading
import time
import urllib.error

import pytest

from client import Client, RequestFailed
from conftest import BINARY, PATIENCE, Server, wait_for


class Reader(Client):
    """A client that acknowledges each event itself."""

    def subscribe(self, destination, identifier):
        ack = "client-individual" if identifier == "events" else "auto"
        self.connection.subscribe(destination, id=identifier, ack=ack)

    def take(self, name, seconds=5, ack=True):
        """The next event of that name with its headers; acknowledges it and all earlier ones."""
        while True:
            kind, body, headers = self.events.get(timeout=seconds * PATIENCE)
            if ack or kind != name:
                self.connection.ack(headers["ack"])
            if kind == name:
                return body, headers

    def kinds(self):
        """The events so far; a reply comes after all earlier events."""
        self.request("/app/calls/list")
        kinds = []
        while not self.events.empty():
            kinds.append(self.events.get()[0])
        return kinds


@pytest.fixture
def server(tmp_path):
    server = Server(tmp_path)
    yield server
    server.process.kill()
    server.process.wait()
    server.log.close()


@pytest.fixture
def sign_in(server):
    """Connects a device; after the server died, again with the same keys."""
    clients = []

    def make(user, device="phone", kind=Reader):
        client = kind(server, user, device)
        for former in clients:
            if (former.user, former.device) == (user, device):
                client.sign_key, client.fingerprint = former.sign_key, former.fingerprint
        clients.append(client)
        return client

    yield make
    for client in clients:
        with contextlib.suppress(Exception):
            client.close()


def restart(server):
    server.die()
    server.start()


def envelope(user, device="phone", epoch=1):
    return {
        "epoch": epoch,
        "to": {"user": user, "device": device},
        "key": base64.b64encode(bytes(32)).decode(),
        "alg": "HPKE-P256-SHA256-AES256GCM",
        "ciphertext": base64.b64encode(os.urandom(80)).decode(),
    }


def members(state):
    return {member["user"]: member["state"] for member in state["members"]}


def call_of_two(sign_in):
    alice, bob = sign_in("alice"), sign_in("bob")
    alice.register()
    bob.register()
    call = alice.start("bob")["call"]["id"]
    bob.take("call.ring")
    bob.request(f"/app/calls/{call}/accept", bob.join())
    return alice, bob, call


def test_a_ring_goes_on_and_still_brings_its_envelope(server, sign_in):
    alice, bob = sign_in("alice"), sign_in("bob")
    alice.register()
    bob.register()
    join = alice.starting()
    body = {"callees": ["bob"], "media": "audio", "envelopes": [envelope("bob")], **join}
    call = alice.request("/app/calls/start", body)["call"]["id"]
    before, headers = bob.take("call.ring", ack=False)
    restart(server)
    bob = sign_in("bob")
    ring, again = bob.take("call.ring")
    assert ring["envelope"] == before["envelope"] and ring["list"] == before["list"]
    assert ring["expiresAt"] == before["expiresAt"]
    assert int(again["seq"]) > int(headers["seq"]) + 1_000_000, "seq jumps"
    alice = sign_in("alice")
    reply = alice.request("/app/calls/start", body)
    assert reply["call"]["id"] == call and reply["participant"] == 1, "a repeated start makes no second call"
    assert len(alice.request("/app/calls/list")["calls"]) == 1
    bob.request(f"/app/calls/{call}/accept", bob.join())
    assert members(alice.request(f"/app/calls/{call}/state")) == {"alice": "joined", "bob": "joined"}
    # It was acknowledged, so the same device does not get it again.
    restart(server)
    assert "call.ring" not in sign_in("bob").kinds()


def test_an_envelope_comes_again_until_it_is_acknowledged(server, sign_in):
    alice, bob, call = call_of_two(sign_in)
    rotation, _ = alice.take("keys.rotate")
    keys = {"epoch": rotation["epoch"], "envelopes": [envelope("bob", epoch=rotation["epoch"])]}
    assert alice.request(f"/app/calls/{call}/keys", keys)["delivered"] == [{"user": "bob", "device": "phone"}]
    sent, headers = bob.take("keys.envelope", ack=False)
    alice.take("keys.switch")
    restart(server)
    bob = sign_in("bob")
    state, _ = bob.take("call.state")
    assert members(state) == {"alice": "joined", "bob": "joined"} and state["epoch"] == rotation["epoch"]
    assert [p["connected"] for member in state["members"] for p in member["participants"]] == [False, False]
    again, repeated = bob.take("keys.envelope")
    assert again == sent and repeated["seq"] == headers["seq"] and repeated["redelivered"] == "true"
    bob.request("/app/calls/list")
    restart(server)
    bob = sign_in("bob")
    bob.take("call.state")
    assert "keys.envelope" not in bob.kinds()
    reply = bob.request(f"/app/calls/{call}/rejoin", bob.join())
    assert reply["participant"] == 3, "never a number twice"


def test_history_is_what_happened(server, sign_in):
    alice, bob, call = call_of_two(sign_in)
    # With somebody else, since otherwise the start would refer to the running call.
    sign_in("carol").register()
    missed = alice.start("bob", "carol")["call"]["id"]
    alice.request(f"/app/calls/{missed}/end")
    restart(server)
    alice, bob = sign_in("alice"), sign_in("bob")
    alice.request(f"/app/calls/{call}/end")
    restart(server)
    alice, bob = sign_in("alice"), sign_in("bob")
    with pytest.raises(RequestFailed, match="call.ended"):
        bob.request(f"/app/calls/{call}/state")

    def outcomes(client):
        calls = client.request("/app/history/list")["calls"]
        return {entry["id"]: (entry["direction"], entry["outcome"], entry["rejoinable"]) for entry in calls}

    assert outcomes(alice) == {call: ("outgoing", "answered", False), missed: ("outgoing", "cancelled", False)}
    assert outcomes(bob) == {call: ("incoming", "answered", False), missed: ("incoming", "cancelled", False)}
    assert alice.request("/app/history/totals", {"with": "bob"})["calls"] == 1
    bob.request("/app/history/delete", {"calls": [missed]})
    assert list(outcomes(bob)) == [call] and len(outcomes(alice)) == 2


def forget(server, user):
    subprocess.run([BINARY, "forget", "--config", str(server.config), "--user", user], check=True)


def rows(server):
    """The whole content of the database, as text."""
    with contextlib.closing(sqlite3.connect(server.state / "conclave.sqlite")) as db:
        tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return repr([[*row] for table in tables for row in db.execute(f'SELECT * FROM "{table}"')])


def has_trace(server, user):
    """Whether the bytes of the database's files, including unused ones, contain the user's name."""
    return any(user.encode() in file.read_bytes() for file in server.state.glob("conclave.sqlite*"))


def test_a_running_server_forgets(server, sign_in):
    alice, bob, call = call_of_two(sign_in)
    alice.take("call.member", ack=True)
    assert "bob" in rows(server) and has_trace(server, "bob")
    forget(server, "bob")
    assert bob.errors.get(timeout=5 * PATIENCE).headers["message"] == "this user's data was deleted"
    with pytest.raises(RequestFailed, match="call.ended"):  # alice was the only one left
        alice.request(f"/app/calls/{call}/state")
    assert alice.request("/app/devices/list", {"users": ["bob"]})["devices"] == []
    assert alice.request("/app/history/totals", {"with": "bob"}) == {"calls": 0, "seconds": 0}
    wait_for(lambda: not has_trace(server, "bob"), 5, lambda: rows(server))
    restart(server)
    with pytest.raises(RequestFailed, match="call.ended"):  # for the others it was the call's end
        sign_in("alice").request(f"/app/calls/{call}/state")


def test_a_call_goes_on_without_a_forgotten_initiator_and_leaves_no_trace(server, sign_in):
    alice, bob, call = call_of_two(sign_in)
    carol = sign_in("carol")
    carol.register()
    alice.request(f"/app/calls/{call}/invite", {"callees": ["carol"]})
    carol.request(f"/app/calls/{call}/join", carol.join())
    forget(server, "alice")
    assert alice.errors.get(timeout=5 * PATIENCE).headers["message"] == "this user's data was deleted"
    assert members(bob.request(f"/app/calls/{call}/state")) == {"bob": "joined", "carol": "joined"}
    bob.request(f"/app/calls/{call}/leave")
    carol.request(f"/app/calls/{call}/leave")
    with pytest.raises(RequestFailed, match="call.ended"):
        bob.request(f"/app/calls/{call}/state")
    forget(server, "nobody")  # empties the log
    wait_for(lambda: not has_trace(server, "alice"), 5, lambda: rows(server))


def test_a_stopped_server_forgets(server, sign_in):
    alice, bob, call = call_of_two(sign_in)
    server.die()
    forget(server, "bob")
    server.start()
    wait_for(lambda: not has_trace(server, "bob"), 5, lambda: rows(server))
    assert "alice" in rows(server)
    with pytest.raises(RequestFailed, match="call.not-found"):
        sign_in("bob").request(f"/app/calls/{call}/state")


def test_a_disk_that_fails_ends_no_call(server, sign_in):
    alice, bob, call = call_of_two(sign_in)
    alice.take("call.member")
    db = sqlite3.connect(server.state / "conclave.sqlite", isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    # Every write fails now.
    assert bob.request(f"/app/calls/{call}/leave") == {}
    with pytest.raises(urllib.error.HTTPError, match="503") as error:
        server.get("/readyz")
    assert "conclave.sqlite" in error.value.read().decode()
    assert server.metric("conclave_store_failing") == 1
    # It rings for longer than a slow machine takes for the rest.
    other = alice.start("bob", policy={"ringSeconds": 120})["call"]["id"]
    db.execute("ROLLBACK")
    db.close()
    wait_for(server.is_ready, 10, "the server is ready again")
    restart(server)
    alice = sign_in("alice")
    assert members(alice.request(f"/app/calls/{other}/state")) == {"alice": "joined", "bob": "ringing"}
    with pytest.raises(RequestFailed, match="call.ended"):
        alice.request(f"/app/calls/{call}/state")
    assert alice.request("/app/history/list")["calls"][0]["outcome"] == "answered", "it was written late"


def test_a_slow_disk_holds_back_what_is_told_and_no_connection(server, sign_in):
    """The writer waits for another process's lock, at most 250 ms; the loop that serves clients does not."""
    alice, bob = sign_in("alice"), sign_in("bob")
    db = sqlite3.connect(server.state / "conclave.sqlite", isolation_level=None)

    states = itertools.cycle(["unavailable", "available"])

    def set_presence_during_a_lock():
        """One round: the request waits while the server answers others. False if the lock was held for longer than the server waits."""
        db.execute("BEGIN IMMEDIATE")
        start = time.monotonic()
        told = threading.Event()

        def ask():
            alice.request("/app/presence/set", {"state": next(states)})
            told.set()

        asking = threading.Thread(target=ask)
        asking.start()
        wait_for(
            lambda: told.is_set() or server.metric("conclave_store_waiting_effects") >= 1, 10, "the reply waits for the disk"
        )
        assert server.get("/healthz") == "ok\n"
        waited = not told.is_set()
        db.execute("ROLLBACK")
        took = time.monotonic() - start
        asking.join(10 * PATIENCE)
        assert told.is_set()
        wait_for(server.is_ready, 10, "the server is ready")
        assert waited or took >= 0.2, "the reply waits for the disk"
        return took < 0.2

    wait_for(set_presence_during_a_lock, 60, "a round within the time that the server waits")
    db.close()
    assert bob.request("/app/calls/list") == {"calls": []}


def test_presence_and_places_survive_a_restart(server, sign_in):
    alice, bob, carol = (sign_in(user) for user in ("alice", "bob", "carol"))
    for client in (alice, bob, carol):
        client.register()
    # It has a third person, since a call of two would end when one leaves.
    call = alice.start("bob", policy={"aloneSeconds": 600})["call"]["id"]
    bob.request(f"/app/calls/{call}/accept", bob.join())
    carol.request("/app/presence/set", {"state": "unavailable"})
    late = bob.join()
    first = bob.request(f"/app/calls/{call}/rejoin", late)
    bob.request(f"/app/calls/{call}/leave")
    restart(server)
    alice, bob, carol = sign_in("alice"), sign_in("bob"), sign_in("carol")
    alice.request(f"/app/calls/{call}/rejoin", alice.join())
    # A retry that was delayed for long does not bring anybody back into the call.
    assert bob.request(f"/app/calls/{call}/rejoin", late)["participant"] == first["participant"]
    assert members(alice.request(f"/app/calls/{call}/state"))["bob"] == "left"
    results = alice.request(f"/app/calls/{call}/invite", {"callees": ["carol"]})["results"]
    assert results == {"carol": "unavailable"}


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", folder], capture_output=True, text=True)
    if mount.returncode:
        pytest.skip(f"this needs leave to mount a small disk: {mount.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def fill(disk):
    with open(disk / "filler", "wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(512)):
            pass


def test_a_full_disk_ends_no_call_and_holds_none_up(small_disk, tmp_path, request):
    server = Server(tmp_path, state=str(small_disk / "state"))
    # The current process, which changes with the restart.
    request.addfinalizer(lambda: server.process.kill())
    alice, bob = Client(server, "alice", "phone"), Client(server, "bob", "phone")
    alice.register()
    bob.register()
    # One participant only, since a call of two would end when one leaves.
    call = alice.start("bob", policy={"aloneSeconds": 600})["call"]["id"]
    fill(small_disk)
    took = []

    def come_and_go():
        time.sleep(0.1)  # 50 requests a second are allowed
        began = time.monotonic()
        bob.request(f"/app/calls/{call}/join", bob.join())
        bob.request(f"/app/calls/{call}/leave")
        took.append(time.monotonic() - began)
        return server.metric("conclave_store_failing") == 1

    wait_for(come_and_go, 30, "the disk is full for the server")
    with pytest.raises(urllib.error.HTTPError, match="503") as error:
        server.get("/readyz")
    assert "the disk is full; make room" in error.value.read().decode()
    failures = server.metric("conclave_store_failures_total")
    # The same while the server retries.
    wait_for(lambda: come_and_go() and server.metric("conclave_store_failures_total") > failures, 10, "another try")
    assert max(took) < 1 * PATIENCE
    assert "the disk is full" in (tmp_path / "server.log").read_text()
    (small_disk / "filler").unlink()
    wait_for(server.is_ready, 10, "the server is ready again")
    restart(server)
    alice = Client(server, "alice", "phone")
    assert members(alice.request(f"/app/calls/{call}/state")) == {"alice": "joined", "bob": "left"}


def test_a_server_that_finds_no_room_says_so(small_disk, tmp_path):
    fill(small_disk)
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"state": str(small_disk / "state")}))
    run = subprocess.run([BINARY, "serve", "--config", config], capture_output=True, text=True, timeout=20 * PATIENCE)
    assert run.returncode == 1 and "the disk is full; make room" in run.stderr


def refusal(server):
    """The reason why a server does not start."""
    command = [BINARY, "serve", "--config", str(server.config)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=20 * PATIENCE)
    assert run.returncode != 0
    return run.stderr


def test_two_servers_do_not_share_a_folder(server):
    assert "another server uses" in refusal(server)


def test_a_damaged_file_is_named(server):
    server.die()
    for beside in ["conclave.sqlite-wal", "conclave.sqlite-shm"]:
        (server.state / beside).unlink(missing_ok=True)
    file = server.state / "conclave.sqlite"
    file.write_bytes(os.urandom(8192))
    assert f"{file}: the file is damaged" in refusal(server)
