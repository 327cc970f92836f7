"""Protocol section 4, "Guests", tested by a client that knows only the text."""

import json
import os
import urllib.error
import urllib.request

import pytest

from conftest import Server
from device import NO_CALL, Device, Wire, join, member, starting, token
from words import admitted, link_word


def post(server, body, type="application/json"):
    """(status, body) of `/guest/token`."""
    data = json.dumps(body).encode()
    request = urllib.request.Request(server.url + "/guest/token", data, {"content-type": type})
    try:
        with urllib.request.urlopen(request, timeout=5) as reply:
            return reply.status, json.loads(reply.read())
    except urllib.error.HTTPError as error:
        return error.code, None


class Guest(Device):
    def __init__(self, server, call, link, name="Ana"):
        status, granted = post(server, {"call": call, "link": link, "name": name})
        assert status == 200 and granted["user"].startswith("guest~")
        self.token = granted["token"]
        super().__init__(server, granted["user"], device="guest", connect={"passcode": self.token})


@pytest.fixture
def guest(server):
    made = []

    def make(*arguments, **options):
        made.append(Guest(server, *arguments, **options))
        return made[-1]

    yield make
    for device in made:
        device.close()


def test_a_guest_has_its_call_and_nothing_else(on, guest, names, server):
    alice, bob = on(names[0]), on(names[1])
    call, _ = alice.start(bob.user)
    other, _ = on(names[3]).start(alice.user)
    link = alice.call(call, "link")["link"]
    assert server.get("/guest")
    ana = guest(call, link)
    assert (ana.connected.headers["user-name"], ana.connected.headers["device"]) == (ana.user, "guest")
    ana.enter(call, "join", {"link": link, **join()})
    shown = member(alice.call(call, "state"), ana.user)
    assert (shown["name"], shown["state"], shown["link"]) == ("Ana", "joined", True)
    assert {d["user"] for d in ana.request("/app/devices/list", {"users": [alice.user, bob.user]})["devices"]} == {alice.user, bob.user}
    alien = on(names[2])
    assert ana.request("/app/devices/list", {"users": [alien.user]})["devices"] == []
    for destination, body in [
        ("/app/calls/start", {"callees": [], "media": "audio", **starting()}),
        (f"/app/calls/{call}/invite", {"callees": [bob.user]}),
        (f"/app/calls/{call}/link", {}),
        (f"/app/calls/{call}/hold", {"held": True}),
        (f"/app/calls/{call}/admit-guest", {"admission": {"fingerprint": "", "signature": ""}}),
        (f"/app/calls/{call}/refuse-guest", {"guest": ana.user}),
        (f"/app/calls/{call}/remove-guest", {"guest": ana.user}),
        (f"/app/calls/{call}/remove-guest", {"guest": alice.user}),
        (f"/app/calls/{call}/end", {}),
        (f"/app/calls/{other}/state", {}),
        (f"/app/calls/{other}/join", join()),
        (f"/app/calls/{other}/media", {"sdp": "", "tracks": []}),
        ("/app/calls/list", {}),
        ("/app/history/list", {}),
        ("/app/presence/set", {"state": "available"}),
        ("/app/presence/watch", {"users": [alice.user]}),
        ("/app/devices/remove", {"device": "guest"}),
    ]:
        assert ana.fails(destination, body) == "auth.forbidden", destination
    assert ana.call(call, "report", {"user": alice.user, "text": "rude"}) == {}
    assert ana.fails(f"/app/calls/{call}/report", {"user": alien.user, "text": "x"}) == "user.not-found"
    assert ana.fails(f"/app/calls/{other}/report", {"user": bob.user, "text": "x"}) == "auth.forbidden"
    for _ in range(4):
        ana.call(call, "report", {"participant": 1, "text": "rude"})
    assert ana.fails(f"/app/calls/{call}/report", {"participant": 1, "text": "rude"}) == "rate.limited"
    assert alice.call(call, "invite", {"callees": [ana.user]})["results"] == {ana.user: "already-joined"}
    assert ana.call(call, "leave") == {}
    assert alice.call(call, "invite", {"callees": [ana.user]})["results"] == {ana.user: "no-keys"}


def test_a_guest_goes_with_its_call(on, guest, names, server):
    alice = on(names[0])
    call, _ = alice.start()
    link = alice.call(call, "link")["link"]
    ana = guest(call, link)
    ana.enter(call, "join", {"link": link, **join()})
    status, fresh = post(server, {"token": ana.token})
    assert (status, fresh["user"]) == (200, ana.user)
    alice.call(call, "end")
    assert ana.error().headers["message"] == "this guest's call is over"
    assert post(server, {"token": ana.token})[0] == 403
    assert post(server, {"call": call, "link": link, "name": "Ana"})[0] == 403
    assert alice.request("/app/devices/list", {"users": [ana.user]})["devices"] == []
    history = alice.request("/app/history/list")["calls"]
    assert [entry["members"] for entry in history if entry["id"] == call] == [[{"user": alice.user}]]


def test_a_member_removes_a_guest_and_never_a_member(on, guest, names, server):
    alice, bob, carol = on(names[0]), on(names[1]), on(names[2])
    call, _ = alice.start(bob.user)
    bob.enter(call, "accept")
    link = alice.call(call, "link")["link"]
    carol.enter(call, "join", {"link": link, **join()})
    ana, ben = guest(call, link), guest(call, link, "Ben")
    for each in (ana, ben):
        each.enter(call, "join", {"link": link, **join()})
    path = f"/app/calls/{call}/remove-guest"
    for user in (alice.user, carol.user, names[3]):
        assert bob.fails(path, {"guest": user}) == "auth.forbidden", "nobody removes a member, or somebody else"
    assert bob.fails(path, {"guest": "guest~nobody"}) == "user.not-found"
    assert bob.request(path, {"guest": ana.user}) == {}
    for device in (alice, bob, carol, ben, ana):
        change = device.event("call.member", where=lambda m: m["cause"] == "removed")
        assert (change["user"], change["state"], change["participants"]) == (ana.user, "left", [])
    assert ana.error().headers["message"] == "this guest's call is over"
    assert bob.fails(path, {"guest": ana.user}) == "user.not-found"
    # The link is void, even with another name and other keys; those who joined by it stay.
    assert post(server, {"call": call, "link": link, "name": "Somebody else"})[0] == 403
    there = {m["user"]: m["state"] for m in alice.call(call, "state")["members"]}
    assert there == dict.fromkeys([alice.user, bob.user, carol.user, ben.user], "joined")
    ben.call(call, "leave")
    ben.enter(call, "rejoin")
    # The removed guest needs a new link.
    again = Device(server, ana.user, device="guest", connect={"passcode": ana.token})
    assert again.fails(f"/app/calls/{call}/rejoin", join()) == "call.not-found"
    assert again.fails(f"/app/calls/{call}/state", {}) == "call.not-found"
    again.close()


@pytest.fixture
def door(on, names):
    """A call of Alice and Bob with a link whose guests wait: (call, link, alice, bob)."""
    alice, bob = on(names[0]), on(names[1])
    call, _ = alice.start(bob.user)
    bob.enter(call, "accept")
    word = link_word(alice.sign_key, alice.fingerprint, call, os.urandom(16), waits=True)
    return call, alice.call(call, "link", {"admission": word})["link"], alice, bob


def admission(guest, member, call, knock):
    word = next(word for word in knock["admissions"] if word.get("user") == guest.user)
    return {"admission": admitted(member.sign_key, member.fingerprint, call, word)}


def test_a_guest_waits_until_a_member_admits_it(door, guest, on, names, server):
    call, link, alice, bob = door
    carol = on(names[2])
    carol.enter(call, "join", {"link": link, **join()})
    ana = guest(call, link)
    assert ana.fails(f"/app/calls/{call}/join", {"link": link, **join()}) == "call.not-admitted"
    assert carol.fails(f"/app/calls/{call}/knock", {"link": link}) == "auth.forbidden", "an account need not wait"
    assert ana.call(call, "knock", {"link": link}).keys() == {"expiresAt"}
    knocks = [device.event("guest.knock") for device in (alice, bob, carol)]
    for knock in knocks:
        assert (knock["user"], knock["name"], knock["call"]) == (ana.user, "Ana", call)
        assert [word["waits"] for word in knock["admissions"] if "user" not in word] == [True]
        assert alice.user in [signer["user"] for signer in knock["signers"]]
    assert ana.fails(f"/app/calls/{call}/state", {}) == "call.not-found"
    wrong = admission(ana, bob, call, knocks[1])
    wrong["admission"]["admittedBy"]["signature"] = knocks[1]["admissions"][0]["signature"]
    assert bob.fails(f"/app/calls/{call}/admit-guest", wrong) == "request.invalid"
    assert bob.call(call, "admit-guest", admission(ana, bob, call, knocks[1])) == {}
    for device in (alice, bob, carol, ana):
        over = device.event("guest.knock-over")
        assert (over["user"], over["outcome"]) == (ana.user, "admitted")
    assert alice.fails(f"/app/calls/{call}/admit-guest", admission(ana, alice, call, knocks[0])) == "user.not-found", "the first answer counts"
    assert alice.fails(f"/app/calls/{call}/refuse-guest", {"guest": ana.user}) == "user.not-found"
    ana.enter(call, "join", {"link": link, **join()})
    assert member(alice.call(call, "state"), ana.user)["link"] is True
    rotation = alice.event("keys.rotate", where=lambda body: any(word.get("user") == ana.user for word in body.get("admissions", [])))
    word = next(word for word in rotation["admissions"] if word.get("user") == ana.user)
    assert word["admittedBy"]["fingerprint"] == admission(ana, bob, call, knocks[1])["admission"]["admittedBy"]["fingerprint"]


def test_a_refused_guest_and_one_that_goes(door, guest, server):
    call, link, alice, bob = door
    ana, ben = guest(call, link), guest(call, link, "Ben")
    for each in (ana, ben):
        each.call(call, "knock", {"link": link})
        assert bob.event("guest.knock")["user"] == each.user
    assert alice.request(f"/app/calls/{call}/refuse-guest", {"guest": ana.user}) == {}
    for device in (ana, bob):
        assert device.event("guest.knock-over")["outcome"] == "refused"
    assert ana.error().headers["message"] == "this guest's call is over"
    ben.call(call, "leave")
    assert (over := bob.event("guest.knock-over"))["user"] == ben.user and over["outcome"] == "over"
    again = Device(server, ana.user, device="guest", connect={"passcode": ana.token})
    assert again.fails(f"/app/calls/{call}/knock", {"link": link}) == "call.link-invalid"
    again.close()


def test_queues_and_topics_of_others_end_a_guests_connection(on, guest, names):
    alice = on(names[0])
    call, _ = alice.start()
    link = alice.call(call, "link")["link"]
    for destination in ["/user/queue/x", f"/topic/calls/{NO_CALL}", "/topic/service/calls"]:
        ana = guest(call, link)
        ana.send("SUBSCRIBE", {"destination": destination, "id": "x"})
        assert ana.error()


def test_the_app_names_no_guest(on, server):
    wire = Wire(server)
    wire.send("CONNECT", {"accept-version": "1.2", "host": "test", "passcode": token(server, "guest~ana"), "device": "x"})
    assert wire.error().headers["message"].startswith("Bad CONNECT")
    assert post(server, {"call": NO_CALL, "link": "x", "name": "Ana"}, "text/plain")[0] == 415
    assert post(server, {"call": NO_CALL, "link": "x", "name": "a\u0007"})[0] == 400


def test_without_guests_there_is_no_entry(tmp_path):
    server = Server(tmp_path, demo=False)
    try:
        assert post(server, {"call": NO_CALL, "link": "x", "name": "Ana"})[0] == 405
        with pytest.raises(urllib.error.HTTPError):
            server.get("/guest")
    finally:
        server.stop()
