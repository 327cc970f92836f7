"""The server forwards exactly the bytes that the sender's worker sealed: a browser calls a guest who taps each payload behind SRTP."""

import asyncio
import hashlib
import itertools
import json
import threading
import urllib.request

import pytest
import websocket
from aiortc import RTCPeerConnection, RTCRtpReceiver, RTCSessionDescription

ENOUGH = {"audio": 50, "video": 30}

# Runs in the SFrame worker before its own first line: records hashes of every frame that it receives and of every frame that it outputs.
WORKER_PROBE = """
(() => {
  const taken = [];
  const made = [];
  const note = (list, frame) => {
    const kind = frame instanceof RTCEncodedVideoFrame ? 'video' : 'audio';
    const hash = crypto.subtle.digest('SHA-256', frame.data.slice(0));
    list.push(hash.then((bytes) => [kind, Array.from(new Uint8Array(bytes), (b) => b.toString(16).padStart(2, '0')).join('')]));
  };
  self.TransformStream = class extends TransformStream {
    constructor({ transform }) {
      super({
        transform(frame, controller) {
          note(taken, frame);
          const enqueue = (sealed) => {
            note(made, sealed);
            controller.enqueue(sealed);
          };
          return transform(frame, { enqueue });
        },
      });
    }
  };
  self.conclaveFrames = async () => JSON.stringify({ taken: await Promise.all(taken), made: await Promise.all(made) });
})();
"""


class WorkerTap:
    """Stops a tab's SFrame worker before it runs (Chrome DevTools Protocol) and puts the probe into it. `tab` is not in a call yet."""

    def __init__(self, tab):
        browser = tab.driver.capabilities["goog:chromeOptions"]["debuggerAddress"]
        with urllib.request.urlopen(f"http://{browser}/json/list", timeout=5) as reply:
            pages = {page["id"]: page["webSocketDebuggerUrl"] for page in json.load(reply)}
        address = pages[tab.driver.current_window_handle]
        self.socket = websocket.create_connection(address, timeout=10, suppress_origin=True)
        self.numbers = itertools.count(1)
        self.replies, self.workers, self.changed = {}, [], threading.Condition()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.command("Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=True, flatten=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.reader.join(10)

    def _send(self, method, session=None, **parameters):
        message = {"id": next(self.numbers), "method": method, "params": parameters}
        self.socket.send(json.dumps(message | ({"sessionId": session} if session else {})))
        return message["id"]

    def _read(self):
        while True:
            try:
                message = json.loads(self.socket.recv())
            except websocket.WebSocketTimeoutException:
                continue
            except (websocket.WebSocketException, OSError, ValueError):
                return
            if message.get("method") == "Target.attachedToTarget":
                self._attached(message["params"])
            with self.changed:
                if "id" in message:
                    self.replies[message["id"]] = message
                self.changed.notify_all()

    def _attached(self, target):
        session = target["sessionId"]
        if target["targetInfo"]["url"].endswith("/sframe-worker.js"):
            self._send("Runtime.evaluate", session, expression=WORKER_PROBE)
            self.workers.append(session)
        self._send("Runtime.runIfWaitingForDebugger", session)

    def command(self, method, session=None, **parameters):
        number = self._send(method, session, **parameters)
        with self.changed:
            assert self.changed.wait_for(lambda: number in self.replies, 10), f"no reply to {method}"
            reply = self.replies.pop(number)
        assert "error" not in reply, reply
        return reply["result"]

    def frames(self):
        """(taken, made): the sets of (kind, SHA-256) of the plain frames that the worker received, and of the sealed frames that it made."""
        assert len(self.workers) == 1, f"{len(self.workers)} SFrame workers"
        expression = {"expression": "conclaveFrames()", "awaitPromise": True, "returnByValue": True}
        result = self.command("Runtime.evaluate", self.workers[0], **expression)
        assert "exceptionDetails" not in result, result
        frames = json.loads(result["result"]["value"])
        return set(map(tuple, frames["taken"])), set(map(tuple, frames["made"]))


class Capture:
    """The RTP packets of one guest after SRTP, and the frames in them."""

    def __init__(self, monkeypatch):
        self.packets = {"audio": {}, "video": {}}
        self.enough = asyncio.Event()
        handle = RTCRtpReceiver._handle_rtp_packet

        async def tapped(receiver, packet, arrival_time_ms):
            self._take(receiver.track.kind, packet)
            await handle(receiver, packet, arrival_time_ms)

        monkeypatch.setattr(RTCRtpReceiver, "_handle_rtp_packet", tapped)

    def _take(self, kind, packet):
        # Keyed by sequence number: a retransmission equals the packet that it repeats. Packets of padding only are skipped.
        if packet.payload:
            of_frame = self.packets[kind].setdefault((packet.ssrc, packet.timestamp), {})
            of_frame[packet.sequence_number] = (bool(packet.marker), packet.payload)
        if all(len(self.frames(kind)) >= count for kind, count in ENOUGH.items()):
            self.enough.set()

    def frames(self, kind):
        """Every complete frame, without RTP's headers."""
        if kind == "audio":
            return [payload for packets in self.packets[kind].values() for _, payload in packets.values()]
        return [frame for packets in self.packets[kind].values() if (frame := joined(packets)) is not None]


def joined(packets):
    """The VP8 frame of one timestamp's packets; None when one is missing."""
    some = next(iter(packets))
    ordered = [packets[number] for number in sorted(packets, key=lambda n: (n - some + 0x8000) & 0xFFFF)]
    distance = {(number - some + 0x8000) & 0xFFFF for number in packets}
    is_begin = ordered[0][1][0] & 0x1F == 0x10  # S, and PartID 0
    if not is_begin or not ordered[-1][0] or max(distance) - min(distance) != len(packets) - 1:
        return None
    return b"".join(payload[descriptor_bytes(payload) :] for _, payload in ordered)


def descriptor_bytes(payload):
    """The length of the VP8 payload descriptor (RFC 7741 section 4.2)."""
    if not payload[0] & 0x80:
        return 1
    extensions, length = payload[1], 2
    if extensions & 0x80:
        length += 2 if payload[length] & 0x80 else 1  # picture ID with 15 or 7 bits
    if extensions & 0x40:
        length += 1  # TL0PICIDX
    if extensions & 0x30:
        length += 1  # TID and KEYIDX share a byte
    return length


def kid_of(kind, frame):
    """The KID in the SFrame header (RFC 9605 section 4.3), which for video follows the clear bytes."""
    clear = 0 if kind == "audio" else 3 if frame[0] & 1 else 10
    config = frame[clear]
    value = config >> 4 & 7
    return int.from_bytes(frame[clear + 1 : clear + 2 + value], "big") if config & 0x80 else value


def not_in(hashes, kind, frames):
    return [frame for frame in frames if (kind, hashlib.sha256(frame).hexdigest()) not in hashes]


def tracks_of(user, state):
    (member,) = [member for member in state["members"] if member["user"] == user]
    return member["participants"][0]["tracks"]


async def listen(client, call, capture):
    """Receives in one slot of each kind until it has enough frames."""
    peer = RTCPeerConnection()
    try:
        for kind in ENOUGH:
            peer.addTransceiver(kind, "recvonly")
            codecs = RTCRtpReceiver.getCapabilities(kind).codecs
            # Without RTX a repeated packet comes unchanged.
            plain = [codec for codec in codecs if codec.mimeType.lower() in ("audio/opus", "video/vp8")]
            peer.getTransceivers()[-1].setCodecPreferences(plain)
        await peer.setLocalDescription(await peer.createOffer())
        offer = {"sdp": peer.localDescription.sdp, "tracks": []}
        answer = await asyncio.to_thread(client.request, f"/app/calls/{call}/media", offer)
        await peer.setRemoteDescription(RTCSessionDescription(answer["sdp"], "answer"))
        await asyncio.wait_for(capture.enough.wait(), 20)
    except TimeoutError:
        pytest.fail(f"in 20 s only {[(kind, len(capture.frames(kind))) for kind in ENOUGH]}")
    finally:
        await peer.close()


def test_the_server_forwards_exactly_what_the_senders_worker_made(person, url, server, connect, monkeypatch):
    if url != server.url:
        pytest.skip("the guest rings at this session's own server")
    alice, guest = person("Alice"), connect("guest-tap")
    capture = Capture(monkeypatch)
    with WorkerTap(alice) as worker:
        alice.call("guest-tap")
        call = guest.event("call.ring", seconds=10)["call"]
        epoch = guest.request(f"/app/calls/{call}/accept", guest.join())["call"]["epoch"]
        asyncio.run(listen(guest, call, capture))
        taken, made = worker.frames()
    state = guest.request(f"/app/calls/{call}/state")
    epochs = range(epoch, state["epoch"] + 1)
    tracks = {track["kind"]: track["track"] for track in tracks_of("alice", state)}
    for kind, count in ENOUGH.items():
        frames = capture.frames(kind)
        assert len(frames) >= count
        assert not_in(made, kind, frames) == []
        assert not_in(taken, kind, frames) == frames
        participant, n = map(int, tracks[kind].split("."))
        kids = {participant * 65536 + n * 256 + epoch % 256 for epoch in epochs}
        assert {kid_of(kind, frame) for frame in frames} <= kids

        # A difference of one bit is detected, in the first byte (which is clear for video) or in the last.
        changed = [bytes([frame[0] ^ 1]) + frame[1:] for frame in frames]
        changed += [frame[:-1] + bytes([frame[-1] ^ 1]) for frame in frames]
        assert not_in(made, kind, changed) == changed
