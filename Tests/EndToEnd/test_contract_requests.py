"""Protocol sections 4, 6 and 9: requests that break the rules, each error, and that the call continues unaffected."""

import base64
import json

import pytest

from client import RequestFailed
from conftest import wait_for
from device import b64, join, member, starting
from test_bad_input import OFFER
from test_contract_calls import joined

FINGERPRINT = ":".join(["AB"] * 32)


def offer(*tracks):
    """A first offer with an m-line for each (source, kind)."""
    session, _, audio = OFFER.partition("m=audio")
    mids = " ".join(str(n) for n in range(len(tracks)))
    text = session.format(bundle=f"a=group:BUNDLE {mids}\n", fingerprint=FINGERPRINT)
    for number, (source, kind, *_) in enumerate(tracks):
        line = ("m=audio" + audio).replace("a=mid:0", f"a=mid:{number}")
        if kind == "video":
            line = line.replace("m=audio 9 UDP/TLS/RTP/SAVPF 111", "m=video 9 UDP/TLS/RTP/SAVPF 96").replace(
                "a=rtpmap:111 opus/48000/2", "a=rtpmap:96 VP8/90000"
            )
        text += line
    named = [{"mid": str(n), "source": t[0], **(t[2] if len(t) > 2 else {})} for n, t in enumerate(tracks)]
    return {"sdp": text.replace("\n", "\r\n"), "tracks": named}


CALLS = [("microphone", "audio"), ("camera", "video")]


def test_tracks_are_told_muted_and_taken_away(on, names):
    call, alice, bob = joined(on, *names[:2])
    reply = bob.call(call, "media", offer(*CALLS))
    assert [t["track"] for t in reply["tracks"]] == ["2.1", "2.2"] and "a=ice-lite" in reply["sdp"]
    told = [alice.event("track.added"), alice.event("track.added")]
    assert {(t["track"], t["source"], t["kind"], t["muted"], t["participant"]) for t in told} == {
        ("2.1", "microphone", "audio", False, 2),
        ("2.2", "camera", "video", False, 2),
    }
    bob.call(call, "tracks/2.1", {"muted": True})
    assert alice.event("track.updated")["muted"] is True
    assert alice.fails(f"/app/calls/{call}/tracks/2.1", {"muted": False}) == "track.not-own"
    assert alice.fails(f"/app/calls/{call}/tracks/9.1", {"muted": False}) == "track.not-found"
    assert bob.fails(f"/app/calls/{call}/tracks/2.9", {"muted": False}) == "track.not-found"
    assert bob.fails(f"/app/calls/{call}/tracks/2.1", {"muted": 1}) == "request.invalid"
    bob.enter(call, "rejoin")
    names_of = [n for n in alice.names() if n in ("track.removed", "call.member")]
    assert names_of == ["track.removed", "track.removed", "call.member"], "rule 12: the tracks go first"


def test_one_screen_at_once_unless_it_is_replaced(on, names):
    call, alice, bob = joined(on, *names[:2])
    alice.call(call, "media", offer(("screen", "video")))
    assert bob.fails(f"/app/calls/{call}/media", offer(("screen", "video"))) == "screen.busy"
    assert bob.call(call, "media", offer(("screen", "video", {"replace": True})))["tracks"][0]["track"] == "2.1"
    gone = alice.event("track.removed")
    assert (gone["track"], gone["cause"]) == ("1.1", "replaced")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"sdp": 1, "tracks": []},
        {"sdp": "x", "tracks": []},
        {"sdp": "v=0\r\n" * 50_000, "tracks": []},
        {**offer(*CALLS), "tracks": [{"mid": "9", "source": "camera"}]},
        {**offer(*CALLS), "tracks": [{"mid": "0", "source": "window"}]},
        {**offer(*CALLS), "tracks": [{"mid": "0", "source": "camera"}]},
        {**offer(*CALLS), "tracks": offer(*CALLS)["tracks"] * 2},
        {**offer(*CALLS), "sdp": offer(*CALLS)["sdp"].replace(FINGERPRINT, "zz")},
    ],
    ids=range(9),
)
def test_media_that_is_wrong_is_refused(on, body):
    alice = on("media-wrong")
    call, _ = alice.start()
    code = alice.fails(f"/app/calls/{call}/media", body)
    assert code in ("request.invalid", "media.sdp-invalid", "media.unsupported", "request.too-large"), code
    alice.call(call, "end")


def test_a_codec_that_the_call_does_not_take_is_unsupported(on, names):
    alice = on(names[0])
    call, _ = alice.start(policy={"codecs": ["AV1"]})
    assert alice.fails(f"/app/calls/{call}/media", offer(*CALLS)) == "media.unsupported"


def test_each_request_in_the_wrong_state_has_its_error(on, names):
    call, alice, bob = joined(on, *names[:2])
    carol, dave = on(names[2]), on(names[3])
    tablet = on(names[0], "tablet")
    assert alice.fails(f"/app/calls/{call}/cancel") == "call.not-ringing"
    assert alice.fails(f"/app/calls/{call}/accept", join()) == "call.not-ringing"
    assert alice.fails(f"/app/calls/{call}/decline") == "call.not-ringing"
    for what, body in [
        ("leave", {}),
        ("hold", {"held": True}),
        ("message", {"body": b64(b"x")}),
        ("stats", {}),
        ("receive", {}),
        ("keys", {"epoch": 1, "envelopes": []}),
        ("keys/request", {}),
    ]:
        assert tablet.fails(f"/app/calls/{call}/{what}", body) == "call.not-joined", what
    alice.call(call, "invite", {"callees": [carol.user]})
    carol.event("call.ring")
    assert carol.fails(f"/app/calls/{call}/invite", {"callees": [dave.user]}) in (
        "call.not-joined",
        "call.invite-not-allowed",
    )
    assert carol.fails(f"/app/calls/{call}/transfer", join()) == "call.not-joined"
    for wrong in ({}, {"callees": []}, {"callees": "x"}, {"callees": [1]}):
        code = None
        try:
            alice.call(call, "invite", wrong)
        except Exception as failed:
            code = failed.code
        assert code == "request.invalid" or wrong == {"callees": []}, wrong
    bob.call(call, "leave")
    assert bob.fails(f"/app/calls/{call}/leave") == "call.not-joined"
    alice.call(call, "end")
    for what, body in [
        ("leave", {}),
        ("join", join()),
        ("rejoin", join()),
        ("accept", join()),
        ("invite", {"callees": [dave.user]}),
        ("end", {}),
        ("keys/list", {}),
        ("hold", {"held": True}),
        ("message", {"body": b64(b"x")}),
        ("state", {}),
        ("transfer", join()),
        ("cancel", {}),
    ]:
        assert alice.fails(f"/app/calls/{call}/{what}", body) == "call.ended", what
        assert dave.fails(f"/app/calls/{call}/{what}", body) == "call.not-found", what


@pytest.mark.parametrize("what", ["accept", "join", "rejoin", "transfer"])
def test_a_join_is_checked(on, what):
    alice = on("join-checked")
    call, _ = alice.start()
    good = join()
    key = good["joinKey"]
    for wrong in (
        {"joinId": b64(bytes(15))},
        {"joinId": 1},
        {"joinId": "%%"},
        {"joinKey": []},
        {"joinKey": {**key, "publicKey": b64(bytes(4097))}},
        {"joinKey": {**key, "alg": "x" * 65}},
        {"joinKey": {**key, "publicKey": ""}},
        {"joinKey": {**key, "signature": 1}},
    ):
        assert alice.fails(f"/app/calls/{call}/{what}", {**good, **wrong}) in (
            "request.invalid",
            "keys.too-large",
        ), wrong
    alice.call(call, "end")


def test_a_join_id_of_another_kind_of_join_is_refused(on, names):
    alice = on(names[0])
    mine = join()
    call, _ = alice.start(**mine)
    assert alice.fails(f"/app/calls/{call}/rejoin", mine) == "request.invalid"


def test_callees_that_stand_twice_or_are_the_caller(on, names):
    alice, bob = on(names[0]), on(names[1])
    _, reply = alice.start(bob.user, bob.user, alice.user)
    assert reply["results"] == {bob.user: "ringing", alice.user: "already-joined"}
    assert len(reply["call"]["members"]) == 2 and bob.names().count("call.ring") == 1


def test_a_user_is_in_32_calls_and_not_in_one_more(on, names):
    alice = on(names[0])
    for _ in range(32):
        alice.start()
    assert alice.fails("/app/calls/start", {"callees": [], "media": "audio", **starting()}) == "call.busy"


@pytest.mark.parametrize(
    "what, body",
    [
        ("stats", {"rtt": "x"}),
        ("stats", {"loss": 2}),
        ("stats", {"rtt": -1}),
        ("stats", {"freezes": 1e400}),
        ("receive", {"lastN": 26}),
        ("receive", {"lastN": -1}),
        ("receive", {"videos": [{}]}),
        ("receive", {"videos": [{"track": "x"}]}),
        ("receive", {"videos": [{"track": "1.1", "maxHeight": 0}]}),
        ("receive", {"videos": [{"track": "1.1", "priority": 10**20}]}),
        ("receive", {"muted": 2}),
        ("receive", {"muted": ["2"]}),
        ("receive", {"muted": [-1]}),
        ("receive", {"muted": [1] * 65}),
        ("message", {}),
        ("message", {"body": 1}),
        ("message", {"body": b64(b"x"), "to": "all"}),
        ("cancel", {"callees": "x"}),
        ("decline", {"reason": 5}),
        ("link", {"revoke": 1}),
        ("link", {"lasting": "x"}),
        ("link", {"lasting": 7}),
        ("hold", {"held": None}),
        ("refuse-guest", {}),
        ("refuse-guest", {"guest": "two words"}),
        ("admit-guest", {}),
        ("admit-guest", {"admission": {"user": "guest~ana"}}),
        ("knock", {}),
        ("knock", {"link": "x", "admission": 7}),
        ("remove-guest", {}),
        ("remove-guest", {"guest": 7}),
        ("remove-guest", {"guest": "two words"}),
        ("keys", {}),
        ("keys", {"epoch": 1}),
        ("keys", {"epoch": "1", "envelopes": []}),
        ("keys", {"epoch": 1, "envelopes": [{}]}),
        ("keys/request", {"epoch": -1}),
        ("keys/request", {"epoch": 1.5}),
    ],
    ids=str,
)
def test_fields_of_a_wrong_type_or_size_are_request_invalid(on, what, body):
    alice = on("fields")
    call, _ = alice.start()
    raw = None
    if body == {"freezes": 1e400}:
        raw = '{"freezes":1e400}'
    assert alice.fails(f"/app/calls/{call}/{what}", body, raw) == "request.invalid"
    assert alice.call(call, "state")["state"] == "ringing"
    alice.call(call, "end")


def test_a_link_lets_in_who_is_no_member(on, names):
    call, alice, bob = joined(on, *names[:2])
    eve = on(names[2])
    made = alice.call(call, "link", {"expiresIn": 60})
    assert eve.fails(f"/app/calls/{call}/join", {**join(), "link": "wrong"}) == "call.link-invalid"
    reply = eve.enter(call, "join", {**join(), "link": made["link"]})
    assert member(reply["call"], eve.user)["link"] is True
    assert alice.event("call.member")["cause"] == "joined"
    for wrong in ({"expiresIn": 59}, {"expiresIn": 86401}, {"expiresIn": "1"}):
        assert alice.fails(f"/app/calls/{call}/link", wrong) == "request.invalid"
    alice.call(call, "link", {"revoke": True})
    assert on(names[3]).fails(f"/app/calls/{call}/join", {**join(), "link": made["link"]}) == "call.link-invalid"


def test_hold_is_told_to_the_members_and_accept_of_another_holds_the_present_one(on, names):
    call, alice, bob = joined(on, *names[:2])
    bob.call(call, "hold", {"held": True})
    change = alice.event("call.member")
    assert change["cause"] == "held" and change["participants"][0]["held"] is True
    bob.call(call, "hold", {"held": False})
    assert alice.event("call.member")["participants"][0]["held"] is False
    carol = on(names[2])
    second, _ = carol.start(bob.user)
    bob.enter(second)
    assert alice.event("call.member")["participants"][0]["held"] is True
    assert bob.fails(f"/app/calls/{call}/hold", {"held": "yes"}) == "request.invalid"
    assert bob.fails(f"/app/calls/{call}/hold", {}) == "request.invalid"


def test_transfer_begins_beside_the_other_device_and_can_be_given_up(on, names):
    call, alice, bob = joined(on, *names[:2])
    laptop = on(names[1], "laptop")
    assert laptop.enter(call, "transfer")["participant"] == 3
    change = alice.event("call.member")
    assert change["cause"] == "joined" and [p["participant"] for p in change["participants"]] == [2, 3]
    laptop.call(call, "leave")
    assert [p["participant"] for p in alice.event("call.member")["participants"]] == [2]
    assert on(names[0], "tablet").fails(f"/app/calls/{call}/leave") == "call.not-joined"


def test_message_goes_to_participants_as_asked(on, names):
    call, alice, bob, carol = joined(on, *names[:3])
    alice.call(call, "message", {"body": b64(b"all")})
    for device in (bob, carol):
        got = device.event("message")
        assert (got["from"], base64.b64decode(got["body"])) == (1, b"all")
    alice.call(call, "message", {"body": b64(b"one"), "to": [bob.participant]})
    assert bob.event("message")["body"] == b64(b"one")
    assert "message" not in carol.names() and "message" not in alice.names()
    message = f"/app/calls/{call}/message"
    assert alice.fails(message, {"body": b64(bytes(16385))}) == "request.too-large"
    assert alice.fails(message, {"body": b64(b"x"), "to": [99]}) == "user.not-found"
    assert alice.fails(message, {"body": b64(b"x"), "to": [10**30]}) == "request.invalid"
    assert alice.fails(message, {"body": "%"}) == "request.invalid"
    where = {"destination": f"/app/calls/{call}/message", "request-id": "flood"}
    for _ in range(40):
        alice.send("SEND", where, json.dumps({"body": b64(b"x")}))
    codes, replies = [], 0
    while replies < 40:
        frame = alice.read()
        replies += "status" in frame.headers
        if frame.headers.get("status") == "error":
            codes.append(frame.json["error"])
    assert codes and {c["code"] for c in codes} == {"rate.limited"} and all(c["retryAfterMs"] > 0 for c in codes)


def test_a_participant_mutes_another_for_itself_and_tells_nobody(on, names):
    call, alice, bob, _ = joined(on, *names[:3])
    alice.call(call, "receive", {"muted": [bob.participant, bob.participant], "lastN": 4})
    alice.call(call, "receive", {"muted": []})
    assert alice.fails(f"/app/calls/{call}/receive", {"muted": [bob.participant, 99]}) == "user.not-found"
    assert alice.fails(f"/app/calls/{call}/receive", {"muted": [10**30]}) == "request.invalid"
    assert bob.names() == alice.names() == []
    bob.call(call, "leave")
    alice.call(call, "receive", {"muted": [bob.participant]})
    assert bob.fails(f"/app/calls/{call}/receive", {"muted": []}) == "call.not-joined"


def test_the_calls_topic_brings_public_events_to_members_alone(on, names):
    alice, bob, carol = (on(name) for name in names[:3])
    call, _ = alice.start(bob.user)
    bob.subscribe(f"/topic/calls/{call}", "t")
    bob.enter(call)
    got = bob.topic()
    while got.headers["event"] != "call.member":
        got = bob.topic()
    assert got.json["user"] == bob.user and got.json["call"] == call and "seq" not in got.headers
    alice.call(call, "end")
    assert bob.topic().headers["event"] == "call.ended"
    late = on(names[1], "laptop")
    for id in ("t", "again"):
        late.subscribe(f"/topic/calls/{call}", id)
        late.sync()
        assert [(f.headers["event"], f.headers["subscription"]) for f in late.topics] == [("call.ended", id)]
        late.topics.clear()


@pytest.mark.parametrize("what", ["explode", "", "state/x", "tracks", "tracks/x", "tracks/1.0.1"])
def test_an_unknown_request_is_answered(on, what):
    alice = on("unknown-request")
    call, _ = alice.start()
    if what:
        assert alice.fails(f"/app/calls/{call}/{what}", {"muted": True}) == "request.unknown"
    assert alice.fails("/app/what/ever") == "request.unknown"


def test_each_event_goes_to_its_receivers(on, names):
    alice, tablet = on(names[0]), on(names[0], "tablet")
    bob, laptop, carol, dave = on(names[1]), on(names[1], "laptop"), on(names[2]), on(names[3])
    call, _ = alice.start(bob.user, carol.user, dave.user)
    for device in (bob, laptop, carol, dave):
        device.event("call.ring")
    bob.enter(call)
    dave.call(call, "decline")
    everyone = (alice, tablet, bob, laptop, carol, dave)
    assert all("call.member" in device.names() for device in everyone)
    bob.call(call, "hold", {"held": True})
    assert [d for d in everyone if "call.member" in d.names()] == [alice, tablet, bob, laptop, carol]
    alice.call(call, "message", {"body": b64(b"x")})
    assert [d for d in everyone if "message" in d.names()] == [bob]
    bob.make_keys()
    bob.register()
    assert [d for d in everyone if "keys.devices-changed" in d.names()] == [alice, tablet, bob, laptop]
    alice.call(call, "end")
    assert all("call.ended" in device.names() for device in everyone)


def test_the_devices_of_a_whole_large_call_are_listed_in_one_request(on, names):
    """It costs the whole burst of a user's units, and the frame has already been charged."""
    alice = on(names[0])
    users = [names[0], *(f"nobody{number}" for number in range(999))]

    def listed():
        try:
            return alice.request("/app/devices/list", {"users": users})
        except RequestFailed as failed:
            assert failed.code == "rate.limited", "only units that other requests have used may be missing"

    reply = wait_for(listed, 10, "the list")
    assert [device["user"] for device in reply["devices"]] == [names[0]]
