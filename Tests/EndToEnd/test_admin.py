"""An operator controls a running server through its admin socket: `conclave status`, `calls`, `call`, `users`, `links`, `end`, `disconnect`, `drain`."""

import contextlib
import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import uuid

import pytest

from conftest import BINARY, PATIENCE, Server, wait_for
from device import Device, starting
from words import lasting_id

LOADTEST = os.environ.get("LOADTEST_BINARY", ".build/release/loadtest")


def ask(server, *arguments):
    """Exit status, standard output and standard error of the command."""
    command = [BINARY, *arguments, "--config", str(server.config)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=30 * PATIENCE)
    return run.returncode, run.stdout.rstrip("\n"), run.stderr


def asked(server, *arguments):
    status, text, told = ask(server, *arguments, "--json")
    assert status == 0, told
    return json.loads(text)


def log(server):
    return (server.folder / "server.log").read_text()


def raw(server, data, seconds=15):
    """The socket's answer to any bytes."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(seconds)
        connection.connect(str(server.state / "admin"))
        connection.sendall(data)
        answer = b""
        while more := connection.recv(1 << 16):
            answer += more
        return answer


@pytest.fixture
def call(fresh_server):
    """A call of alice and bob, both joined, without media."""
    alice, bob = Device(fresh_server, "alice"), Device(fresh_server, "bob")
    id, _ = alice.start("bob")
    bob.event("call.ring")
    bob.enter(id)
    yield id, alice, bob
    alice.close()
    bob.close()


def test_calls_and_users_are_listed(fresh_server, call):
    id, _, _ = call
    listed = asked(fresh_server, "calls")
    assert listed["total"] == 1 and {name: listed["calls"][0][name] for name in ("call", "state", "members", "joined", "connected")} == {
        "call": id, "state": "active", "members": 2, "joined": 2, "connected": 0,
    }
    assert asked(fresh_server, "users") == {
        "users": [{"user": user, "devices": ["phone"], "calls": [id]} for user in ("alice", "bob")], "total": 2,
    }
    status = asked(fresh_server, "status")
    assert (status["calls"], status["participants"], status["sessions"], status["isDraining"]) == (1, 2, 2, False)
    assert status["process"] == fresh_server.pid and "notReady" not in status

    text = ask(fresh_server, "calls")[1].splitlines()
    assert text[0].split() == ["CALL", "STATE", "MEDIA", "FOR", "MEMBERS", "RINGING", "JOINED", "CONNECTED", "EPOCH"]
    assert text[1].split()[:3] == [id, "active", "audio"]
    assert re.search(r"^ready +yes$", ask(fresh_server, "status")[1], re.M)
    people = ask(fresh_server, "call", id)[1].splitlines()
    assert [line.split()[:3] for line in people[2:]] == [["alice", "joined", "phone"], ["bob", "joined", "phone"]]
    assert ask(fresh_server, "call", id[:8].upper())[1].splitlines() == people, "the first characters identify the only call that begins with them"


def test_a_call_is_ended_for_all_and_the_log_says_by_whom(fresh_server, call):
    id, alice, bob = call
    status, text, _ = ask(fresh_server, "end", id)
    assert (status, text) == (0, "the call is ended")
    for device in (alice, bob):
        ended = device.event("call.ended")
        assert ended["reason"] == "ended-by-operator" and "by" not in ended
    line = next(line for line in log(fresh_server).splitlines() if "an operator ended a call" in line)
    assert f"call={id}" in line and f"uid={os.getuid()}" in line
    assert asked(fresh_server, "call", id)["ended"]["reason"] == "ended-by-operator"
    status, _, told = ask(fresh_server, "end", id)
    assert status == 1 and "this call has ended already" in told
    assert fresh_server.metric_of("conclave_calls_ended_total", 'reason="ended-by-operator"') == 1
    assert fresh_server.metric("conclave_calls_ended_total") == 1
    assert fresh_server.metric_of("conclave_joins_total", 'outcome="connected"') == 0, "nobody had media"
    assert fresh_server.metric("conclave_joins_total") == 2


def test_a_call_that_outlives_a_restart_keeps_its_counts_and_its_length(fresh_server, call):
    id, _, _ = call
    wait_for(lambda: ran_until(fresh_server) is not None, 10, "the server records that it runs")
    fresh_server.die()
    died = ran_until(fresh_server)
    database = fresh_server.state / "conclave.sqlite"
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        # Moves the times back by an hour, as if the server had been down for an hour.
        connection.execute("UPDATE server SET ranUntil = ranUntil - 3600000")
        for table, member in (("call", "startedAt"), ("progress", "activeSince")):
            connection.execute(f"UPDATE {table} SET record = CAST(json_set(CAST(record AS TEXT), '$.{member}', json_extract(CAST(record AS TEXT), '$.{member}') - 3600000) AS BLOB)")
    fresh_server.start()
    assert ask(fresh_server, "end", id)[0] == 0
    line = wait_for(lambda: next((line for line in log(fresh_server).splitlines() if "event=ended" in line), None), 5, "the end is logged")
    found = dict(re.findall(r"(\w+)=([\w-]+)", line))
    assert (found["cause"], found["participants"]) == ("ended-by-operator", "2")
    assert int(found["seconds"]) < 60, f"neither the hour nor the time since {died}: {line}"


def ran_until(server):
    """The time at which the server last recorded that it runs."""
    with contextlib.closing(sqlite3.connect(server.state / "conclave.sqlite")) as connection:
        return connection.execute("SELECT ranUntil FROM server").fetchone()[0]


def test_a_user_loses_connections_and_places_and_may_come_back(fresh_server, call):
    id, alice, bob = call
    assert ask(fresh_server, "disconnect", "bob")[:2] == (0, "the user's connections are closed")
    assert bob.error().headers["message"] == "an operator closed this connection"
    assert alice.event("call.member", where=lambda body: body["user"] == "bob" and body["cause"] == "left")
    status, _, told = ask(fresh_server, "disconnect", "bob")
    assert status == 1 and "this user has no connection, and is in no call" in told
    assert f"uid={os.getuid()}" in log(fresh_server) and "bob" not in log(fresh_server)
    Device(fresh_server, "bob").close()


def test_a_calls_quality_is_shown(fresh_server, call):
    id, alice, bob = call
    shown = lambda: {m["user"]: m["participants"][0] for m in asked(fresh_server, "call", id)["members"]}
    assert shown()["alice"]["quality"] == {} and "mediaSince" not in shown()["alice"]
    alice.call(id, "stats", {"rtt": 41.5, "loss": 0.25, "jitter": 3, "freezes": 2, "firstFrameMs": 812})
    alice.call(id, "stats", {"rtt": 7.25})
    quality = shown()["alice"]["quality"]
    assert quality["numbers"] == {"rtt": 7.25, "loss": 0.25, "jitter": 3, "freezes": 2, "firstFrameMs": 812}
    assert shown()["alice"]["joinedAt"] <= quality["toldAt"] and shown()["bob"]["quality"] == {}
    head, *people = [line.split() for line in ask(fresh_server, "call", id)[1].splitlines()[1:]]
    row = dict(zip(head, people[0]))
    assert {name: row[name] for name in ("MEDIA", "SINCE", "RECEIVES", "LEVEL", "KBIT/S", "RTT", "LOSS", "JITTER", "FREEZES", "FIRST")} == {
        "MEDIA": "never", "SINCE": "-", "RECEIVES": "-", "LEVEL": "-", "KBIT/S": "-",
        "RTT": "7.3ms", "LOSS": "25%", "JITTER": "3ms", "FREEZES": "2", "FIRST": "812ms",
    }
    assert re.fullmatch(r"\d+s", row["TOLD"])
    assert "7.25" not in log(fresh_server), "nothing of it is logged"


def test_the_servers_view_of_media_is_shown(fresh_server, tmp_path):
    """A call of the load test's participants, with media both ways."""
    report = tmp_path / "report.json"
    command = [LOADTEST, "--url", f"stomp://127.0.0.1:{fresh_server.stomp_port}", "--state", str(fresh_server.state)]
    command += ["--participants", "2", "--duration", "30", "--video-kbps", "200", "--json", str(report)]
    with (tmp_path / "loadtest.log").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    def judged():
        for call in asked(fresh_server, "calls")["calls"]:
            parts = [part for m in asked(fresh_server, "call", call["call"])["members"] for part in m["participants"]]
            if len(parts) == 2 and all("level" in part["quality"] and part["quality"].get("receives") for part in parts):
                return parts
        return None

    try:
        for part in wait_for(judged, 20, "both are rated, and receive"):
            quality = part["quality"]
            assert part["media"] == "up" and part["joinedAt"] <= part["mediaSince"] <= quality["judgedAt"]
            assert 0 <= quality["level"] <= 4 and quality["bitrate"] > 0 and quality["receives"] == 2
    finally:
        process.kill()
        process.wait()


def test_reports_are_read_and_go_with_either_person(fresh_server, call):
    id, alice, bob = call
    assert asked(fresh_server, "reports") == {"reports": [], "total": 0}
    alice.call(id, "report", {"user": "bob", "text": "\x1b[2Jhe was rude\nto me"})
    bob.call(id, "report", {"participant": 1, "text": "she was rude"})
    listed = asked(fresh_server, "reports")
    assert listed["total"] == 2
    newest, oldest = listed["reports"]
    assert newest["report"] == {"by": "bob", "user": "alice", "participant": 1, "text": "she was rude"} and newest["call"] == id
    assert oldest["report"] == {"by": "alice", "user": "bob", "text": "\x1b[2Jhe was rude\nto me"}
    assert asked(fresh_server, "report", oldest["id"]) == oldest
    assert asked(fresh_server, "reports", "--since", "1h")["total"] == 2
    assert asked(fresh_server, "reports", "--since", "2999-01-01") == {"reports": [], "total": 0}
    text = ask(fresh_server, "report", oldest["id"])[1]
    assert text.splitlines()[-2:] == ["�[2Jhe was rude", "to me"] and "\x1b" not in text
    assert [line.split()[0] for line in ask(fresh_server, "reports")[1].splitlines()] == ["REPORT", newest["id"], oldest["id"]]
    assert ask(fresh_server, "report", "0" * 16)[0] == 1 and "is no id of a report" in ask(fresh_server, "report", "../x")[2]
    # A restart keeps them.
    fresh_server.die()
    fresh_server.start()
    assert asked(fresh_server, "reports") == listed
    assert ask(fresh_server, "forget", "--user", "bob")[0] == 0
    assert asked(fresh_server, "reports") == {"reports": [], "total": 0}
    assert "rude" not in log(fresh_server)


def test_the_log_names_nobody_at_any_level(tmp_path):
    server = Server(tmp_path, log="debug")
    try:
        names = "ada.lovelace", "emmy.noether"
        ada, emmy = (Device(server, name, "the-sewing-machine") for name in names)
        id, _ = ada.start(names[1])
        emmy.event("call.ring")
        emmy.enter(id)
        emmy.call(id, "report", {"user": names[0], "text": "she counts too well"})
        ada.call(id, "end")
        for device in (ada, emmy):
            device.close()
        wait_for(lambda: "event=ended" in log(server) and log(server).count("logged in") == 2, 10, "the log tells of both and of the call")
        assert id in log(server)
        told = [word for word in (*names, "sewing", "counts", "127.0.0.1", "::1") if word in log(server).partition("logged in")[2]]
        assert told == [], "nothing personal"
    finally:
        server.stop()


def test_drain_takes_no_new_calls_and_ends_with_the_last(tmp_path):
    server = Server(tmp_path)
    try:
        alice = Device(server, "alice")
        id, _ = alice.start()
        assert ask(server, "drain")[0] == 0
        drained = lambda: (told := ask(server, "status", "--json"))[0] == 2 and json.loads(told[1])
        status = wait_for(drained, 5, "it drains")
        assert status["isDraining"] and status["notReady"] == "the server is draining: it takes no new calls"
        assert alice.fails("/app/calls/start", {"callees": [], "media": "audio", **starting()}) == "server.draining"
        assert server.process.poll() is None, "it waits for the call"
        alice.call(id, "end")
        assert server.process.wait(10 * PATIENCE) == 0
        assert not (server.state / "admin").exists()
        line = next(line for line in log(server).splitlines() if "an operator drains the server" in line)
        assert " notice " in line and f"uid={os.getuid()}" in line
    finally:
        server.process.kill()
        server.process.wait()


def test_errors_say_what_is_wrong(fresh_server, tmp_path):
    unknown = str(uuid.uuid4())
    status, _, told = ask(fresh_server, "call", unknown)
    assert status == 1 and "no call with this id runs" in told
    status, _, told = ask(fresh_server, "end", "no id!")
    assert status == 1 and "no running call's id begins with no id!" in told
    fresh_server.die()
    status, _, told = ask(fresh_server, "status")
    assert status == 1 and f"no server runs on {fresh_server.state}" in told
    fresh_server.start()
    assert asked(fresh_server, "status")["calls"] == 0, "a socket that a dead server left is replaced"


def test_a_users_lasting_links_are_listed_without_their_ids_and_deleted(fresh_server):
    alice, bob = Device(fresh_server, "alice"), Device(fresh_server, "bob")
    ids = [lasting_id(os.urandom(16), alice.fingerprint) for _ in range(3)]
    for link in ids:
        alice.request("/app/links/make", {"link": link, "expiresIn": 86_400})
    bob.request("/app/links/open", {"link": ids[0]})
    listed = asked(fresh_server, "links", "alice")["links"]
    assert [(row["link"], row["device"]) for row in listed] == [(link[:8], "phone") for link in ids]
    assert asked(fresh_server, "links", "bob") == {"links": []}
    assert ids[0][8:] not in ask(fresh_server, "links", "alice")[1]

    assert asked(fresh_server, "links", "delete", "alice", "--link", ids[0][:8]) == {"done": "the link is deleted"}
    assert bob.event("link.changed")["link"] == ids[0]
    assert len(asked(fresh_server, "links", "list", "alice")["links"]) == 2
    status, _, told = ask(fresh_server, "links", "delete", "alice", "--link", ids[0][:8])
    assert status == 1 and "no such lasting link" in told
    assert asked(fresh_server, "links", "delete", "alice") == {"done": "2 links are deleted"}
    assert alice.request("/app/links/list")["links"] == []
    assert not any(link[:8] in log(fresh_server) for link in ids)
    alice.close()
    bob.close()


def test_others_than_root_and_the_server_are_refused(fresh_server):
    if os.getuid() != 0:
        pytest.skip("only root can become somebody else")
    path = fresh_server.state / "admin"
    assert path.stat().st_mode & 0o777 == 0o600 and fresh_server.state.stat().st_mode & 0o777 == 0o700
    # The file's mode already keeps others out. Even without it, the server checks the process.
    path.chmod(0o666)
    fresh_server.state.chmod(0o711)
    stranger = (
        "import os, socket, sys; os.chdir(sys.argv[1]); os.setgroups([]); os.setgid(65534); os.setuid(65534); s = socket.socket(socket.AF_UNIX);"
        "s.connect('admin'); s.sendall(b'{\"command\":\"status\"}\\n'); print(s.makefile().read())"
    )
    run = subprocess.run([sys.executable, "-c", stranger, str(fresh_server.state)], capture_output=True, text=True, timeout=30 * PATIENCE)
    assert json.loads(run.stdout) == {"error": "only root and the server's own user may ask"}, run.stderr
    assert asked(fresh_server, "status")["calls"] == 0


def test_hostile_requests_are_bounded(fresh_server):
    assert b"error" in raw(fresh_server, b"\0\xff not json\n")
    assert raw(fresh_server, b"x" * 5000) == b'{"error":"the request is too long"}\n'
    assert b"too long" in raw(fresh_server, b'{"command":"status","user":"' + b"a" * 4090 + b'"}\n')
    # Clients that send nothing do not block others for long, and do not exhaust the server's file descriptors.
    idle = []
    for _ in range(40):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(fresh_server.state / "admin"))
        idle.append(connection)
    wait_for(lambda: ask(fresh_server, "status")[0] == 0, 20, "the idle ones are closed")
    for connection in idle:
        connection.close()
