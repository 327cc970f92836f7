"""Protocol section 13: recordings, by a program that knows only the text. Everything is signed and sealed with real keys."""

import base64
import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from client import Client, RequestFailed
from conftest import BINARY, Server
from waiting import PATIENCE, wait_for
from words import SignKey

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "docs/example"))
from layouts import HPKE, Key, b64, expand, extract, hpke_open, hpke_seal, lp, sha256, u8, u32, u64  # noqa: E402

ZEROS = bytes(32)
SECRET = b"the words that nobody but Bob may hear"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("recordings"), recordings={"reserveMiB": 0})
    yield running
    running.stop()


class Device(Client):
    """A device with a wrap key that it can use."""

    def __init__(self, server, user, device="phone"):
        super().__init__(server, user, device)
        self.server, self.token = server, server.token(user, device)
        self.wrap = Key(f"{user} {uuid.uuid4()}")
        self.register()

    def register(self):
        self.sign_key = SignKey()
        keys = [{"use": "wrap", "alg": HPKE, "publicKey": b64(self.wrap.spki)}, {"use": "sign", "alg": "ES256", "publicKey": b64(self.sign_key.spki)}]
        self.fingerprint = base64.b64decode(self.request("/app/devices/register", {"name": self.device, "keys": keys})["fingerprint"])

    @property
    def address(self):
        return {"user": self.user, "device": self.device}

    def signed(self, data):
        return {"sigAlg": "ES256", "signature": b64(self.sign_key.sign(data))}

    def http(self, method, path, bearer=None, body=None, **headers):
        """(status, headers, body) of an answer."""
        request = urllib.request.Request(self.server.url + path, method=method, data=body)
        request.add_header("authorization", f"Bearer {bearer or self.token}")
        for name, value in headers.items():
            request.add_header(name.replace("_", "-"), value)
        try:
            with urllib.request.urlopen(request, timeout=10 * PATIENCE) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()


class Recording:
    """A message that a device records, sealed segment by segment."""

    def __init__(self, device, *readers, kind="message"):
        self.device, self.kind = device, kind
        self.id = uuid.uuid4()
        self.key, self.chain = Key(f"recording {self.id}"), os.urandom(32)
        self.number, self.head = 0, ZEROS
        self.at = int(time.time() * 1000)
        names = sorted(readers, key=str.encode)
        code = {"message": 2, "own": 3}[kind]
        text = b"conclave-recording-v1" + self.id.bytes + u8(code) + lp("") + lp(device.user) + lp(device.device) + device.fingerprint
        text += u64(self.at) + u8(1) + lp(self.key.spki) + len(names).to_bytes(2, "big") + b"".join(map(lp, names))
        self.st = sha256(text)
        self.statement = {"id": str(self.id), "kind": kind, "publicKey": b64(self.key.spki), "media": ["audio"], "readers": list(readers)}
        self.statement |= {"at": self.at, "by": device.address} | device.signed(text)

    @property
    def path(self):
        return f"/recordings/{self.id}"

    def start(self, **more):
        head = self.st + u32(1) + self.device.fingerprint
        ciphertext = hpke_seal(Key(f"ephemeral {self.id}"), self.key.point, b"conclave-reel-key-v1", head, self.chain)
        reel_key = {"ciphertext": b64(ciphertext)} | self.device.signed(b"conclave-reel-key-v1" + head + sha256(ciphertext))
        reply = self.device.request("/app/recordings/start", {"statement": self.statement, "reelKey": reel_key, **more})
        self.ticket = reply["ticket"]
        return reply

    def grant(self, holder):
        """The recording's private key for another device."""
        ciphertext = hpke_seal(Key(f"grant {uuid.uuid4()}"), holder.wrap.point, b"conclave-grant-v1" + self.id.bytes, b"", self.key.scalar)
        key = sha256(holder.wrap.spki)
        names = b"".join(map(lp, (self.device.user, self.device.device, holder.user, holder.device, HPKE)))
        text = b"conclave-grant-v1" + self.st + names + key + u64(self.at) + sha256(ciphertext)
        value = {"recording": str(self.id), "to": holder.address, "from": self.device.address, "key": b64(key), "alg": HPKE}
        return value | {"ciphertext": b64(ciphertext), "at": self.at} | self.device.signed(text)

    def step(self, label):
        return derived(label, self.id.bytes, self.chain, self.number)

    def seal(self, frame):
        """(file, witness) of the next segment."""
        start, nonce = 1_800_000_000_000_000 + 2_000_000 * self.number, os.urandom(12)
        head = b"CREC" + bytes([1, 1]) + (96).to_bytes(2, "big") + self.id.bytes + u32(1) + u32(self.number) + u64(start) + self.head + nonce + bytes(12)
        records = record(1, bytes([0, 1, 1, 1, 0]) + u32(48_000) + u32(0)) + record(2, bytes([0, 0]) + u32(0) + u32(0) + frame)
        records += record(127, u8(1) + u32(2) + u64(start + 2_000_000))
        file = head + AESGCM(self.step(b"conclave-segment-v1")).encrypt(nonce, records, head)
        self.chain = self.step(b"conclave-next-segment-v1")
        self.number, self.head = self.number + 1, sha256(file)
        return file, self.witness(0)

    def witness(self, is_end):
        text = b"conclave-witness-v1" + self.st + u32(1) + u32(self.number) + self.head + u64(self.at) + u8(is_end)
        return f"{self.at}:ES256:{b64(self.device.sign_key.sign(text))}"

    def put(self, number, file, witness):
        return self.device.http("PUT", f"{self.path}/1/{number}", self.ticket, file, conclave_witness=witness)

    def finish(self):
        at, alg, signature = self.witness(1).split(":")
        reel = {"reel": 1, "segments": self.number, "head": b64(self.head), "at": int(at), "sigAlg": alg, "signature": signature}
        return self.device.request("/app/recordings/finish", {"id": str(self.id), "reels": [reel]})


def record(kind, body):
    return u8(kind) + len(body).to_bytes(3, "big") + body


def derived(label, identifier, chain, number):
    """A key of the segment, or the next chain key, of reel 1."""
    return expand("sha512", extract("sha512", identifier, chain), label + u32(1) + u32(number), 32)


def statement_hash(statement, identifier, person, key, kind):
    raw = base64.b64decode
    readers = b"".join(map(lp, sorted(statement["readers"], key=str.encode)))
    return sha256(
        b"".join(
            (
                *(b"conclave-recording-v1", identifier, u8(kind), lp(statement.get("call", "")), lp(person["user"]), lp(person["device"])),
                *(raw(person["fingerprint"]), u64(statement["at"]), u8(1), lp(key.spki), len(statement["readers"]).to_bytes(2, "big"), readers),
            )
        )
    )


def opened(device, manifest, files, kind=2):
    """The frames of a recording, with what its reader has."""
    raw = base64.b64decode
    identifier = uuid.UUID(manifest["statement"]["id"]).bytes
    grant = next(grant for grant in manifest["grants"] if grant["to"] == device.address)
    scalar = hpke_open(device.wrap, b"conclave-grant-v1" + identifier, b"", raw(grant["ciphertext"]))
    key = Key(scalar=int.from_bytes(scalar, "big"))
    assert key.spki == raw(manifest["statement"]["publicKey"])
    [reel_key], [person], frames, previous = manifest["reelKeys"], manifest["people"], [], ZEROS
    st = statement_hash(manifest["statement"], identifier, person, key, kind)
    chain = hpke_open(key, b"conclave-reel-key-v1", st + u32(1) + raw(person["fingerprint"]), raw(reel_key["ciphertext"]))
    for number, (file, (length, digest, start)) in enumerate(zip(files, manifest["reels"][0]["segments"], strict=True)):
        assert (len(file), b64(sha256(file)), int.from_bytes(file[32:40], "big")) == (length, digest, start)
        assert file[40:72] == previous
        previous = sha256(file)
        records = AESGCM(derived(b"conclave-segment-v1", identifier, chain, number)).decrypt(file[72:84], file[96:], file[:96])
        chain = derived(b"conclave-next-segment-v1", identifier, chain, number)
        body = records[17:]  # behind the stream record
        frames.append(body[14 : 4 + int.from_bytes(body[1:4], "big")])
    return frames


@pytest.fixture
def people(server):
    """Two people who had a call."""
    suffix = uuid.uuid4().hex[:8]
    alice, bob = Device(server, f"alice-{suffix}"), Device(server, f"bob-{suffix}")
    call = alice.request("/app/calls/start", {"callees": [bob.user], "media": "audio", **alice.starting()})["call"]["id"]
    alice.request(f"/app/calls/{call}/end")
    return alice, bob


def test_a_message_is_played_by_its_reader_and_by_nobody_else(server, people):
    alice, bob = people
    recording = Recording(alice, alice.user, bob.user)
    limits = recording.start()["limits"]
    assert limits["segmentBytes"] == 8 << 20 and limits["seconds"] == 180 and limits["bytes"] > 0
    said = [SECRET, b"second", b"third"]
    sealed = [recording.seal(frame) for frame in said]
    for number, segment in enumerate(sealed):
        assert recording.put(number, *segment)[0] == 201
        assert recording.put(number, *segment)[0] == 200
    recording.finish()
    assert bob.request("/app/recordings/list")["recordings"] == []
    assert bob.http("GET", f"{recording.path}/1/0")[0] == 404
    grant = recording.grant(bob)
    alice.request("/app/recordings/share", {"id": str(recording.id), "grants": [grant]})
    shared = bob.event("recording.shared")
    assert (shared["recording"], shared["kind"], shared["by"], shared["grant"]) == (str(recording.id), "message", alice.address, grant)

    [entry] = bob.request("/app/recordings/list", {"role": "reader"})["recordings"]
    assert entry["grant"] == grant and entry["state"] == "finished" and entry["bytes"] == sum(len(file) for file, _ in sealed)
    manifest = bob.request("/app/recordings/get", {"id": str(recording.id)})
    assert manifest["statement"] == recording.statement and manifest["witnesses"][0]["isEnd"]
    files = [bob.http("GET", f"{recording.path}/1/{number}")[2] for number in range(3)]
    assert opened(bob, manifest, files) == said
    status, headers, part = bob.http("GET", f"{recording.path}/1/0", range="bytes=10-19")
    assert (status, headers["content-range"], part) == (206, f"bytes 10-19/{len(files[0])}", files[0][10:20])
    # Neither the folder nor the database has a word of it.
    for file in server.state.rglob("*"):
        assert not file.is_file() or SECRET not in file.read_bytes(), file
    bob.request("/app/recordings/delete", {"ids": [str(recording.id)]})
    assert bob.http("GET", f"{recording.path}/1/0")[0] == 404
    assert alice.http("GET", f"{recording.path}/1/0")[0] == 200


def test_an_upload_goes_on_after_the_server_was_killed(server, people):
    alice, _ = people
    recording = Recording(alice, alice.user, kind="own")
    recording.start()
    sealed = [recording.seal(os.urandom(3_000)) for _ in range(4)]
    for number in range(2):
        assert recording.put(number, *sealed[number])[0] == 201
    server.die()
    server.start()
    status, _, body = alice.http("GET", recording.path, recording.ticket)
    assert (status, json.loads(body)) == (200, {"reels": {"1": {"next": 2, "head": b64(sha256(sealed[1][0]))}}})
    status, _, body = recording.put(3, *sealed[3])
    assert (status, json.loads(body)["next"]) == (409, 2)
    for number in range(1, 4):
        assert recording.put(number, *sealed[number])[0] == (200 if number == 1 else 201)
    assert alice.http("GET", f"{recording.path}/1/3")[2] == sealed[3][0]


def test_strangers_and_thieves_get_nowhere(server, people):
    alice, bob = people
    mallory = Device(server, f"mallory-{uuid.uuid4().hex[:8]}")
    recording, other = Recording(alice, alice.user), Recording(mallory, mallory.user)
    recording.start()
    other.start()
    file, witness = recording.seal(b"frame")
    path = f"{recording.path}/1/0"
    assert alice.http("PUT", path, other.ticket, file, conclave_witness=witness)[0] == 403
    assert alice.http("PUT", path, mallory.token, file, conclave_witness=witness)[0] == 403
    forged = f"{recording.at}:ES256:{b64(os.urandom(64))}"
    assert alice.http("PUT", path, recording.ticket, file, conclave_witness=forged)[0] == 403
    assert alice.http("PUT", path, recording.ticket, file[:-1] + b"\0", conclave_witness=witness)[0] == 403
    assert alice.http("PUT", path, recording.ticket, file)[0] == 400
    assert alice.http("PUT", f"{recording.path}/1/1", recording.ticket, file, conclave_witness=witness)[0] == 400
    assert alice.http("GET", path, recording.ticket)[0] == 404
    with pytest.raises(RequestFailed, match="recording.not-found"):
        mallory.request("/app/recordings/get", {"id": str(recording.id)})
    # She has had no call with Bob.
    with pytest.raises(RequestFailed, match="recording.not-allowed"):
        mallory.request("/app/recordings/share", {"id": str(other.id), "grants": [other.grant(bob)]})
    forged = {"statement": recording.statement | {"readers": [bob.user]}, "reelKey": {"ciphertext": "", "sigAlg": "", "signature": ""}}
    with pytest.raises(RequestFailed, match="request.invalid"):
        alice.request("/app/recordings/start", forged)
    assert recording.put(0, file, witness)[0] == 201


def test_a_forgotten_user_leaves_no_file(server, people):
    alice, _ = people
    recording = Recording(alice, alice.user)
    recording.start()
    recording.put(0, *recording.seal(b"frame"))
    folder = server.state / "recordings" / str(recording.id)[:2] / str(recording.id)
    assert (folder / "1" / "0").is_file()
    subprocess.run([BINARY, "forget", "--config", str(server.config), "--user", alice.user], check=True)
    wait_for(lambda: not folder.exists(), 10, "the recording's folder is gone")


def test_the_owner_learns_who_has_seen_it_and_its_readers_that_it_is_gone(server, people):
    alice, bob = people
    recording = Recording(alice, alice.user, bob.user)
    # Before it is recorded: nothing is said of one who can get it.
    assert recording.start()["results"] == {}
    assert recording.start(grants=[recording.grant(bob)])["results"] == {bob.user: "shared"}
    bob.event("recording.shared")
    for _ in range(2):
        bob.request("/app/recordings/seen", {"id": str(recording.id)})
    seen = alice.event("recording.seen")
    assert (seen["recording"], seen["by"]) == (str(recording.id), bob.address)
    [entry] = alice.request("/app/recordings/list", {"role": "owner"})["recordings"]
    assert entry["seenAt"] <= time.time() * 1000 + 5_000 and entry["state"] == "running"
    [reader] = alice.request("/app/recordings/get", {"id": str(recording.id)})["readers"]
    assert reader == {"user": bob.user, "seenAt": entry["seenAt"]}
    with pytest.raises(RequestFailed, match="recording.not-allowed"):
        bob.request("/app/recordings/erase", {"id": str(recording.id), "participant": 1})
    alice.request("/app/recordings/erase", {"id": str(recording.id)})
    removed = bob.event("recording.removed")
    assert (removed["recording"], removed["by"]) == (str(recording.id), alice.address)
    assert bob.request("/app/recordings/list")["recordings"] == []


def test_a_reader_follows_a_recording_while_it_is_made(server, people):
    alice, bob = people
    recording = Recording(alice, alice.user, bob.user, kind="own")
    recording.start(grants=[recording.grant(bob)])
    assert bob.request("/app/recordings/get", {"id": str(recording.id)})["reels"][0]["segments"] == []
    began = time.monotonic()
    assert recording.put(0, *recording.seal(b"first"))[0] == 201
    change = bob.event("recording.changed", 10)
    assert time.monotonic() - began < 3 * PATIENCE
    assert change["state"] == "running" and change["reels"] == [{"participant": 1, "segments": 1, "head": b64(recording.head)}]
    manifest = bob.request("/app/recordings/get", {"id": str(recording.id), "from": 0, "notes": 0})
    assert opened(bob, manifest, [bob.http("GET", f"{recording.path}/1/0")[2]], kind=3) == [b"first"]
    recording.finish()
    assert bob.event("recording.changed", 10)["state"] == "finished"


def test_a_contact_is_alerted_until_a_device_has_acknowledged_it(server, people):
    alice, bob = people
    stranger = Device(server, f"stranger-{uuid.uuid4().hex[:8]}")
    bob.close()
    recording = Recording(alice, alice.user, bob.user, stranger.user, kind="own")
    grants = [recording.grant(device) for device in (alice, bob, stranger)]
    assert recording.start(grants=grants, alert=True)["results"] == {bob.user: "shared", stranger.user: "unavailable"}
    # It survives the server.
    alice.close()
    server.die()
    server.start()
    again = Client(server, bob.user, bob.device)
    alert = again.event("recording.shared")
    assert alert["alert"] is True and alert["recording"] == str(recording.id) and alert["grant"] == grants[1]
    owner = Client(server, alice.user, alice.device)
    reached = owner.event("recording.reached")
    assert (reached["recording"], reached["by"]) == (str(recording.id), bob.address)
    [reader] = owner.request("/app/recordings/get", {"id": str(recording.id)})["readers"]
    assert reader["user"] == bob.user and reader["alertedAt"] <= reader["reachedAt"]
    assert server.metric("conclave_recording_alerts_waiting") == 0
    # Once is enough.
    again.close()
    third = Client(server, bob.user, bob.device)
    assert third.request("/app/recordings/list")["recordings"][0]["id"] == str(recording.id)
    assert not any(name == "recording.shared" for name, _, _ in list(third.events.queue))


def test_an_operator_lists_and_deletes_recordings(server, people):
    alice, bob = people
    recording = Recording(alice, alice.user, bob.user)
    recording.start(grants=[recording.grant(bob)])
    file, witness = recording.seal(b"frame")
    recording.put(0, file, witness)
    bob.event("recording.shared")

    def conclave(*arguments):
        command = [BINARY, "recordings", *arguments, "--config", str(server.config)]
        return subprocess.run(command, capture_output=True, text=True, timeout=30 * PATIENCE)

    listed = json.loads(conclave("--user", alice.user, "--json").stdout)
    [row] = listed["recordings"]
    assert {name: row[name] for name in ("recording", "kind", "owner", "state", "isDraft", "bytes")} == {
        "recording": str(recording.id), "kind": "message", "owner": alice.user, "state": "running", "isDraft": False, "bytes": len(file),
    }
    assert listed["total"] >= 1 and bob.user not in json.dumps(listed), "not who may open it"
    lines = conclave("--user", alice.user).stdout.splitlines()
    assert lines[0].split() == ["RECORDING", "KIND", "STATE", "OWNER", "STARTED", "LENGTH", "SIZE", "EXPIRES"]
    assert lines[1].split()[:4] == [str(recording.id), "message", "running", alice.user]
    deleted = conclave("delete", str(recording.id))
    assert (deleted.returncode, deleted.stdout.strip()) == (0, "the recording is deleted for everybody")
    assert "by" not in bob.event("recording.removed") and "by" not in alice.event("recording.removed")
    assert recording.put(0, file, witness)[0] == 410
    again = conclave("delete", str(recording.id))
    assert again.returncode == 1 and "there is no recording of this id" in again.stderr
    assert "an operator deleted a recording" in (server.folder / "server.log").read_text()


def test_a_server_without_recordings_says_so(tmp_path):
    plain = Server(tmp_path)
    try:
        alice = Device(plain, "alice")
        with pytest.raises(RequestFailed, match="recording.unavailable"):
            alice.request("/app/recordings/list")
    finally:
        plain.stop()
