"""What survives `kill -9` (rule 11 of the protocol), what `conclave forget` deletes, and what a failing disk does."""

import base64
import contextlib
import os
import sqlite3
import subprocess
import urllib.error

import pytest

from client import Client, RequestFailed
from conftest import BINARY, Server, wait_for


class Reader(Client):
    """A client that acknowledges each event itself."""

    def subscribe(self, destination, identifier):
        ack = "client-individual" if identifier == "events" else "auto"
        self.connection.subscribe(destination, id=identifier, ack=ack)

    def take(self, name, seconds=5, ack=True):
        """The next event of that name with its headers; acknowledges it, and all before it."""
        while True:
            kind, body, headers = self.events.get(timeout=seconds)
            if ack or kind != name:
                self.connection.ack(headers["ack"])
            if kind == name:
                return body, headers

    def kinds(self):
        """What came so far; a reply comes behind all events before it."""
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
    """Connects a device; again after the server died."""
    clients = []

    def make(user, device="phone", kind=Reader):
        client = kind(server, user, device)
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
    bob.request(f"/app/calls/{call}/accept", bob.join_id())
    return alice, bob, call


def test_a_ring_goes_on_and_still_brings_its_envelope(server, sign_in):
    alice, bob = sign_in("alice"), sign_in("bob")
    alice.register()
    bob.register()
    join = alice.join_id()
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
    bob.request(f"/app/calls/{call}/accept", bob.join_id())
    assert members(alice.request(f"/app/calls/{call}/state")) == {"alice": "joined", "bob": "joined"}
    # Acknowledged: the same device is not sent it again.
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
    reply = bob.request(f"/app/calls/{call}/rejoin", bob.join_id())
    assert reply["participant"] == 3, "never a number twice"


def test_history_is_what_happened(server, sign_in):
    alice, bob, call = call_of_two(sign_in)
    missed = alice.start("bob")["call"]["id"]
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
    """All that is in the database, as text."""
    with contextlib.closing(sqlite3.connect(server.state / "conclave.sqlite")) as db:
        tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return repr([[*row] for table in tables for row in db.execute(f'SELECT * FROM "{table}"')])


def test_a_running_server_forgets(server, sign_in):
    alice, bob, call = call_of_two(sign_in)
    alice.take("call.member", ack=True)
    assert "bob" in rows(server)
    forget(server, "bob")
    assert bob.errors.get(timeout=5).headers["message"] == "this user's data was deleted"
    with pytest.raises(RequestFailed, match="call.ended"):  # alice was the only one left
        alice.request(f"/app/calls/{call}/state")
    assert alice.request("/app/devices/list", {"users": ["bob"]})["devices"] == []
    assert alice.request("/app/history/totals", {"with": "bob"}) == {"calls": 0, "seconds": 0}
    wait_for(lambda: "bob" not in rows(server), 5, lambda: rows(server))


def test_a_stopped_server_forgets(server, sign_in):
    alice, bob, call = call_of_two(sign_in)
    server.die()
    forget(server, "bob")
    server.start()
    wait_for(lambda: "bob" not in rows(server), 5, lambda: rows(server))
    assert "alice" in rows(server)
    with pytest.raises(RequestFailed, match="call.not-found"):
        sign_in("bob").request(f"/app/calls/{call}/state")


def test_a_disk_that_fails_ends_no_call(server, sign_in):
    alice, bob, call = call_of_two(sign_in)
    alice.take("call.member")
    db = sqlite3.connect(server.state / "conclave.sqlite", isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    # Whatever is to be written fails now, after a second.
    assert bob.request(f"/app/calls/{call}/leave") == {}
    with pytest.raises(urllib.error.HTTPError, match="503") as error:
        server.get("/readyz")
    assert "conclave.sqlite" in error.value.read().decode()
    assert server.metric("conclave_store_failing") == 1
    other = alice.start("bob")["call"]["id"]
    db.execute("ROLLBACK")
    db.close()
    wait_for(server.is_ready, 10, "the server is ready again")
    restart(server)
    alice = sign_in("alice")
    assert members(alice.request(f"/app/calls/{other}/state")) == {"alice": "joined", "bob": "ringing"}
    with pytest.raises(RequestFailed, match="call.ended"):
        alice.request(f"/app/calls/{call}/state")
    assert alice.request("/app/history/list")["calls"][0]["outcome"] == "answered", "it was written late"


def refusal(server):
    """Why a server does not start."""
    command = [BINARY, "serve", "--config", str(server.config)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=20)
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
