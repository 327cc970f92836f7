"""A real coturn: the credentials that the server hands out are taken, and media's path through it reaches the server."""

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


@pytest.fixture
def turn(tmp_path, artifacts):
    """coturn on a free port of 127.0.0.1, with `use-auth-secret`."""
    if shutil.which("turnserver") is None:
        pytest.fail("turnserver is missing: install coturn")
    port = free_port()
    config = tmp_path / "turnserver.conf"
    config.write_text(
        f"listening-ip=127.0.0.1\nrelay-ip=127.0.0.1\nlistening-port={port}\nuse-auth-secret\n"
        f"static-auth-secret={SECRET}\nrealm=conclave\nallow-loopback-peers\ncli-password=none\nno-cli\nno-tls\nno-dtls\n"
        f"userdb={tmp_path / 'turn.sqlite'}\npidfile={tmp_path / 'turn.pid'}\nlog-file=stdout\nverbose\n"
    )
    log = artifacts / "coturn.log"
    with log.open("wb") as output:
        process = subprocess.Popen(["turnserver", "-c", str(config)], stdout=output, stderr=subprocess.STDOUT)
    wait_for(lambda: b"listener opened on" in log.read_bytes(), 10, lambda: log.read_text())
    yield port, log
    process.kill()
    process.wait()


@pytest.fixture
def with_turn(turn, tmp_path):
    port, log = turn
    secret = tmp_path / "turn-secret"
    secret.touch(mode=0o600)
    secret.write_text(SECRET + "\n")
    options = {"turn": {"urls": [f"turn:127.0.0.1:{port}?transport=udp"], "secretFile": str(secret), "seconds": 600}}
    server = Server(tmp_path, **options)
    yield server, port, log
    server.stop()


def start(server):
    alice = Client(server, "alice", "laptop")
    alice.register()
    reply = alice.request("/app/calls/start", {"callees": [], "media": "audio", **alice.starting()})
    return alice, reply["call"]["id"], reply["ice"]["servers"]


def test_coturn_takes_the_credentials(with_turn):
    server, port, _ = with_turn
    alice, _, servers = start(server)
    assert re.fullmatch(r"\d+:alice", servers[0]["username"])
    command = ["turnutils_uclient", "-y", "-n", "2", "-c", "-L", "127.0.0.1", "-p", str(port), "-u", servers[0]["username"]]

    def relays(credential):
        return subprocess.run(command + ["-w", credential, "127.0.0.1"], capture_output=True, timeout=60).returncode == 0

    assert relays(servers[0]["credential"])
    assert not relays("another")
    alice.close()


def test_media_reaches_the_server_through_coturn_alone(with_turn):
    server, _, log = with_turn
    alice, call, servers = start(server)

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
