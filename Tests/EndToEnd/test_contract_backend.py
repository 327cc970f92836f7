"""Protocol sections 7, 8 and 11: presence, roles, history, and the app's back end."""

import hashlib
import hmac
import json

import pytest

from conftest import Server, wait_for
from device import Device, b64, join, starting, states
from test_webhooks import SECRET, BackEnd, is_signed

TURN_SECRET = "a secret that coturn shares with us, long enough"


@pytest.fixture(scope="module")
def back_end():
    running = BackEnd()
    yield running
    running.server.shutdown()


@pytest.fixture(scope="module")
def server(tmp_path_factory, back_end):
    running = Server(
        tmp_path_factory.mktemp("app"),
        roles={"interpreter": {"neverStarts": True}, "nurse": {}},
        webhooks={"url": back_end.url + "/hook", "secret": SECRET},
        turn={"urls": ["turn:turn.example:3478", "stun:stun.example"], "secret": TURN_SECRET, "seconds": 600},
    )
    yield running
    running.stop()


def service(on, *topics):
    device = on("the-app", "backend", keys=False, claims={"scope": "service"})
    for topic in topics:
        device.subscribe(f"/topic/service/{topic}", topic)
    return device


def topic(device, name, where=lambda body: True):
    """The next event of that name on a topic."""
    while True:
        frame = device.topic()
        if frame.headers["event"] == name and where(frame.json):
            return frame.json


# Section 6: ice


def test_turn_credentials_are_those_of_coturns_rest(on, names):
    _, reply = on(names[0]).start()
    turn = next(s for s in reply["ice"]["servers"] if "turn:turn.example:3478" in s["urls"])
    code = hmac.new(TURN_SECRET.encode(), turn["username"].encode(), hashlib.sha1).digest()
    assert turn["credential"] == b64(code)
    expiry, _, user = turn["username"].partition(":")
    assert user == names[0] and 590 <= int(expiry) - reply["call"]["startedAt"] / 1000 <= 601


# Section 7


def test_presence_follows_the_user(on, names):
    alice, bob = on(names[0]), on(names[1])
    assert alice.request("/app/presence/watch", {"users": [bob.user]})["users"] == [
        {"user": bob.user, "state": "offline"}
    ]
    call, _ = alice.start(bob.user)
    bob.event("call.ring")
    watch = lambda: alice.request("/app/presence/watch", {"users": [bob.user]})["users"][0]["state"]
    assert watch() == "ringing"
    bob.enter(call)
    assert alice.event("presence") == {"at": alice.frame.json["at"], "user": bob.user, "state": "in-call"}
    bob.call(call, "leave")
    assert alice.event("presence")["state"] == "available"
    bob.request("/app/presence/set", {"state": "unavailable"})
    assert alice.event("presence")["state"] == "unavailable"
    bob.close()
    assert alice.event("presence", 20)["state"] == "offline"
    bob = on(names[1])
    assert alice.event("presence")["state"] in ("unavailable", "available")
    _, reply = alice.start(names[1])
    assert reply["results"][names[1]] in ("unavailable", "ringing")


@pytest.mark.parametrize(
    "body", [{}, {"state": "ringing"}, {"state": 1}, {"state": "in-call"}, {"state": "available", "role": 5}], ids=str
)
def test_presence_set_refuses_other_states(on, body):
    assert on("p-wrong", keys=False).fails("/app/presence/set", body) == "request.invalid"


@pytest.mark.parametrize("body", [{}, {"users": "bob"}, {"users": ["a b"]}, {"role": 1}], ids=str)
def test_presence_watch_refuses_what_it_cant_read(on, body):
    assert on("w-wrong", keys=False).fails("/app/presence/watch", body) == "request.invalid"


def test_a_user_with_a_role_starts_unavailable_and_is_watched_by_role(on, names):
    alice = on(names[0])
    ina = on(names[1], claims={"roles": ["interpreter", "nurse"]})
    assert alice.request("/app/presence/watch", {"role": "interpreter"})["users"] == []
    assert ina.fails("/app/presence/set", {"state": "available", "role": "chief"}) == "role.not-allowed"
    _, reply = alice.start(ina.user)
    assert reply["results"] == {ina.user: "unavailable"}
    ina.request("/app/presence/set", {"state": "available", "role": "interpreter"})
    assert alice.event("presence")["state"] == "available"
    assert ina.fails("/app/calls/start", {"callees": [], "media": "audio", **starting()}) == "role.not-allowed"
    call, reply = alice.start(ina.user)
    assert reply["results"] == {ina.user: "ringing"}
    ina.event("call.ring")
    ina.enter(call)
    assert ina.fails(f"/app/calls/{call}/invite", {"callees": [names[2]]}) == "role.not-allowed"
    ina.call(call, "leave")
    ina.request("/app/presence/set", {"state": "available", "role": "nurse"})
    ina.start()


# Section 8


def test_a_callee_who_is_not_rung_has_a_missed_call_and_the_caller_its_name(on, names):
    alice, bob = on(names[0]), on(names[1], claims={"name": "Bob"})
    bob.request("/app/presence/set", {"state": "unavailable"})
    call, reply = alice.start(bob.user)
    assert reply["results"] == {bob.user: "unavailable"}
    assert alice.event("call.ended", where=lambda b: b["call"] == call)["reason"] == "cancelled"
    for device, direction in ((alice, "outgoing"), (bob, "incoming")):
        entry = device.request("/app/history/list")["calls"][0]
        assert (entry["id"], entry["direction"], entry["outcome"]) == (call, direction, "missed")
        assert {member["user"] for member in entry["members"]} == {alice.user, bob.user}
        assert {"user": bob.user, "name": "Bob"} in entry["members"]


def test_history_has_each_outcome_for_each_side(on, names):
    alice, bob, carol = (on(name) for name in names[:3])
    wanted = []
    for end in ("answered", "declined", "cancelled"):
        call, _ = alice.start(bob.user, media="video")
        bob.event("call.ring", where=lambda b: b["call"] == call)
        if end == "answered":
            bob.enter(call)
            alice.call(call, "end")
        elif end == "declined":
            bob.call(call, "decline")
        else:
            alice.call(call, "cancel")
        alice.event("call.ended", where=lambda b: b["call"] == call)
        wanted.insert(0, (call, end))
    for device, direction in ((alice, "outgoing"), (bob, "incoming")):
        calls = device.request("/app/history/list")["calls"]
        assert [(c["id"], c["outcome"]) for c in calls] == wanted
        for entry in calls:
            assert set(entry) == {
                "id",
                "direction",
                "outcome",
                "media",
                "members",
                "startedAt",
                "seconds",
                "rejoinable",
            }
            assert (entry["direction"], entry["media"], entry["rejoinable"]) == (direction, "video", False)
    first = alice.request("/app/history/list", {"limit": 1})["calls"]
    assert [c["id"] for c in first] == [wanted[0][0]]
    older = alice.request("/app/history/list", {"before": first[0]["startedAt"]})["calls"]
    assert [c["id"] for c in older] == [c for c, _ in wanted[1:]]
    alice.request("/app/history/delete", {"calls": [wanted[0][0]]})
    assert len(alice.request("/app/history/list")["calls"]) == 2 and len(bob.request("/app/history/list")["calls"]) == 3
    alice.request("/app/history/delete", {"all": True})
    assert alice.request("/app/history/list")["calls"] == [] and len(bob.request("/app/history/list")["calls"]) == 3
    assert carol.request("/app/history/list")["calls"] == []
    totals = alice.request("/app/history/totals", {"with": bob.user})
    assert totals["calls"] == 1 and totals["seconds"] >= 0
    assert carol.request("/app/history/totals", {"with": bob.user}) == {"calls": 0, "seconds": 0}


def test_a_running_call_that_one_left_is_rejoinable(on, names):
    alice, bob, carol = (on(name) for name in names[:3])
    call, _ = alice.start(bob.user, carol.user)
    for device in (bob, carol):
        device.event("call.ring")
        device.enter(call)
    bob.call(call, "leave")
    entry = bob.request("/app/history/list")["calls"][0]
    assert entry["rejoinable"] is True and entry["outcome"] == "answered"


@pytest.mark.parametrize(
    "what, body",
    [
        ("list", {"limit": 0}),
        ("list", {"limit": 201}),
        ("list", {"limit": 1.5}),
        ("list", {"before": "x"}),
        ("list", {"before": 10**30}),
        ("delete", {}),
        ("delete", {"calls": "x"}),
        ("delete", {"all": 1}),
        ("totals", {}),
        ("totals", {"with": "a b"}),
        ("totals", {"with": 1}),
    ],
    ids=str,
)
def test_history_refuses_what_it_cant_read(on, what, body):
    assert on("h-wrong", keys=False).fails(f"/app/history/{what}", body) == "request.invalid"


# Section 11


def test_a_service_hears_of_calls_and_pushes(on, names):
    app = service(on, "calls", "push")
    alice, bob, away = on(names[0]), on(names[1]), on(names[1], "laptop")
    away.close()
    app.sync()
    call, _ = alice.start(bob.user, metadata=b64(b"secret title"))
    bob.event("call.ring")
    push = topic(app, "push.ring", lambda b: b["call"] == call)
    assert set(push) == {"at", "call", "user", "devices", "from", "media", "expiresAt"}
    assert (push["user"], push["devices"], push["from"], push["media"]) == (bob.user, ["laptop"], alice.user, "audio")
    bob.enter(call)
    cancel = topic(app, "push.cancel", lambda b: b["call"] == call)
    assert cancel["user"] == bob.user
    alice.call(call, "end")
    assert topic(app, "call.ended", lambda b: b["call"] == call)["reason"] == "ended-by-initiator"


def test_a_services_events_have_no_metadata(on, names):
    app = service(on, "calls")
    alice, bob = on(names[0]), on(names[1])
    call, _ = alice.start(bob.user, metadata=b64(b"secret title"))
    alice.call(call, "end")
    seen = []
    while not seen or seen[-1].headers["event"] != "call.ended":
        seen.append(app.topic())
    mine = [f for f in seen if f.json["call"] == call]
    assert {"call.state", "call.ring", "call.ended"} <= {f.headers["event"] for f in mine}
    assert not any(b64(b"secret title").encode() in f.body for f in mine)
    assert not any("envelope" in f.json or "seq" in f.headers for f in mine)


def test_a_service_starts_a_call_on_behalf_of_a_user(on, names):
    app = service(on)
    alice, bob = on(names[0]), on(names[1])
    body = {"as": alice.user, "callees": [bob.user], "media": "video"}
    reply = app.request("/app/calls/start", body)
    assert reply["results"] == {alice.user: "ringing", bob.user: "ringing"} and "participant" not in reply
    call = reply["call"]["id"]
    assert reply["call"]["initiator"] == alice.user and states(reply["call"]) == {
        alice.user: "ringing",
        bob.user: "ringing",
    }
    assert alice.event("call.ring")["from"] == alice.user
    bob.event("call.ring")
    bob.enter(call)
    rotate = bob.event("keys.rotate")
    assert (rotate["epoch"], rotate["mode"], rotate["leader"], rotate["deliver"]) == (1, "fresh", bob.participant, [])
    bob.call(call, "keys", {"epoch": 1, "envelopes": []})
    assert bob.event("keys.switch")["epoch"] == 1
    alice.enter(call)
    assert bob.event("keys.rotate")["epoch"] == 2
    for what, more in [
        ("accept", join()),
        ("join", join()),
        ("keys", {"epoch": 1, "envelopes": []}),
        ("keys/list", {}),
        ("leave", {}),
        ("message", {"body": b64(b"x")}),
        ("rejoin", join()),
        ("invite", {"callees": [bob.user]}),
    ]:
        assert app.fails(f"/app/calls/{call}/{what}", more) == "auth.forbidden", what
    assert app.fails("/app/devices/register", {"keys": []}) in ("auth.forbidden", "request.invalid")
    assert call in [c["id"] for c in app.request("/app/calls/list")["calls"]]
    app.call(call, "end")
    ended = alice.event("call.ended")
    assert ended["reason"] == "ended-by-service" and "by" not in ended
    assert app.fails("/app/calls/start", {"as": "nobody-there", "callees": [], "media": "audio"}) == "user.not-found"
    assert app.fails("/app/calls/start", {"callees": [], "media": "audio"}) in ("request.invalid", "auth.forbidden")
    assert (
        alice.fails("/app/calls/start", {"as": bob.user, "callees": [], "media": "audio", **starting()}) == "auth.forbidden"
    )


def test_a_report_reaches_the_service(on, names):
    app = service(on, "reports")
    alice, bob = on(names[0]), on(names[1])
    call, _ = alice.start(bob.user)
    bob.event("call.ring")
    bob.enter(call)
    alice.call(call, "report", {"participant": bob.participant, "text": "rude"})
    told = app.topic().json
    assert told["call"] == call and told["text"] == "rude" and told["user"] == bob.user
    alice.call(call, "end")
    bob.call(call, "report", {"user": alice.user, "text": "after the end"})
    assert app.topic().json["text"] == "after the end"
    for wrong in (
        {},
        {"text": "x"},
        {"user": alice.user},
        {"user": alice.user, "text": ""},
        {"user": alice.user, "text": "x" * 4097},
    ):
        assert bob.fails(f"/app/calls/{call}/report", wrong) in (
            "request.invalid",
            "rate.limited",
            "request.too-large",
        ), wrong


def test_webhooks_are_signed_and_in_order(on, names, back_end):
    alice, bob = on(names[0]), on(names[1])
    call, _ = alice.start(bob.user)
    bob.event("call.ring")
    bob.enter(call)
    alice.call(call, "end")
    wait_for(lambda: any(e["event"] == "call.ended" for e in back_end.events(call)), 20, lambda: back_end.events(call))
    events = [e["event"] for e in back_end.events(call)]
    assert events[0] == "call.state" and events[-1] == "call.ended" and "call.member" in events
    assert all(is_signed(headers, body) for path, headers, body in back_end.received if path == "/hook")


# Section 7: authorize


@pytest.fixture
def asking(tmp_path, back_end):
    running = Server(tmp_path, authorize={"url": back_end.url + "/may", "secret": SECRET})
    yield running
    running.stop()


def test_users_that_the_back_end_does_not_name_are_offline(asking, back_end):
    back_end.allowed = ["bob"]
    alice, bob, carol = (Device(asking, name) for name in ("alice", "bob", "carol"))
    call, reply = alice.start("bob", "carol")
    assert reply["results"] == {"bob": "ringing", "carol": "offline"}
    assert alice.call(call, "invite", {"callees": ["carol"]})["results"] == {"carol": "offline"}
    listed = alice.request("/app/devices/list", {"users": ["alice", "bob", "carol"]})["devices"]
    assert {d["user"] for d in listed} == {"alice", "bob"}
    watched = alice.request("/app/presence/watch", {"users": ["bob", "carol"]})["users"]
    assert {w["user"]: w["state"] for w in watched} == {"bob": "ringing", "carol": "offline"}
    questions = [json.loads(body) for path, _, body in back_end.received if path == "/may"]
    assert [q["action"] for q in questions] == ["ring", "ring", "devices", "watch"]
    assert all(q["from"] == "alice" for q in questions) and all(
        is_signed(h, b) for p, h, b in back_end.received if p == "/may"
    )
    carol.request("/app/presence/set", {"state": "unavailable"})
    assert "presence" not in alice.names() and carol.names() == []
    for device in (alice, bob, carol):
        device.close()
