"""Rules that need time: 9, 10 and 13 of section 4, and the state that survives the server's death (rule 11, sections 3 and 5)."""

import subprocess
import time

import pytest

from conftest import BINARY, PATIENCE, Server, wait_for
from device import Device, b64, envelope, join, member, states


@pytest.fixture
def own(tmp_path):
    running = Server(tmp_path)
    yield running
    running.die()
    running.log.close()


def two(server, names, *more, **start):
    """A call of all of them, without media."""
    devices = [Device(server, name) for name in names]
    call, _ = devices[0].start(*names[1:], *more, **start)
    for device in devices[1:]:
        device.event("call.ring")
        device.enter(call)
    for device in devices:
        device.names()
    return call, *devices


def test_rules_8_10_and_13_by_the_clock(server):
    began = time.monotonic()
    away, anna, ben = two(server, ["c-anna", "c-ben"])
    brief, cleo, dan = two(server, ["c-cleo", "c-dan"], policy={"awaySeconds": 1, "aloneSeconds": 60})
    never, eve, fay = two(server, ["c-eve", "c-fay"], policy={"connectSeconds": 3})
    moved, gus, hal = two(server, ["c-gus", "c-hal"])
    laptop = Device(server, "c-hal", "laptop")
    laptop.enter(moved, "transfer")
    assert len(gus.event("call.member")["participants"]) == 2
    ida, jan = Device(server, "c-ida"), Device(server, "c-jan")
    rung, _ = ida.start("c-jan", policy={"ringSeconds": 120})
    jan.event("call.ring")
    for device in (ben, dan, ida):
        device.close()

    # A participant without media is removed after connectSeconds.
    assert eve.event("call.ended", 8)["reason"] == "all-left"
    assert fay.event("call.member", where=lambda m: m["cause"] == "failed")["state"] == "left"

    # After 15 s without signaling and media: disconnected, and off the key list.
    gone = anna.event("call.member", 25, where=lambda m: m["cause"] == "disconnected")
    assert time.monotonic() - began > 14
    assert (gone["user"], gone["state"]) == ("c-ben", "disconnected")
    assert anna.event("keys.rotate", where=lambda b: b["removed"])["removed"] == [2], "the participant of c-ben"
    assert [e["user"] for e in anna.call(away, "keys/list")["list"]] == ["c-anna"]

    # The same holds for an initiator whom nobody has joined, and ends the rings.
    jan.event("call.cancelled", 10)
    assert jan.event("call.ended")["reason"] == "cancelled"

    # It may come back, and so may another of the user's devices.
    ben = Device(server, "c-ben")
    assert [c["id"] for c in ben.request("/app/calls/list")["calls"]] == [away]
    assert ben.enter(away, "rejoin")["participant"] == 3
    assert anna.event("call.member", where=lambda m: m["cause"] == "rejoined")["state"] == "joined"
    assert anna.event("keys.rotate")["added"][0]["user"] == "c-ben"

    # After too long an absence it has left.
    assert (
        cleo.event("call.member", 10, where=lambda m: m["user"] == "c-dan" and m["state"] == "left")["cause"] == "left"
    )
    cleo.call(brief, "end")

    # A transfer without media is abandoned after 20 s.
    back = gus.event("call.member", 15, where=lambda m: m["cause"] == "failed")
    assert [p["device"] for p in back["participants"]] == ["phone"]
    assert time.monotonic() - began > 19
    for device in (anna, ben, cleo, eve, fay, gus, hal, laptop, jan):
        device.close()


def hand_out(leader, call, rotate):
    envelopes = [envelope(rotate["epoch"], e["user"], e["device"]) for e in rotate["deliver"]]
    leader.call(call, "keys", {"epoch": rotate["epoch"], "envelopes": envelopes})


def test_rule_11_a_call_survives_the_servers_death(own):
    call, alice, bob = two(own, ["alice", "bob"], "carol")
    carol = Device(own, "carol", keys=True)
    before = alice.call(call, "state")
    body = join()
    bob.close()
    bob = Device(own, "bob", ack="client-individual", keys=False)
    carol.start("bob", policy={"ringSeconds": 120}, metadata=b64(b"meta"), envelopes=[envelope(1, "bob")])
    rung = bob.event("call.ring")
    own.die()
    own.start()
    alice, bob, carol = (Device(own, name, ack="client-individual", keys=False) for name in ("alice", "bob", "carol"))
    alice.event("call.state")
    assert alice.frame is not None and int(alice.frame.headers["seq"]) > 1 << 32
    now = alice.call(call, "state")
    assert states(now) == states(before) and now["startedAt"] == before["startedAt"] and now["rev"] > before["rev"]
    assert member(now, "alice")["participants"][0]["connected"] is False
    again = bob.event("call.ring")
    for name in ("call", "from", "media", "expiresAt", "metadata", "envelope", "list"):
        assert again[name] == rung[name], name
    reply = bob.enter(call, "rejoin", body)
    assert reply["participant"] == 3 and bob.enter(call, "rejoin", body)["participant"] == 3
    told = alice.event("call.member")
    assert (told["cause"], told["state"]) == ("rejoined", "joined")
    rotate = alice.event("keys.rotate")
    assert rotate["mode"] == "fresh", "the one before was not switched to"
    while rotate["listHash"] != alice.call(call, "keys/list")["listHash"] or not any(
        e["participant"] == 3 for e in rotate["deliver"]
    ):
        hand_out(alice, call, rotate)
        rotate = alice.event("keys.rotate")
    hand_out(alice, call, rotate)
    given = bob.event("keys.envelope", where=lambda b: b["epoch"] == rotate["epoch"])
    assert bob.event(
        "keys.switch", where=lambda b: b["epoch"] == rotate["epoch"]
    ), "2 s later, though nobody acknowledged"
    own.die()
    own.start()
    bob = Device(own, "bob", ack="client-individual", keys=False)
    again = bob.event("keys.envelope")
    assert again["ciphertext"] == given["ciphertext"]
    devices = bob.request("/app/devices/list", {"users": ["alice", "bob"]})["devices"]
    assert [d["device"] for d in devices] == ["phone", "phone"]
    alice = Device(own, "alice", keys=False)
    alice.call(call, "end")
    assert bob.event("call.ended")["reason"] == "ended-by-initiator"
    own.die()
    own.start()
    bob = Device(own, "bob", keys=False)
    assert bob.fails(f"/app/calls/{call}/state") == "call.ended"
    history = bob.request("/app/history/list")["calls"]
    assert {(c["id"], c["direction"], c["outcome"]) for c in history} >= {(call, "incoming", "answered")}


def test_a_forgotten_user_is_a_stranger(own):
    call, alice, bob = two(own, ["alice", "bob"], "carol", policy={"aloneSeconds": 60})
    # With somebody else, since otherwise the start would refer to the running call.
    dave = Device(own, "dave")
    over, _ = alice.start("bob", dave.user)
    alice.call(over, "end")
    wait_for(lambda: alice.request("/app/history/list")["calls"], 5, "history")
    subprocess.run([BINARY, "forget", "--config", str(own.config), "--user", "bob"], check=True, capture_output=True)
    assert bob.error(10).headers["message"] == "this user's data was deleted"
    assert alice.event("call.member", where=lambda m: m["user"] == "bob")["state"] == "left"
    assert alice.request("/app/devices/list", {"users": ["bob"]})["devices"] == []
    assert alice.request("/app/history/totals", {"with": "bob"}) == {"calls": 0, "seconds": 0}
    bob = Device(own, "bob", keys=False)
    assert bob.request("/app/history/list")["calls"] == []
    assert bob.fails(f"/app/calls/{call}/state") == "call.not-found"


def test_sigterm_waits_for_calls_and_starts_no_new_ones(tmp_path):
    server = Server(tmp_path, drain=20)
    call, alice, bob = two(server, ["alice", "bob"])
    server.process.terminate()
    wait_for(lambda: "server.draining" == try_start(alice), 5, "start is refused")
    assert bob.call(call, "state")["id"] == call
    laptop = Device(server, "bob", "laptop")
    assert laptop.fails(f"/app/calls/{call}/join", join()) == "call.answered-elsewhere"
    alice.call(call, "end")
    assert bob.event("call.ended")
    assert bob.error(10).headers["message"] == "the server is shutting down"
    assert server.process.wait(10 * PATIENCE) == 0
    server.log.close()


def try_start(device):
    try:
        call, _ = device.start()
        device.call(call, "end")
    except Exception as failed:
        return getattr(failed, "code", str(failed))
