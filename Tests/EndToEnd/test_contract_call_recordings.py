"""Protocol section 13.7: two programs that know only the text record a call. The sound goes by aiortc; each frame is sealed and opened here."""

import asyncio
import fractions
import importlib.util
import itertools
import pathlib
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from base64 import b64decode

import pytest
from aiortc import MediaStreamTrack, RTCBundlePolicy, RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from av import Packet
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from conftest import Server
from waiting import PATIENCE

FOLDER = pathlib.Path(__file__).parents[2] / "docs/example"
sys.path.append(str(FOLDER))
# The tests have a module `client` of their own.
spec = importlib.util.spec_from_file_location("example_client", FOLDER / "client.py")
example = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)
layouts, agreement = example.layouts, sys.modules["agreement"]
from layouts import HPKE, Key, b64, hpke_open, hpke_seal, lp, sha256, u8, u32, u64  # noqa: E402

MICROPHONE = 1
MEDIA = {"audio": 1, "video": 2, "screen": 4}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("call-recordings"), recordings={"reserveMiB": 0})
    yield running
    running.stop()


class Voice(MediaStreamTrack):
    """A frame every 20 ms, sealed under the epoch in use; it says its own number."""

    kind = "audio"

    def __init__(self, participant):
        super().__init__()
        self.participant, self.sent = participant, []

    async def recv(self):
        await asyncio.sleep(0.02)
        while not (sealed := self.participant.sealed_frame(b"frame %d" % len(self.sent))):
            await asyncio.sleep(0.02)
        packet = Packet(sealed)
        packet.pts, packet.time_base = 960 * len(self.sent), fractions.Fraction(1, 48_000)
        self.sent.append(self.participant.keys.used.number)
        return packet


class Participant(example.Client):
    """One device with its keys. `until` serves several of them in turn."""

    def __init__(self, server, folder, user):
        self.server, self.token = server, server.token(user, "program")
        devices = agreement.Devices(folder / f"{user}.keys", user, "program")
        url = f"ws://127.0.0.1:{server.http_port}/stomp"
        self.told, self.counters, self.voice = [], {}, None
        self.exports, self.consented, self.word = {}, None, None
        super().__init__(example.Connection(url, user, "program", self.token), devices)

    @property
    def address(self):
        return {"user": self.devices.user, "device": self.devices.device}

    def signed(self, data):
        return {"sigAlg": "ES256", "signature": b64(self.devices.sign.sign(data))}

    def events(self, name):
        return [body for told, body in self.told if told == name]

    def handle(self, name, event):
        self.told.append((name, event))
        if name == "recording.running" and event["participant"] != self.keys.participant:
            self.word = event
        goes_on = super().handle(name, event)
        self.export()
        return goes_on

    # Media

    def base_key(self, epoch, n):
        entry = self.keys.entry()
        info = layouts.sender_info(epoch.number, epoch.hash, entry["participant"], self.devices.fingerprint, self.keys.join_id)
        return layouts.hkdf512(epoch.secret, self.keys.call, info, 64), layouts.kid_of(entry["participant"], n, epoch.number)

    def sealed_frame(self, text):
        epoch = self.keys.used
        if not epoch or len(epoch.entries) < 2:
            return None
        base, kid = self.base_key(epoch, MICROPHONE)
        counter = self.counters.setdefault(kid, itertools.count())
        return layouts.sframe_seal(base, kid, next(counter), b"", text)

    def speak(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.voice = Voice(self)
        sdp, mid = self.on_loop(self.offer())
        answer = self.ask("media", {"sdp": sdp, "tracks": [{"mid": mid, "source": "microphone"}]})
        assert answer["tracks"] == [{"mid": mid, "track": f"{self.keys.participant}.{MICROPHONE}"}]
        self.on_loop(self.peer.setRemoteDescription(RTCSessionDescription(answer["sdp"], "answer")))

    def on_loop(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(10 * PATIENCE)

    async def offer(self):
        self.peer = RTCPeerConnection(RTCConfiguration(bundlePolicy=RTCBundlePolicy.MAX_BUNDLE))
        transceiver = self.peer.addTransceiver(self.voice, "sendonly")
        await self.peer.setLocalDescription(await self.peer.createOffer())
        return self.peer.localDescription.sdp, transceiver.mid

    def close(self):
        if self.voice:
            self.on_loop(self.peer.close())
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(10 * PATIENCE)
        self.connection.web.close()

    # Recording

    def start_recording(self, *readers):
        """As the starter: its statement, and a grant for each reader's device of the key list."""
        self.key, recording = agreement.new_key(), uuid.uuid4()
        names = sorted((one.devices.user for one in readers), key=str.encode)
        at = time.time_ns() // 1_000_000
        text = b"conclave-recording-v1" + recording.bytes + u8(1) + lp(self.keys.call) + lp(self.devices.user) + lp(self.devices.device)
        text += self.devices.fingerprint + u64(at) + u8(MEDIA["audio"]) + lp(self.key.spki) + len(names).to_bytes(2, "big") + b"".join(map(lp, names))
        self.statement = {"id": str(recording), "kind": "call", "call": self.keys.call, "publicKey": b64(self.key.spki), "media": ["audio"]}
        self.statement |= {"readers": names, "at": at, "by": self.address} | self.signed(text)
        self.ask("record/start", {"statement": self.statement, "grants": [self.grant(one, recording, sha256(text)) for one in readers]})
        self.export()
        return recording

    def grant(self, reader, recording, st):
        keys = self.devices.keys_of[reader.devices.fingerprint]
        wrap = b64decode(next(key["publicKey"] for key in keys if key["use"] == "wrap"))
        ciphertext = hpke_seal(agreement.new_key(), wrap[-65:], b"conclave-grant-v1" + recording.bytes, b"", self.key.scalar)
        at = time.time_ns() // 1_000_000
        names = b"".join(map(lp, (*self.address.values(), *reader.address.values(), HPKE)))
        text = b"conclave-grant-v1" + st + names + sha256(wrap) + u64(at) + sha256(ciphertext)
        value = {"recording": str(recording), "to": reader.address, "from": self.address, "key": b64(sha256(wrap)), "alg": HPKE}
        return value | {"ciphertext": b64(ciphertext), "at": at} | self.signed(text)

    def consent(self, recording, *media, **more):
        reply = self.ask("record/consent", {"recording": str(recording), "media": list(media), **more})
        self.consented = reply["epoch"] if media else None
        return reply

    def export(self):
        """Sends what is due now: the starter's word, or the keys of the microphone for epochs that were announced after the consent and that the starter gave its word for."""
        epoch = self.keys and self.keys.newest
        if not epoch or not epoch.secret or epoch.number in self.exports:
            return
        starts = hasattr(self, "statement") and not self.events("recording.stopped")
        has_word = self.word and self.word["epoch"] == epoch.number
        if starts:
            statement, tracks = self.statement, []
        elif self.consented is not None and epoch.number > self.consented and has_word:
            statement, tracks = self.events("recording.started")[-1]["statement"], [MICROPHONE]
            self.check_word(statement, epoch)
        else:
            return
        self.exports[epoch.number] = len(self.voice.sent) if self.voice else 0
        self.ask("record/keys", self.track_keys(statement, epoch, tracks))

    def track_keys(self, statement, epoch, tracks):
        starter = b64decode(epoch.find(statement["by"])["fingerprint"])
        stay = self.keys.participant, self.devices.fingerprint, self.keys.join_id
        context = track_context(statement, starter, epoch.number, epoch.hash, *stay, tracks)
        keys = b""
        for n in tracks:
            base, kid = self.base_key(epoch, n)
            keys += u8(n) + layouts.sframe_key(base, kid) + layouts.sframe_nonce(base, kid, 0)
        ciphertext = hpke_seal(agreement.new_key(), b64decode(statement["publicKey"])[-65:], b"conclave-track-key-v1", context, keys)
        value = {"recording": statement["id"], "epoch": epoch.number, "tracks": tracks, "ciphertext": b64(ciphertext)}
        return value | self.signed(b"conclave-track-key-v1" + context + sha256(ciphertext))

    def check_word(self, statement, epoch):
        entry = epoch.find(statement["by"])
        assert entry["participant"] == self.word["participant"]
        stay = b64decode(entry["fingerprint"]), b64decode(entry["joinId"])
        context = track_context(statement, stay[0], epoch.number, epoch.hash, entry["participant"], *stay, self.word["tracks"])
        signed = b"conclave-track-key-v1" + context + sha256(b64decode(self.word["ciphertext"]))
        assert layouts.verify(self.devices.sign_key(entry), signed, b64decode(self.word["signature"]))

    # Reading

    def manifest(self, recording):
        return self.connection.request("/app/recordings/get", {"id": str(recording)})

    def frames(self, recording):
        """The texts in the recording's reels, by participant, opened with this device's grant."""
        manifest = self.manifest(recording)
        statement = manifest["statement"]
        grant = next(grant for grant in manifest["grants"] if grant["to"] == self.address)
        scalar = hpke_open(self.devices.wrap, b"conclave-grant-v1" + recording.bytes, b"", b64decode(grant["ciphertext"]))
        key = Key(scalar=int.from_bytes(scalar, "big"))
        assert key.spki == b64decode(statement["publicKey"])
        people = {person["participant"]: person for person in manifest["people"] if "joinId" in person}
        starter = next(b64decode(person["fingerprint"]) for person in manifest["people"] if agreement.device_of(person) == agreement.device_of(statement["by"]))
        keys = {}
        for exported in manifest["trackKeys"]:
            if exported["tracks"]:
                person, epoch = people[exported["participant"]], exported["epoch"]
                stay = b64decode(person["fingerprint"]), b64decode(person["joinId"])
                context = track_context(statement, starter, epoch, b64decode(exported["listHash"]), exported["participant"], *stay, exported["tracks"])
                opened = hpke_open(key, b"conclave-track-key-v1", context, b64decode(exported["ciphertext"]))
                for at in range(0, len(opened), 45):
                    kid = layouts.kid_of(person["participant"], opened[at], epoch)
                    keys[kid] = opened[at + 1 : at + 33], opened[at + 33 : at + 45]
        found = {}
        for reel in manifest["reels"]:
            number, previous = reel["participant"], bytes(32)
            for place, (length, digest, start) in enumerate(reel["segments"]):
                file = self.segment(recording, number, place)
                head = b"CREC" + bytes([1, 0]) + (96).to_bytes(2, "big") + recording.bytes + u32(number) + u32(place) + u64(start) + previous + bytes(24)
                assert (len(file), b64(sha256(file)), file[:96]) == (length, digest, head)
                previous = sha256(file)
                found.setdefault(number, []).extend(opened_frames(file[96:], keys))
        return found

    def segment(self, recording, reel, number):
        request = urllib.request.Request(f"{self.server.url}/recordings/{recording}/{reel}/{number}")
        request.add_header("authorization", f"Bearer {self.token}")
        with urllib.request.urlopen(request, timeout=10 * PATIENCE) as answer:
            return answer.read()


def track_context(statement, starter, epoch, list_hash, participant, fingerprint, join_id, tracks):
    """`starter` is the fingerprint of the device that signed the statement."""
    return statement_hash(statement, starter) + u32(epoch) + list_hash + u32(participant) + fingerprint + join_id + u8(len(tracks)) + bytes(tracks)


def statement_hash(statement, fingerprint):
    readers = b"".join(map(lp, sorted(statement["readers"], key=str.encode)))
    text = b"conclave-recording-v1" + uuid.UUID(statement["id"]).bytes + u8(1) + lp(statement["call"]) + lp(statement["by"]["user"]) + lp(statement["by"]["device"])
    text += fingerprint + u64(statement["at"]) + u8(sum(MEDIA[medium] for medium in statement["media"])) + lp(b64decode(statement["publicKey"]))
    return sha256(text + len(statement["readers"]).to_bytes(2, "big") + readers)


def opened_frames(records, keys):
    """The texts of the frame records of a segment that is not sealed as a whole."""
    texts, at, kind = [], 0, None
    while at < len(records):
        kind, length = records[at], int.from_bytes(records[at + 1 : at + 4], "big")
        body, at = records[at + 4 : at + 4 + length], at + 4 + length
        if kind == 2:
            kid, counter, header = layouts.sframe_numbers(body[10:])
            key, salt = keys[kid]
            nonce = bytes(a ^ b for a, b in zip(salt, counter.to_bytes(12, "big")))
            texts.append(AESGCM(key).decrypt(nonce, body[10 + header :], body[10 : 10 + header]))
    assert kind == 127, "a segment without an end"
    return texts


def until(condition, *participants, seconds=15):
    """Serves the participants in turn until `condition` holds."""
    end = time.monotonic() + seconds * PATIENCE
    while not condition():
        told = {one.devices.user: [name for name, _ in one.told][-12:] for one in participants}
        assert time.monotonic() < end, f"it does not come about: {told}"
        for one in participants:
            one.connection.take(0.02)
            while one.connection.events:
                one.take_event(*one.connection.events.popleft())


@pytest.fixture
def call(server, tmp_path):
    """Alice has called Bob; both have the key, and Bob speaks."""
    suffix = uuid.uuid4().hex[:8]
    alice, bob = (Participant(server, tmp_path, f"{name}-{suffix}") for name in ("alice", "bob"))
    alice.start([bob.devices.user])
    both = lambda: all(one.keys and one.keys.used and len(one.keys.used.entries) == 2 and one.keys.used is one.keys.newest for one in (alice, bob))  # noqa: E731
    until(both, alice, bob)
    bob.speak()
    until(lambda: len(bob.voice.sent) > 10, alice, bob)
    yield alice, bob
    for one in (alice, bob):
        one.close()


def spoken(bob, alice, count):
    """Waits until Bob has sent so many more frames; the number of the first of them."""
    first = len(bob.voice.sent)
    until(lambda: len(bob.voice.sent) >= first + count, alice, bob)
    return first


def numbers(texts):
    return [int(text.removeprefix(b"frame ")) for text in texts]


def test_agreed_media_are_recorded_and_nothing_else(call):
    alice, bob = call
    recording = alice.start_recording(alice, bob)
    until(lambda: bob.events("recording.started"), alice, bob)
    [started] = bob.events("recording.started")
    assert started["statement"] == alice.statement
    assert bob.ask("state")["recording"] | {"running": None} == {"statement": alice.statement, "since": started["since"], "consents": [], "running": None}
    with pytest.raises(example.RequestFailed, match="recording.busy"):
        alice.start_recording()
    alice.statement = started["statement"]
    # There is no consent yet.
    spoken(bob, alice, 20)

    bob.consent(recording, "audio")
    until(lambda: any(bob.exports), alice, bob)
    assert alice.events("recording.consent")[-1] | {"at": 0, "rev": 0} == {
        "at": 0, "rev": 0, "call": bob.keys.call, "recording": str(recording), "participant": bob.keys.participant, "media": ["audio"],
    }  # fmt: skip
    exported = min(bob.exports)
    until(lambda: bob.keys.used.number == exported, alice, bob)
    during = spoken(bob, alice, 100)

    bob.consent(recording)
    until(lambda: alice.events("recording.consent")[-1]["media"] == [], alice, bob)
    withdrawn = spoken(bob, alice, 40)
    alice.ask("record/stop", {"recording": str(recording)})
    until(lambda: bob.events("recording.stopped") and bob.events("recording.shared"), alice, bob)
    assert bob.events("recording.stopped")[-1]["reason"] == "stopped"
    shared = bob.events("recording.shared")[-1]
    assert (shared["recording"], shared["kind"], shared["by"]) == (str(recording), "call", alice.address)

    [entry] = bob.connection.request("/app/recordings/list", {"kind": "call", "role": "reader"})["recordings"]
    assert (entry["id"], entry["state"], entry["grant"]) == (str(recording), "finished", shared["grant"])
    for reader in (alice, bob):
        found = reader.frames(recording)
        assert list(found) == [bob.keys.participant]
        kept = numbers(found[bob.keys.participant])
        assert kept == sorted(set(kept))
        assert set(range(during, during + 80)) <= set(kept), "a frame is missing"
        assert all(bob.voice.sent[number] >= exported for number in kept), "a frame from before the consent"
        assert max(kept) < withdrawn, "a frame from after the withdrawal"
    # The withdrawal calls for an epoch.
    until(lambda: alice.keys.newest.number > exported, alice, bob)


def test_a_withdrawal_with_erasure_leaves_nothing(call):
    alice, bob = call
    recording = alice.start_recording(alice)
    until(lambda: bob.events("recording.started"), alice, bob)
    bob.consent(recording, "audio")
    until(lambda: any(bob.exports), alice, bob)
    spoken(bob, alice, 60)
    bob.consent(recording, erase=True)
    spoken(bob, alice, 10)
    alice.ask("record/stop", {"recording": str(recording)})
    until(lambda: alice.events("recording.stopped"), alice, bob)
    manifest = alice.manifest(recording)
    assert [reel for reel in manifest["reels"] if reel["segments"]] == []
    with pytest.raises(urllib.error.HTTPError, match="404"):
        alice.segment(recording, bob.keys.participant, 0)


def test_keys_of_others_and_of_earlier_epochs_are_refused(call):
    alice, bob = call
    recording = alice.start_recording(alice)
    until(lambda: bob.events("recording.started"), alice, bob)
    statement, before = alice.statement, bob.keys.newest
    refused = lambda what, body: pytest.raises(example.RequestFailed, match=what)  # noqa: E731, ARG005
    with refused("recording.not-allowed", "a key without consent"):
        bob.ask("record/keys", bob.track_keys(statement, before, [MICROPHONE]))
    with refused("request.invalid", "a medium that is not in the statement"):
        bob.ask("record/consent", {"recording": str(recording), "media": ["video"]})
    with refused("request.invalid", "erased media"):
        bob.ask("record/consent", {"recording": str(recording), "media": ["audio"], "erase": True})
    bob.consent(recording, "audio")
    with refused("recording.not-allowed", "an epoch from before the consent"):
        bob.ask("record/keys", bob.track_keys(statement, before, [MICROPHONE]))
    until(lambda: any(bob.exports), alice, bob)
    with refused("recording.not-allowed", "a track that is not Bob's"):
        bob.ask("record/keys", bob.track_keys(statement, bob.keys.newest, [MICROPHONE, 7]))
    with refused("recording.not-allowed", "a stop by another member"):
        bob.ask("record/stop", {"recording": str(recording)})
    alice.ask("leave")
    until(lambda: bob.events("recording.stopped"), bob)
    assert bob.events("recording.stopped")[-1]["reason"] == "starter-left"
