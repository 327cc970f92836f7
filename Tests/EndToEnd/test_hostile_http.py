"""HTTP and WebSocket strictly by their specifications, on a server open to strangers: errors get their status or close code, and the server keeps running."""

import re
import socket
import struct
import urllib.request

import pytest

from conftest import PATIENCE, UNVERIFIED
from device import Wire, token

HOST = "Host: localhost\r\n"
KEY = "dGhlIHNhbXBsZSBub25jZQ=="


def talk(server, data, until=lambda heard: False, seconds=3):
    """The server's answer to these bytes: until it closes, the answer is complete, or it is silent for these seconds."""
    heard = b""
    with socket.create_connection(("127.0.0.1", server.http_port), 5 * PATIENCE) as s:
        s.settimeout(seconds * PATIENCE)
        try:
            s.sendall(data if isinstance(data, bytes) else data.encode("latin1"))
        except OSError:
            pass
        try:
            while not until(heard) and (piece := s.recv(1 << 16)):
                heard += piece
        except OSError:
            pass
    return heard


def statuses(heard):
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", heard)]


def is_well(server):
    return server.process.poll() is None and server.get("/healthz") == "ok\n"


@pytest.mark.parametrize(
    "path",
    ["/../secret", "/%2e%2e/secret", "/..%2fsecret", "//etc/passwd", "/index.html/../../secret", "/%00", "/..\\..\\secret"]
    + ["/%252e%252e/secret", "/Web/../", "http://evil/../secret", "http:///index.html", "/.git/config", "/secret", "/conclave.sqlite"],
)
def test_nothing_but_the_page_is_served(server, path):
    assert statuses(talk(server, f"GET {path} HTTP/1.1\r\n{HOST}Connection: close\r\n\r\n")) == [404]


POST = f"POST /healthz HTTP/1.1\r\n{HOST}"
# Framing that two parsers could read differently, and framing that cannot be read at all.
UNREADABLE = {
    "length and chunks": POST + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": POST + "Content-Length: 1\r\nContent-Length: 30\r\n\r\nxGET /metrics HTTP/1.1\r\n\r\n",
    "negative length": POST + "Content-Length: -1\r\n\r\n",
    "length with a sign": POST + "Content-Length: +5\r\n\r\nhello",
    "length of 2^64": POST + "Content-Length: 18446744073709551616\r\n\r\n",
    "huge chunk": POST + "Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n",
    "negative chunk": POST + "Transfer-Encoding: chunked\r\n\r\n-1\r\n",
    "blank before the colon": f"GET /healthz HTTP/1.1\r\n{HOST}Content-Length : 5\r\n\r\nhello",
    "NUL in a header": f"GET /healthz HTTP/1.1\r\n{HOST}X: a\0b\r\n\r\n",
    "HTTP/2.0": "GET /healthz HTTP/2.0\r\n\r\n",
    "preface of HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "header of 9 KiB": f"GET /healthz HTTP/1.1\r\n{HOST}X: {'a' * 9000}\r\n\r\n",
    "101 headers": f"GET /healthz HTTP/1.1\r\n{HOST}{''.join(f'x{i}: y' + chr(13) + chr(10) for i in range(101))}\r\n",
    "bytes": bytes(range(256)) * 20,
    "no Host": "GET /healthz HTTP/1.1\r\n\r\n",
    "two Hosts": f"GET /healthz HTTP/1.1\r\n{HOST}Host: evil\r\n\r\n",
    "a Host that is none": "GET /healthz HTTP/1.1\r\nHost: localhost:1@evil\r\n\r\n",
}


@pytest.mark.parametrize("request_bytes", UNREADABLE.values(), ids=UNREADABLE)
def test_a_request_that_cannot_be_read_in_one_way_is_refused(server, request_bytes):
    assert statuses(talk(server, request_bytes)) == [400]
    assert is_well(server)


# Floods that cost only their sender; some bytes arrive at a closed connection.
FLOODS = {
    "half a million headers": f"GET /stomp HTTP/1.1\r\n{HOST}Upgrade: websocket\r\n" + "x: y\r\n" * 500_000,
    "trailers": POST + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + "a: b\r\n" * 150_000 + "\r\n",
    "chunk extension": POST + "Transfer-Encoding: chunked\r\n\r\n1;" + "a" * 1_000_000 + "\r\nx\r\n0\r\n\r\n",
    "method": "G" * 1_000_000,
    "body": "POST /demo/token HTTP/1.1\r\n" + HOST + "Content-Length: 999999999999999\r\n\r\n" + "x" * 3_000_000,
}


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
def test_a_flood_ends_its_own_connection_alone(server, flood):
    assert set(statuses(talk(server, flood, until=statuses))) <= {400, 405, 413}
    assert is_well(server)


def test_pipelined_requests_are_answered_in_order(server):
    last = f"GET /readyz HTTP/1.1\r\n{HOST}Connection: close\r\n\r\n"
    heard = talk(server, f"GET /healthz HTTP/1.1\r\n{HOST}\r\n" * 300 + last)
    assert statuses(heard) == [200] * 301 and heard.endswith(b"ready\n")


@pytest.mark.parametrize(
    "headers, status",
    [
        ("Host: localhost:8080", 200), ("Host: [::1]", 200), ("Host: evil.example", 405),
        ("Host: localhost.evil.example", 405), ("Host: 127.0.0.1.nip.io", 405), ("Host: 0.0.0.0", 405),
        ("Host: [::1].evil", 405), (HOST + "X-Forwarded-For: 9.9.9.9", 405), (HOST + "Forwarded: for=9.9.9.9", 405),
        (HOST + "X-Real-IP: 9.9.9.9", 405), (HOST + "Via: 1.1 proxy", 405), (HOST + "X-Forwarded-Proto: https", 405),
    ],
)  # fmt: skip
def test_a_demo_token_is_for_this_machine_without_a_proxy(server, headers, status):
    lines = f"{headers}\r\nContent-Type: application/json\r\nContent-Length: 12\r\nConnection: close\r\n\r\n"
    heard = talk(server, f'POST /demo/token HTTP/1.1\r\n{lines}{{"user":"x"}}')
    assert statuses(heard) == [status] and (b'"token"' in heard) == (status == 200)
    assert b"access-control" not in heard.lower()


def test_pages_connect_to_their_own_server_alone(server, tls_server):
    page = talk(server, f"GET / HTTP/1.1\r\n{HOST}Connection: close\r\n\r\n").lower()
    assert b"connect-src 'self';" in page and b"strict-transport" not in page
    other = talk(server, f"GET /nothing HTTP/1.1\r\n{HOST}Connection: close\r\n\r\n").lower()
    assert b"content-security-policy: default-src 'none'" in other and b"x-content-type-options: nosniff" in other
    with urllib.request.urlopen(tls_server.url + "/healthz", timeout=5, context=UNVERIFIED) as reply:
        assert reply.headers["strict-transport-security"] == "max-age=31536000"


# WebSocket


def handshake(extra="", path="/stomp", version="13", key=KEY, host="localhost"):
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade"]
    lines += [f"Sec-WebSocket-Version: {version}", f"Sec-WebSocket-Key: {key}"] + ([extra] if extra else [])
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


HANDSHAKES = {
    "own page": ({"extra": "Origin: http://localhost"}, 101),
    "no page": ({}, 101),
    "other page": ({"extra": "Origin: https://evil.example"}, 403),
    "null": ({"extra": "Origin: null"}, 403),
    "prefix": ({"extra": "Origin: http://localhost.evil"}, 403),
    "two origins": ({"extra": "Origin: http://localhost\r\nOrigin: https://evil"}, 403),
    "other port": ({"extra": "Origin: http://localhost:9"}, 403),
    "version 8": ({"version": "8"}, 426),
    "no key": ({"key": ""}, 400),
    "short key": ({"key": "YQ=="}, 400),
    "other path": ({"path": "/STOMP"}, 404),
}


@pytest.mark.parametrize("parts, status", HANDSHAKES.values(), ids=HANDSHAKES)
def test_a_handshake_is_by_the_letter(server, parts, status):
    # A refusal closes the connection.
    heard = talk(server, handshake(**parts), until=lambda heard: statuses(heard) == [101] and b"\r\n\r\n" in heard)
    assert statuses(heard) == [status]
    assert (b"sec-websocket-version: 13" in heard.lower()) == (status == 426)


def test_a_kept_connection_becomes_a_websocket(server):
    heard = talk(server, f"GET /healthz HTTP/1.1\r\n{HOST}\r\n".encode() + handshake(), until=lambda heard: len(statuses(heard)) == 2)
    assert statuses(heard) == [200, 101]


def frame(opcode, data=b"", fin=1, mask=True, reserved=0, length=None):
    """A frame (RFC 6455 section 5.2); `length` is raw bytes that declare another length."""
    first = bytes([fin << 7 | reserved << 4 | opcode])
    n = len(data)
    form = bytes([n]) if n < 126 else b"\x7e" + struct.pack(">H", n) if n < 1 << 16 else b"\x7f" + struct.pack(">Q", n)
    form = form if length is None else length
    if not mask:
        return first + form + data
    key = b"\x01\x02\x03\x04"
    return first + bytes([form[0] | 0x80]) + form[1:] + key + bytes(b ^ key[i % 4] for i, b in enumerate(data))


def heard_frames(heard):
    """Opcode and payload of the server's frames after its 101."""
    rest, frames = heard.partition(b"\r\n\r\n")[2], []
    while len(rest) >= 2:
        n, at = rest[1] & 127, 2
        if n == 126:
            n, at = struct.unpack(">H", rest[2:4])[0], 4
        frames.append((rest[0] & 15, rest[at : at + n]))
        rest = rest[at + n :]
    return frames


def code(number, reason=b""):
    return struct.pack(">H", number) + reason


BREACHES = {
    "unmasked": (frame(1, b"x", mask=False), 1002),
    "compressed": (frame(1, b"x", reserved=4), 1002),
    "reserved bit": (frame(1, b"x", reserved=1), 1002),
    "opcode 3": (frame(3), 1002),
    "opcode 11": (frame(11), 1002),
    "continuation of nothing": (frame(0, b"x"), 1002),
    "message in a message": (frame(1, b"a", fin=0) + frame(1, b"b"), 1002),
    "ping in pieces": (frame(9, b"x", fin=0), 1002),
    "long ping": (frame(9, b"x" * 126), 1002),
    "close with 1005": (frame(8, code(1005)), 1002),
    "close with 0": (frame(8, code(0)), 1002),
    "close with 65535": (frame(8, code(65535)), 1002),
    "close with half a code": (frame(8, b"x"), 1002),
    "close with bytes": (frame(8, code(1000, b"\xff")), 1007),
    "text that is none": (frame(1, b"\xff\xfe"), 1007),
    "length over 2^63": (frame(1, length=b"\x7f" + b"\xff" * 8), 1002),
    "length under 2^63": (frame(1, length=b"\x7f\x7f" + b"\xff" * 7), 1009),
    "16 bits for 5": (frame(1, b"hello", length=b"\x7e\x00\x05"), 1002),
    "64 bits for 5": (frame(1, b"hello", length=b"\x7f" + b"\0" * 7 + b"\x05"), 1002),
    "normal": (frame(8, code(1000)), 1000),
    "own code": (frame(8, code(4000, b"bye")), 4000),
}


@pytest.mark.parametrize("data, expected", BREACHES.values(), ids=BREACHES)
def test_a_websocket_closes_with_the_right_code(server, data, expected):
    frames = heard_frames(talk(server, handshake() + data))
    assert frames == [(8, code(expected))]
    assert is_well(server)


def test_a_login_in_pieces_and_with_pings_works(server):
    connect = f"CONNECT\naccept-version:1.2\npasscode:{token(server, 'ws')}\n\n\0".encode()
    pieces = b"".join(frame(1 if i == 0 else 0, connect[i : i + 1], fin=0) for i in range(len(connect) - 1))
    data = pieces + frame(9, b"p") + frame(0, connect[-1:])
    frames = heard_frames(talk(server, handshake() + data, until=lambda heard: b"CONNECTED\n" in heard and heard.endswith(b"\0")))
    assert frames[0] == (10, b"p") and any(payload.startswith(b"CONNECTED\n") for _, payload in frames)


def test_tls_noise_ends_its_own_connection_alone(tls_server):
    for noise in [b"\x16\x03\x01", b"\x16\x03\x03\xff\xff" + b"x" * 20_000, b"\x15\x03\x03\x00\x02\x02\x28", b"GET / HTTP/1.1\r\n\r\n"]:
        for port in tls_server.http_port, tls_server.stomp_tls_port:
            with socket.create_connection(("127.0.0.1", port), 5) as s:
                s.settimeout(5 * PATIENCE)
                try:
                    s.sendall(noise)
                    s.shutdown(socket.SHUT_WR)
                    while s.recv(4096):
                        pass
                except TimeoutError:
                    raise
                except OSError:
                    pass  # closed already
    assert is_well(tls_server)
    wire = Wire(tls_server)
    wire.send("CONNECT", {"accept-version": "1.2", "host": "x", "passcode": token(tls_server, "alice")})
    assert wire.read().command == "CONNECTED"
