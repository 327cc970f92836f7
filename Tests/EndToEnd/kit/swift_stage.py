"""Two ConclaveClients (the load test's), members without media, and a guest who taps sealed frames, in front of a server that lies."""

import asyncio
import hashlib
import json
import os
import signal
import subprocess
import threading
import time

from aiortc import RTCPeerConnection, RTCRtpReceiver, RTCSessionDescription
from audit import Audit, Sealed, sframe_numbers
from conftest import PATIENCE, wait_for
from device import token
from lying_stage import Stage

LOADTEST = os.environ.get("LOADTEST_BINARY", ".build/release/loadtest")
# Seconds of measurement for rows that take longer, or whose lie is told at once.
DURATIONS = {1: 5, 6: 5, 32: 10, 33: 10, 45: 4, 46: 2, 48: 2, 67: 2}
JOINS = ("calls/start", "/accept", "/join", "/rejoin")


class Person:
    """The values of a user with the load test's client, for the rows."""

    def __init__(self, user):
        self.user = self.name = user


class TapAudit(Audit):
    """A frame after SRTP, as seen by a guest without keys: its KID, its counter and the ciphertext. A KID identifies one key of the call."""

    def __init__(self, user_of):
        super().__init__()
        self.user_of, self.hashes = user_of, set()

    def take(self, frame):
        seen = hashlib.sha256(frame).digest()
        kid, counter = sframe_numbers(frame)
        with self.lock:
            # The same bytes again are a retransmission, not another frame.
            if seen not in self.hashes:
                self.hashes.add(seen)
                self.sealed.append(Sealed(self.user_of(kid >> 16), kid, counter, kid, counter, time.time() * 1000))


class Tap:
    """A guest who is on no key list, but to whom the server forwards. `loop` runs in another thread."""

    def __init__(self, device, loop, audit):
        self.device, self.loop, self.audit, self.peer = device, loop, audit, None

    def listen(self, call, streams=2):
        self.device.call(call, "accept", {})
        asyncio.run_coroutine_threadsafe(self._offer(streams), self.loop).result(10)
        offer = {"sdp": self.peer.localDescription.sdp, "tracks": []}
        answer = self.device.call(call, "media", offer)
        done = self.peer.setRemoteDescription(RTCSessionDescription(answer["sdp"], "answer"))
        asyncio.run_coroutine_threadsafe(done, self.loop).result(10)

    async def _offer(self, streams):
        self.peer = RTCPeerConnection()

        async def take(packet, **_):
            if packet.payload:
                self.audit.take(packet.payload)

        for _ in range(streams):
            transceiver = self.peer.addTransceiver("audio", "recvonly")
            opus = [codec for codec in RTCRtpReceiver.getCapabilities("audio").codecs if codec.mimeType.lower() == "audio/opus"]
            transceiver.setCodecPreferences(opus)
            # Replaces the decoder, which could not open the frames.
            transceiver.receiver._handle_rtp_packet = take
        await self.peer.setLocalDescription(await self.peer.createOffer())

    def close(self):
        if self.peer:
            asyncio.run_coroutine_threadsafe(self.peer.close(), self.loop).result(10)


class TapLoop:
    """The thread of all taps."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()


class SwiftStage(Stage):
    """Like `Stage`, with the load test instead of browsers: it measures for a given time and then reports which frames opened and who warned."""

    def __init__(self, server, proxy, number, folder, loop, row=0):
        super().__init__(server, proxy, number)
        self.row = row
        self.audit = TapAudit(self.user_of)
        self.folder, self.loop = folder, loop
        self.duration = DURATIONS.get(row, 7)
        self.alice, self.bob = Person(self.user("alice")), Person(self.user("bob"))
        self.process = self.tap = None
        self.others = []
        # The (user, epoch) pairs under which nothing may be sealed, and the users who must be heard after the lie.
        self.silences, self.heard = set(), set()

    def user_of(self, participant):
        for kind, user, path, body in self.proxy.seen("reply"):
            if path.endswith(JOINS) and body["participant"] == participant:
                return user
        return None

    # The call

    def ring(self, members=()):
        self.others = [self.member(name) for name in members]

    def answer(self):
        self.run()
        self.proxy.sees("reply", "calls/start", user=self.alice.user)
        self.id = self.proxy.sees("request", "calls/start", user=self.alice.user)["id"]
        self.tap.listen(self.id)
        wait_for(lambda: self.audit.frames(self.alice.user), 10, "the tap hears Alice")

    def run(self):
        """Starts the clients. Alice calls Bob, who answers at once, the members and the tap."""
        self.tap = Tap(self.member("tap"), self.loop, self.audit)
        tokens = [token(self.server, person.user, device="loadtest") for person in (self.alice, self.bob)]
        (self.folder / "tokens").write_text("\n".join(tokens))
        command = [LOADTEST, "--url", f"stomp://127.0.0.1:{self.proxy.stomp_port}", "--tokens", str(self.folder / "tokens")]
        command += ["--participants", "2", "--audio-only", "--duration", str(self.duration), "--join-timeout", "4"]
        for guest in [self.tap.device, *self.others]:
            command += ["--guest", guest.user]
        self.output = (self.folder / "loadtest.log").open("wb")
        self.process = subprocess.Popen([*command, "--json", str(self.folder / "report.json")], stdout=self.output, stderr=subprocess.STDOUT)

    def both_open(self, since=0):
        return all(2 in self.audit.epochs(person.user, since) for person in (self.alice, self.bob))

    def report(self):
        """The load test's report, once it has ended; empty if it did not measure."""
        self.status = self.process.wait(60 * PATIENCE)
        self.text = (self.folder / "loadtest.log").read_text()
        report = self.folder / "report.json"
        return json.loads(report.read_text()) if report.exists() else {"failures": [], "frames": 0, "joined": 0, "stays": []}

    def close(self):
        if self.process:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.output.close()
        if self.tap:
            self.tap.close()
        super().close()

    # Assertions

    def silent_under(self, tab, epoch, *seconds, **more):
        self.silences.add((tab.user, epoch))
        super().silent_under(tab, epoch, *seconds, **more)

    def goes_on(self, *tabs, seconds=10):
        since = time.time() * 1000
        for tab in tabs:
            wait_for(lambda: len(self.audit.frames(tab.user, since)) > 25, seconds, f"{tab.user} keeps sending")
            self.heard.add(tab.user)

    def opened_in_silence(self, report):
        """The frames that opened under an epoch whose key somebody must not have: {(user, epoch): frames}."""
        stays = dict(zip((self.alice.user, self.bob.user), report["stays"]))
        counts = {(user, epoch): sum(stay["opened"].get(str(epoch), 0) for stay in stays[user]) for user, epoch in self.silences if user in stays}
        return {silence: count for silence, count in counts.items() if count}
