"""Protocol section 4, "Lasting links", tested by a client that knows only the text."""

import json
import os
import signal
import time

import pytest

from conftest import Server
from client import RequestFailed
from device import NO_CALL, Device, join, member
from test_contract_guests import Guest, post
from waiting import wait_for
from words import lasting_id, link_word

WEEK = 7 * 86_400


class Maker:
    """A device with a lasting link: its secret stays here, the server gets the id."""

    def __init__(self, device, expires_in=WEEK):
        self.device, self.secret = device, os.urandom(16)
        self.id = lasting_id(self.secret, device.fingerprint)
        self.made = device.request("/app/links/make", {"link": self.id, "expiresIn": expires_in})

    def word(self, call, waits=False):
        return link_word(self.device.sign_key, self.device.fingerprint, call, self.secret, waits=waits)

    def open(self, call, **options):
        return self.device.call(call, "link", {"lasting": self.id, "admission": self.word(call, **options)})

    def start(self, **options):
        call, _ = self.device.start()
        return call, self.open(call, **options)["link"]


@pytest.fixture
def lasting(on, names):
    return Maker(on(names[0]))


def opened(device, link):
    return device.request("/app/links/open", {"link": link})


def test_one_link_serves_many_calls(lasting, on, names):
    alice, bob = lasting.device, on(names[1])
    made = lasting.made
    assert (made["link"], made["device"]) == (lasting.id, "phone") and "call" not in made
    assert abs(made["expiresAt"] / 1000 - time.time() - WEEK) < 60
    assert alice.request("/app/links/make", {"link": lasting.id, "expiresIn": 3600}) == made, "a repeat"
    listed = alice.request("/app/links/list")
    assert listed["links"] == [made] and listed["days"] >= 1
    keys = set()
    for _ in range(2):
        waiting = opened(bob, lasting.id)
        assert waiting["expiresAt"] == made["expiresAt"] and not waiting.keys() & {"call", "token"}
        assert alice.event("link.waiting")["link"] == lasting.id
        call, token = lasting.start()
        assert bob.event("link.changed")["link"] == lasting.id
        now = opened(bob, lasting.id)
        assert (now["call"], now["token"]) == (call, token)
        assert alice.request("/app/links/list")["links"][0]["call"] == call
        bob.enter(call, "join", {"link": token, **join()})
        assert member(alice.call(call, "state"), bob.user)["link"] is True
        keys.add(lasting.word(call)["link"])
        alice.call(call, "end")
        assert "call" not in alice.request("/app/links/list")["links"][0]
    assert len(keys) == 2, "the link has another key in each call"


def test_only_its_device_opens_it_for_its_own_calls(lasting, on, names):
    alice, bob, laptop = lasting.device, on(names[1]), on(names[0], "laptop")
    bobs, _ = bob.start(alice.user)
    alice.enter(bobs, "accept")
    body = {"lasting": lasting.id, "admission": lasting.word(bobs)}
    assert alice.fails(f"/app/calls/{bobs}/link", body) == "call.not-initiator"
    hers, _ = laptop.start()
    assert laptop.fails(f"/app/calls/{hers}/link", {"lasting": lasting.id}) == "call.link-invalid"
    assert laptop.error_body["field"] == "lasting"
    first, _ = lasting.start()
    second, _ = alice.start()
    assert alice.fails(f"/app/calls/{second}/link", {"lasting": lasting.id, "admission": lasting.word(second)}) == "call.exists"
    assert alice.error_body["call"] == first


def test_its_bounds(on, names, server):
    alice = on(names[0])
    days = alice.request("/app/links/list")["days"]
    for seconds in (0, 3_599, days * 86_400 + 1, -5, 2**62):
        assert alice.fails("/app/links/make", {"link": lasting_id(os.urandom(16), alice.fingerprint), "expiresIn": seconds}) == "request.invalid"
        assert alice.error_body["field"] == "expiresIn"
    for link in ("", "short", "A" * 21 + "B", "A" * 21 + "+", "A" * 23):
        assert alice.fails("/app/links/make", {"link": link, "expiresIn": 3_600}) == "request.invalid"
        assert alice.error_body["field"] == "link"
    keyless = on(names[1], keys=False)
    assert keyless.fails("/app/links/make", {"link": "A" * 22, "expiresIn": 3_600}) == "keys.not-allowed"
    links = [Maker(alice) for _ in range(20)]
    assert alice.fails("/app/links/make", {"link": lasting_id(os.urandom(16), alice.fingerprint), "expiresIn": 3_600}) == "request.too-large"
    assert [link["link"] for link in alice.request("/app/links/list")["links"]] == [link.id for link in links]
    for link in links:
        assert alice.request("/app/links/delete", {"link": link.id}) == {}


def test_every_wrong_link_is_refused_alike(lasting, on, names, server):
    alice, bob = lasting.device, on(names[1])
    assert bob.fails("/app/links/open", {"link": "A" * 22}) == "call.link-invalid"
    unknown = bob.error_body
    assert bob.fails("/app/links/delete", {"link": lasting.id}) == "call.link-invalid" and bob.error_body == unknown
    assert post(server, {"lasting": "A" * 22, "name": "Ana"}) == post(server, {"call": NO_CALL, "link": "x", "name": "Ana"})
    opened(bob, lasting.id)
    assert on(names[0], "laptop").request("/app/links/delete", {"link": lasting.id}) == {}, "any device of the user"
    assert bob.event("link.changed")["link"] == lasting.id
    assert bob.fails("/app/links/open", {"link": lasting.id}) == "call.link-invalid" and bob.error_body == unknown
    assert post(server, {"lasting": lasting.id, "name": "Ana"})[0] == 403
    call, _ = alice.start()
    assert alice.fails(f"/app/calls/{call}/link", {"lasting": lasting.id, "admission": lasting.word(call)}) == "call.link-invalid"


def test_a_deleted_link_lets_nobody_in_who_opened_it_before(lasting, on, names):
    alice, bob, carol = lasting.device, on(names[1]), on(names[2])
    call, token = lasting.start()
    bob.enter(call, "join", {"link": token, **join()})
    alice.request("/app/links/delete", {"link": lasting.id})
    assert member(alice.call(call, "state"), bob.user)["state"] == "joined"
    assert carol.fails(f"/app/calls/{call}/join", {"link": token, **join()}) == "call.link-invalid"


def test_a_guest_waits_and_comes_with_a_name_alone(lasting, on, names, server):
    alice = lasting.device
    status, waiting = post(server, {"lasting": lasting.id, "name": "Ana"})
    assert status == 202 and waiting["expiresAt"] == lasting.made["expiresAt"] and "token" not in waiting
    assert alice.event("link.waiting")["link"] == lasting.id
    call, token = lasting.start(waits=True)
    status, granted = post(server, {"lasting": lasting.id, "name": "Ana"})
    assert (status, granted["call"], granted["link"]) == (200, call, token)
    ana = Device(server, granted["user"], device="guest", connect={"passcode": granted["token"]})
    assert ana.fails(f"/app/calls/{call}/join", {"link": token, **join()}) == "call.not-admitted", "guests wait at lasting links, too"
    for destination in ("make", "list", "delete", "open"):
        assert ana.fails(f"/app/links/{destination}", {"link": lasting.id, "expiresIn": 3_600}) == "auth.forbidden"
    ana.close()


def test_a_removed_guest_waits_for_the_next_call(lasting, on, names, server):
    alice = lasting.device
    call, token = lasting.start()
    ana = Guest(server, call, token)
    ana.enter(call, "join", {"link": token, **join()})
    assert alice.request(f"/app/calls/{call}/remove-guest", {"guest": ana.user}) == {}
    assert post(server, {"lasting": lasting.id, "name": "Somebody else"})[0] == 202
    assert alice.fails(f"/app/calls/{call}/link", {"lasting": lasting.id, "admission": lasting.word(call)}) == "request.invalid"
    assert alice.error_body["field"] == "admission.link"
    alice.call(call, "end")
    lasting.start()
    assert post(server, {"lasting": lasting.id, "name": "Ana"})[0] == 200
    ana.close()


def test_a_link_goes_with_the_keys_of_its_device(lasting, on, names):
    bob = on(names[1])
    opened(bob, lasting.id)
    again = on(names[0])  # the same device, with new keys
    assert bob.event("link.changed")["link"] == lasting.id
    assert again.request("/app/links/list")["links"] == []


def test_waiting_is_bounded(on, names):
    alice, bob = on(names[0]), on(names[1])
    links = [Maker(alice) for _ in range(9)]
    for link in links[:8]:
        opened(bob, link.id)
    assert bob.fails("/app/links/open", {"link": links[8].id}) == "server.busy"
    opened(bob, links[0].id)
    bob.close()
    again = on(names[1])
    opened(again, links[8].id)


def test_links_and_their_calls_survive_a_kill(tmp_path):
    server = Server(tmp_path)
    try:
        alice = Device(server, "alice")
        lasting, idle = Maker(alice), Maker(alice)
        call, token = lasting.start()
        server.die()
        server.start()
        laptop, bob = Device(server, "alice", "laptop"), Device(server, "bob")
        assert [link["link"] for link in laptop.request("/app/links/list")["links"]] == [lasting.id, idle.id]
        now = opened(bob, lasting.id)
        assert (now["call"], now["token"]) == (call, token)
        bob.enter(call, "join", {"link": token, **join()})
        assert "call" not in opened(bob, idle.id)
        assert server.metric("conclave_lasting_links") == 2
    finally:
        server.stop()


def test_the_operator_decides_whether_and_how_long(tmp_path):
    server = Server(tmp_path, links={"days": 2, "ofUser": 1})
    try:
        alice, bob = Device(server, "alice"), Device(server, "bob")
        lasting = Maker(alice, 2 * 86_400)
        assert alice.request("/app/links/list")["days"] == 2
        assert alice.fails("/app/links/make", {"link": "A" * 22, "expiresIn": 3_600}) == "request.too-large"
        assert bob.fails("/app/links/make", {"link": "A" * 22, "expiresIn": 2 * 86_400 + 1}) == "request.invalid"
        configure(server, days=0)
        wait_for(lambda: refusal(bob, lasting.id) == "auth.forbidden", 10, "the server has read its configuration again")
        for request, body in [("list", {}), ("make", {"link": "A" * 22, "expiresIn": 3_600}), ("delete", {"link": lasting.id})]:
            assert alice.fails(f"/app/links/{request}", body) == "auth.forbidden"
        assert post(server, {"lasting": lasting.id, "name": "Ana"})[0] == 403
        configure(server, days=1)
        wait_for(lambda: refusal(bob, lasting.id) is None, 10, "the server has read its configuration again")
        assert alice.request("/app/links/list")["links"] == [lasting.made], "a link that exists keeps its life"
    finally:
        server.stop()


def configure(server, days):
    """The server reads its configuration again."""
    members = json.loads(server.config.read_text())
    server.config.write_text(json.dumps({**members, "links": {"days": days}}))
    os.kill(server.pid, signal.SIGHUP)


def refusal(device, link):
    """The error's code of `open`, or None."""
    try:
        opened(device, link)
    except RequestFailed as failed:
        return failed.code
    return None
