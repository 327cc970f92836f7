"""Third-party media peers in one call with ConclaveClient: aiortc, and GStreamer's webrtcbin, whose ICE is libnice's full agent."""

import asyncio
import json
import logging
import os
import subprocess
import sys
import pathlib

import pytest
from aiortc import RTCBundlePolicy, RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import AudioStreamTrack, VideoStreamTrack

LOADTEST = os.environ.get("LOADTEST_BINARY", ".build/release/loadtest")


@pytest.fixture
def rung(server, connect, artifacts, tmp_path):
    """rung("guest") returns the guest's client, its joined call, and result().

    result() waits until the load test's participants, who have rung the guest, end the call, and returns their report. The guest's media must run until then.
    """
    processes = []

    def ring(user):
        client = connect(user)
        report, log = tmp_path / "guest.json", artifacts / f"{user}-loadtest.log"
        command = [LOADTEST, "--url", f"stomp://127.0.0.1:{server.stomp_port}", "--state", str(server.state)]
        command += ["--participants", "2", "--duration", "8", "--video-kbps", "200"]
        command += ["--guest", user, "--json", str(report)]
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        processes.append(process)
        call = client.event("call.ring", seconds=15)["call"]
        # Without a join key the guest is on no key list, so the server forwards its media, which is not encrypted end to end.
        client.request(f"/app/calls/{call}/accept", {})

        def result():
            client.event("call.ended", 30, lambda ended: ended["call"] == call)
            assert process.wait(30) == 0, log.read_text()
            return json.loads(report.read_text())

        return client, call, result

    yield ring
    for process in processes:
        process.kill()
        process.wait()


def offer(client, call, sdp, mids):
    """Offers with a microphone and a camera on the given m-lines and returns the answer's SDP."""
    tracks = [{"mid": mids["audio"], "source": "microphone"}, {"mid": mids["video"], "source": "camera"}]
    return client.request(f"/app/calls/{call}/media", {"sdp": sdp, "tracks": tracks})["sdp"]


def test_aiortc_exchanges_media_with_conclave_client(server, rung, caplog):
    # It cannot decode end-to-end encrypted media, and reports that for each packet.
    caplog.set_level(logging.ERROR, "aiortc.rtcrtpreceiver")
    client, call, result = rung("guest-aiortc")
    before = server.metric("conclave_media_feedback_received_total")

    async def talk():
        # With its default policy, aiortc leaves the second and later videos on a transport that it drops in favour of the bundle's.
        peer = RTCPeerConnection(RTCConfiguration(bundlePolicy=RTCBundlePolicy.MAX_BUNDLE))
        try:
            sending = {
                "audio": peer.addTransceiver(AudioStreamTrack(), "sendonly"),
                "video": peer.addTransceiver(VideoStreamTrack(), "sendonly"),
            }
            for _ in range(2):
                peer.addTransceiver("audio", "recvonly")
                peer.addTransceiver("video", "recvonly")
            await peer.setLocalDescription(await peer.createOffer())
            mids = {kind: transceiver.mid for kind, transceiver in sending.items()}
            answer = await asyncio.to_thread(offer, client, call, peer.localDescription.sdp, mids)
            await peer.setRemoteDescription(RTCSessionDescription(answer, "answer"))
            # The report is taken while this peer sends.
            report = asyncio.create_task(asyncio.to_thread(result))
            received = {}
            rates = 0
            # It reports its estimated rate (REMB) after 3 s.
            while not report.done() and (min(received.values(), default=0) <= 50 or not rates):
                await asyncio.sleep(0.1)
                received = {"audio": 0, "video": 0}
                for stats in (await peer.getStats()).values():
                    if stats.type == "inbound-rtp":
                        received[stats.kind] += stats.packetsReceived
                rates = server.metric("conclave_media_feedback_received_total") - before
            assert min(received.values()) > 50, received
            assert rates > 0
            assert peer.connectionState == "connected"
            return await report
        finally:
            await peer.close()

    assert asyncio.run(talk())["guestFrames"] > 100


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_libnices_full_agent_exchanges_media_with_conclave_client(rung, artifacts, transport):
    client, call, result = rung(f"guest-gstreamer-{transport}")
    script = pathlib.Path(__file__).with_name("webrtcbin_peer.py")
    log = artifacts / f"webrtcbin-{transport}.log"
    with log.open("wb") as errors:
        peer = subprocess.Popen(
            [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        )

    def line():
        """The peer's next line. A peer that hangs ends itself, and then there is none."""
        text = peer.stdout.readline()
        assert text, f"webrtcbin printed nothing more: {log.read_text()}"
        return json.loads(text)

    try:
        offered = line()
        answer = offer(client, call, offered["sdp"], offered["mids"])
        # The peer gets only the server's candidates of one transport.
        lines = answer.split("\r\n")
        answer = "\r\n".join(a for a in lines if not a.startswith("a=candidate") or f" 1 {transport} " in a)
        print(json.dumps({"sdp": answer}), file=peer.stdin, flush=True)
        received = line()
        assert min(received.values()) > 50, received
        assert result()["guestFrames"] > 100
    finally:
        peer.kill()
        peer.wait()
