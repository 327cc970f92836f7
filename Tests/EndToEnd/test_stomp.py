"""stomp.py, a third-party STOMP client, on all three versions."""

import pytest

from client import RequestFailed


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_a_call_started_by_stomp_py_rings_on_another_connection(connect, version):
    caller = connect(f"caller-{version}", version=version)
    callee = connect(f"callee-{version}", version=version)
    assert caller.connected.get("user-name") == caller.user
    assert version == "1.0" or caller.connected["version"] == version

    call = caller.start(callee.user)
    assert call["results"] == {callee.user: "ringing"}
    ring = callee.event("call.ring")
    assert (ring["call"], ring["from"], ring["media"]) == (call["call"]["id"], caller.user, "audio")

    joined = callee.request(f"/app/calls/{ring['call']}/accept", callee.join())
    assert joined["call"]["state"] == "active" and joined["participant"] == 2
    assert caller.event("call.member", where=lambda m: m["cause"] == "accepted")["user"] == callee.user

    caller.request(f"/app/calls/{ring['call']}/end")
    assert callee.event("call.ended")["reason"] == "ended-by-initiator"


def test_a_declined_call_ends(connect):
    caller, callee = connect("decline-a"), connect("decline-b")
    call = caller.start(callee.user)["call"]["id"]
    callee.event("call.ring")
    callee.request(f"/app/calls/{call}/decline")
    assert caller.event("call.member", where=lambda m: m["cause"] == "declined")["user"] == callee.user
    assert caller.event("call.ended")["reason"] == "declined"


def test_only_the_initiator_ends_a_call(connect):
    caller, callee = connect("end-a"), connect("end-b")
    call = caller.start(callee.user)["call"]["id"]
    callee.event("call.ring")
    callee.request(f"/app/calls/{call}/accept", callee.join())
    with pytest.raises(RequestFailed) as failure:
        callee.request(f"/app/calls/{call}/end")
    assert failure.value.code == "call.not-initiator"
    caller.request(f"/app/calls/{call}/end")
