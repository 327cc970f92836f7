"""Bad input is answered as in protocol section 9, or silently counted, and no other call notices."""

import base64
import os
import socket
import subprocess
import time

import jwt_forge
import pytest

from client import RequestFailed
from conftest import wait_for


@pytest.fixture(scope="module")
def running_call(server):
    """The load test's participants in a call that must not lose packets while these tests misbehave."""
    binary = os.environ.get("LOADTEST_BINARY", ".build/release/loadtest")
    process = subprocess.Popen(
        [binary, "--url", f"stomp://127.0.0.1:{server.stomp_port}", "--state", str(server.state)]
        + ["--calls", "1", "--participants", "3", "--video-kbps", "300", "--duration", "15"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    forwarded = server.metric("conclave_media_forwarded_packets_total")
    wait_for(
        lambda: server.metric("conclave_media_forwarded_packets_total") > forwarded + 100, 15, "the load test's media"
    )
    yield process
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output


def failure(client, destination, body=None, raw=None):
    with pytest.raises(RequestFailed) as failed:
        client.request(destination, body, raw)
    assert failed.value.error["message"], "an error says what to do"
    return failed.value


def test_unknown_destinations_and_broken_json_are_answered(running_call, connect):
    client = connect("bad-requests")
    assert failure(client, "/app/calls/explode").code == "request.unknown"
    assert failure(client, "/app/calls/start", raw="{").code == "request.invalid"
    assert failure(client, "/app/calls/start", raw='{"callees":[],"callees":[]}').code == "request.invalid"
    wrong = failure(client, "/app/calls/start", {"callees": ["a", "b b"], "media": "audio"})
    assert (wrong.code, wrong.error["field"]) == ("request.invalid", "callees.1")
    assert failure(client, "/app/calls/no-such-call/state").code == "call.not-found"
    assert client.start()["participant"] == 1, "the connection stays usable"


OFFER = """v=0
o=- 1 1 IN IP4 127.0.0.1
s=-
t=0 0
{bundle}a=fingerprint:sha-256 {fingerprint}
m=audio 9 UDP/TLS/RTP/SAVPF 111
c=IN IP4 0.0.0.0
a=mid:0
a=ice-ufrag:abcd
a=ice-pwd:abcdefghijklmnopqrstuvwx
a=setup:actpass
a=rtcp-mux
a=sendonly
a=rtpmap:111 opus/48000/2
"""


def test_sdp_without_bundle_is_refused_with_its_reason(running_call, connect):
    client = connect("bad-sdp")
    call = client.start()["call"]["id"]
    fingerprint = ":".join(["AB"] * 32)

    def offer(bundle):
        sdp = OFFER.format(bundle=bundle, fingerprint=fingerprint).replace("\n", "\r\n")
        return {"sdp": sdp, "tracks": [{"mid": "0", "source": "microphone"}]}

    assert failure(client, f"/app/calls/{call}/media", offer("")).code == "media.sdp-invalid"
    assert failure(client, f"/app/calls/{call}/media", {"sdp": "", "tracks": []}).code == "media.sdp-invalid"
    answer = client.request(f"/app/calls/{call}/media", offer("a=group:BUNDLE 0\n"))
    assert answer["tracks"] == [{"mid": "0", "track": "1.1"}]
    assert "a=ice-lite" in answer["sdp"] and "a=setup:passive" in answer["sdp"]


def test_an_envelope_for_a_stranger_is_refused(running_call, connect):
    client, stranger = connect("bad-keys"), connect("stranger")
    call = client.start()["call"]["id"]
    envelope = {
        "epoch": 1,
        "to": {"user": stranger.user, "device": stranger.device},
        "key": base64.b64encode(os.urandom(32)).decode(),
        "alg": "HPKE-P256-SHA256-AES256GCM",
        "ciphertext": base64.b64encode(os.urandom(113)).decode(),
    }
    refused = failure(client, f"/app/calls/{call}/keys", {"epoch": 1, "envelopes": [envelope]})
    assert refused.code == "keys.not-allowed"
    assert failure(stranger, f"/app/calls/{call}/keys", {"epoch": 1, "envelopes": []}).code == "call.not-found"


@pytest.mark.parametrize(
    "token",
    ["", "x", "a.b.c", jwt_forge.none(), jwt_forge.hs256("another secret of at least 32 characters")],
    ids=["empty", "noise", "no-jwt", "alg-none", "wrong-secret"],
)
def test_a_bad_token_is_an_error_and_a_close(running_call, server, token):
    assert b"message:Bad CONNECT: authentication failed" in connect_raw(server, token)


def test_an_expired_token_is_an_error_and_a_close(running_call, server):
    secret = (server.state / "secret").read_text().strip()
    assert b"message:Bad CONNECT: authentication failed" in connect_raw(server, jwt_forge.hs256(secret, expires_in=-1))
    assert b"CONNECTED" in connect_raw(server, jwt_forge.hs256(secret, expires_in=60), disconnect=True)


def connect_raw(server, token, disconnect=False):
    """Everything that the server sends after one CONNECT until it closes."""
    with socket.create_connection(("127.0.0.1", server.stomp_port), 5) as s:
        s.settimeout(10)
        s.sendall(f"CONNECT\naccept-version:1.2\nhost:x\npasscode:{token}\n\n\0".encode())
        if disconnect:
            s.sendall(b"DISCONNECT\n\n\0")
        answer = b""
        while chunk := s.recv(4096):
            answer += chunk
        return answer


def test_noise_to_the_media_port_is_dropped_and_counted(running_call, server):
    dropped = server.metric("conclave_media_dropped_packets_total")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        sent = 0
        while sent < 64 * 1024:
            sent += s.sendto(os.urandom(512), ("127.0.0.1", server.media_port))
        for first in (0, 22, 128, 200):  # datagrams that look like STUN, DTLS, RTP and RTCP
            s.sendto(bytes([first]) + os.urandom(100), ("127.0.0.1", server.media_port))
        s.settimeout(0.3)
        with pytest.raises(TimeoutError):
            s.recv(2048)
    wait_for(
        lambda: server.metric("conclave_media_dropped_packets_total") >= dropped + 132, 5, "every datagram is counted"
    )
    assert running_call.poll() is None


def test_a_flood_of_stomp_noise_closes_only_its_own_connection(running_call, connect, server):
    client = connect("bystander")
    for noise in (b"GET / HTTP/1.1\r\n\r\n", os.urandom(4096), b"CONNECT\n" + b"a" * 100_000, b"SEND\n\n\0"):
        with socket.create_connection(("127.0.0.1", server.stomp_port), 5) as s:
            s.settimeout(10)
            end = time.monotonic() + 15
            try:
                s.sendall(noise)
                while s.recv(4096):
                    assert time.monotonic() < end
            except ConnectionError:
                pass
    assert client.request("/app/calls/list") == {"calls": []}
