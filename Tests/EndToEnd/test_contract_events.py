"""Protocol section 3: events and acknowledgements, an app's own destinations, and destinations that clients may not use."""

import pytest

from device import NO_CALL
from test_contract import server  # small limits, and destinations


@pytest.mark.parametrize("mode", ["client", "client-individual"])
def test_events_that_were_not_acknowledged_come_again(on, names, mode):
    alice, bob, carol, dave = on(names[0]), on(names[1], ack=mode), on(names[2]), on(names[3])
    calls = [caller.start(bob.user)[0] for caller in (alice, carol, dave)]
    rings = []
    for call in calls:
        bob.event("call.ring", where=lambda b: b["call"] == call)
        rings.append(bob.frame)
    bob.ack(rings[1])
    bob.sync()
    bob.close()
    alice.call(calls[0], "cancel")
    bob = on(names[1], ack=mode)
    bob.sync()
    again = [(f.headers["event"], f.headers["seq"], f.headers.get("redelivered")) for f in bob.events]
    kept = [f for f in rings if int(f.headers["seq"]) > int(rings[1].headers["seq"]) or mode == "client-individual"]
    wanted = [f.headers["seq"] for f in kept if f is not rings[1] and f.json["call"] != calls[0]]
    assert [s for e, s, r in again if e == "call.ring" and r == "true"] == wanted
    seqs = [int(s) for _, s, _ in again]
    assert seqs == sorted(seqs)
    later = [e for e, s, r in again if r is None]
    assert "call.ended" in later


def test_with_auto_an_event_is_acknowledged_when_written_and_seq_rises_by_one(on, names):
    alice, bob = on(names[0]), on(names[1])
    for _ in range(3):
        alice.start(bob.user)
    bob.sync()
    seqs = [int(f.headers["seq"]) for f in bob.events]
    assert seqs == list(range(seqs[0], seqs[0] + len(seqs))) and len(seqs) >= 3
    bob.close()
    bob = on(names[1])
    alice.start(bob.user)
    bob.sync()
    fresh = [int(f.headers["seq"]) for f in bob.events if "redelivered" not in f.headers]
    assert max(fresh) > seqs[-1] and len(set(fresh)) == len(fresh)


def test_one_subscription_a_connection_to_each_of_the_two_queues(on):
    for queue in ("replies", "events"):
        device = on("twice", keys=False)
        device.send("SUBSCRIBE", {"destination": f"/user/queue/{queue}", "id": "again", "receipt": "r"})
        assert device.error().headers["receipt-id"] == "r"


def test_64_subscriptions_and_not_one_more(on):
    device = on("many", keys=False)
    for number in range(62):
        device.subscribe("/topic/chat.many", f"s{number}")
    device.send("SUBSCRIBE", {"destination": "/topic/chat.many", "id": "s62"})
    assert "subscription" in device.error().headers["message"]


def test_8_open_transactions_of_100_frames(on):
    device = on("transactions", keys=False)
    for number in range(8):
        device.receipt("BEGIN", {"transaction": f"t{number}"})
    for _ in range(100):
        device.send("SEND", {"destination": "/topic/chat.x", "transaction": "t0"})
    device.receipt("COMMIT", {"transaction": "t0"})
    device.receipt("BEGIN", {"transaction": "t0"})
    device.send("BEGIN", {"transaction": "t9"})
    assert "transactions" in device.error().headers["message"]


# Section 3: an app's own messages


def test_a_topic_goes_to_all_who_are_subscribed(on):
    alice, bob = on("t-alice", keys=False), on("t-bob", keys=False)
    for device in (alice, bob):
        device.subscribe("/topic/chat.room", "room")
    body = b"any\0thing"
    alice.receipt(
        "SEND",
        {
            "destination": "/topic/chat.room",
            "content-type": "x/y",
            "colour": "a\\cb",
            "passcode": "p",
            "Authorization": "secret",
            "login": "l",
        },
        body,
    )
    for device in (alice, bob):
        got = device.topic()
        assert got.body == body and got.headers["content-type"] == "x/y" and got.headers["colour"] == "a:b"
        assert got.headers["destination"] == "/topic/chat.room" and got.headers["subscription"] == "room"
        assert not {"passcode", "authorization", "login", "Authorization", "receipt", "ack"} & set(got.headers)


def test_an_exchange_is_a_topic(on):
    alice, bob = on("x-alice", keys=False), on("x-bob", keys=False)
    bob.subscribe("/topic/logs.error", "t")
    bob.subscribe("/exchange/logs/error", "e")
    alice.receipt("SEND", {"destination": "/exchange/logs/error"}, b"1")
    assert {bob.topic().headers["subscription"], bob.topic().headers["subscription"]} == {"t", "e"}


def test_a_queue_goes_to_one_waits_and_comes_again_after_a_nack_or_a_loss(on):
    sender = on("q-sender", keys=False)
    sender.receipt("SEND", {"destination": "/queue/work.1"}, b"1")
    first, second = on("q-first", keys=False), on("q-second", keys=False)
    first.subscribe("/queue/work.1", "w", "client-individual")
    got = first.topic()
    assert got.body == b"1"
    second.subscribe("/queue/work.1", "w", "client-individual")
    first.ack(got, "NACK")
    got = second.topic()
    assert got.body == b"1" and got.headers["redelivered"] == "true"
    second.close()
    third = on("q-third", keys=False)
    third.subscribe("/queue/work.1", "w", "client")
    got = third.topic()
    assert got.body == b"1"
    third.ack(got)
    third.sync()
    third.close()
    fourth = on("q-fourth", keys=False)
    fourth.subscribe("/queue/work.1", "w")
    assert fourth.sync().topics == [] and first.sync().topics == []


def test_a_queue_keeps_its_newest_1000(on):
    sender = on("q-many", keys=False)
    for number in range(1010):
        sender.send("SEND", {"destination": "/queue/work.many"}, b"%d" % number)
    sender.sync()
    reader = on("q-reader", keys=False)
    reader.subscribe("/queue/work.many", "w")
    bodies = [int(reader.topic().body) for _ in range(1000)]
    assert bodies == list(range(10, 1010))


@pytest.mark.parametrize(
    "destination",
    [
        "/topic/calls",
        "/topic/calls/x",
        "/topic/calls.x",
        "/topic/service",
        "/topic/service/calls",
        "/topic/service/push",
        "/exchange/calls",
        "/exchange/calls/x",
        "/exchange/service/calls",
        "/user/queue/events",
        "/user/queue/replies",
        "/user/bob/queue/events",
        "/user/bob/queue/x",
        "/queue/other",
        "/topic//x",
        "/topic/./calls/x",
        "/topic/x/../calls/x",
        "/topic/",
        "topic/x",
        "/exchange/a/b/c",
        "/temp-queue/x",
        "/queue/events",
        "/amq/queue/x",
        "/topic/calls/",
        "//topic/calls/x",
        "/app",
        "/%74opic/calls",
        "/topic/*",
        "/topic/#",
        "/",
    ],
)
def test_a_send_to_what_is_reserved_or_unknown_is_an_error(on, destination):
    device = on("sender", keys=False)
    device.send("SEND", {"destination": destination, "receipt": "r"}, b"{}")
    assert device.error().headers["receipt-id"] == "r"


@pytest.mark.parametrize(
    "destination",
    [
        "/topic/calls",
        f"/topic/calls/{NO_CALL}",
        "/topic/service/calls",
        "/topic/service/push",
        "/topic/service/reports",
        "/user/bob/queue/events",
        "/user/bob/queue/x",
        "/queue/other",
        "/exchange/service/calls",
        "/topic/*",
        "/app/calls/list",
        "/topic/x/../calls",
    ],
)
def test_a_subscription_to_what_one_may_not_read_is_an_error(on, destination):
    device = on("reader", keys=False)
    device.send("SUBSCRIBE", {"destination": destination, "id": "x", "receipt": "r"})
    assert device.error().headers["receipt-id"] == "r"


def test_a_refused_subscription_behind_an_allowed_one_is_an_error(on, names):
    alice = on(names[0])
    call, _ = alice.start()
    alice.write(
        b"".join(
            f"SUBSCRIBE\nid:{n}\ndestination:/topic/calls/{c}\nreceipt:{n}\n\n\0".encode()
            for n, c in enumerate((call, NO_CALL))
        )
    )
    assert alice.read().headers["receipt-id"] == "0"
    assert alice.error().headers["receipt-id"] == "1"


def test_a_service_sends_to_a_users_queue(on):
    bob, laptop = on("uq-bob", keys=False), on("uq-bob", "laptop", keys=False)
    for device in (bob, laptop):
        device.subscribe("/user/queue/news", "n")
    service = on("uq-service", "backend", keys=False, claims={"scope": "other service"})
    service.receipt("SEND", {"destination": "/user/uq-bob/queue/news"}, b"hello")
    for device in (bob, laptop):
        got = device.topic()
        assert got.body == b"hello" and got.headers["destination"] == "/user/queue/news"
    service.send("SEND", {"destination": "/user/uq-bob/queue/events"}, b"{}")
    service.error()
