"""Protocol section 4, rule by rule, tested by a client that knows only the text."""

import json
import uuid

import pytest

from device import NO_CALL, b64, join, member, starting, states


def joined(on, *users, **start):
    """A call of all of them, in which media has never flowed."""
    devices = [on(user) for user in users]
    call, _ = devices[0].start(*users[1:], **start)
    for device in devices[1:]:
        device.event("call.ring")
        device.enter(call)
    for device in devices:
        device.names()
    return call, *devices


def test_start_replies_with_the_state_and_rings_the_callees(on, names):
    alice, bob = on(names[0], claims={"name": "Alice"}), on(names[1])
    call, reply = alice.start(bob.user, "nobody-at-all", media="video", metadata=b64(b"title"))
    state = reply["call"]
    assert set(state) == {"id", "rev", "state", "media", "initiator", "startedAt", "epoch", "policy", "members", "metadata"}
    assert (state["state"], state["media"], state["initiator"], state["epoch"]) == ("ringing", "video", alice.user, 1)
    assert state["policy"] == {"invite": "members", "whenBusy": "ring", "ringSeconds": 30, "screens": 1}
    assert reply["participant"] == 1 and reply["results"] == {bob.user: "ringing", "nobody-at-all": "no-keys"}
    assert reply["ice"] == {"servers": []}
    me = member(state, alice.user)
    assert (me["name"], me["state"]) == ("Alice", "joined")
    participant = me["participants"][0]
    assert set(participant) == {"participant", "device", "joinId", "connected", "held", "tracks"}
    assert states(state) == {alice.user: "joined", bob.user: "ringing"}
    ring = bob.event("call.ring")
    assert set(ring) == {"at", "call", "from", "media", "members", "waiting", "expiresAt", "metadata", "admissions", "signers"}
    assert (ring["call"], ring["from"], ring["media"], ring["waiting"]) == (call, alice.user, "video", False)
    assert 29_000 < ring["expiresAt"] - ring["at"] <= 30_000
    assert bob.frame.headers["content-type"] == "application/json" and int(bob.frame.headers["seq"]) > 0


@pytest.mark.parametrize(
    "change, field",
    [
        ({"callees": "bob"}, "callees"),
        ({"callees": [1]}, "callees.0"),
        ({"callees": ["a b"]}, "callees.0"),
        ({"callees": ["x" * 129]}, "callees.0"),
        ({"callees": None}, "callees"),
        ({"media": "text"}, "media"),
        ({"media": 7}, "media"),
        ({"policy": []}, "policy"),
        ({"policy": {"ringSeconds": 4}}, "policy.ringSeconds"),
        ({"policy": {"ringSeconds": 121}}, "policy.ringSeconds"),
        ({"policy": {"ringSeconds": 5.5}}, "policy.ringSeconds"),
        ({"policy": {"ringSeconds": 1e300}}, "policy.ringSeconds"),
        ({"policy": {"aloneSeconds": -1}}, "policy.aloneSeconds"),
        ({"policy": {"invite": "all"}}, "policy.invite"),
        ({"policy": {"whenBusy": 1}}, "policy.whenBusy"),
        ({"policy": {"codecs": []}}, "policy.codecs"),
        ({"metadata": "not base64"}, "metadata"),
        ({"joinId": b64(bytes(15))}, "joinId"),
        ({"joinId": b64(bytes(17))}, "joinId"),
        ({"joinKey": {"alg": "x"}}, "joinKey"),
        ({"id": "x"}, "id"),
        ({"envelopes": {}}, "envelopes"),
    ],
    ids=lambda value: json.dumps(value)[:40] if isinstance(value, dict) else None,
)
def test_start_names_the_field_that_is_wrong(on, change, field):
    alice = on("start-fields")
    body = {"callees": [], "media": "audio", **starting(), **change}
    assert alice.fails("/app/calls/start", {k: v for k, v in body.items() if v is not None}) == "request.invalid"
    assert alice.error_body["field"].startswith(field), alice.error_body


def test_the_bounds_of_start_are_taken(on, names):
    alice, bob = on(names[0]), on(names[1])
    policy = {
        "ringSeconds": 120,
        "invite": "initiator",
        "whenBusy": "reject",
        "screens": 16,
        "aloneSeconds": 86400,
        "awaySeconds": 0,
        "connectSeconds": 3600,
        "maxHours": 168,
        "rotateMinutes": 1440,
        "codecs": ["VP8", "H264"],
    }
    _, reply = alice.start(bob.user, policy=policy, metadata=b64(bytes(2048)))
    assert reply["call"]["policy"] == policy
    alice.request("/app/calls/start", {"callees": [], "media": "audio", "unknown": {"a": [1, {}]}, "id": str(uuid.uuid4())})


def test_rule_1_every_connected_device_rings_and_one_that_connects_later(on, names):
    alice, phone, laptop = on(names[0]), on(names[1]), on(names[1], "laptop")
    call, _ = alice.start(names[1])
    assert phone.event("call.ring")["call"] == laptop.event("call.ring")["call"] == call
    tablet = on(names[1], "tablet")
    assert tablet.event("call.ring")["call"] == call


def test_rule_2_one_device_answers(on, names):
    alice, phone, laptop = on(names[0]), on(names[1]), on(names[1], "laptop")
    call, _ = alice.start(names[1])
    laptop.event("call.ring")
    phone.event("call.ring")
    reply = phone.enter(call)
    assert reply["participant"] == 2 and reply["call"]["state"] == "active" and "ice" in reply
    assert laptop.fails(f"/app/calls/{call}/accept", join()) == "call.answered-elsewhere"
    assert laptop.names().count("call.answered-elsewhere") == 1
    assert "call.answered-elsewhere" not in phone.names()
    change = alice.event("call.member")
    assert change["cause"] == "accepted" and change["state"] == "joined"
    assert change["participants"][0]["joinId"] == member(reply["call"], names[1])["participants"][0]["joinId"]
    assert laptop.fails(f"/app/calls/{call}/decline") == "call.answered-elsewhere"


def test_rule_3_a_decline_stops_all_devices_and_every_member_hears(on, names):
    alice, carol = on(names[0]), on(names[2])
    phone, laptop = on(names[1]), on(names[1], "laptop")
    call, _ = alice.start(names[1], names[2])
    for device in (phone, laptop, carol):
        device.event("call.ring")
    phone.call(call, "decline", {"reason": "busy"})
    assert laptop.event("call.declined-elsewhere")["call"] == call
    for device in (alice, carol, phone, laptop):
        change = device.event("call.member", where=lambda m: m["user"] == names[1])
        assert (change["cause"], change["state"]) == ("declined", "declined")
        assert "by" not in change
    assert "call.declined-elsewhere" not in phone.names()
    assert phone.fails(f"/app/calls/{call}/decline") == "call.not-ringing"


def test_rule_4_a_ring_that_nobody_answers_is_missed(on, names):
    alice, bob, carol = (on(name) for name in names[:3])
    call, _ = alice.start(bob.user, carol.user, policy={"ringSeconds": 5})
    carol.event("call.ring")
    carol.enter(call)
    assert bob.event("call.missed", 7)["call"] == call
    for device in (alice, carol, bob):
        assert device.event("call.member", where=lambda m: m["user"] == bob.user)["cause"] == "missed"
    lonely, _ = alice.start(bob.user, policy={"ringSeconds": 5, "aloneSeconds": 0})
    ended = bob.event("call.ended", 7)
    assert (ended["call"], ended["reason"], ended["seconds"]) == (lonely, "no-answer", 0)


def test_rule_5_who_may_invite(on, names):
    call, alice, bob = joined(on, *names[:2])
    on(names[2])
    results = bob.call(call, "invite", {"callees": [names[2], names[0]]})["results"]
    assert results == {names[2]: "ringing", names[0]: "already-joined"}
    assert bob.call(call, "invite", {"callees": [names[2]]})["results"] == {names[2]: "already-ringing"}
    for device in (alice, bob):
        assert device.event("call.member")["cause"] == "invited"
    strict, alice, bob = joined(on, names[0], names[1], policy={"invite": "initiator"})
    assert bob.fails(f"/app/calls/{strict}/invite", {"callees": [names[2]]}) == "call.invite-not-allowed"
    assert bob.fails(f"/app/calls/{strict}/link") == "call.invite-not-allowed"
    assert alice.call(strict, "invite", {"callees": [names[2]]})["results"] == {names[2]: "ringing"}


def test_rule_6_when_busy(on, names):
    call, alice, bob = joined(on, *names[:2])
    carol = on(names[2])
    second, _ = carol.start(bob.user)
    assert bob.event("call.ring")["waiting"] is True
    carol.call(second, "leave")
    _, reply = carol.start(bob.user, policy={"whenBusy": "reject"})
    assert reply["results"] == {bob.user: "busy"}
    dave = on(names[3])
    carol.start(dave.user, policy={"whenBusy": "reject"})
    _, reply = on(names[2] + "2").start(dave.user, policy={"whenBusy": "reject"})
    assert reply["results"] == {dave.user: "busy"}


def test_rule_8_the_initiators_leave_while_nobody_joined_cancels_all_rings(on, names):
    alice, bob, carol = (on(name) for name in names[:3])
    call, _ = alice.start(bob.user, carol.user)
    bob.event("call.ring")
    carol.event("call.ring")
    alice.call(call, "leave")
    for device in (bob, carol):
        device.event("call.cancelled")
        assert device.event("call.ended")["reason"] == "cancelled"
    assert bob.fails(f"/app/calls/{call}/accept", join()) == "call.ended"


def test_a_change_of_a_call_raises_its_revision(on, names):
    call, alice, bob, carol = joined(on, *names[:3])
    first = alice.call(call, "state")["rev"]
    carol.call(call, "hold", {"held": True})
    held = alice.event("call.member", where=lambda change: change["cause"] == "held")["rev"]
    carol.call(call, "leave")
    left = alice.event("call.member", where=lambda change: change["cause"] == "left")["rev"]
    assert first < held < left == alice.call(call, "state")["rev"]
    rejoined = alice.enter(call, "rejoin")["call"]["rev"]
    assert rejoined >= left and bob.event("call.member", where=lambda change: change["cause"] == "rejoined")["rev"] > left


def test_rule_8_the_initiator_leaves_rejoins_and_ends(on, names):
    call, alice, bob, carol = joined(on, *names[:3])
    alice.call(call, "leave")
    assert bob.event("call.member")["cause"] == "left"
    assert alice.request("/app/calls/list")["calls"][0]["id"] == call
    reply = alice.enter(call, "rejoin")
    assert reply["participant"] == 4, "a number is never used twice"
    assert bob.event("call.member")["cause"] == "rejoined"
    assert bob.fails(f"/app/calls/{call}/end") == "call.not-initiator"
    alice.call(call, "end")
    for device in (alice, bob, carol):
        ended = device.event("call.ended")
        assert (ended["reason"], ended["by"]) == ("ended-by-initiator", alice.user)
        assert isinstance(ended["seconds"], int)
    assert alice.fails(f"/app/calls/{call}/state") == "call.ended"


def test_rule_9_how_a_call_ends(on, names):
    call, alice, bob = joined(on, *names[:2])
    bob.call(call, "leave")
    assert alice.event("call.ended")["reason"] == "all-left", "aloneSeconds is 0 while there are two"
    call, _ = alice.start(bob.user)
    bob.event("call.ring")
    bob.call(call, "decline")
    assert alice.event("call.ended")["reason"] == "declined"
    call, _ = alice.start(bob.user, names[2], policy={"aloneSeconds": 1})
    alice.call(call, "cancel")
    assert alice.event("call.ended", 3)["reason"] == "cancelled"
    call, alice, bob, carol = joined(on, *names[:3], policy={"aloneSeconds": 1})
    bob.call(call, "leave")
    carol.call(call, "leave")
    alice.sync()
    assert alice.event("call.ended", 3)["reason"] == "all-left"


def test_rule_9_a_call_of_two_goes_on_when_another_was_invited(on, names):
    call, alice, bob = joined(on, *names[:2])
    carol = on(names[2])
    alice.call(call, "invite", {"callees": [carol.user]})
    carol.event("call.ring")
    carol.call(call, "decline")
    bob.call(call, "leave")
    assert "call.ended" not in alice.names()
    assert states(alice.call(call, "state"))[alice.user] == "joined"


def test_rule_12_rejoin_replaces_the_devices_participant(on, names):
    call, alice, bob = joined(on, *names[:2])
    first = member(alice.call(call, "state"), bob.user)["participants"][0]
    reply = bob.enter(call, "rejoin")
    assert reply["participant"] == 3
    change = alice.event("call.member")
    assert change["cause"] == "rejoined" and [p["participant"] for p in change["participants"]] == [3]
    assert change["participants"][0]["joinId"] != first["joinId"]
    assert bob.event("call.state")["id"] == call, "the whole state, after a rejoin"


def test_rule_12_a_device_that_has_the_state_does_not_get_it_again(on, names):
    call, alice, bob = joined(on, *names[:2])
    body = {**join(), "state": False}
    reply = bob.call(call, "rejoin", body)
    assert reply.keys() == {"participant", "ice"} and reply["participant"] == 3
    change = bob.event("call.member")
    assert change["cause"] == "rejoined" and [p["participant"] for p in change["participants"]] == [3]
    assert bob.call(call, "rejoin", body) == reply, "repeated"
    assert "call.state" not in bob.names()
    # The same join without it gets the current state.
    del body["state"]
    whole = bob.call(call, "rejoin", body)
    assert whole["participant"] == 3 and whole["call"] == alice.call(call, "state")


def test_rule_13_one_participant_a_user(on, names):
    call, alice, bob = joined(on, *names[:2])
    laptop = on(names[1], "laptop")
    assert laptop.fails(f"/app/calls/{call}/join", join()) == "call.answered-elsewhere"
    assert laptop.fails(f"/app/calls/{call}/rejoin", join()) == "call.answered-elsewhere"
    assert laptop.request("/app/calls/list")["calls"] == []


def test_rule_14_a_repeated_join_gets_the_first_reply_and_does_nothing(on, names):
    alice, bob = on(names[0]), on(names[1])
    body = {"callees": [bob.user], "media": "audio", **starting()}
    first = alice.request("/app/calls/start", body)
    assert alice.request("/app/calls/start", body) == first
    call = first["call"]["id"]
    bob.event("call.ring")
    again = join()
    accepted = bob.call(call, "accept", again)
    assert bob.call(call, "accept", again) == accepted
    assert alice.names().count("call.member") == 1 and "call.ring" not in bob.names()
    again = join()
    assert bob.call(call, "rejoin", again)["participant"] == bob.call(call, "rejoin", again)["participant"] == 3
    assert alice.names().count("call.member") == 1


def test_rule_16_the_first_event_of_a_connection_is_call_state(on, names):
    call, alice, bob = joined(on, *names[:2])
    bob.close()
    bob = on(names[1])
    bob.sync()
    assert bob.events[0].headers["event"] == "call.state"
    state = bob.events[0].json
    assert state["call"] == state["id"] == call and states(state) == {alice.user: "joined", bob.user: "joined"}
    assert member(state, bob.user)["participants"][0]["connected"] is False


def test_rule_17_whom_a_start_does_not_ring(on, names):
    alice, bob = on(names[0]), on(names[1])
    bob.request("/app/presence/set", {"state": "unavailable"})
    carol = on(names[2])
    carol.close()
    wait = on(names[3], keys=False)
    call, reply = alice.start(bob.user, carol.user, wait.user)
    assert reply["results"] == {bob.user: "unavailable", carol.user: "offline", wait.user: "no-keys"}
    assert on(names[2]).event("call.ring")["call"] == call
    assert bob.names() == [] and wait.names() == []


def test_rule_17_who_was_cancelled_may_not_join_and_is_rung_anew(on, names):
    alice, bob, carol = (on(name) for name in names[:3])
    call, _ = alice.start(bob.user, carol.user)
    carol.event("call.ring")
    carol.enter(call)
    bob.event("call.ring")
    assert carol.fails(f"/app/calls/{call}/cancel", {"callees": [bob.user]}) == "call.not-initiator"
    alice.call(call, "cancel", {"callees": [bob.user]})
    assert bob.event("call.cancelled")["by"] == alice.user
    assert bob.fails(f"/app/calls/{call}/join", join()) == "auth.forbidden"
    assert carol.call(call, "invite", {"callees": [bob.user]})["results"] == {bob.user: "ringing"}
    bob.event("call.ring")
    bob.call(call, "decline")
    bob.enter(call, "join")
    assert alice.event("call.member", where=lambda m: m["cause"] == "joined")["user"] == bob.user


def test_a_stranger_learns_nothing(on, names):
    call, alice, bob = joined(on, *names[:2])
    eve = on(names[2])
    requests = {
        **dict.fromkeys(["accept", "join", "rejoin", "transfer"], join()),
        **dict.fromkeys(
            ["state", "leave", "end", "cancel", "decline", "keys/list", "keys/request", "link", "stats"], {}
        ),
        "receive": {},
        "invite": {"callees": ["x"]},
        "hold": {"held": True},
        "remove-guest": {"guest": bob.user},
        "refuse-guest": {"guest": bob.user},
        "admit-guest": {"admission": {"fingerprint": b64(b"x"), "signature": b64(b"x")}},
        "keys": {"epoch": 1, "envelopes": []},
        "media": {"sdp": "v=0", "tracks": []},
        "message": {"body": b64(b"x")},
        "tracks/1.1": {"muted": True},
        "report": {"user": bob.user, "text": "x"},
    }
    for what, body in requests.items():
        code = eve.fails(f"/app/calls/{call}/{what}", body)
        assert code == eve.fails(f"/app/calls/{NO_CALL}/{what}", body) == "call.not-found", what
    eve.send("SUBSCRIBE", {"destination": f"/topic/calls/{call}", "id": "t", "receipt": "x"})
    assert eve.error().headers["receipt-id"] == "x"
