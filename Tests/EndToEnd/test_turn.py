"""A real coturn over UDP, TCP and TLS: it accepts the credentials that the server hands out, and media reaches the server through it."""

import asyncio
import re
import shutil
import subprocess

import pytest
from aiortc import RTCConfiguration, RTCIceServer, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import AudioStreamTrack

from client import Client
from conftest import Server, free_port, wait_for


SECRET = "a secret that coturn shares with the server"


# The transports to coturn, with the options of turnutils_uclient for each.
TRANSPORTS = {"udp": [], "tcp": ["-t"], "tls": ["-t", "-S"]}


@pytest.fixture
def turn(tmp_path, artifacts):
    """coturn on free ports of 127.0.0.1, without and with TLS, with `use-auth-secret`."""
    if shutil.which("turnserver") is None:
        pytest.fail("turnserver is missing: install coturn")
    port, tls_port = free_port(), free_port()
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1", "-subj", "/CN=coturn",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", tmp_path / "turn.key", "-out", tmp_path / "turn.crt"],
        check=True, capture_output=True,
    )
    config = tmp_path / "turnserver.conf"
    config.write_text(
        f"listening-ip=127.0.0.1\nrelay-ip=127.0.0.1\nlistening-port={port}\ntls-listening-port={tls_port}\nuse-auth-secret\n"
        f"static-auth-secret={SECRET}\nrealm=conclave\nallow-loopback-peers\ncli-password=none\nno-cli\nno-dtls\n"
        f"cert={tmp_path / 'turn.crt'}\npkey={tmp_path / 'turn.key'}\n"
        f"userdb={tmp_path / 'turn.sqlite'}\npidfile={tmp_path / 'turn.pid'}\nlog-file=stdout\nverbose\n"
    )
    log = artifacts / "coturn.log"
    with log.open("wb") as output:
        process = subprocess.Popen(["turnserver", "-c", str(config)], stdout=output, stderr=subprocess.STDOUT)
    wait_for(lambda: b"listener opened on" in log.read_bytes(), 10, lambda: log.read_text())
    yield {"udp": port, "tcp": port, "tls": tls_port}, log
    process.kill()
    process.wait()


@pytest.fixture
def with_turn(turn, tmp_path):
    ports, log = turn
    secret = tmp_path / "turn-secret"
    secret.touch(mode=0o600)
    secret.write_text(SECRET + "\n")
    urls = [f"turn:127.0.0.1:{ports['udp']}?transport={transport}" for transport in ("udp", "tcp")]
    urls.append(f"turns:127.0.0.1:{ports['tls']}?transport=tcp")
    server = Server(tmp_path, **{"turn": {"urls": urls, "secretFile": str(secret), "seconds": 600}})
    yield server, ports, log
    server.stop()


def start(server):
    alice = Client(server, "alice", "laptop")
    alice.register()
    reply = alice.request("/app/calls/start", {"callees": [], "media": "audio", **alice.starting()})
    return alice, reply["call"]["id"], reply["ice"]["servers"]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_coturn_takes_the_credentials(with_turn, transport):
    server, ports, _ = with_turn
    alice, _, servers = start(server)
    assert re.fullmatch(r"\d+:alice", servers[0]["username"])
    command = ["turnutils_uclient", *TRANSPORTS[transport], "-y", "-n", "2", "-c", "-L", "127.0.0.1", "-p", str(ports[transport])]
    command += ["-u", servers[0]["username"]]

    def relays(credential):
        return subprocess.run(command + ["-w", credential, "127.0.0.1"], capture_output=True, timeout=60).returncode == 0

    assert relays(servers[0]["credential"])
    assert not relays("another")
    alice.close()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_media_reaches_the_server_through_coturn_alone(with_turn, transport, tmp_path, monkeypatch):
    server, _, log = with_turn
    # aiortc checks coturn's certificate, as browsers do.
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "turn.crt"))
    alice, call, servers = start(server)
    way = ("turns:", "?transport=tcp") if transport == "tls" else ("turn:", f"?transport={transport}")
    servers = [s | {"urls": [u for u in s["urls"] if u.startswith(way[0]) and u.endswith(way[1])]} for s in servers]
    assert [len(s["urls"]) for s in servers] == [1]

    async def run():
        ice = [RTCIceServer(urls=s["urls"], username=s["username"], credential=s["credential"]) for s in servers]
        connection = RTCPeerConnection(RTCConfiguration(iceServers=ice))
        connection.addTransceiver(AudioStreamTrack(), direction="sendonly")
        await connection.setLocalDescription(await connection.createOffer())
        # aiortc has no relay-only policy: the server is told of the relayed candidate alone, and so is coturn's log.
        lines = connection.localDescription.sdp.splitlines()
        assert any(" typ relay " in line for line in lines), "no relayed candidate"
        gatherer = connection.getTransceivers()[0].sender.transport.transport.iceGatherer
        ice_connection = gatherer._connection
        ice_connection._protocols = [p for p in ice_connection._protocols if p.local_candidate.type == "relay"]
        ice_connection._local_candidates = [c for c in ice_connection._local_candidates if c.type == "relay"]
        sdp = "\r\n".join(line for line in lines if "a=candidate" not in line or " typ relay " in line) + "\r\n"
        reply = await asyncio.to_thread(
            alice.request, f"/app/calls/{call}/media", {"sdp": sdp, "tracks": [{"mid": "0", "source": "microphone"}]}
        )
        before = server.metric("conclave_media_received_packets_total")
        await connection.setRemoteDescription(RTCSessionDescription(reply["sdp"], "answer"))
        for _ in range(200):
            if connection.connectionState == "connected":
                break
            await asyncio.sleep(0.05)
        assert connection.connectionState == "connected"
        await asyncio.sleep(1)
        assert server.metric("conclave_media_received_packets_total") > before + 20
        await connection.close()

    asyncio.run(run())
    assert "peer usage" in log.read_text() or "ALLOCATE processed, success" in log.read_text()
    alice.request(f"/app/calls/{call}/end")
    alice.close()
