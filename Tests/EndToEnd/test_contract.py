"""Protocol sections 1 to 3, 9 and 10: connections, errors of STOMP, limits."""

import time

import pytest

from client import RequestFailed
from conftest import Server, wait_for
from device import NO_CALL, Wire, join, starting, token


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Small limits, and destinations for an app's own messages."""
    running = Server(
        tmp_path_factory.mktemp("open-server"),
        destinations=["/topic/chat", "/queue/work", "/exchange/logs", "/topic/"],
        limits={"connectSeconds": 1, "participants": 2, "ringing": 2, "outbound": 1 << 20},
    )
    yield running
    running.stop()


def connect(server, seconds=5, **headers):
    """The answer to CONNECT."""
    wire = Wire(server)
    wire.send("CONNECT", {"accept-version": "1.2", "host": "x", **headers})
    answer = wire.read(seconds)
    if answer.command == "ERROR":
        assert wire.read() is None
    wire.close()
    return answer


# Sections 1 and 2


@pytest.mark.parametrize("path", ["/stomp", "/stomp/", "/stomp/websocket", "/ws", "/ws/"])
def test_stomp_over_websocket_at_each_path(on, path):
    device = on("web", transport="ws", path=path)
    assert device.request("/app/calls/list") == {"calls": []}


@pytest.mark.parametrize("offered", [[], ["v12.stomp"], ["v10.stomp", "v11.stomp", "v12.stomp"]], ids=len)
def test_a_subprotocol_is_chosen_of_those_offered(server, offered):
    wire = Wire(server, "ws", subprotocols=offered)
    assert wire.web.getsubprotocol() in (offered or [None])
    wire.send("STOMP", {"accept-version": "1.0,1.1,1.2", "host": "x", "passcode": token(server, "sub")})
    assert wire.read().headers["version"] == "1.2"
    wire.close()


def test_a_frame_may_span_messages_and_a_message_hold_several(server):
    wire = Wire(server, "ws")
    wire.send("CONNECT", {"accept-version": "1.2", "host": "x", "passcode": token(server, "span")})
    assert wire.read().command == "CONNECTED"
    text = b"SUBSCRIBE\nid:1\ndestination:/user/queue/replies\n\n\0\n\nSEND\ndestination:/app/calls/list\nrequest-id:1\n\n\0"
    for part in (text[:7], text[7:60], text[60:]):
        wire.web.send(part.decode())
    opcode, data = wire.web.recv_data()
    assert opcode == 1 and data.startswith(b"MESSAGE\n") and data.count(b"\0") == 1
    wire.close()


def test_connected_has_all_of_its_headers(on, server):
    headers = on("heads", "phone").connected.headers
    assert set(headers) == {"version", "session", "server", "heart-beat", "user-name", "device"}
    assert headers["server"].startswith("conclave/") and (headers["user-name"], headers["device"]) == ("heads", "phone")
    assert (
        connect(server, passcode=token(server, "heads", device="claimed"), device="asked").headers["device"]
        == "claimed"
    )
    assert connect(server, passcode=token(server, "heads")).headers["device"]
    bearer = {"Authorization": "Bearer " + token(server, "heads")}
    assert connect(server, **bearer).command == "CONNECTED"


def test_login_must_be_the_user_or_the_device(server):
    for login, taken in [
        ("lo", True),
        ("device-d1", True),
        ("", True),
        ("d1", False),
        ("Lo", False),
        ("device-lo", False),
    ]:
        answer = connect(server, passcode=token(server, "lo"), login=login, device="d1")
        assert (answer.command == "CONNECTED") == taken, login


@pytest.mark.parametrize(
    "claims, headers",
    [
        ({"sub": ""}, {}),
        ({"sub": "a b"}, {}),
        ({"sub": "x" * 129}, {}),
        ({"sub": 5}, {}),
        ({"exp": 1}, {}),
        ({"exp": None}, {}),
        ({"exp": "soon"}, {}),
        ({"device": "a/b"}, {}),
        ({}, {"device": "a/b"}),
        ({}, {"device": "x" * 129}),
        ({}, {"passcode": "x.y.z"}),
        ({}, {"passcode": ""}),
    ],
    ids=str,
)
def test_a_bad_token_or_id_is_bad_connect(server, claims, headers):
    passcode = token(server, "good", **claims)
    answer = connect(server, **{"passcode": passcode, **headers})
    assert answer.command == "ERROR" and answer.headers["message"] == "Bad CONNECT: authentication failed"


def test_every_character_of_an_id_is_taken(on):
    user = "aZ09._~@+-" + "x" * 118
    assert on(user, "._~@+-").connected.headers["user-name"] == user


def test_an_expired_token_ends_the_connection(on):
    device = on("expires", claims={"seconds": 2}, keys=False)
    assert device.error(6).headers["message"] == "token expired"


def test_a_newer_connection_of_the_device_replaces_the_older(on):
    first = on("replaced")
    second = on("replaced")
    assert first.error().headers["message"] == "replaced by a newer connection"
    second.sync()


def test_a_client_that_does_not_connect_in_time_is_told_and_closed(server):
    began = time.monotonic()
    assert "CONNECT" in Wire(server).error(8).headers["message"]
    assert time.monotonic() - began < 8, "the configuration says 1 s, and 10 s is the default"


# Section 3: requests and events


@pytest.mark.parametrize(
    "raw",
    [
        "{",
        "[]",
        "1",
        '"x"',
        "null",
        "{}x",
        '{"a":1,"a":1}',
        '{"a":' * 70 + "1" + "}" * 70,
        "[" * 100_000,
        '{"callees":[],"media":"audio","policy":{"ringSeconds":' + "9" * 400 + "}}",
        '{"a":"\\ud800"}',
    ],
)
def test_a_body_that_is_no_good_json_object_is_request_invalid(on, raw):
    device = on("json", keys=False)
    assert device.fails("/app/calls/start", raw=raw) == "request.invalid"
    assert device.request("/app/calls/list", raw="") == {"calls": []}


def test_a_request_id_has_1_to_64_bytes(on):
    device = on("ids", keys=False)
    for number in (None, "", "x" * 65):
        device.send("SEND", {"destination": "/app/calls/list", **({} if number is None else {"request-id": number})})
        reply = device.read()
        assert reply.headers["status"] == "error" and reply.json["error"]["code"] == "request.invalid"
    device.send("SEND", {"destination": "/app/calls/list", "request-id": "x" * 64})
    assert device.read().headers["request-id"] == "x" * 64


def test_a_body_over_its_limit(on):
    device = on("large", keys=False)
    big = '{"x":"' + "y" * (256 << 10) + '"}'
    assert device.fails("/app/calls/start", raw=big) == "request.too-large"
    assert device.fails(f"/app/calls/{NO_CALL}/keys", raw=big) in (
        "request.invalid",
        "call.not-found",
    )
    device.send("SEND", {"destination": "/app/calls/list", "request-id": "1", "content-length": str(2 << 20)})
    assert device.error().headers["message"]


def test_more_than_50_requests_a_second_are_rate_limited_and_the_connection_lives(on):
    device = on("fast", keys=False)
    device.write(b"".join(b"SEND\ndestination:/app/calls/list\nrequest-id:%d\n\n\0" % n for n in range(400)))
    replies = [device.read() for _ in range(400)]
    errors = [reply.json["error"] for reply in replies if reply.headers["status"] == "error"]
    assert 90 <= 400 - len(errors) < 400
    assert {e["code"] for e in errors} == {"rate.limited"} and all(e["retryAfterMs"] > 0 for e in errors)
    wait_for(lambda: is_taken(device), 5, "the connection is usable again")


def is_taken(device):
    try:
        return device.request("/app/calls/list") == {"calls": []}
    except RequestFailed:
        return False


# Section 10


def test_a_slow_reader_of_a_topic_is_closed_and_nobody_waits_for_it(on, server):
    slow, quick, sender = on("slow", keys=False), on("quick", keys=False), on("slow-sender", keys=False)
    for device in (slow, quick):
        device.subscribe("/topic/chat.flood", "f")
    body = bytes(100_000)
    for _ in range(150):
        sender.send("SEND", {"destination": "/topic/chat.flood"}, body)
        assert len(quick.topic().body) == len(body)
    wait_for(lambda: 'cause="slowReader"} 0' not in server.get("/metrics"), 10, "the slow reader is closed")
    sender.sync()
    assert on("slow", keys=False).request("/app/calls/list") == {"calls": []}


def test_a_call_holds_so_many_participants_and_rings(on, names):
    alice, bob, carol = (on(name) for name in names[:3])
    dave = on(names[3])
    assert alice.fails(
        "/app/calls/start", {"callees": [d.user for d in (bob, carol, dave)], "media": "audio", **starting()}
    ) in ("call.full", "request.too-large")
    call, _ = alice.start(bob.user, carol.user)
    for device in (bob, carol):
        device.event("call.ring")
    bob.enter(call)
    assert carol.fails(f"/app/calls/{call}/accept", join()) == "call.full"


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET / HTTP/1.1\r\n\r\n",
        b"SEND\n\n\0",
        b"CONNECT\nnocolon\n\n\0",
        b"CONNECT\n:v\n\n\0",
        b"x" * 70_000,
        b"CONNECT\n" + b"a:b\n" * 65 + b"\n\0",
        b"CONNECT\naccept-version:9.9\nhost:x\n\n\0",
        b"CONNECT\naccept-version:1.2\nhost:x\nheart-beat:a\n\n\0",
        b"CONNECT\naccept-version:1.2\nhost:x\ncontent-length:-1\n\n\0",
        b"CONNECT\naccept-version:1.2\nhost:x\ncontent-length:99999999999999999999\n\n\0",
    ],
    ids=lambda d: repr(d[:20]),
)
def test_other_protocols_get_an_error_and_the_end(server, data):
    wire = Wire(server)
    wire.write(data)
    assert wire.error(8).headers["message"]


@pytest.mark.parametrize(
    "frame",
    [
        "BEGIN\n\n\0",
        "COMMIT\ntransaction:x\n\n\0",
        "ABORT\ntransaction:x\n\n\0",
        "ACK\nid:1\n\n\0",
        "NACK\nid:x\n\n\0",
        "UNSUBSCRIBE\nid:x\n\n\0",
        "SUBSCRIBE\ndestination:/topic/chat.x\n\n\0",
        "SUBSCRIBE\nid:1\n\n\0",
        "SUBSCRIBE\nid:1\nack:foo\ndestination:/topic/chat.x\n\n\0",
        "SEND\n\n\0",
        "SUBSCRIBE\nid:replies\ndestination:/topic/chat.x\n\n\0",
        "CONNECT\naccept-version:1.2\nhost:x\n\n\0",
        "FOO\n\n\0",
        "send\n\n\0",
        "MESSAGE\n\n\0",
        "SEND\ndestination:/topic/chat.x\na:\\t\n\n\0",
        "SEND\ndestination:/topic/chat.x\ncontent-length:1\n\nab\0",
        "SUBSCRIBE\nid:1\nselector:a\ndestination:/topic/chat.x\n\n\0",
        "SEND\ndestination:/topic/chat.x\ntransaction:none\n\n\0",
        "BEGIN\ntransaction:x\n\n\0BEGIN\ntransaction:x\n\n\0",
    ],
)
def test_a_violation_of_stomp_is_an_error_and_the_end(on, frame):
    device = on("violation", keys=False)
    device.write(frame.encode())
    assert device.error().headers["content-type"] == "text/plain"
