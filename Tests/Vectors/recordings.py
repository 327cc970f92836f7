#!/usr/bin/env python3
"""The vectors of recordings for the server and both clients: layouts that are signed and sealed, segments, damaged ones, and pages of manifests (docs/e2ee.md,
"Recordings"). It shares no code with either.

`recordings.py` writes Tests/RecordingTests/Golden/recordings.json, `recordings.py --check` shows that this file makes it. All private keys and random bytes
are hashes of an ASCII string, so the output never changes. ES256 signatures are verified instead of compared.
"""

import base64
import hashlib
import json
import pathlib
import sys

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "docs/example"))
from layouts import HPKE, Key, b64, expand, extract, fingerprint_bytes, fixed, flip, hpke_open, hpke_seal, lp, sha256, u8, u32, u64, verify  # noqa: E402

FILE = pathlib.Path(__file__).parents[1] / "RecordingTests/Golden/recordings.json"
TIME = 1_800_000_000_000
START = TIME * 1000
ID = bytes.fromhex("0d6f3a1c5b2e4f7a9c8d1e2f3a4b5c6d")
ID_TEXT = "0d6f3a1c-5b2e-4f7a-9c8d-1e2f3a4b5c6d"
CALL = "6f0c2a8e-1d3b-4c5a-8e9f-a0b1c2d3e4f5"
KINDS = {"call": 1, "message": 2, "own": 3}
MEDIA = {"audio": 1, "video": 2, "screen": 4}


def u16(number):
    return number.to_bytes(2, "big")


def hkdf(ikm, info, length):
    return expand("sha512", extract("sha512", ID, ikm), info, length)


class Device:
    def __init__(self, user, device):
        self.user, self.device = user, device
        self.wrap, self.sign = Key(f"{user} {device} wrap"), Key(f"{user} {device} sign")
        self.fingerprint = sha256(fingerprint_bytes(user, device, HPKE, self.wrap.spki, "ES256", self.sign.spki))

    def address(self):
        return {"user": self.user, "device": self.device}

    def json(self):
        keys = [{"use": "wrap", "alg": HPKE, "publicKey": b64(self.wrap.spki)}, {"use": "sign", "alg": "ES256", "publicKey": b64(self.sign.spki)}]
        return self.address() | {"fingerprint": b64(self.fingerprint), "keys": keys, "wrapScalar": b64(self.wrap.scalar), "signScalar": b64(self.sign.scalar)}


ALICE, BOB = Device("alice", "phone"), Device("bob", "laptop")
R = Key("recording key")


def signed(device, data):
    return {"sigAlg": "ES256", "signature": b64(device.sign.sign(data))}


def vector(device, data, **members):
    """What is signed, and a twin whose signature must be refused."""
    signature = device.sign.sign(data)
    return members | {"signed": b64(data), "signature": b64(signature), "flipped": {"signed": b64(flip(data, 7)), "signature": b64(flip(signature, 9))}}


# What is signed


def statement_bytes(kind, call, media, readers, device=ALICE, key=R):
    return (
        *(b"conclave-recording-v1", ID, u8(KINDS[kind]), lp(call), lp(device.user), lp(device.device), device.fingerprint, u64(TIME)),
        *(u8(sum(MEDIA[each] for each in media)), lp(key.spki), u16(len(readers)), *(lp(reader) for reader in sorted(readers, key=str.encode))),
    )


def statement(kind, call="", media=("audio", "video"), readers=("alice", "bob")):
    data = b"".join(statement_bytes(kind, call, media, readers))
    value = {"id": ID_TEXT, "kind": kind, "publicKey": b64(R.spki), "media": list(media), "readers": list(readers), "at": TIME, "by": ALICE.address()}
    value |= {"call": call} if call else {}
    return vector(ALICE, data, statement=value | signed(ALICE, data), statementHash=b64(sha256(data)))


STATEMENT = sha256(b"".join(statement_bytes("message", CALL, ("audio", "video"), ("alice", "bob"))))


def reel_key(reel=1):
    """The first chain key of a reel, for whoever has the recording's private key."""
    head = STATEMENT + u32(reel) + ALICE.fingerprint
    ciphertext = hpke_seal(Key("reel key ephemeral"), R.point, b"conclave-reel-key-v1", head, FIRST)
    data = b"conclave-reel-key-v1" + head + sha256(ciphertext)
    value = {"ciphertext": b64(ciphertext)} | signed(ALICE, data)
    return vector(ALICE, data, reel=reel, info=b64(b"conclave-reel-key-v1"), aad=b64(head), reelKey=value)


def grant(to, key, device=None):
    info = b"conclave-grant-v1" + ID
    ciphertext = hpke_seal(Key(f"grant ephemeral {device}"), key.point, info, b"", R.scalar)
    names = (*map(lp, (ALICE.user, ALICE.device, to, device or "")), lp(HPKE))
    data = b"".join((b"conclave-grant-v1", STATEMENT, *names, sha256(key.spki), u64(TIME + 5_000), sha256(ciphertext)))
    value = {"recording": ID_TEXT, "to": {"user": to} | ({"device": device} if device else {}), "from": ALICE.address(), "key": b64(sha256(key.spki))}
    value |= {"alg": HPKE, "ciphertext": b64(ciphertext), "at": TIME + 5_000} | signed(ALICE, data)
    return vector(ALICE, data, info=b64(info), holderScalar=b64(key.scalar), grant=value)


def witness_bytes(reel, segments, head, at, is_end):
    return b"conclave-witness-v1" + STATEMENT + u32(reel) + u32(segments) + head + u64(at) + u8(int(is_end))


def witness(segments, head, is_end=False, at=TIME):
    data = witness_bytes(1, segments, head, at, is_end)
    value = {"reel": 1, "segments": segments, "head": b64(head), "at": at, "isEnd": is_end, "by": ALICE.address()} | signed(ALICE, data)
    return vector(ALICE, data, witness=value)


def note(number, value):
    text = json.dumps(value, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 256)
    head = STATEMENT + u32(number)
    ciphertext = hpke_seal(Key(f"note {number} ephemeral"), R.point, b"conclave-note-v1", head, text)
    data = b"conclave-note-v1" + head + sha256(ciphertext)
    return vector(
        ALICE, data, info=b64(b"conclave-note-v1"), aad=b64(head), text=text.decode(), note={"number": number, "ciphertext": b64(ciphertext)} | signed(ALICE, data)
    )


# Segments

FIRST = fixed("first chain key")


def keys_of(reel, count):
    """(chain key, segment key) of each segment."""
    chain = FIRST
    for number in range(count):
        yield chain, hkdf(chain, b"conclave-segment-v1" + u32(reel) + u32(number), 32)
        chain = hkdf(chain, b"conclave-next-segment-v1" + u32(reel) + u32(number), 32)


def header(number, start, previous, nonce=bytes(12), sealed=True, reel=1):
    return b"CREC" + bytes([1, int(sealed)]) + u16(96) + ID + u32(reel) + u32(number) + u64(start) + previous + nonce + bytes(12)


def record(kind, body):
    return u8(kind) + len(body).to_bytes(3, "big") + body


def stream(index, n, source, codec, layer, rate, epoch=0):
    value = {"type": "stream", "index": index, "n": n, "source": source, "codec": codec, "layer": layer, "clockRate": rate, "epoch": epoch}
    return value, record(1, bytes([index, n, source, codec, layer]) + u32(rate) + u32(epoch))


def frame(index, flags, timestamp, arrival, data, time):
    value = {"type": "frame", "index": index, "flags": flags, "timestamp": timestamp, "arrival": arrival, "data": b64(data), "time": time}
    return value, record(2, bytes([index, flags]) + u32(timestamp) + u32(arrival) + data)


def clock(index, how, timestamp, time):
    return {"type": "clock", "index": index, "how": how, "timestamp": timestamp, "time": time}, record(3, bytes([index, how]) + u32(timestamp) + u64(time))


def gap(index, why, start, end, missing):
    return {"type": "gap", "index": index, "why": why, "from": start, "to": end, "missing": missing}, record(4, bytes([index, why]) + u32(start) + u32(end) + u32(missing))


def mark(index, what, at):
    return {"type": "mark", "index": index, "what": what, "at": at}, record(5, bytes([index, what]) + u32(at))


def end(why, records, time):
    return {"type": "end", "why": why, "records": records, "time": time}, record(127, u8(why) + u32(records) + u64(time))


def unknown(kind, body):
    return None, record(kind, body)


def records_of(pieces):
    return [value for value, _ in pieces if value], b"".join(data for _, data in pieces)


def sealed_pieces(number):
    """A message: sound of 20 ms and pictures of 40 ms. In the second segment the person pauses for 3 s: the timestamps go on without them."""
    start = START + number * 4_000_000
    # Timestamps wrap in the first segment.
    sound, picture = ((1 << 32) - 960 + number * 3 * 960) % (1 << 32), 90_000 + number * 2 * 3_600
    pieces = [stream(0, 1, 1, 1, 0, 48_000), stream(1, 2, 2, 2, 0, 90_000), clock(0, 3, sound, start), clock(1, 3, picture, start + 500)]
    pieces.append(frame(1, 1, picture, 0, fixed(f"picture {number}", 60), start + 500))
    pieces += [frame(0, 0, (sound + i * 960) % (1 << 32), i * 20, fixed(f"sound {number} {i}", 40), start + i * 20_000) for i in range(2)]
    if number == 1:
        pieces += [mark(255, 6, 40), mark(255, 7, 3_040), clock(0, 3, sound + 1_920, start + 3_040_000), clock(1, 3, picture + 3_600, start + 3_040_500)]
    later = 3_000_000 if number == 1 else 0
    pieces.append(frame(0, 0, (sound + 1_920) % (1 << 32), 40 + later // 1000, fixed(f"sound {number} 2", 40), start + 40_000 + later))
    pieces.append(frame(1, 2, picture + 3_600, 40 + later // 1000, fixed(f"picture {number} late", 30), start + (500 + 40_000 if number != 1 else 3_040_500)))
    if number == 2:
        pieces += [gap(0, 1, 60, 1_000, 47), unknown(99, b"of a later version")]
    return [*pieces, end(2 if number == 2 else 1, len(pieces), start + 4_000_000)]


def sealed_reel():
    previous, reel = bytes(32), []
    for number, (chain, key) in enumerate(keys_of(1, 3)):
        values, data = records_of(sealed_pieces(number))
        start, nonce = START + number * 4_000_000, fixed(f"segment nonce {number}", 12)
        head = header(number, start, previous, nonce)
        file = head + AESGCM(key).encrypt(nonce, data, head)
        reel.append(
            {"number": number, "start": start, "previous": b64(previous), "nonce": b64(nonce), "chainKey": b64(chain), "key": b64(key)}
            | {"file": b64(file), "hash": b64(sha256(file)), "contents": b64(data), "records": values, "closed": values[-1]["why"]}
        )
        previous = sha256(file)
    return reel


def clear_segment():
    """As the server writes it for a call: sender reports and arrivals tell the time, and frames are SFrames."""
    pieces = [
        *(stream(0, 1, 1, 1, 0, 48_000, 7), stream(1, 2, 2, 3, 1, 90_000, 7), stream(2, 3, 3, 2, 0, 90_000, 7)),
        *(clock(0, 2, 1_000, START + 7), clock(1, 2, 5_000, START + 11)),
        frame(0, 0, 1_000, 0, fixed("sealed sound", 30), START - 500_000),
        frame(1, 0b0101_0101, 5_000, 3, fixed("sealed picture", 50), START + 11),
        # The sender's report comes later, and counts for the whole segment.
        clock(0, 1, 25_000, START),
        frame(0, 0, 999, 21, fixed("sealed sound, reordered", 30), START - 500_021),
        # No clock at all: the arrival.
        frame(2, 1, 77, 1_234, b"", START + 1_234_000),
        *(gap(1, 3, 100, 200, 0), mark(0, 1, 300)),
    ]
    values, data = records_of([*pieces, end(3, len(pieces), START + 10_000_000)])
    file = header(0, START, bytes(32), sealed=False) + data
    return {"file": b64(file), "hash": b64(sha256(file)), "records": values, "closed": 3}


def refused_headers():
    good = header(1, START, fixed("a hash"), fixed("a nonce", 12))
    clear = header(1, START, fixed("a hash"), sealed=False)

    def changed(at, data, of=good):
        return of[:at] + data + of[at + len(data) :]

    cases = {
        "cut short": good[:95],
        "no segment": changed(0, b"crec"),
        "another version": changed(4, u8(2)),
        "an unknown flag": changed(5, u8(3)),
        "another length": changed(6, u16(97)),
        "reel 0": changed(24, u32(0)),
        "a number beyond 2^31": changed(28, u32((1 << 31) + 1)),
        "a start beyond 2^53": changed(32, u64(1 << 53)),
        "a first segment behind another": changed(28, u32(0)),
        "a nonce without a seal": changed(83, u8(1), clear),
        "a reserved byte": changed(95, u8(1)),
    }
    return {"accepted": [b64(good), b64(clear)], "refused": {name: b64(data) for name, data in cases.items()}}


def damaged():
    """Contents of which only the first `kept` records count, and how they end: `closed`, `open`, or `damaged` where the rest cannot be trusted."""
    sound, picture = stream(0, 1, 1, 1, 0, 48_000)[1], stream(1, 2, 2, 2, 0, 90_000)[1]
    one = frame(0, 0, 0, 0, b"sound", 0)[1]
    cases = [
        ("nothing", b"", 0, "open"),
        ("no end", sound + one, 2, "open"),
        ("an end", sound + one + end(1, 2, START)[1], 3, "closed"),
        ("an unknown record counts", sound + unknown(6, b"?")[1] + end(1, 2, START)[1], 2, "closed"),
        ("cut within a head", sound + one[:3], 1, "damaged"),
        ("cut within a body", sound + one[:-1], 1, "damaged"),
        ("a length beyond the end", sound + b"\x02\xff\xff\xff" + bytes(100), 1, "damaged"),
        ("an end with a wrong count", sound + one + end(1, 3, START)[1], 2, "damaged"),
        ("something behind the end", sound + end(1, 1, START)[1] + one, 2, "damaged"),
        ("an end of an unknown kind", sound + end(4, 1, START)[1], 1, "damaged"),
        ("an end beyond 2^53", sound + end(1, 1, 1 << 53)[1], 1, "damaged"),
        ("a frame without a stream", one, 0, "damaged"),
        ("a clock without a stream", sound + clock(1, 1, 0, START)[1], 1, "damaged"),
        ("a gap without a stream", sound + gap(1, 1, 0, 1, 0)[1], 1, "damaged"),
        ("a mark without a stream", sound + mark(64, 1, 0)[1], 1, "damaged"),
        ("a gap of all", gap(255, 1, 5, 5, 0)[1], 1, "open"),
        ("a gap that ends before it begins", gap(255, 1, 5, 4, 0)[1], 0, "damaged"),
        ("a stream twice", sound + picture + sound, 2, "damaged"),
        ("stream 63", stream(63, 1, 1, 1, 0, 48_000)[1], 1, "open"),
        ("stream 64", stream(64, 1, 1, 1, 0, 48_000)[1], 0, "damaged"),
        ("a stream of track 0", stream(0, 0, 1, 1, 0, 48_000)[1], 0, "damaged"),
        ("a stream without a clock rate", stream(0, 1, 1, 1, 0, 0)[1], 0, "damaged"),
        ("an unknown codec", stream(0, 1, 1, 9, 0, 48_000)[1], 1, "open"),
        ("a clock of an unknown kind", sound + clock(0, 4, 0, START)[1], 1, "damaged"),
        ("a clock beyond 2^53", sound + clock(0, 1, 0, 1 << 53)[1], 1, "damaged"),
        ("a stream with a byte more", record(1, sound[4:] + b"\0"), 0, "damaged"),
        ("a frame without its head", sound + record(2, bytes(9)), 1, "damaged"),
        ("an empty frame", sound + record(2, bytes(10)), 2, "open"),
        ("65,536 records", sound + record(6, b"") * 65_535, 1, "open"),
        ("65,537 records", sound + record(6, b"") * 65_536, 1, "damaged"),
    ]
    # Long ones are a beginning and a record that repeats.
    return [
        {"name": name, "kept": kept, "state": state}
        | ({"contents": b64(data)} if len(data) < 1_000 else {"contents": b64(sound), "repeated": b64(record(6, b"")), "times": len(data[len(sound) :]) // 4})
        for name, data, kept, state in cases
    ]


# Manifests


def manifests(reel):
    """What a client says about a reel, by its page, the witnesses and what it saw earlier."""
    hashes = [base64.b64decode(each["hash"]) for each in reel]
    entries = [[len(base64.b64decode(each["file"])), each["hash"], each["start"]] for each in reel]
    page = {"participant": 1, "from": 0, "segments": entries, "state": "finished"}
    other = [entries[0], [entries[1][0], b64(flip(hashes[1])), entries[1][2]], entries[2]]

    def seen(count, head):
        return {"segments": count, "head": b64(head)}

    def case(name, finding, segments=None, witnesses=(), remembered=None):
        value = {"name": name, "finding": finding, "reel": page | ({"segments": segments} if segments is not None else {})}
        value["witnesses"] = [each | {"isEnd": is_end} for each, is_end in witnesses]
        return value | ({"remembered": remembered} if remembered else {})

    whole, two = (seen(3, hashes[2]), True), (seen(2, hashes[1]), False)
    checked = [
        case("all of it", "complete", witnesses=[whole]),
        case("no witness", "unfinished"),
        case("it goes on", "unfinished", witnesses=[two]),
        case("the end is missing", "cutOff", entries[:2], [whole]),
        case("nothing is left", "cutOff", [], [two]),
        case("shorter than it was", "cutOff", entries[:2], remembered=seen(3, hashes[2])),
        case("another segment in the middle", "changed", other, [two]),
        case("another head than it was", "changed", other, remembered=seen(2, hashes[1])),
        case("more than the author made", "changed", witnesses=[(seen(2, hashes[1]), True)]),
        case("a witness of nothing", "unfinished", witnesses=[(seen(0, bytes(32)), False)]),
        case("an end of nothing", "complete", [], [(seen(0, bytes(32)), True)]),
        case("longer than it was", "complete", witnesses=[whole], remembered=seen(1, hashes[0])),
        case("a later clock of the device", "unfinished", [entries[0], [*entries[1][:2], START - 1], entries[2]]),
    ]

    def refused(name, **changes):
        return {"name": name, "reel": page | changes}

    first = entries[0]
    bad = [
        refused("a page from the middle", **{"from": 1}),
        refused("a hash of 31 bytes", segments=[[first[0], b64(bytes(31)), first[2]]]),
        refused("a segment without a byte", segments=[[0, *first[1:]]]),
        refused("a segment without a tag", segments=[[111, *first[1:]]]),
        refused("a segment beyond 8 MiB", segments=[[(8 << 20) + 1, *first[1:]]]),
        refused("a start before 1970", segments=[[*first[:2], -1]]),
        refused("a start beyond 2^53", segments=[[*first[:2], 1 << 53]]),
    ]
    return {"checked": checked, "refused": bad}


def make():
    reel = sealed_reel()
    hashes = [base64.b64decode(each["hash"]) for each in reel]
    return {
        "about": "Made by Tests/Vectors/recordings.py. Bytes are base64, times of segments are in microseconds. `flipped` is the twin with one bit changed: it must "
        "be refused. ES256 signatures are to be verified, not compared.",
        "id": {"text": ID_TEXT, "bytes": b64(ID), "refused": [ID_TEXT.upper(), ID_TEXT.replace("-", ""), ID_TEXT[:-1], ID_TEXT + "0", "{" + ID_TEXT[1:]]},
        "devices": [ALICE.json(), BOB.json()],
        "recordingKey": R.json(),
        "statements": [
            *(statement("message", CALL), statement("own", media=("audio",), readers=("alice",))),
            statement("call", CALL, ("audio", "video", "screen"), ("bob", "Zoe", "alice", "al")),
        ],
        "firstChainKey": b64(FIRST),
        "reelKey": reel_key(),
        "grants": [grant("bob", BOB.wrap, "laptop"), grant("bob", Key("bob reading key"))],
        "witnesses": [witness(1, hashes[0]), witness(3, hashes[2], True, TIME + 12_000)],
        "notes": [note(0, {"kind": "title", "text": "For Bob"}), note(1, {"kind": "place", "lat": 52.5, "lon": 13.4, "accuracy": 9, "at": TIME, "address": "x" * 250})],
        "headers": refused_headers(),
        "sealed": reel,
        "clear": clear_segment(),
        "contents": damaged(),
        "manifests": manifests(reel),
    }


# Checks


def check_file(file):
    raw = base64.b64decode
    for each in [*file["statements"], file["reelKey"], *file["grants"], *file["witnesses"], *file["notes"]]:
        assert verify(ALICE.sign.spki, raw(each["signed"]), raw(each["signature"]))
        assert not verify(ALICE.sign.spki, raw(each["flipped"]["signed"]), raw(each["signature"]))
        assert not verify(ALICE.sign.spki, raw(each["signed"]), raw(each["flipped"]["signature"]))
    assert raw(file["statements"][0]["statementHash"]) == STATEMENT
    key = file["reelKey"]
    assert hpke_open(R, raw(key["info"]), raw(key["aad"]), raw(key["reelKey"]["ciphertext"])) == FIRST
    for each in file["grants"]:
        holder = Key(scalar=int.from_bytes(raw(each["holderScalar"]), "big"))
        assert hpke_open(holder, raw(each["info"]), b"", raw(each["grant"]["ciphertext"])) == R.scalar
    for each in file["notes"]:
        assert hpke_open(R, raw(each["info"]), raw(each["aad"]), raw(each["note"]["ciphertext"])).decode() == each["text"]
    for each in file["sealed"]:
        data = raw(each["file"])
        assert AESGCM(raw(each["key"])).decrypt(raw(each["nonce"]), data[96:], data[:96]) == raw(each["contents"])
        assert hashlib.sha256(data).digest() == raw(each["hash"])


def without_signatures(value):
    if isinstance(value, dict):
        return {name: without_signatures(inner) for name, inner in value.items() if name != "signature"}
    return [without_signatures(inner) for inner in value] if isinstance(value, list) else value


def check():
    file = json.loads(FILE.read_text())
    check_file(file)
    assert without_signatures(file) == without_signatures(make()), "recordings.json is not what recordings.py makes: run recordings.py"


def test_the_vectors_of_recordings_are_what_the_layouts_give():
    check()


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        check()
        print("recordings.json is right")
    else:
        FILE.write_text(json.dumps(make(), indent=1) + "\n")
