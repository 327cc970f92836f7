"""A user with a valid token tries to access what belongs to others: queues, topics, calls, services, devices."""

import uuid

import pytest

from device import NO_CALL, Device, Wire, token

# {} is the id of a call that the stranger is not in.
OTHERS_PLACES = [
    "/topic/calls/{}", "/topic/calls/{}/", "/topic//calls/{}", "/topic/calls/../calls/{}", "/topic/calls/*", "/topic/calls.#",
    "/topic/calls", "/topic/calls.{}", "/topic/Calls/{}", "/topic/calls%2f{}", "/topic/calls\\c{}", "/exchange/calls/{}",
    "/exchange/calls", "/exchange/service/calls", "/exchange/amq.topic/calls.{}", "/topic/service/calls",
    "/topic/service/push", "/topic/service", "/topic/service.calls", "/user/alice/queue/events",
    "/user/alice/queue/replies", "/user/alice/queue/x", "/user//queue/events",
    "/user/queue/../alice/queue/events", "/queue/../user/alice/queue/events", "/queue/user/alice", "/app/calls/list", "/app",
    "/", "", "/topic", "/topic/", "//topic/x", "/amq/queue/x", "/temp-queue/x", "/queue/" + "a" * 1100,
]  # fmt: skip


def answer(server, command, headers, body=b"", user="eve"):
    """The answer to one frame on a new connection of `user`."""
    wire = Wire(server)
    wire.send("CONNECT", {"accept-version": "1.2", "host": "x", "passcode": token(server, user)})
    assert wire.read().command == "CONNECTED"
    wire.send(command, {**headers, "receipt": "k"}, body)
    frame = wire.read()
    wire.close()
    return frame


def test_a_stranger_subscribes_to_nothing_of_others(on, server, names):
    call, _ = on(names[0]).start(names[1])
    for place in OTHERS_PLACES:
        for id in (call, call.upper()):
            frame = answer(server, "SUBSCRIBE", {"id": "1", "destination": place.format(id)})
            assert frame.command == "ERROR", place


@pytest.mark.parametrize(
    "place",
    ["/user/alice/queue/events", "/user/alice/queue/replies", "/user/alice/queue/x", "/user/queue/events"]
    + ["/user/queue/replies", f"/topic/calls/{NO_CALL}", "/topic/service/calls", f"/exchange/calls/{NO_CALL}"]
    + ["/exchange/service/push", "/exchange/service.calls", "/topic/calls", "/topic/calls.x", "/topic/service.x"],
)
def test_a_client_sends_nothing_in_the_servers_name(server, app_server, place):
    for opened in server, app_server:
        frame = answer(opened, "SEND", {"destination": place, "event": "call.ended", "seq": "1"}, b"{}")
        assert frame.command == "ERROR"


def connect(server, signed_in="eve", **headers):
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    return f"CONNECT\naccept-version:1.2\n{lines}passcode:{token(server, signed_in)}\n\n\0"


BAD = "CONNECT\naccept-version:1.2\npasscode:x\n\n\0"
SUBSCRIBE = "SUBSCRIBE\nid:1\ndestination:/user/queue/events\nreceipt:k\n\n\0"


def test_nothing_is_done_before_a_good_login(server):
    for data in [
        SUBSCRIBE, "SEND\ndestination:/app/calls/list\nrequest-id:1\n\n\0", BAD + SUBSCRIBE, BAD + connect(server),
        "CONNECT\naccept-version:1.2\npasscode:x\npasscode:" + token(server, "eve") + "\n\n\0",
        connect(server, login="alice"), "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nSEND\n",
    ]:  # fmt: skip
        wire = Wire(server)
        wire.write(data.encode())
        assert wire.error(), data
    # Only one login per connection.
    wire = Wire(server)
    wire.write((connect(server) + connect(server, "alice")).encode())
    assert wire.read().command == "CONNECTED" and wire.error()


def test_a_login_is_whose_its_token_is(server):
    for headers, names in [
        ({"user-name": "alice", "user": "alice"}, {"user-name": "eve"}),
        ({"login": "device-phone", "device": "phone"}, {"user-name": "eve", "device": "phone"}),
    ]:
        wire = Wire(server)
        wire.write(connect(server, **headers).encode())
        connected = wire.read()
        assert connected.command == "CONNECTED" and names.items() <= connected.headers.items()
        wire.close()
    wire = Wire(server)
    mine = token(server, "eve", device="mine")
    wire.send("CONNECT", {"accept-version": "1.2", "host": "x", "device": "other", "passcode": mine})
    assert wire.read().headers["device"] == "mine"
    wire.close()


def test_a_header_makes_no_service(server):
    wire = Wire(server)
    wire.write(connect(server, scope="service", roles="admin").encode())
    assert wire.read().command == "CONNECTED"
    wire.send("SUBSCRIBE", {"id": "1", "destination": "/topic/service/calls"})
    assert wire.error()


def test_a_device_of_the_same_name_is_another_users(on, names):
    alice, eve = on(names[0], "phone"), on(names[1], "phone")
    assert eve.connected.headers["user-name"] == names[1]
    assert alice.request("/app/calls/list") == {"calls": []}, "not replaced"


def test_a_service_sees_calls_and_joins_none(on, server, names):
    alice, bob = on(names[0]), on(names[1])
    call, _ = alice.start(bob.user)
    assert alice.fails("/app/calls/start", {"id": str(uuid.uuid4()), "as": names[1], "callees": [names[2]], "media": "audio"}) == "auth.forbidden"
    service = Device(server, "app", None, keys=False, claims={"scope": "service"})
    assert service.call(call, "state")
    for what in "join", "keys/list":
        assert service.fails(f"/app/calls/{call}/{what}", {}) == "auth.forbidden", what
    service.close()
