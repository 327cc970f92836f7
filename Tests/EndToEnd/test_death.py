"""`kill -9` during a call of ten with media, repeatedly and at random moments (rule 11 of the protocol): nothing is lost but the seconds until it is back."""

import hashlib
import hmac
import json
import os
import random
import socket
import subprocess
import threading
import time

import pytest

from client import Client
from conftest import BINARY as SERVER
from conftest import PATIENCE, wait_for
from jwt_forge import encode
from test_loadtest import BINARY
from test_restart import Reader, envelope, members, server  # noqa: F401 (a fixture)

KILLS = int(os.environ.get("CONCLAVE_KILLS", "20"))
PEOPLE = 10
# The time from the restart until everyone hears all others. Longer on a machine that is known to be busy.
LIMIT = float(os.environ.get("CONCLAVE_BACK_SECONDS", "5"))


class Crowd:
    """A load test with one call, and its output about the losses and returns of participants."""

    def __init__(self, server, report):
        self.report, self.lines = report, []
        command = [BINARY, "--url", f"stomp://127.0.0.1:{server.stomp_port}", "--state", str(server.state)]
        command += ["--participants", str(PEOPLE), "--video-kbps", "100", "--outages", "--join-timeout", "60"]
        self.process = subprocess.Popen(
            [*command, "--duration", "600", "--json", str(report)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(json.loads(line) if line.startswith("{") else {"step": "text", "text": line.rstrip()})

    def steps(self, step, since):
        """The participants that reported this after that moment, and when they first did."""
        first = {}
        for line in list(self.lines):
            if line["step"] == step and line["at"] >= since:
                first.setdefault(line["participant"], line["at"])
        return first

    def wait_back(self, since, seconds):
        """The time at which the last participant heard all others again."""

        def all_back():
            assert self.process.poll() is None, self.lines[-20:]
            back = self.steps("back", since)
            return back if len(back) == PEOPLE else None

        return max(wait_for(all_back, seconds, lambda: self.lines[-30:]).values())

    def stop(self):
        self.process.kill()
        self.process.wait()


class Mint:
    """Makes tokens without a process for each."""

    def __init__(self, server, **claims):
        self.stomp_port, self.claims = server.stomp_port, claims
        self.secret = (server.state / "secret").read_text().strip()

    def token(self, user, device):
        content = {"sub": user, "device": device, "exp": int(time.time()) + 3600, **self.claims}
        signed = f"{encode({'alg': 'HS256', 'typ': 'JWT'})}.{encode(content)}"
        return f"{signed}.{encode(hmac.new(self.secret.encode(), signed.encode(), hashlib.sha256).digest())}"


class Service(Client):
    """The app's back end, which sees all calls but gets no events."""

    def __init__(self, server):
        super().__init__(Mint(server, scope="service"), "service", "backend")

    def subscribe(self, destination, identifier):
        if identifier == "replies":
            super().subscribe(destination, identifier)


def start(server):
    """Starts the server again; returns the time of the start, and the time at which it accepted connections."""
    server.die()
    began = time.monotonic()
    server.process = subprocess.Popen(
        [SERVER, "serve", "--demo", "--config", str(server.config)], stdout=server.log, stderr=subprocess.STDOUT
    )

    def is_listening():
        assert server.process.poll() is None, (server.folder / "server.log").read_text()
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", server.stomp_port)) == 0

    wait_for(is_listening, 10, "the server listens")
    return began, time.monotonic()


class Quartet:
    """Ann and ben are in a call, and dan rings cat, who is offline: their envelopes when the server dies. `kind` is the state of the envelope to ben."""

    def __init__(self, server, number, kind):
        self.server, self.kind = Mint(server), kind
        self.names = [f"{name}{number}" for name in ("ann", "ben", "cat", "dan")]
        self.clients = ann, ben, cat, dan = [Reader(self.server, name, "phone") for name in self.names]
        for client in self.clients:
            client.register()
        cat.close()
        self.ring, self.for_cat = self.start(dan, self.names[2])
        self.call, for_ben = self.start(ann, self.names[1])
        assert ben.take("call.ring")[0]["envelope"]["ciphertext"] == for_ben
        ben.request(f"/app/calls/{self.call}/accept", ben.join())
        self.sent = [self.hand_out(ann)]
        ben.take("keys.envelope", ack=kind == "acknowledged")
        if kind != "unfinished":
            ann.take("keys.switch")
        if kind == "superseded":
            ben.request(f"/app/calls/{self.call}/rejoin", ben.join())
            self.sent.append(self.hand_out(ann))
            ben.take("keys.envelope", ack=False)
            ann.take("keys.switch")
        # The reply proves that the server has processed each ACK sent before the request.
        ben.request("/app/calls/list")

    def start(self, caller, callee):
        rung = envelope(callee)
        body = {"callees": [callee], "media": "audio", "envelopes": [rung], **caller.starting()}
        return caller.request("/app/calls/start", body)["call"]["id"], rung["ciphertext"]

    def hand_out(self, ann):
        rotation, _ = ann.take("keys.rotate")
        sealed = envelope(self.names[1], epoch=rotation["epoch"])
        ann.request(f"/app/calls/{self.call}/keys", {"epoch": rotation["epoch"], "envelopes": [sealed]})
        return sealed["ciphertext"]

    def check(self):
        """After the restart, waiting envelopes are sent once more, others never; the ring keeps its envelope."""
        ben = Reader(self.server, self.names[1], "phone")
        state, _ = ben.take("call.state")
        assert state["id"] == self.call and members(state) == dict.fromkeys(self.names[:2], "joined")
        came = self.envelopes(ben)
        # A rotation that had not reached its switch is followed by another, before or after ben connects.
        assert came == ([] if self.kind == "acknowledged" else self.sent[-1:]) or self.kind == "unfinished" and not came
        cat = Reader(self.server, self.names[2], "phone")
        ring, _ = cat.take("call.ring")
        assert ring["call"] == self.ring and ring["envelope"]["ciphertext"] == self.for_cat and ring["list"]
        ann, dan = (Reader(self.server, self.names[index], "phone") for index in (0, 3))
        ann.request(f"/app/calls/{self.call}/end")
        dan.request(f"/app/calls/{self.ring}/end")
        for client in [*self.clients, ann, ben, cat, dan]:
            client.close()

    def envelopes(self, client):
        """Acknowledges and returns the events so far; a reply comes after all earlier events."""
        client.request("/app/calls/list")
        found, newest = [], 0
        while not client.events.empty():
            kind, body, headers = client.events.get()
            client.connection.ack(headers["ack"])
            if kind == "keys.rotate":
                newest = body["epoch"]
            if kind == "keys.envelope":
                assert body["epoch"] >= newest, "superseded"
                found.append(body["ciphertext"])
        return found


def the_call(server, call=None):
    """The call of ten as seen by the back end: still the same call, with nobody missing and nobody duplicated."""
    service = Service(server)
    calls = [c for c in service.request("/app/calls/list")["calls"] if c["initiator"].startswith("load-")]
    service.close()
    assert len(calls) == 1 and calls[0]["state"] == "active" and (call is None or calls[0]["id"] == call["id"])
    state = calls[0]
    assert len(state["members"]) == PEOPLE
    for member in state["members"]:
        assert member["state"] == "joined" and len(member["participants"]) == 1, member
        assert member["participants"][0]["connected"], member
    return state


@pytest.fixture
def crowd(server, tmp_path):  # noqa: F811
    crowd = Crowd(server, tmp_path / "death.json")
    yield crowd
    crowd.stop()


def test_a_call_survives_the_server_again_and_again(server, crowd, artifacts):  # noqa: F811
    seed = int(os.environ.get("CONCLAVE_SEED", random.randrange(1 << 32)))
    print(f"CONCLAVE_SEED={seed}")
    chance = random.Random(seed)
    began = time.monotonic()
    figures = []
    # The first death is during signing in, ringing and joining.
    time.sleep(chance.uniform(0.1, 0.8))
    started, listening = start(server)
    back = crowd.wait_back(started, 20)
    call = the_call(server)
    for number in range(KILLS):
        # The last two take seconds, since switches wait for devices that do not acknowledge.
        kind = chance.choices(["acknowledged", "unfinished", "waiting", "superseded"], [5, 3, 1, 1])[0]
        quartet = Quartet(server, number, kind)
        time.sleep(chance.uniform(0, 0.5))
        lost = time.monotonic()
        started, listening = start(server)
        while chance.random() < 0.2:
            # Again while they come back, in the middle of rejoins and rotations.
            time.sleep(chance.uniform(0.05, 1.5))
            started, listening = start(server)
        back = crowd.wait_back(started, LIMIT + 15)
        figures.append({"listen": listening - started, "back": back - started, "gap": back - lost})
        print(json.dumps({"kill": number, "kind": kind, **figures[-1]}))
        quartet.check()
        the_call(server, call)
    (artifacts / "death.json").write_text(json.dumps(figures))
    late = [figure for figure in figures if figure["back"] > LIMIT]
    crowd_ends(server, crowd, call, time.monotonic() - began)
    assert not late, (seed, late)


def crowd_ends(server, crowd, call, seconds):  # noqa: F811
    """The load test ends the call; everyone's history has this call with its whole duration."""
    crowd.process.send_signal(2)
    crowd.process.wait(20 * PATIENCE)
    report = json.loads(crowd.report.read_text())
    print(json.dumps({**report, "stays": len(report["stays"][0])}))
    assert report["decryptFailures"] == 0 and report["outages"]["away"] == 0 and report["failures"] == []
    assert all(stay["refused"] == 0 for stays in report["stays"] for stay in stays)
    initiator = call["initiator"]
    for member in call["members"]:
        client = Client(Mint(server), member["user"], "other")
        calls = client.request("/app/history/list")["calls"]
        client.close()
        assert [entry["id"] for entry in calls] == [call["id"]]
        entry = calls[0]
        assert (entry["outcome"], entry["rejoinable"]) == ("answered", False)
        assert entry["direction"] == ("outgoing" if member["user"] == initiator else "incoming")
        assert len(entry["members"]) == PEOPLE
        assert seconds * 0.8 - 3 <= entry["seconds"] <= seconds + 3, (entry["seconds"], seconds)
