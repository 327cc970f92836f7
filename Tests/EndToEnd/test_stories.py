"""An operator hears "my call at three failed", and finds the reason with the log and the admin commands (docs/operate.md, "A call that failed")."""

import datetime
import json
import subprocess
import time

import pytest

from conftest import BINARY, PATIENCE, Server, free_port, wait_for
from device import Device
from test_webhooks import SECRET, BackEnd


@pytest.fixture
def serve(tmp_path):
    """Starts a server whose log is JSON, with more members of the configuration."""
    servers = []

    def start(**more):
        servers.append(Server(tmp_path, logFormat="json", **more))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()
        # The greeting shows how to mint a token.
        texts = [line for line in (server.folder / "server.log").read_text().splitlines() if line.startswith("{")]
        assert not [text for text in texts if "alice" in text or "bob" in text], "no line has a person's name"
        for line in map(json.loads, texts):
            assert line.keys() >= {"time", "level", "message"} and all(isinstance(value, str) for value in line.values()), line
            assert datetime.datetime.fromisoformat(line["time"].replace("Z", "+00:00")).utcoffset() == datetime.timedelta(0), line


def lines(server, call):
    """The log's lines about a call."""
    text = (server.folder / "server.log").read_text()
    found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [line for line in found if line.get("call") == call]


def line(server, call, event):
    return wait_for(lambda: next((line for line in lines(server, call) if line["event"] == event), None), 5, f"a line {event}")


def show(server, call):
    """The output of `conclave call`: participants by user."""
    command = [BINARY, "call", call, "--json", "--config", str(server.config)]
    shown = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {member["user"]: part for member in shown["members"] for part in member["participants"]}


def test_the_path_never_connected(serve):
    """A firewall drops all media: both see the call but hear nothing."""
    server = serve()
    alice, bob = Device(server, "alice"), Device(server, "bob")
    call, _ = alice.start("bob", policy={"connectSeconds": 1})
    bob.event("call.ring")
    bob.enter(call)
    assert [show(server, call)[user]["media"] for user in ("alice", "bob") if user in show(server, call)] != []
    assert all(part["media"] == "never" and part["signaling"] for part in show(server, call).values())
    found = line(server, call, "media")
    assert (found["cause"], found["level"], found["participant"]) == ("never-connected", "notice", "1")
    end = line(server, call, "ended")
    assert end["participants"] == "2" and int(end["failures"]) >= 1 and end["level"] == "info"
    # The metrics show that it is not only this call.
    assert server.metric("conclave_media_connected_peers") == 0
    alice.close()
    bob.close()


def test_the_keys_never_arrived(serve):
    """The other device makes no key for Bob's: he is in the call, but sees black tiles."""
    server = serve()
    alice, bob = Device(server, "alice"), Device(server, "bob")
    call, _ = alice.start("bob")
    bob.event("call.ring")
    bob.enter(call)
    bob_is = lambda: show(server, call)["bob"]
    assert wait_for(lambda: bob_is()["key"] == "missing" and bob_is(), 5, "the key is missing")["signaling"]
    since = bob_is()["joinedAt"] / 1000
    wait_for(lambda: time.time() > since + 5.5, 10 / PATIENCE, "he waits")
    bob.call(call, "leave")
    found = line(server, call, "key")
    assert (found["cause"], found["participant"]) == ("missing", "2") and int(found["seconds"]) >= 5
    alice.close()
    bob.close()


@pytest.mark.parametrize("answers, cause", [(True, "refused"), (False, "failed")])
def test_the_back_end_let_nobody_ring(serve, answers, cause):
    """Bob was never rung, since the app's back end said no, or did not answer."""
    if answers:
        back_end = BackEnd()
        back_end.allowed = []
        url = back_end.url + "/may"
    else:
        url = f"http://127.0.0.1:{free_port()}/"
    server = serve(authorize={"url": url, "secret": SECRET})
    alice, bob = Device(server, "alice"), Device(server, "bob")
    call, reply = alice.start("bob")
    assert reply["results"] == {"bob": "offline"}
    found = line(server, call, "authorize")
    assert (found["cause"], found["asked"], found["allowed"]) == (cause, "1", "0")
    assert server.metric_of("conclave_authorize_total", f'result="{"answered" if answers else "failed"}"') == 1
    alice.close()
    bob.close()
    if answers:
        back_end.server.shutdown()
