"""Protocol section 5: who is told what when a call's media key changes. The keys are made up, which the server cannot detect."""

import base64
import os
import time

import pytest

from device import b64, envelope, join, join_key, list_hash, roster_hash, starting


def lead(device, call, rotate):
    """Answers `keys.rotate` as the leader."""
    to = [envelope(rotate["epoch"], e["user"], e["device"]) for e in rotate["deliver"]]
    return device.call(call, "keys", {"epoch": rotate["epoch"], "envelopes": to})


def turn(call, leader, *others, ack=True):
    """One complete rotation; returns the leader's `keys.rotate`."""
    rotate = leader.event("keys.rotate")
    reply = lead(leader, call, rotate)
    assert reply["missing"] == [] and len(reply["delivered"]) == len(rotate["deliver"])
    for device in others:
        if any((e["user"], e["device"]) == (device.user, device.device) for e in rotate["deliver"]):
            assert device.event("keys.envelope")["epoch"] == rotate["epoch"]
            if device.ack_mode != "auto":
                device.ack(device.frame)
    for device in (leader, *others):
        assert device.event("keys.switch")["epoch"] == rotate["epoch"]
    return rotate


def test_a_start_without_envelopes_lists_the_initiator_alone(on, names):
    alice = on(names[0])
    mine = join()
    call, _ = alice.start(**mine)
    newest = alice.call(call, "keys/list")
    assert newest["epoch"] == 1 and newest["mode"] == "fresh"
    entry = newest["list"][0]
    assert (
        set(entry) == {"user", "device", "participant", "joinId", "joinKey", "fingerprint"} and len(newest["list"]) == 1
    )
    assert (entry["participant"], entry["joinId"], entry["joinKey"]) == (1, mine["joinId"], mine["joinKey"])
    assert entry["fingerprint"] == b64(alice.fingerprint)
    assert newest["previous"] == b64(bytes(32)) and newest["links"] == [] and newest["confirmed"] == []
    assert newest["listHash"] == list_hash(call, 1, None, newest["list"])


def test_ring_envelopes_come_with_the_ring_and_their_list(on, names):
    alice, bob, carol = on(names[0]), on(names[1]), on(names[2])
    sent = envelope(1, bob.user)
    call, reply = alice.start(bob.user, carol.user, envelopes=[sent])
    ring = bob.event("call.ring")
    assert ring["envelope"] == {
        **sent,
        "from": {"user": alice.user, "device": "phone"},
        "encryptedAESKey": sent["ciphertext"],
    }
    by_user = {e["user"]: e for e in ring["list"]}
    assert set(by_user) == {alice.user, bob.user} and by_user[bob.user]["fingerprint"] == b64(bob.fingerprint)
    assert base64.b64decode(by_user[bob.user].get("joinId") or b64(bytes(16))) == bytes(16)
    rung = carol.event("call.ring")
    assert "envelope" not in rung
    assert alice.call(call, "keys/list")["list"] == ring["list"]
    body = {"callees": [bob.user], "media": "audio", **starting()}
    assert alice.fails("/app/calls/start", {**body, "envelopes": [envelope(1, "stranger")]}) == "keys.not-allowed"
    assert alice.fails("/app/calls/start", {**body, "envelopes": [envelope(2, bob.user)]}) in (
        "request.invalid",
        "keys.not-allowed",
        "keys.epoch-stale",
    )


def test_epochs_2_the_modes_of_rotation_and_who_gets_what(on, names):
    alice, bob, carol = (on(name) for name in names[:3])
    call, _ = alice.start(bob.user, carol.user)
    bob.event("call.ring")
    bob.enter(call)
    # A join is a ratchet, so devices that have the old secret need no envelope.
    rotate = turn(call, alice, bob)
    assert (rotate["epoch"], rotate["mode"], rotate["leader"]) == (2, "ratchet", 1)
    assert [(e["user"], e["device"]) for e in rotate["deliver"]] == [(bob.user, "phone")]
    assert [k["use"] for k in rotate["deliver"][0]["keys"]] == ["wrap", "sign"]
    assert [e["user"] for e in rotate["added"]] == [bob.user] and rotate["removed"] == [] and "list" not in rotate
    carol.event("call.ring")
    carol.enter(call)
    rotate = turn(call, alice, bob, carol)
    assert rotate["mode"] == "ratchet" and [e["user"] for e in rotate["deliver"]] == [carol.user]
    # A leave makes a fresh key.
    bob.call(call, "leave")
    told = carol.event("keys.rotate", where=lambda b: b["epoch"] == 4)
    rotate = turn(call, alice, carol)
    assert (rotate["epoch"], rotate["mode"]) == (4, "fresh") and rotate["removed"] == [bob.participant]
    assert "deliver" not in told and told["listHash"] == rotate["listHash"]
    newest = carol.call(call, "keys/list")
    assert [e["user"] for e in newest["list"]] == [alice.user, carol.user] and newest["listHash"] == list_hash(
        call, 4, newest["previous"], newest["list"]
    )
    assert newest["listHash"] == rotate["listHash"] and carol.call(call, "state")["epoch"] == 4
    bob.sync()
    assert not [f for f in bob.events if f.headers["event"].startswith("keys.") and f.json["epoch"] == 4]


def test_a_device_new_on_the_list_gets_it_whole(on, names):
    alice, bob = on(names[0]), on(names[1])
    call, _ = alice.start(bob.user)
    bob.event("call.ring")
    bob.enter(call)
    told = bob.event("keys.rotate")
    first = alice.call(call, "keys/list", {"since": 0})["links"][0]["roster"]
    assert told["listHash"] == list_hash(call, 2, told["previous"], told["list"])
    assert "added" not in told and "deliver" not in told and base64.b64decode(first) != roster_hash(told["list"])
    assert "keys" not in told["list"][0]


def test_epochs_4_the_next_is_asked_when_the_leader_is_silent_or_gone(on, names):
    alice, bob, carol = (on(name) for name in names[:3])
    call, _ = alice.start(bob.user, carol.user)
    for device in (bob, carol):
        device.event("call.ring")
    bob.enter(call)
    turn(call, alice, bob)
    carol.enter(call)
    first = alice.event("keys.rotate")
    assert first["leader"] == 1
    gone = time.monotonic()
    alice.close()
    second = bob.event("keys.rotate", where=lambda b: b["leader"] == 2)
    assert time.monotonic() - gone < 3, "the server does not wait for one that has left"
    assert second["epoch"] == first["epoch"] and [e["user"] for e in second["deliver"]] == [carol.user]
    # After 3 s of silence the next one is asked.
    third = carol.event("keys.rotate", 4, where=lambda b: b["leader"] == 3)
    assert "deliver" in third
    # The first answer of a device that was asked counts; a later one is stale.
    lead(bob, call, second)
    assert carol.fails(f"/app/calls/{call}/keys", {"epoch": 3, "envelopes": []}) == "keys.epoch-stale"
    carol.event("keys.envelope")
    assert carol.event("keys.switch")["epoch"] == 3


def test_epochs_5_a_nack_brings_the_envelope_again_three_times_at_most(on, names):
    alice, bob = on(names[0]), on(names[1], ack="client-individual")
    call, _ = alice.start(bob.user)
    bob.event("call.ring")
    bob.ack(bob.frame)
    bob.enter(call)
    rotate = alice.event("keys.rotate")
    lead(alice, call, rotate)
    for _ in range(3):
        bob.event("keys.envelope")
        bob.ack(bob.frame, "NACK")
        asked = alice.event("keys.request")
        assert asked["epoch"] == 2 and asked["to"]["user"] == bob.user and len(asked["to"]["keys"]) == 2
        reply = alice.call(call, "keys", {"epoch": 2, "envelopes": [envelope(2, bob.user)]})
        assert reply["delivered"] == [{"user": bob.user, "device": "phone"}]
    bob.event("keys.envelope")
    bob.ack(bob.frame, "NACK")
    assert "keys.request" not in alice.names()
    assert bob.fails(f"/app/calls/{call}/keys/request", {"epoch": 2}) == "rate.limited"


def test_epochs_5_what_was_not_acknowledged_comes_again_on_the_next_connection(on, names):
    alice, bob = on(names[0]), on(names[1], ack="client-individual")
    call, _ = alice.start(bob.user)
    bob.event("call.ring")
    bob.ack(bob.frame)
    bob.enter(call)
    lead(alice, call, alice.event("keys.rotate"))
    given = bob.event("keys.envelope")
    seq = bob.frame.headers["seq"]
    bob.event("keys.switch", 4)
    bob.close()
    bob = on(names[1], ack="client-individual")
    again = bob.event("keys.envelope")
    assert again == given and bob.frame.headers["seq"] == seq and bob.frame.headers["redelivered"] == "true"
    bob.ack(bob.frame)
    bob.sync()
    bob.close()
    assert "keys.envelope" not in on(names[1], ack="client-individual").names()


def test_a_device_without_keys_may_join_and_not_start(on, names):
    phone, bare, bob = on(names[0]), on(names[0], "laptop", keys=False), on(names[1])
    body = {"callees": [bob.user], "media": "audio", **starting()}
    assert bare.fails("/app/calls/start", body) == "keys.not-allowed"
    assert "call.ring" not in bob.names()
    call, _ = bob.start(phone.user)
    assert bare.fails(f"/app/calls/{call}/join", {**join(), "link": bob.call(call, "link")["link"]}) == "request.invalid", "not by a link"
    bare.enter(call)
    bare.call(call, "leave")
    bare.make_keys()
    bare.register()
    assert bare.request("/app/calls/start", body)["results"] == {bob.user: "ringing"}


def test_epochs_7_only_who_is_joined_and_listed_may_send_keys(on, names):
    alice, bob, carol = (on(name) for name in names[:3])
    dave, bare = on(names[3]), on(names[3], "laptop", keys=False)
    call, _ = alice.start(bob.user, carol.user, dave.user)
    bob.event("call.ring")
    keys = f"/app/calls/{call}/keys"
    assert carol.fails(keys, {"epoch": 1, "envelopes": []}) == "call.not-joined"
    bare.enter(call)
    assert bare.fails(keys, {"epoch": 1, "envelopes": []}) == "keys.not-allowed"
    bob.enter(call)
    rotate = alice.event("keys.rotate")
    number = rotate["epoch"]
    assert (
        bob.fails(keys, {"epoch": number, "envelopes": [envelope(number, alice.user)]}) == "keys.not-allowed"
    ), "not asked"
    assert alice.fails(keys, {"epoch": number - 1, "envelopes": []}) == "keys.epoch-stale"
    assert alice.fails(keys, {"epoch": number + 1, "envelopes": []}) in (
        "keys.epoch-stale",
        "request.invalid",
        "keys.not-allowed",
    )
    assert alice.fails(keys, {"epoch": -1, "envelopes": []}) == "request.invalid"
    assert alice.fails(keys, {"epoch": 2**70, "envelopes": []}) == "request.invalid"
    ghosts = [envelope(number, bob.user), envelope(number, carol.user)]
    assert alice.fails(keys, {"epoch": number, "envelopes": ghosts}) == "keys.not-allowed"
    assert "keys.envelope" not in bob.names(), "all or nothing"
    assert (
        alice.fails(keys, {"epoch": number, "envelopes": [envelope(number, bob.user, size=4097)]}) == "keys.too-large"
    )


def test_epochs_6_a_request_for_a_key_reaches_the_leader(on, names):
    alice, bob = on(names[0]), on(names[1])
    call, _ = alice.start(bob.user)
    bob.event("call.ring")
    bob.enter(call)
    turn(call, alice, bob)
    bob.call(call, "keys/request", {"epoch": 2})
    assert alice.event("keys.request")["to"]["user"] == bob.user
    alice.call(call, "keys", {"epoch": 2, "envelopes": [envelope(2, bob.user)]})
    assert bob.event("keys.envelope")["epoch"] == 2
    bob.call(call, "keys/request")
    assert alice.event("keys.request")["epoch"] == 2
    assert bob.fails(f"/app/calls/{call}/keys/request", {"epoch": 1}) == "keys.epoch-stale"
    assert bob.fails(f"/app/calls/{call}/keys/request", {"epoch": 9}) == "keys.not-allowed"


def test_devices_are_listed_with_what_was_registered(on, names):
    alice, phone, laptop = on(names[0]), on(names[1]), on(names[1], "laptop")
    devices = alice.request("/app/devices/list", {"users": [names[1], "nobody-x"]})["devices"]
    assert [(d["user"], d["device"]) for d in devices] == [(names[1], "laptop"), (names[1], "phone")]
    for entry, device in zip(devices, (laptop, phone)):
        assert set(entry) == {"user", "device", "name", "keys", "fingerprint", "registeredAt", "vouches"}
        assert entry["fingerprint"] == b64(device.fingerprint)
        assert {k["use"]: k["publicKey"] for k in entry["keys"]} == {"wrap": b64(device.wrap), "sign": b64(device.sign)}


def test_the_day_of_a_devices_last_connection_is_for_its_own_user(on, names):
    alice, phone = on(names[0]), on(names[1])
    on(names[1], "laptop").close()
    assert "seen" not in alice.request("/app/devices/list", {"users": [names[1]]})
    seen = phone.request("/app/devices/list", {"users": [names[0], names[1]]})["seen"]
    day = 86_400_000
    # The date may change during the test.
    assert [entry["device"] for entry in seen] == ["laptop", "phone"]
    assert all(set(entry) == {"device", "day"} and entry["day"] in {int((time.time() - back) * 1000) // day * day for back in (0, 60)} for entry in seen)


@pytest.mark.parametrize(
    "keys",
    [
        None,
        {},
        [],
        ["x"],
        [("wrap", 91)],
        [("wrap", 91), ("wrap", 91)],
        [("wrap", 91), ("sign", 0)],
        [("wrap", 91), ("sign", 4097)],
        [("wrap", 91), ("sign", 91), ("sign", 91)],
        [("other", 91), ("sign", 91)],
    ],
    ids=str,
)
def test_register_refuses_other_than_one_key_of_each_use(on, keys):
    alice = on("register-fields", keys=False)
    if isinstance(keys, list):
        keys = [
            {"use": k[0], "alg": "ES256", "publicKey": b64(os.urandom(k[1]))} if isinstance(k, tuple) else k
            for k in keys
        ]
    assert alice.fails("/app/devices/register", {"keys": keys}) in (
        "request.invalid",
        "keys.too-large",
        "request.too-large",
    )


def test_algorithms_unknown_to_the_server_are_carried(on):
    alice = on("register-names", keys=False)
    keys = [{"use": u, "alg": "x" * 64, "publicKey": b64(b"k")} for u in ("wrap", "sign")]
    assert len(base64.b64decode(alice.request("/app/devices/register", {"keys": keys})["fingerprint"])) == 32
    keys[0]["alg"] += "x"
    assert alice.fails("/app/devices/register", {"keys": keys}) == "request.invalid"


def test_a_device_without_a_name_of_its_own_cant_register(on):
    alice = on("register-nameless", device=None, keys=False)
    alice.make_keys()
    assert alice.fails(
        "/app/devices/register",
        {"keys": [{"use": u, "alg": "ES256", "publicKey": b64(b"k")} for u in ("wrap", "sign")]},
    ) in ("keys.not-allowed", "auth.forbidden")


def test_rule_15_other_keys_are_told_at_once_and_count_from_the_next_join(on, names):
    alice, bob = on(names[0]), on(names[1])
    call, _ = alice.start(bob.user)
    bob.event("call.ring")
    bob.enter(call)
    turn(call, alice, bob)
    before = alice.call(call, "keys/list")["list"]
    bob.make_keys()
    bob.register()
    assert alice.event("keys.devices-changed") == {"at": alice.frame.json["at"], "call": call, "user": bob.user}
    assert alice.call(call, "keys/list")["list"] == before
    assert bob.enter(call, "rejoin")
    rotate = alice.event("keys.rotate")
    assert rotate["mode"] == "fresh", "a fingerprint of the list before is not on the new one"
    assert rotate["added"][0]["fingerprint"] == b64(bob.fingerprint)


def test_a_removed_device_loses_its_place_and_the_keys_rotate(on, names):
    alice, bob, laptop = on(names[0]), on(names[1]), on(names[1], "laptop")
    call, _ = alice.start(bob.user, names[2], policy={"aloneSeconds": 60})
    bob.event("call.ring")
    bob.enter(call)
    turn(call, alice, bob)
    assert laptop.fails("/app/devices/remove", {"device": "tablet"}) == "device.not-found"
    assert laptop.fails("/app/devices/remove", {}) == "request.invalid"
    laptop.request("/app/devices/remove", {"device": "phone"})
    alice.event("call.member", where=lambda m: m["cause"] == "left")
    assert alice.event("keys.rotate")["mode"] == "fresh"
    assert bob.error().headers["message"] == "this device was removed"


def test_the_chain_of_lists_has_no_gaps(on, names):
    alice, bob, carol = (on(name) for name in names[:3])
    call, _ = alice.start(bob.user, carol.user)
    for device in (bob, carol):
        device.event("call.ring")
    bob.enter(call)
    second = turn(call, alice, bob)
    carol.enter(call)
    third = alice.event("keys.rotate")
    assert third["previous"] == second["listHash"]
    newest = carol.call(call, "keys/list", {"since": 0})
    assert [link["epoch"] for link in newest["links"]] == [1, 2, 3] and newest["previous"] == second["listHash"]
    assert base64.b64decode(newest["links"][-1]["roster"]) == roster_hash(newest["list"])
    assert [link["epoch"] for link in carol.call(call, "keys/list", {"since": 2})["links"]] == [3]
    assert carol.call(call, "keys/list")["links"] == []


def test_without_a_join_key_of_version_2_a_device_is_on_no_list(on, names):
    alice, bob = on(names[0]), on(names[1])
    call, _ = alice.start(bob.user)
    bob.event("call.ring")
    body = join()
    for change in ({"v": 1}, {"v": None}, {"generation": 1}, {"at": -1}, {"at": 2**53}, {"at": "now"}):
        key = {name: value for name, value in {**body["joinKey"], **change}.items() if value is not None}
        assert bob.fails(f"/app/calls/{call}/accept", {**body, "joinKey": key}) == "request.invalid"
        assert bob.error_body["field"] == "joinKey", change
    assert bob.fails(f"/app/calls/{call}/accept", {**body, "joinId": b64(bytes(16))}) == "request.invalid"
    theirs = alice.call(call, "keys/list")["list"][0]
    copied = {**body, "joinKey": {**body["joinKey"], "publicKey": theirs["joinKey"]["publicKey"]}}
    assert bob.fails(f"/app/calls/{call}/accept", copied) == "request.invalid"
    assert bob.fails(f"/app/calls/{call}/accept", {**body, "joinId": theirs["joinId"]}) == "request.invalid"
    bob.enter(call, body={"joinId": body["joinId"]})
    assert [e["user"] for e in alice.call(call, "keys/list")["list"]] == [alice.user]
    assert bob.fails(f"/app/calls/{call}/keys/request") == "keys.not-allowed"


def test_confirmations_are_added_up(on, names):
    alice, bob = on(names[0]), on(names[1])
    call, _ = alice.start(bob.user)
    bob.event("call.ring")
    bob.enter(call)
    turn(call, alice, bob)
    confirm = f"/app/calls/{call}/keys/confirm"
    assert alice.fails(confirm, {"epoch": 1, "tag": b64(bytes(16))}) == "keys.epoch-stale"
    assert alice.fails(confirm, {"epoch": 3, "tag": b64(bytes(16))}) == "keys.not-allowed"
    assert alice.fails(confirm, {"epoch": 2, "tag": b64(bytes(15))}) == "request.invalid"
    tags = os.urandom(16), os.urandom(16)
    alice.request(confirm, {"epoch": 2, "tag": b64(tags[0])})
    alice.request(confirm, {"epoch": 2, "tag": b64(tags[1])})
    first = bob.event("keys.confirmed")["buckets"]
    assert first == [{"index": 0, "who": b64(bytes([0x80]) + bytes(7)), "tag": b64(tags[0])}]
    bob.request(confirm, {"epoch": 2, "tag": b64(tags[1]), "joinKey": join_key(1)})
    both = b64(bytes(a ^ b for a, b in zip(*tags)))
    last = alice.event("keys.confirmed", where=lambda b: b["buckets"][0]["tag"] == both)
    assert last["buckets"][0]["who"] == b64(bytes([0xC0]) + bytes(7))
    assert alice.call(call, "keys/list")["confirmed"] == last["buckets"]
    single = alice.call(call, "keys/confirmations", {"epoch": 2, "bucket": 0})["tags"]
    assert [t["participant"] for t in single] == [1, 2] and single[0]["tag"] == b64(tags[0])
    assert alice.fails(f"/app/calls/{call}/keys/confirmations", {"epoch": 2, "bucket": 1}) == "request.invalid"
    assert alice.fails(f"/app/calls/{call}/keys/confirmations", {"epoch": 1, "bucket": 0}) == "keys.epoch-stale"


def test_a_refreshed_join_key_goes_to_leaders_alone(on, names):
    alice, bob, carol = (on(name) for name in names[:3])
    call, _ = alice.start(bob.user, carol.user)
    for device in (bob, carol):
        device.event("call.ring")
    bob.enter(call)
    turn(call, alice, bob)
    carol.enter(call)
    turn(call, alice, bob, carol)
    confirm = f"/app/calls/{call}/keys/confirm"
    fresh = join_key(1)
    assert bob.fails(confirm, {"epoch": 3, "tag": b64(bytes(16)), "joinKey": join_key(2)}) == "request.invalid"
    bob.request(confirm, {"epoch": 3, "tag": b64(bytes(16)), "joinKey": fresh})
    bob.request(confirm, {"epoch": 3, "tag": b64(bytes(16)), "joinKey": fresh})
    assert bob.fails(confirm, {"epoch": 3, "tag": b64(bytes(16)), "joinKey": join_key(1)}) == "request.invalid"
    carol.call(call, "leave")
    rotate = alice.event("keys.rotate")
    assert rotate["deliver"][0]["refresh"] == fresh and "refresh" not in bob.event("keys.rotate")
    assert all("refresh" not in entry for entry in alice.call(call, "keys/list")["list"])


def test_a_device_that_waits_for_trust_holds_nobody_up(on, names):
    alice, bob = on(names[0]), on(names[1], ack="client-individual")
    call, _ = alice.start(bob.user)
    bob.event("call.ring")
    bob.ack(bob.frame)
    bob.enter(call)
    rotate, queued = alice.event("keys.rotate"), time.monotonic()
    lead(alice, call, rotate)
    bob.event("keys.envelope")
    envelope_frame = bob.frame
    bob.call(call, "keys/wait", {"epoch": 2, "reason": "trust"})
    bob.call(call, "keys/wait", {"epoch": 2, "reason": "trust"})
    waiting = alice.event("keys.waiting")
    assert (waiting["epoch"], waiting["participant"], waiting["reason"]) == (2, bob.participant, "trust")
    assert alice.event("keys.switch")["epoch"] == 2
    assert time.monotonic() - queued < 2, "the server does not wait for one that waits"
    assert bob.fails(f"/app/calls/{call}/keys/wait", {"epoch": 2, "reason": "boredom"}) == "request.invalid"
    assert not {"keys.waiting", "keys.request"} & set(alice.names())
    bob.ack(envelope_frame)


def statement(device):
    return {
        "device": device.device,
        "fingerprint": b64(device.fingerprint),
        "at": 1790000000000,
        "sigAlg": "ES256",
        "signature": b64(os.urandom(64)),
    }


def test_a_users_devices_vouch_and_revoke(on, names):
    alice, phone, laptop = on(names[0]), on(names[1]), on(names[1], "laptop")
    said = statement(laptop)
    phone.request("/app/devices/vouch", said)
    listed = alice.request("/app/devices/list", {"users": [names[1]]})
    by = {"by": "phone", "byFingerprint": b64(phone.fingerprint)}
    assert [d["vouches"] for d in listed["devices"]] == [[{**said, **by}], []] and listed["revokes"] == []
    wrong = {**said, "fingerprint": b64(bytes(32))}
    assert phone.fails("/app/devices/vouch", wrong) == "request.invalid"
    assert phone.error_body["field"] == "fingerprint"
    assert alice.fails("/app/devices/vouch", said) == "device.not-found"
    signed = {name: said[name] for name in ("fingerprint", "at", "sigAlg", "signature")}
    phone.request("/app/devices/remove", {"device": "laptop", "revoke": signed})
    listed = alice.request("/app/devices/list", {"users": [names[1]]})
    assert listed["revokes"] == [{"user": names[1], **said, **by}] and len(listed["devices"]) == 1
    phone.request("/app/devices/revoke", {**said, "device": "long-gone"})
    assert len(alice.request("/app/devices/list", {"users": [names[1]]})["revokes"]) == 2


def test_pairing_goes_to_one_own_device_that_is_there(on, names):
    alice, phone, laptop = on(names[0]), on(names[1]), on(names[1], "laptop")
    phone.request("/app/devices/pair", {"to": "laptop", "body": b64(b"commit")})
    told = laptop.event("device.pair")
    assert (told["from"], told["body"]) == ("phone", b64(b"commit")) and "call" not in told
    assert alice.fails("/app/devices/pair", {"to": "laptop", "body": ""}) == "device.not-found"
    assert phone.fails("/app/devices/pair", {"to": "phone", "body": ""}) == "device.not-found"
    assert phone.fails("/app/devices/pair", {"to": "laptop", "body": b64(bytes(4097))}) == "request.too-large"
    for _ in range(9):
        phone.request("/app/devices/pair", {"to": "laptop", "body": ""})
    assert laptop.fails("/app/devices/pair", {"to": "phone", "body": ""}) == "rate.limited"


def test_a_calls_id_is_the_clients_and_used_once(on, names):
    alice, bob, mallory = (on(name) for name in names[:3])
    body = {"callees": [bob.user], "media": "audio", **starting()}
    for bad in (None, "x", body["id"].upper(), body["id"][:-1], body["id"][:14] + "1" + body["id"][15:]):
        sent = {name: value for name, value in {**body, "id": bad}.items() if value is not None}
        assert alice.fails("/app/calls/start", sent) == "request.invalid" and alice.error_body["field"] == "id"
    first = alice.request("/app/calls/start", body)
    assert first["call"]["id"] == body["id"] and first["participant"] == 1
    assert alice.request("/app/calls/start", body) == first
    bob.event("call.ring")
    again = {"callees": [bob.user], "media": "audio", **starting(), "id": body["id"]}
    assert mallory.fails("/app/calls/start", again) == "call.exists"
    assert alice.fails("/app/calls/start", again) == "call.exists"
    alice.call(body["id"], "end")
    assert mallory.fails("/app/calls/start", again) == "call.exists"
    assert "call.ring" not in bob.names()
