"""ConclaveClient against a server that lies: the rows of Tests/Vectors/lies.json that a server can tell on the wire to the load test's participants.

They run in parallel, each with its own proxy and call, and use the functions of test_lies.py if these need no browser. In every row a guest taps the sealed
frames: no KID and counter repeats, and nothing is sealed under a refused epoch. The load test's report says what opened, what was refused, and which warnings
there were.
"""

import concurrent.futures
import copy
import os
import re
import uuid

import lies_about_keys  # noqa: F401
import lies_about_lists
import lies_about_trust  # noqa: F401
import pytest
from conftest import Server, wait_for
from lying_proxy import LyingProxy
from lying_stage import LIES, NUMBERS, ROWS
from swift_stage import SwiftStage, TapAudit, TapLoop

# Rows whose function needs no browser.
SHARED = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 32, 33, 34, 36, 41, 42, 43, 45, 59, 68, 69, 70, 71, 73}
CASES = {case.id: case.values for case in ROWS if case.values[0] in SHARED}
# The client's warnings: to the person if the table says that it warns, otherwise only to the app.
SAID = {
    # Or, if the reply to the offer comes first, that its track has another participant's number.
    1: "notOnList|foreignTrack",
    2: "malformedList|listHashMismatch",
    3: "otherKey",
    6: "foreignTrack|could not join: notUnderstood",
    9: "brokenHistory",
    11: "brokenHistory",
    12: "envelopeNotAuthentic|keyWithheld",
    13: "brokenHistory",
    14: "brokenHistory",
    15: "otherKey",
    # The report has only the first failure of each participant: Alice's is about the earlier ghost.
    16: "brokenHistory|notInCall|newDevice",
    18: "unsafeRatchet",
    19: "unsafeRatchet",
    20: "malformedList",
    21: "malformedList",
    22: "notOnList",
    23: "malformedList|joinKeyNotSigned",
    24: "changedEntry",
    25: "oldJoinKey",
    26: "envelopeForOldKey",
    27: "envelopeNotAuthentic|keyWithheld",
    28: "envelopeNotAuthentic",
    31: "envelopeForOldKey|envelopeNotAuthentic",
    32: "keyWithheld",
    41: "confirmationNotTrue",
    43: "otherKey",
    45: "ringNotTrusted",
    46: "could not start the call",
    67: "could not start the call",
    68: "malformedList",
    69: "malformedList",
    70: "strangerOnDelivery",
    71: "unknownKeys",
}
# Nothing is lost or refused, and there is no warning: the lie is ignored, or an honest server may say the same.
UNMOVED = {7, 8, 10, 29, 33, 34, 42, 59, 73}


def case(number, *variants):
    def added(function):
        for variant in variants or [None]:
            CASES[f"{number}" if variant is None else f"{number}-{variant}"] = (number, function, variant)
        return function

    return added


@case(0)
def the_server_is_honest(stage):
    stage.call()
    stage.come()
    stage.go()
    stage.goes_on(stage.alice, stage.bob)
    return []


@case(12)
def a_wrong_previous_to_a_newcomer(stage):
    """Bob's ring had no key, so the first list that he sees is a later one."""
    stage.ring()
    without_key = lambda body, _: {name: body[name] for name in body if name not in ("list", "envelope")}
    stage.lie("event", "call.ring", without_key, to=stage.bob.user)
    lies_about_lists.other_previous(stage, stage.bob, lambda chain, epoch: os.urandom(32))
    stage.answer()
    stage.proxy.sees("event", "keys.rotate", user=stage.bob.user, where=lambda body: "list" in body)
    stage.silent_under(stage.bob, 2, 5)
    return [stage.bob]


@case(16)
def a_split_and_then_one_list_for_all(stage):
    warned = lies_about_lists.a_split_and_then_one_list_for_all(stage)
    stage.proxy.sees("request", f"calls/{stage.id}/rejoin", user=stage.alice.user)
    return warned


@case(31)
def the_rings_envelope_for_a_later_epoch(stage):
    stage.call()
    stage.come()
    ring = stage.proxy.sees("event", "call.ring", user=stage.bob.user)["envelope"]
    stage.lie("event", "keys.envelope", lambda body, _: {**body, **ring, "epoch": body["epoch"]}, to=stage.bob.user)
    stage.silent_under(stage.bob, stage.go(), 4)
    return [stage.bob]


@case(46)
@case(67)
def the_reply_to_start_is_of_another(stage):
    changes = {
        46: lambda body, _: {**body, "call": {**body["call"], "id": str(uuid.uuid4())}},
        67: lambda body, _: {**body, "participant": 2},
    }
    stage.lie("reply", "calls/start", changes[stage.row])
    stage.run()
    stage.proxy.sees("reply", "calls/start", user=stage.alice.user)
    call = stage.proxy.sees("request", "calls/start", user=stage.alice.user)["id"]
    assert stage.report()["frames"] == 0
    assert not stage.proxy.seen("request", f"calls/{call}/media", stage.alice.user), "Alice offers media to a call that she did not start"
    return [stage.alice]


@case(48, "user-name", "device")
def connected_under_another_name(stage, header):
    stage.lie("connected", "", lambda headers, _: {**headers, header: "mallory"} if headers["user-name"] in two(stage) else headers)
    stage.run()
    assert stage.report()["joined"] == 0 and "could not sign in" in stage.text
    registered = {user for _, user, _, _ in stage.proxy.seen("request", "devices/register")}
    assert registered == {member.user for member in stage.members}, "a device registers though the name is another's"
    return []


def two(stage):
    return {stage.alice.user, stage.bob.user}


@case(58)
def slots_name_another_participant(stage):
    stage.call()
    stage.come()
    said = [*stage.proxy.seen("reply", f"calls/{stage.id}/media", stage.bob.user), *stage.proxy.seen("event", "media.slots", stage.bob.user)]
    newest = max((copy.deepcopy(body) for _, _, _, body in said), key=lambda body: body["rev"])
    assert newest["receive"], "Bob has no slot that shows Alice"
    slots = [{**entry, "participant": 77, "track": "77.1"} for entry in newest["receive"]]
    body = {"call": stage.id, "rev": newest["rev"] + 1, "receive": slots, "unsupported": []}
    stage.proxy.tell(stage.bob.user, "media.slots", body)
    stage.misnamed = len(stage.audit.frames(stage.alice.user))
    wait_for(lambda: len(stage.audit.frames(stage.alice.user)) > stage.misnamed + 150, 10, "Alice keeps sending")
    return []


@pytest.fixture(scope="module")
def outcomes(request, tmp_path_factory, artifacts):
    """The result of each case. All requested cases run, several at a time, since a case mostly waits."""
    folder = tmp_path_factory.mktemp("lying-to-swift")
    server, taps = Server(folder), TapLoop()
    chosen = {item.callspec.params["name"] for item in request.session.items if item.path == request.path and hasattr(item, "callspec")}
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        running = {name: pool.submit(outcome, name, server, taps.loop, folder, artifacts) for name in CASES if name in chosen}
        yield running
        for each in running.values():
            each.cancel()
    taps.close()
    server.stop()


def outcome(name, server, loop, folder, artifacts):
    number, tell_the_lie, variant = CASES[name]
    file = re.sub(r"\W+", "-", f"swift-{name}")
    (folder / file).mkdir()
    proxy = LyingProxy(server)
    stage = SwiftStage(server, proxy, next(NUMBERS), folder / file, loop, row=number)
    try:
        warned = tell_the_lie(stage) if variant is None else tell_the_lie(stage, variant)
        report = stage.report()
        (artifacts / f"{file}.log").write_text(stage.text)
        examine(stage, number, warned, report)
    finally:
        stage.close()
        proxy.close()


def examine(stage, number, warned, report):
    assert stage.optional or all(lie.told for lie in stage.proxy.lies), "a lie was not told: the row tests nothing"
    assert stage.proxy.lists.lies or not stage.proxy.lists.changes, "a list was told as it is: the row tests nothing"
    answered = {path for kind in ("ACK", "NACK") for _, _, path, _ in stage.proxy.seen(kind)}
    unheard = [(name, user) for _, user, name, mark in stage.proxy.seen("told") if mark not in answered]
    assert not unheard, f"the client did not say that it got {unheard}: the row may test nothing"
    stage.audit.check()
    failures = report["failures"]
    assert not stage.opened_in_silence(report), f"frames opened under a key that was refused: {stage.opened_in_silence(report)}, {failures}"
    opened = sum(sum(stay["opened"].values()) for stays in report["stays"] for stay in stays)
    assert opened >= report["frames"], "the report does not say by which epoch each frame opened"
    if number in SAID:
        assert any(re.search(SAID[number], failure) for failure in failures), failures
    if number:
        assert bool(warned) == LIES[number]["warns"], f"row {number}: the function and the table differ on who is warned"
        assert number in SAID or not warned
    if number in UNMOVED or number == 0:
        assert (stage.status, failures) == (0, []), stage.text
        assert report["received"] == report["expected"] > 0 and report["guestFrames"] == 0, stage.text
    if number == 58:
        # The former track counts for another second, plus the packets in flight.
        assert report["guestFrames"] > 60, "frames count though their slot is said to be another's"


@pytest.mark.parametrize("name", CASES)
def test_row(outcomes, name):
    outcomes[name].result(90)


def test_the_tap_notices_a_counter_that_is_used_twice():
    audit = TapAudit(lambda participant: f"user{participant}")
    header = bytes([0x80 | 2 << 4 | 5]) + (1 << 16 | 258).to_bytes(3, "big")
    audit.take(header + b"one")
    audit.take(header + b"one")
    audit.check()
    audit.take(header + b"two")
    with pytest.raises(AssertionError, match="used again"):
        audit.check()
