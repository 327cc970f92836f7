#!/usr/bin/env python3
"""The vector of a call's recording: a manifest as a reader gets it, the files of its segments, and the frames that are in them (protocol sections 13.1 to 13.4 and
13.7). It shares no code with the server and the clients.

`call_recordings.py` writes Tests/RecordingTests/Golden/call.json, `call_recordings.py --check` shows that this file makes it.
"""

import base64
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import recordings as vectors  # noqa: E402
from recordings import ALICE, BOB, ID_TEXT, R, START, TIME, Key, b64, expand, extract, fixed, hpke_open, hpke_seal, sha256, signed, u8, u32, verify  # noqa: E402
from layouts import HPKE, kid_of, lp, sframe_open, sframe_seal, u64  # noqa: E402

FILE = pathlib.Path(__file__).parents[1] / "RecordingTests/Golden/call.json"
CALL = vectors.CALL
READERS = ("alice", "bob")
MEDIA = ("audio", "video", "screen")
STATEMENT_BYTES = b"".join(vectors.statement_bytes("call", CALL, MEDIA, READERS))
STATEMENT = sha256(STATEMENT_BYTES)
# The second epoch has the same low byte as the first: a call of a thousand comes round within minutes.
EPOCHS = (7, 263)


class Stay:
    """A participant: its place, its tracks, and a base key for each epoch."""

    def __init__(self, number, device):
        self.number, self.device = number, device
        self.join_id = fixed(f"join {number}", 16)
        self.counters = {}

    def base_key(self, epoch):
        return fixed(f"base key {self.number} {epoch}", 64)

    def person(self):
        keys = self.device.json()
        names = {"participant": self.number, "user": self.device.user, "device": self.device.device, "name": self.device.user.title()}
        return names | {"fingerprint": keys["fingerprint"], "keys": keys["keys"], "joinId": b64(self.join_id)}

    def seal(self, n, epoch, metadata, text):
        counter = self.counters.get((n, epoch), 0)
        self.counters[n, epoch] = counter + 1
        return metadata + sframe_seal(self.base_key(epoch), kid_of(self.number, n, epoch), counter, metadata, text)

    def track_keys(self, epoch, tracks):
        listing = fixed(f"list {epoch}")
        context = STATEMENT + u32(epoch) + listing + u32(self.number) + self.device.fingerprint + self.join_id + u8(len(tracks)) + bytes(tracks)
        text = b"".join(u8(n) + secret(self.base_key(epoch), kid_of(self.number, n, epoch)) for n in tracks)
        ciphertext = hpke_seal(Key(f"track keys {self.number} {epoch}"), R.point, b"conclave-track-key-v1", context, text)
        data = b"conclave-track-key-v1" + context + sha256(ciphertext)
        value = {"participant": self.number, "epoch": epoch, "listHash": b64(listing), "tracks": list(tracks), "ciphertext": b64(ciphertext)}
        return value | signed(self.device, data), context, data


def secret(base_key, kid):
    """Key and salt of one KID (RFC 9605 section 4.4.2, AES-256-GCM with SHA-512)."""
    prk, tail = extract("sha512", b"", base_key), kid.to_bytes(8, "big") + b"\0\5"
    return expand("sha512", prk, b"SFrame 1.0 Secret key " + tail, 32) + expand("sha512", prk, b"SFrame 1.0 Secret salt " + tail, 12)


def reel(stay, count, pictures):
    """Segments of 10 s, one for each epoch: sound, and pictures if there are any."""
    files, frames, previous = [], [], bytes(32)
    for number in range(count):
        epoch, start = EPOCHS[number], START + number * 10_000_000
        pieces = [vectors.stream(0, 1, 1, 1, 0, 48_000, epoch), vectors.clock(0, 1, 1_000, start)]
        if pictures:
            pieces += [vectors.stream(1, 2, 2, 2, 0, 90_000, epoch), vectors.clock(1, 1, 500, start + 3_000)]
        for i in range(3):
            sound = fixed(f"sound {stay.number} {epoch} {i}", 40)
            stored = stay.seal(1, epoch, b"", sound)
            pieces.append(vectors.frame(0, 1, 1_000 + 960 * i, 20 * i, stored, None))
            frames.append({"n": 1, "time": start + 20_000 * i, "isKey": True, "data": b64(sound)})
            if pictures and i < 2:
                # The lowest bit of a VP8 frame is 0 in key frames.
                picture = bytes([0x10 | i]) + fixed(f"picture {epoch} {i}", 50)
                clear = 3 if i else 10
                pieces.append(vectors.frame(1, 1 - i, 500 + 3_600 * i, 40 * i, stay.seal(2, epoch, picture[:clear], picture[clear:]), None))
                frames.append({"n": 2, "time": start + 3_000 + 40_000 * i, "isKey": i == 0, "data": b64(picture)})
        pieces.append(vectors.end(2 if number == count - 1 else 1, len(pieces), start + 10_000_000))
        file = vectors.header(number, start, previous, sealed=False, reel=stay.number) + b"".join(data for _, data in pieces)
        previous = sha256(file)
        files.append(file)
    return files, frames


def make():
    alice, bob = Stay(1, ALICE), Stay(2, BOB)
    reels = {1: reel(alice, 2, pictures=True), 2: reel(bob, 1, pictures=False)}
    keys = [alice.track_keys(7, (1, 2)), alice.track_keys(263, (1, 2)), bob.track_keys(7, (1,))]
    info = b"conclave-grant-v1" + vectors.ID
    ciphertext = hpke_seal(Key("call grant ephemeral"), BOB.wrap.point, info, b"", R.scalar)
    names = (*map(lp, (ALICE.user, ALICE.device, BOB.user, BOB.device)), lp(HPKE))
    granted = b"".join((b"conclave-grant-v1", STATEMENT, *names, sha256(BOB.wrap.spki), u64(TIME), sha256(ciphertext)))
    grant = {"recording": ID_TEXT, "to": BOB.address(), "from": ALICE.address(), "key": b64(sha256(BOB.wrap.spki)), "alg": HPKE}
    grant |= {"ciphertext": b64(ciphertext), "at": TIME} | signed(ALICE, granted)
    statement = {"id": ID_TEXT, "kind": "call", "call": CALL, "publicKey": b64(R.spki), "media": list(MEDIA), "readers": list(READERS), "at": TIME}
    files = {number: files for number, (files, _) in reels.items()}
    pages = [
        {"participant": number, "from": 0, "segments": [[len(file), b64(sha256(file)), START + i * 10_000_000] for i, file in enumerate(files[number])]}
        for number in files
    ]
    manifest = {"statement": statement | {"by": ALICE.address()} | signed(ALICE, STATEMENT_BYTES), "state": "finished"}
    manifest |= {"bytes": sum(map(len, sum(files.values(), []))), "people": [alice.person(), bob.person()], "reelKeys": [], "reels": pages}
    manifest |= {"grants": [grant], "notes": [], "witnesses": [], "trackKeys": [value for value, _, _ in keys]}
    return {
        "about": "Made by Tests/Vectors/call_recordings.py: a call's recording as Bob's laptop gets it, and what is in it. Bytes are base64, times in microseconds.",
        "manifest": manifest,
        "contexts": [b64(context) for _, context, _ in keys],
        "signed": [b64(data) for _, _, data in keys],
        "files": {str(number): [b64(file) for file in each] for number, each in files.items()},
        "frames": {str(number): frames for number, (_, frames) in reels.items()},
    }


def check():
    file = json.loads(FILE.read_text())
    raw = base64.b64decode
    for keys, context, data in zip(file["manifest"]["trackKeys"], file["contexts"], file["signed"]):
        device = ALICE if keys["participant"] == 1 else BOB
        assert verify(device.sign.spki, raw(data), raw(keys["signature"]))
        text = hpke_open(R, b"conclave-track-key-v1", raw(context), raw(keys["ciphertext"]))
        assert len(raw(keys["ciphertext"])) == 81 + 45 * len(keys["tracks"]) and [text[45 * i] for i in range(len(keys["tracks"]))] == keys["tracks"]
    frame = sframe_seal(fixed("base key 2 7", 64), kid_of(2, 1, 7), 0, b"", fixed("sound 2 7 0", 40))
    assert frame in raw(file["files"]["2"][0])
    assert sframe_open(fixed("base key 2 7", 64), kid_of(2, 1, 7), 0, b"", frame) == fixed("sound 2 7 0", 40)
    assert vectors.without_signatures(file) == vectors.without_signatures(make()), "call.json is not what call_recordings.py makes: run call_recordings.py"


def test_the_vector_of_a_calls_recording_is_what_the_layouts_give():
    check()


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        check()
        print("call.json is right")
    else:
        FILE.write_text(json.dumps(make(), indent=1) + "\n")
