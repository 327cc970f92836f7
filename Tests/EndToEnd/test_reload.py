"""SIGHUP makes a server read its configuration again: changes that need no restart apply at once, and calls, connections and the server continue."""

import json
import pathlib
import re
import signal
import socket
import ssl
import subprocess

import pytest
import websocket

from client import RequestFailed
from conftest import BINARY, PATIENCE, UNVERIFIED, Server, free_port, wait_for
from device import Device, join, starting


def log(server):
    return (server.folder / "server.log").read_text()


def change(server, **members):
    """Rewrites the configuration, and makes the server read it. Returns the new lines of the log."""
    config = json.loads(server.config.read_text())
    for name, value in members.items():
        if isinstance(value, dict) and isinstance(config.get(name), dict):
            config[name] = config[name] | value
        else:
            config[name] = value
    return rewrite(server, json.dumps(config))


def rewrite(server, text):
    server.config.write_text(text)
    before = len(log(server))
    server.process.send_signal(signal.SIGHUP)
    told = ("the configuration was read again", "the configuration cannot be used")
    return wait_for(lambda: any(words in log(server)[before:] for words in told) and log(server)[before:], 10, "the log tells of it")


def ends_by_origin(server, origin):
    """The status of a WebSocket handshake from this origin."""
    try:
        websocket.create_connection(f"ws://127.0.0.1:{server.http_port}/stomp", 10 * PATIENCE, subprotocols=["v12.stomp"], origin=origin).close()
        return 101
    except websocket.WebSocketBadStatusException as error:
        return error.status_code


def test_live_members_count_at_once_and_calls_go_on(fresh_server):
    server = fresh_server
    alice, bob = Device(server, "alice"), Device(server, "bob")
    # With a second callee the call does not end when one is alone.
    call, joined = alice.start("bob", "carol")
    bob.event("call.ring")
    bob.enter(call)
    assert joined["ice"] == {"servers": []} and ends_by_origin(server, "https://app.example") == 403
    assert " debug " not in log(server)
    turn = {"urls": ["turn:turn.example:3478"], "secret": "a secret of the relay", "seconds": 600}
    lines = change(
        server, log="debug", turn=turn, listen={"origins": ["https://app.example"]}, limits={"participants": 1, "requestBurst": 5, "requestsPerSecond": 1}
    )
    changed = re.search(r"changed=([\w., ]+)", lines).group(1)
    assert changed.strip() == "limits.participants, limits.requestBurst, limits.requestsPerSecond, listen.origins, log, turn"
    assert "from the next start on" not in lines
    assert ends_by_origin(server, "https://app.example") == 101 and ends_by_origin(server, "https://other.example") == 403
    # The call keeps the limits with which it began.
    alice.call(call, "leave")
    again = alice.enter(call, "rejoin")
    assert [entry["urls"] for entry in again["ice"]["servers"]] == [["turn:turn.example:3478"]]
    wait_for(lambda: " debug " in log(server), 10, "the log has lines at level debug")
    # New connections and new calls have the new limits.
    eve = Device(server, "eve")
    with pytest.raises(RequestFailed, match="rate.limited"):
        for _ in range(8):
            eve.request("/app/calls/list")
    dave = Device(server, "dave")
    second, _ = dave.start("bob")
    bob.event("call.ring", where=lambda body: body["call"] == second)
    assert bob.fails(f"/app/calls/{second}/accept", join()) == "call.full"
    for device in (alice, bob, dave, eve):
        device.close()


def test_other_members_are_named_and_wait(fresh_server):
    lines = change(fresh_server, listen={"metrics": free_port()}, media={"voices": 9}, log="notice")
    assert re.search(r"members=listen\.metrics, media\.voices\b", lines) and "from the next start on" in lines
    # It is named for as long as it is pending.
    assert "media.voices" in change(fresh_server, log="info")
    assert fresh_server.get("/readyz") == "ready\n"


@pytest.mark.parametrize(
    "text, words",
    [
        ("{", ":1:1: not JSON"), ('{"drain":\n -1}', ":1:2: drain: -1 is out of range"), ('{"turm": {}}', "turm: is not an option"),
        ('{"turn": {"urls": ["turn:t.example"], "secretFile": "/no/secret"}}', "/no/secret: cannot be read"), (None, "cannot be read"),
    ],
    ids=["no-json", "range", "mistyped", "secret", "absent"],
)
def test_a_configuration_that_cannot_be_used_changes_nothing(fresh_server, text, words):
    if text is None:
        fresh_server.config.rename(fresh_server.folder / "elsewhere.json")
        before = len(log(fresh_server))
        fresh_server.process.send_signal(signal.SIGHUP)
        lines = wait_for(lambda: "cannot be used" in log(fresh_server)[before:] and log(fresh_server)[before:], 10, "the log tells of it")
    else:
        lines = rewrite(fresh_server, text)
    assert words in lines and " error " in lines and "the one before stays" in lines
    assert fresh_server.process.poll() is None and fresh_server.get("/readyz") == "ready\n"


def served(port):
    """The certificate that the port presents."""
    with socket.create_connection(("127.0.0.1", port), 10 * PATIENCE) as plain, UNVERIFIED.wrap_socket(plain) as secured:
        return secured.getpeercert(binary_form=True)


def test_a_certificate_in_other_files_is_taken_and_a_bad_one_is_not(tmp_path):
    def made(name):
        files = {"certificate": str(tmp_path / f"{name}.pem"), "key": str(tmp_path / f"{name}.key")}
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "9", "-subj", f"/CN={name}"]
        subprocess.run([*command, "-keyout", files["key"], "-out", files["certificate"]], check=True, capture_output=True)
        return files

    def bytes_of(files):
        return ssl.PEM_cert_to_DER_cert(open(files["certificate"]).read())

    first, second = made("first"), made("second")
    server = Server(tmp_path, tls=first)
    try:
        assert served(server.http_port) == bytes_of(first)
        mixed = {"certificate": second["certificate"], "key": first["key"]}
        assert "cannot be used" in change(server, tls=mixed) and served(server.http_port) == bytes_of(first)
        assert "changed=tls.certificate, tls.key" in change(server, tls=second)
        assert served(server.http_port) == bytes_of(second) and served(server.stomp_tls_port) == bytes_of(second)
    finally:
        server.stop()


def test_sighup_neither_ends_a_server_that_drains_nor_its_drain(fresh_server):
    alice = Device(fresh_server, "alice")
    call, _ = alice.start()
    change(fresh_server, drain=60)
    fresh_server.process.terminate()
    wait_for(lambda: "draining" in log(fresh_server), 10, "it drains with the new value")
    change(fresh_server, log="debug")
    assert fresh_server.process.poll() is None
    assert alice.fails("/app/calls/start", {"callees": [], "media": "audio", **starting()}) == "server.draining"
    alice.call(call, "end")
    assert fresh_server.process.wait(10 * PATIENCE) == 0


def test_a_hangup_before_the_ports_are_open_ends_nothing(tmp_path):
    config = tmp_path / "config.json"
    ports = {"stomp": free_port(), "http": free_port(), "stompTLS": free_port()}
    config.write_text(json.dumps({"state": str(tmp_path / "state"), "listen": ports, "media": {"port": free_port(), "workers": 1}, "drain": 0}))
    with (tmp_path / "server.log").open("wb") as output:
        process = subprocess.Popen([BINARY, "serve", "--config", str(config)], stdout=output, stderr=subprocess.STDOUT)
        try:
            # The signal is ignored when the configuration has been read, and is handled a moment later.
            wait_for(lambda: traps_hangups(process.pid), 10, "it traps SIGHUP")

            def reads():
                process.send_signal(signal.SIGHUP)
                return "was read again" in (tmp_path / "server.log").read_text()

            wait_for(reads, 20, "it reads the configuration")
            assert process.poll() is None
        finally:
            process.terminate()
            process.wait(10 * PATIENCE)


def traps_hangups(pid):
    """Whether the server handles or ignores SIGHUP (bit 0 of the masks in proc(5)). Python blocks all signals between fork and exec."""
    if not pathlib.Path(f"/proc/{pid}/exe").samefile(BINARY):
        return False
    masks = dict(line.split(":\t") for line in open(f"/proc/{pid}/status") if line.startswith(("SigIgn", "SigCgt", "SigBlk")))
    return any(int(mask, 16) & 1 for mask in masks.values())
