"""Writes the first corpus of a fuzz target: `seeds.py TARGET FOLDER`. Its inputs are the test vectors of the project, and small inputs of each kind."""

import base64
import hashlib
import json
import pathlib
import re
import sys

TESTS = pathlib.Path(__file__).parent.parent
SECRET = b"a secret of thirty-two bytes, so"


def captures():
    for file in sorted((TESTS / "RTPTests/Vectors").glob("*.json")):
        for packet in json.loads(file.read_text())["packets"]:
            yield bytes.fromhex(packet["hex"])


def is_rtcp(packet):
    return 192 <= packet[1] <= 223


def golden(name):
    return json.loads((TESTS / "ContractTests/Golden" / name).read_text())


def parts(*datagrams):
    """Datagrams behind their lengths, as the target dtls reads them."""
    padded = [datagram + bytes(-len(datagram) % 8) for datagram in datagrams]
    return b"".join(bytes([len(datagram) // 8]) + datagram for datagram in padded)


def descriptors():
    """The dependency descriptors of each stream: those of the first packets, in their order."""
    for file in sorted((TESTS / "RTPTests/Vectors").glob("*.json")):
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
    import hmac

    encode = lambda data: base64.urlsafe_b64encode(data).rstrip(b"=")
    head = encode(b'{"alg":"HS256"}') + b"." + encode(json.dumps(claims).encode())
    return head + b"." + encode(hmac.digest(SECRET, head, "sha256"))


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
        case "srtp":
            return [bytes([mode]) + packet for packet in list(captures())[:200] for mode in range(4)]
        case "framing":
            return [len(packet).to_bytes(2, "big") + packet for packet in list(captures())[:100]]
        case "sframe":
            return [bytes.fromhex(head) for head in ["00", "17", "8f", "f7" + "ff" * 8 + "01", "ff" + "7f" * 16, "9940"]]
        case "sdp":
            return [file.read_bytes() for file in (TESTS / "SDPTests/Vectors").glob("*.sdp")]
        case "stun":
            # RFC 5769 sections 2.1 and 2.2.
            request = "000100582112a442b7e7a701bc34d686fa87dfae802200105354554e207465737420636c69656e74002400046e0001ff80290008932ff9b151263b36"
            request += "000600096576746a3a68367659202020000800149aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a280280004e57a3bcb"
            response = "0101003c2112a442b7e7a701bc34d686fa87dfae8022000b7465737420766563746f7220002000080001a147e112a643"
            response += "000800142b91f599fd9e90c38c7489f92af9ba53f06be7d780280004c07d4c96"
            return [bytes.fromhex(request), bytes.fromhex(response)]
        case "dtls":
            return [parts(CLIENT_HELLO), parts(CLIENT_HELLO, CLIENT_HELLO), parts(bytes.fromhex("15fefd00000000000000000002022f"))]
        case "tls":
            return [TLS_HELLO, TLS_HELLO[:60], b"GET / HTTP/1.1\r\n\r\n", bytes.fromhex("15030300020100")]
        case "stomp":
            texts = ["CONNECT\naccept-version:1.2\nhost:h\nheart-beat:0,10\n\n\0", "SEND\ndestination:/a\ncontent-length:3\nx\\c:\\n\n\na\0b\0\n\n"]
            texts += ["SUBSCRIBE\r\nid:1\r\ndestination:/b\r\n\r\n\0", "ACK\nid:1\n\n\0BEGIN\ntransaction:t\n\n\0", "10000,0"]
            return [text.encode() for text in texts]
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
        case "list":
            return [compact(value) for value in bodies(golden("replies.json")) if "listHash" in value and "list" in value]
        case "envelope":
            return [b"\x04" + hashlib.sha512(bytes([i])).digest() + bytes(48) for i in range(4)]
    sys.exit(f"no seeds for {target}")


if __name__ == "__main__":
    target, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    written = {hashlib.sha1(seed).hexdigest(): seed for seed in seeds(target)}
    for name, seed in written.items():
        (folder / name).write_bytes(seed)
    print(f"{len(written)} seeds for {target}")
