"""Writes the first corpus of a fuzz target: `seeds.py TARGET FOLDER`. Its inputs are the test vectors of the project, those in `../shared/vectors` beside the
repository if that folder exists, and small inputs of each kind."""

import base64
import hashlib
import hmac
import json
import pathlib
import re
import sys

TESTS = pathlib.Path(__file__).parent.parent
SHARED = TESTS.parent.parent / "shared/vectors"
SECRET = b"a secret of thirty-two bytes, so"


def capture_files():
    """The captures of the project, and the shared ones of which it has no copy."""
    own = sorted((TESTS / "RTPTests/Vectors").glob("*.json"))
    names = {file.name for file in own}
    return own + [file for file in sorted((SHARED / "rtp").glob("*.json")) if file.name not in names]


def captures():
    for file in capture_files():
        for packet in json.loads(file.read_text())["packets"]:
            yield bytes.fromhex(packet["hex"])


def shared(name):
    """A shared vector file as JSON; empty if it does not exist."""
    file = SHARED / name
    return json.loads(file.read_text()) if file.exists() else {}


def texts(value):
    """All hexadecimal strings in a JSON value, as bytes."""
    for each in bodies(value):
        for text in each.values():
            if isinstance(text, str) and len(text) > 2 and re.fullmatch("([0-9a-f]{2})+", text):
                yield bytes.fromhex(text)


def sealed():
    """Ephemeral keys with ciphertexts: HPKE, ECIES, and Wycheproof's P-256 keys, at whose unusual points curve arithmetic goes wrong."""
    for vector in shared("hpke/rfc9180-subset.json") or []:
        yield from (bytes.fromhex(vector["enc"] + each["ct"]) for each in vector["encryptions"])
    yield from texts(shared("hpke/p256-sha256-aes256gcm-base.json"))
    yield from texts(shared("ecies/apple-ecies-p256-variableiv.json"))
    for name in ("ecpoint", "webcrypto"):
        for vector in bodies(shared(f"wycheproof/ecdh_secp256r1_{name}_subset.json")):
            if isinstance(vector.get("public"), str):
                yield bytes.fromhex(vector["public"]) + bytes(48)


def frames():
    """SFrames: the headers and whole frames of RFC 9605, and the payloads of captures."""
    for name in ("sframe/test-vectors.json", "sframe/test-vectors-aes256.json"):
        for vector in bodies(shared(name)):
            yield from (bytes.fromhex(vector[key]) for key in ("encoded", "ct") if isinstance(vector.get(key), str))


def is_rtcp(packet):
    return 192 <= packet[1] <= 223


def golden(name):
    return json.loads((TESTS / "ContractTests/Golden" / name).read_text())


def parts(*datagrams):
    """Datagrams after their lengths, as read by the target dtls."""
    padded = [datagram + bytes(-len(datagram) % 8) for datagram in datagrams]
    return b"".join(bytes([len(datagram) // 8]) + datagram for datagram in padded)


def descriptors():
    """The dependency descriptors of each stream's first packets, in order."""
    for file in capture_files():
        capture = json.loads(file.read_text())
        found = re.search(r"a=extmap:(\d+)\S* \S*dependency-descriptor", capture["answer"])
        streams = {}
        for packet in (bytes.fromhex(each["hex"]) for each in capture["packets"] if found):
            element = None if is_rtcp(packet) else extension(packet, int(found[1]))
            if element:
                streams.setdefault(packet[8:12], []).append(element)
        yield from streams.values()


def extension(packet, wanted):
    """The data of a header extension's element (RFC 8285)."""
    start = 12 + 4 * (packet[0] & 15)
    words = int.from_bytes(packet[start + 2 : start + 4], "big")
    rest = packet[start + 4 : start + 4 + 4 * words]
    while rest:
        if rest[0] == 0:
            rest = rest[1:]
            continue
        one = packet[start : start + 2] == b"\xbe\xde"
        identifier, length, head = (rest[0] >> 4, (rest[0] & 15) + 1, 1) if one else (rest[0], rest[1], 2)
        if identifier == wanted:
            return rest[head : head + length]
        rest = rest[head + length :]
    return None


def token(claims):
    head = base64url(b'{"alg":"HS256"}') + b"." + base64url(json.dumps(claims).encode())
    return head + b"." + base64url(hmac.digest(SECRET, head, "sha256"))


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def steps(how, datagrams, mixed=()):
    """Datagrams as steps of the target sfu, in groups: each after its length and the action."""
    datagrams = [bytes([how]) + datagram[:1400] for datagram in datagrams]
    return [parts(*mixed, *datagrams[start : start + 4]) for start in range(0, len(datagrams), 4)]


def pairing(*messages):
    session = base64.b64encode(bytes(16)).decode()
    thirty_two = base64.b64encode(bytes(range(32))).decode()
    filled = [{key: thirty_two for key in keys} | {"session": session, "step": step} for step, *keys in messages]
    return b"\n".join(map(compact, filled))


def bodies(value):
    """All JSON objects in a fixture."""
    if isinstance(value, dict):
        yield value
        value = value.values()
    if not isinstance(value, str) and hasattr(value, "__iter__"):
        for each in value:
            yield from bodies(each)


def compact(value):
    return json.dumps(value, separators=(",", ":")).encode()


CLIENT_HELLO = bytes.fromhex(
    "16feff0000000000000000007b0100006f000000000000006ffefd" + "5a" * 32 + "00000008c02bc02f009c00ff0100003d"
    "000d00100002040104030401080404030503020100170000000e0009000600070008000100000a00080006001d001700180016000000230000000b00020100"
)
# RFC 5769 section 2.1.
STUN_REQUEST = bytes.fromhex(
    "000100582112a442b7e7a701bc34d686fa87dfae802200105354554e207465737420636c69656e74002400046e0001ff80290008932ff9b151263b36"
    "000600096576746a3a68367659202020000800149aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a280280004e57a3bcb"
)
TLS_HELLO = bytes.fromhex(
    "16030100c8010000c40303" + "5a" * 32 + "20" + "a5" * 32 + "0006130113021303010000750000000e000c0000096c6f63616c686f7374"
    "000b000403000102000a00080006001d00170018000d0014001204030804040105030805050108060601002b0003020304002d00020101"
    "003300260024001d0020" + "42" * 32
)


def seeds(target):
    match target:
        case "rtp":
            return [packet[:200] for packet in captures() if not is_rtcp(packet)]
        case "rtcp":
            return [packet for packet in captures() if is_rtcp(packet)]
        case "dependencies":
            return [parts(*stream[start : start + 40]) for stream in descriptors() for start in (0, 20)]
        case "transport-feedback":
            return [
                bytes.fromhex(report)
                for report in (
                    "afcd0005fa17fa1743032fa0009900013de8021720019401",
                    "8fcd00070000000100000002fffe000f00000100a800e0000408ffff00000000",
                )
            ]
        case "estimators":
            # The value in the low bits, and 2^15 steps of one size.
            sizes = [0, 1, 156, 0x7FFF, 0x8000, 0x7FFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
            return [parts(bytes([0xF0 | kind, 0, 0, 0]) + size.to_bytes(4, "big")) for kind in range(10) for size in sizes]
        case "srtp":
            return [bytes([mode]) + packet for packet in list(captures())[:200] for mode in range(4)]
        case "framing":
            return [len(packet).to_bytes(2, "big") + packet for packet in list(captures())[:100]]
        case "sframe":
            heads = ["00", "17", "8f", "f7" + "ff" * 8 + "01", "ff" + "7f" * 16, "9940"]
            return [bytes.fromhex(head) for head in heads] + list(frames())
        case "frame":
            # Participant 1, track 1, epoch 1, and the same as a message of track 0.
            known = [b"\x00" + bytes.fromhex(head) + bytes(24) for head in ("a001010100", "a0010101", "a00101010007")]
            return known + [b"\x01" + frame for frame in frames()]
        case "sfu":
            rtp = [packet for packet in captures() if not is_rtcp(packet)][::7]
            rtcp = [packet for packet in captures() if is_rtcp(packet)][::3]
            # Peers 1 and 2 send, 3 receives. Time passes before each packet; commands and checks precede some.
            commands = [bytes([0x1C, kind, argument]) for kind in range(8) for argument in (0, 0x12, 0x2B)]
            groups = steps(0x24, rtp[:200]) + steps(0x45, rtp[200:400]) + steps(0x91, rtcp[:100]) + steps(0x92, rtcp[:100])
            groups += [each for command in commands for each in steps(0x24, rtp[:4], [command])]
            groups += steps(0x18, [bytes([place]) for place in (0, 129, 255)]) + steps(0x03, [CLIENT_HELLO, STUN_REQUEST, rtp[0]])
            return groups
        case "answer":
            return [file.read_bytes() for file in (TESTS / "SDPTests/Vectors").glob("*answer*.sdp")]
        case "sdp":
            own = list((TESTS / "SDPTests/Vectors").glob("*.sdp"))
            return [file.read_bytes() for file in own + list((SHARED / "sdp").glob("*.sdp"))]
        case "stun":
            # RFC 5769 section 2.2.
            response = "0101003c2112a442b7e7a701bc34d686fa87dfae8022000b7465737420766563746f7220002000080001a147e112a643"
            response += "000800142b91f599fd9e90c38c7489f92af9ba53f06be7d780280004c07d4c96"
            return [STUN_REQUEST, bytes.fromhex(response)]
        case "dtls":
            return [parts(CLIENT_HELLO), parts(CLIENT_HELLO, CLIENT_HELLO), parts(bytes.fromhex("15fefd00000000000000000002022f"))]
        case "tls":
            return [TLS_HELLO, TLS_HELLO[:60], b"GET / HTTP/1.1\r\n\r\n", bytes.fromhex("15030300020100")]
        case "stomp":
            texts = ["CONNECT\naccept-version:1.2\nhost:h\nheart-beat:0,10\n\n\0", "SEND\ndestination:/a\ncontent-length:3\nx\\c:\\n\n\na\0b\0\n\n"]
            texts += ["SUBSCRIBE\r\nid:1\r\ndestination:/b\r\n\r\n\0", "ACK\nid:1\n\n\0BEGIN\ntransaction:t\n\n\0", "10000,0"]
            return [text.encode() for text in texts]
        case "session":
            hello = "CONNECT\naccept-version:{}\nhost:h\nheart-beat:5000,5000\n\n\0"
            talks = [
                "SUBSCRIBE\nid:1\ndestination:/a\nack:client\n\n\0SEND\ndestination:/a\n\nx\0SEND\ndestination:/a\n\ny\0ACK\nid:2\n\n\0",
                "SUBSCRIBE\nid:1\ndestination:/a\nack:client-individual\nreceipt:r\n\n\0BEGIN\ntransaction:t\n\n\0SEND\ndestination:/a\n\nx\0"
                "ACK\nid:1\nmessage-id:1\nsubscription:1\ntransaction:t\n\n\0SEND\ndestination:/a\ntransaction:t\n\nz\0COMMIT\ntransaction:t\n\n\0",
                "BEGIN\ntransaction:t\n\n\0NACK\nmessage-id:1\nsubscription:1\ntransaction:t\n\n\0ABORT\ntransaction:t\nreceipt:2\n\n\0",
                "SUBSCRIBE\nid:1\ndestination:/asked\nreceipt:3\n\n\0SUBSCRIBE\nid:2\ndestination:/once\n\n\0SUBSCRIBE\nid:3\ndestination:/once\n\n\0",
                "SUBSCRIBE\nid:1\ndestination:/asked!\nreceipt:3\n\n\0UNSUBSCRIBE\nid:1\n\n\0DISCONNECT\nreceipt:4\n\n\0",
            ]
            return [(hello.format(version) + talk).encode() for version in ("1.0", "1.1", "1.2") for talk in talks]
        case "serve":
            upgrade = (
                "GET /stomp HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: v12.stomp\r\n\r\n"
            ).encode()
            login = b"CONNECT\naccept-version:1.2\nhost:h\npasscode:alice\n\n\0"
            talk = [b"SUBSCRIBE\nid:1\ndestination:/topic/a\nack:client\n\n\0", b"SEND\ndestination:/topic/a\n\nhi\0", b"ACK\nid:1\n\n\0"]
            # Masked with zeros, so the text is unchanged.
            frame = lambda text: bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text
            return [upgrade + b"".join(map(frame, [login, *talk][:count])) for count in range(5)] + seeds("http")
        case "http":
            texts = ["GET / HTTP/1.1\r\nHost: h\r\n\r\n", "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi"]
            texts += ["POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nx: y\r\n\r\n"]
            texts += ["GET /stomp HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\r\n"]
            return [text.encode() for text in texts]
        case "websocket":
            return [bytes.fromhex(frame) for frame in ["818537fa213d7f9f4d5158", "010037fa213d800037fa213d", "888237fa213d3412"]]
        case "json":
            return [compact(value) for file in ["requests.json", "events.json", "replies.json"] for value in bodies(golden(file))]
        case "base64":
            return [base64.b64encode(bytes(range(count))) for count in range(9)]
        case "endpoint":
            return [b"https://fcm.googleapis.com/fcm/send/a:b-c_d", b"https://push.example:8443/x?y=1", b"https://[2001:db8::1]:444/x", b"https://192.0.2.7/x"]
        case "subscription":
            point = base64.b64encode(bytes.fromhex("046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c2964fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"))
            subscription = {"endpoint": "https://push.example/a", "p256dh": point.decode(), "auth": base64.b64encode(bytes(16)).decode()}
            points = [point[:65] for point in sealed() if point[:1] == b"\x04"]
            return [compact(subscription | {"p256dh": base64.b64encode(each).decode()}) for each in [base64.b64decode(point), *points]]
        case "device-signature":
            # RFC 6979 appendix A.2.5, RFC 7515 appendix A.2 and RFC 8032 section 7.1. Each key is last, so that it ends with the input.
            point = "0460fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb67903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299"
            sample = "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8"
            modulus = "a1f8160ae2e3c9b465ce8d2d656263362b927dbe29e1f02477fc1625cc90a136e38bd93497c5b6ea63dd7711e67c7429f956b0fb8a8f089adc4b69893cc1333f53edd019b87784252fec914fe4857769594bea4280d32c0f55bf62944f130396bc6e9bdf6ebdd2bda3678eeca0c668f701b38dbffb38c8342ce2fe6d27fade4a5a4874979dd4b9cf9adec4c75b05852c2c0f5ef8a5c1750392f944e8ed64c110c6b647609aa4783aeb9c6c9ad755313050638b83665c6f6f7a82a396702a1f641b82d3ebf2392219491fb686872c5716f50af8358d9a8b9d17c340728f7f87d89a18d8fcab67ad84590c2ecf759339363c07034d6f606f9e21e05456cae5e9a1"
            keys = [
                (0, sample, "3059301306072a8648ce3d020106082a8648ce3d030107034200" + point),
                (1, "00" * 256, "30820122300d06092a864886f70d01010105000382010f003082010a02820101" + "00" + modulus + "0203010001"),
                (2, "92" * 64, "302a300506032b6570032100" + "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"),
            ]
            pieces = [(algorithm, bytes.fromhex(signature), bytes.fromhex(key)) for algorithm, signature, key in keys]
            return [
                bytes([algorithm, len(signature) // 8]) + signature + bytes([(len(key) + 7) // 8]) + key for algorithm, signature, key in pieces
            ]
        case "authorize":
            return [b'{"allowed":["bob"]}', b'["bob","carol"]', b'{"allowed":[]}', b'{"allowed":["a b"]}']
        case "segment":
            vectors = json.loads((TESTS / "RecordingTests/Golden/recordings.json").read_text())
            heads = [base64.b64decode(each) for each in [*vectors["headers"]["accepted"], *vectors["headers"]["refused"].values()]]
            clear = base64.b64decode(vectors["clear"]["file"])
            contents = [base64.b64decode(each["contents"]) for each in vectors["sealed"] + vectors["contents"]]
            return [*heads, clear, *(clear[:96] + each for each in contents)]
        case "reel":
            manifests = json.loads((TESTS / "RecordingTests/Golden/recordings.json").read_text())["manifests"]
            return [compact(each["reel"]) for each in manifests["checked"] + manifests["refused"]]
        case "upload":
            ranges = ["bytes=0-0", "bytes=10-", "bytes=-5", "bytes=1-2,4-5", "bytes=999-1000"]
            return [f"{at}:{algorithm}:AAAA\n{each}".encode() for at, algorithm in ((7, "ES256"), (-1, "")) for each in ranges]
        case "guest":
            asked = [{"call": "c1", "link": "good", "name": "Ann"}, {"call": "c1", "link": "bad", "name": " A\u0007"}, {"token": "guest-a.b.c"}]
            return [compact(each) for each in asked]
        case "admin":
            call = {"call": "c1", "media": "audio", "state": "running", "startedAt": 1, "members": 1, "ringing": 0, "joined": 1, "connected": 1, "epoch": 1}
            status = {"version": "1", "process": 1, "seconds": 9, "isDraining": False, "calls": 1, "participants": 2, "connections": 3, "sessions": 4}
            users = {"users": [{"user": "a", "devices": ["d"], "calls": ["c1"]}], "total": 9}
            replies = [status | {"workers": [{"peers": 1, "connected": 1}]}, {"calls": [call], "total": 2}, {"summary": call, "members": []}, users, {"done": "x"}]
            requests = [{"command": "status"}, {"command": "end", "call": "c1"}, {"command": "disconnect", "user": "a"}]
            return [bytes([kind]) + compact(reply) for kind, reply in enumerate(replies)] + [b"\x05" + compact(request) for request in requests]
        case "elements":
            return [compact(value) for value in bodies(golden("replies.json")) if "list" in value or "call" in value]
        case "pairing":
            picture = b"conclave-device:" + base64url(bytes(range(32)))
            opening, reveal = ("open", "fingerprint", "nonce"), ("reveal", "fingerprint", "nonce")
            return [picture, pairing(opening, ("done",)), pairing(("commit", "commit"), reveal), pairing(("cancel",)), pairing(("commit", "commit"), ("done",))]
        case "token":
            claims = {"sub": "alice", "exp": 10_000, "name": "A", "device": "phone", "scope": "service", "roles": ["a"], "aud": []}
            return [token(claims), token({"sub": "alice", "exp": 10_000}), b"a.b.c"]
        case "keyset":
            ec = {"kty": "EC", "crv": "P-256", "kid": "1", "use": "sig", "alg": "ES256"}
            ec |= {"x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}
            ed = {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}
            rsa = {"kty": "RSA", "n": base64.urlsafe_b64encode(b"\xc1" * 256).rstrip(b"=").decode(), "e": "AQAB"}
            return [compact({"keys": [key]}) for key in (ec, ed, rsa)]
        case "request":
            return [destination.encode() + b"\n" + compact(body) for destination, body in golden("requests.json").items()]
        case "event" | "reply":
            values = list(bodies(golden("events.json" if target == "event" else "replies.json")))
            return [bytes([index % 64]) + compact(value) for value in values for index in range(0, 40, 3)][:3_000]
        case "letter":
            letters = json.loads((TESTS / "CallsTests/Golden/letters.json").read_text())
            return [compact(letter) for side in letters.values() for letter in side.values()]
        case "list":
            return [compact(value) for value in bodies(golden("replies.json")) if "listHash" in value and "list" in value]
        case "envelope":
            return [b"\x04" + hashlib.sha512(bytes([i])).digest() + bytes(48) for i in range(4)] + list(sealed())
    sys.exit(f"no seeds for {target}")


if __name__ == "__main__":
    target, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    written = {hashlib.sha1(seed).hexdigest(): seed for seed in seeds(target)}
    for name, seed in written.items():
        (folder / name).write_bytes(seed)
    print(f"{len(written)} seeds for {target}")
