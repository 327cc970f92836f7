"""Attacks on the media port: a member that directs its media at somebody else, and strangers, liars and slow readers on TCP."""

import asyncio
import contextlib
import re
import resource
import socket
import struct
import time

import pytest
from aioice import stun
from aiortc import RTCBundlePolicy, RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from conftest import PATIENCE, Server, wait_for
from device import Device

KEY_FRAME = b"\x10\x00\x9d\x01\x2a"
RATE = 100
# More than a worker's 2,048 TCP connections.
FLOOD = 3_000


def is_stun(datagram):
    return datagram[0] < 4


def is_media(datagram):
    return 128 <= datagram[0] < 192


def framed(datagram):
    """RFC 4571."""
    return struct.pack(">H", len(datagram)) + datagram


class Peer:
    """A member that is not on the key list, so that its media is forwarded unencrypted, and the parameters of its transport."""

    def __init__(self, server, user):
        self.device = Device(server, user)
        self.received, self.sent = [], 0

    async def join(self, call, *, sends):
        self.device.call(call, "accept", {})
        self.peer = RTCPeerConnection(RTCConfiguration(bundlePolicy=RTCBundlePolicy.MAX_BUNDLE, iceServers=[]))
        self.video = self.peer.addTransceiver("video", "sendonly" if sends else "recvonly")
        await self.peer.setLocalDescription(await self.peer.createOffer())
        offer = self.peer.localDescription.sdp
        tracks = [{"mid": self.video.mid, "source": "camera"}] if sends else []
        answer = self.device.call(call, "media", {"sdp": offer, "tracks": tracks})["sdp"]
        await self.peer.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        await reached(lambda: self.peer.connectionState == "connected", "the peer is connected")
        self.transport = (self.video.sender if sends else self.video.receiver).transport
        self.payload_type = int(re.search(r"a=rtpmap:(\d+) VP8/", offer).group(1))
        self.own, self.servers = ({name: re.search(rf"a=ice-{name}:(\S+)", sdp).group(1) for name in ("ufrag", "pwd")} for sdp in (offer, answer))
        host, port = re.search(r"^a=candidate:\S+ 1 udp \d+ (\S+) (\d+)", answer, re.MULTILINE | re.IGNORECASE).groups()
        self.server = host, int(port)
        if not sends:
            self.transport._handle_rtp_data = self._take
        return self

    async def _take(self, datagram, arrival_time_ms):
        self.received.append(datagram)

    async def send(self, size=200):
        """A key frame in one packet."""
        header = struct.pack(">BBHII", 0x80, 0x80 | self.payload_type, self.sent & 0xFFFF, self.sent * 900, self.video.sender._ssrc)
        self.sent += 1
        await self.transport._send_rtp(header + KEY_FRAME + b"k" * size)

    def check(self, nominates=True):
        """A connectivity check (RFC 8445 section 7.2), which may nominate its source address."""
        message = stun.Message(message_method=stun.Method.BINDING, message_class=stun.Class.REQUEST)
        message.attributes["USERNAME"] = f"{self.servers['ufrag']}:{self.own['ufrag']}"
        message.attributes["PRIORITY"] = 1 << 30
        message.attributes["ICE-CONTROLLING"] = 1
        if nominates:
            message.attributes["USE-CANDIDATE"] = None
        message.add_message_integrity(self.servers["pwd"].encode())
        message.add_fingerprint()
        return bytes(message)

    def answer(self, check, address):
        """The answer to a check of the server, by an attacker who has the member's password."""
        asked = stun.parse_message(check)
        message = stun.Message(message_method=stun.Method.BINDING, message_class=stun.Class.RESPONSE, transaction_id=asked.transaction_id)
        message.attributes["XOR-MAPPED-ADDRESS"] = address
        message.add_message_integrity(self.own["pwd"].encode())
        message.add_fingerprint()
        return bytes(message)


async def reached(condition, what, seconds=10):
    end = time.monotonic() + seconds * PATIENCE
    while not condition():
        assert time.monotonic() < end, f"not within {seconds * PATIENCE:g} s: {what}"
        await asyncio.sleep(0.02)


class Scene:
    """Somebody sends continuously to a hostile member."""

    def __init__(self, server):
        self.server = server

    async def __aenter__(self):
        host = Device(self.server, "host")
        self.speaker, self.member = Peer(self.server, "speaker"), Peer(self.server, "member")
        call, _ = host.start("speaker", "member", media="video")
        await self.speaker.join(call, sends=True)
        self.sending = asyncio.create_task(self._send())
        await self.member.join(call, sends=False)
        await self.hears("the member gets what is sent")
        self.host = host
        return self

    async def _send(self):
        while True:
            await self.speaker.send()
            await asyncio.sleep(1 / RATE)

    async def hears(self, what):
        before = len(self.member.received)
        await reached(lambda: len(self.member.received) > before + RATE / 2, what)

    async def __aexit__(self, *_):
        self.sending.cancel()
        for peer in (self.speaker, self.member):
            await peer.peer.close()
            peer.device.close()
        self.host.close()


async def gathered(sockets, seconds, taken=lambda own, datagram: None):
    """The datagrams that arrive at each of some UDP sockets."""
    got = {own: [] for own in sockets}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        await asyncio.sleep(0.01)
        for own in sockets:
            while True:
                try:
                    datagram = own.recv(4000)
                except BlockingIOError:
                    break
                got[own].append(datagram)
                taken(own, datagram)
    return got


def udp():
    own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    own.bind(("", 0))
    own.setblocking(False)
    return own


def test_one_spoofed_check_directs_no_media_at_a_third_party(fresh_server):
    """The attacker spoofs the victim's address: here it sends from the victim's own socket. It has the member's passwords, and does not see the victim's packets."""

    async def attack(sockets):
        async with Scene(fresh_server) as scene:
            victim, another = (sockets.enter_context(udp()) for _ in range(2))
            member = scene.member
            before = len(member.received), scene.speaker.sent, fresh_server.metric("conclave_media_checks_sent_total")
            victim.sendto(member.check(), member.server)
            got = (await gathered([victim], 4))[victim]
            assert got and all(is_stun(datagram) for datagram in got), "the victim gets more than connectivity checks"
            assert 2 <= len(got) <= 8 and max(map(len, got)) < 160, f"{len(got)} datagrams of up to {max(map(len, got))} bytes to the victim"
            assert fresh_server.metric("conclave_media_checks_sent_total") > before[2], "the server asks the new address before it uses it"
            sent = scene.speaker.sent - before[1]
            assert len(member.received) - before[0] > sent * 0.8, "the member's own media continues at its old address"

            # The same check from an address that answers the server's check moves the media: the attack was valid.
            def answers(own, datagram):
                if is_stun(datagram) and stun.parse_message(datagram).message_class == stun.Class.REQUEST:
                    own.sendto(member.answer(datagram, member.server), member.server)

            another.sendto(member.check(), member.server)
            got = await gathered([victim, another], 2, answers)
            assert sum(map(is_media, got[another])) > RATE / 2, "an address that answers gets the media"
            assert not any(map(is_media, got[victim]))

    with contextlib.ExitStack() as sockets:
        asyncio.run(attack(sockets))


# TCP


@pytest.fixture
def roomy_server(tmp_path):
    """A server, and a test, with enough file descriptors for more than a worker's connections."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert limits[1] >= 2 * FLOOD, f"the test needs {2 * FLOOD} open files: ulimit -Hn"
    resource.setrlimit(resource.RLIMIT_NOFILE, (2 * FLOOD, limits[1]))
    running = Server(tmp_path)
    yield running
    running.stop()
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


class Strangers:
    """Silent connections from many addresses, as many as the system allows."""

    def __init__(self, port):
        self.port, self.open, self.count = port, [], 0

    def come(self, count):
        for _ in range(count):
            own = socket.socket()
            own.setblocking(False)
            # 100 from each address: at most 128 of one may wait.
            self.count += 1
            own.bind((f"127.{1 + self.count // 100 % 100}.{1 + self.count // 10_000}.1", 0))
            own.connect_ex(("127.0.0.1", self.port))
            self.open.append(own)
        for own in self.open[: -2 * FLOOD + 1_000]:
            own.close()
        del self.open[: -2 * FLOOD + 1_000]

    def close(self):
        for own in self.open:
            own.close()


def is_answered(port, check):
    """Whether a participant's check over TCP is answered quickly."""
    with socket.socket() as own:
        own.settimeout(1.5 * PATIENCE)
        own.bind(("127.0.0.9", 0))
        try:
            own.connect(("127.0.0.1", port))
            own.sendall(framed(check))
            return is_stun(own.recv(2000)[2:])
        except (OSError, IndexError):
            return False


def test_a_flood_of_tcp_connections_keeps_no_participant_out(roomy_server):
    port = roomy_server.media_port
    strangers = Strangers(port)

    def evicted():
        return roomy_server.metric_of("conclave_media_tcp_endings_total", 'cause="evicted"') > 0

    async def attack():
        async with Scene(roomy_server) as scene:
            check = scene.member.check(nominates=False)
            strangers.come(FLOOD)
            answers = [await asyncio.to_thread(is_answered, port, check) for _ in range(4)]
            for _ in range(12):
                strangers.come(250)
                answers.append(await asyncio.to_thread(is_answered, port, check))
            # On a busy machine the system drops some connections, so that it takes more of them to fill all places.
            deadline = time.monotonic() + 15 * PATIENCE
            while not evicted() and time.monotonic() < deadline:
                strangers.come(250)
                answers.append(await asyncio.to_thread(is_answered, port, check))
            assert all(answers), f"{answers.count(False)} of {len(answers)} participants were kept out"
            assert evicted(), "the places were never all taken: the test shows nothing"
            await scene.hears("media continues over UDP")

    try:
        asyncio.run(attack())
    finally:
        strangers.close()


# A connection that begins like this is not ours and is closed at once. A connection that sends little or nothing is closed after 10 s.
FRAMES = {
    "a length beyond a datagram's": (b"\x05\xdd" + b"x" * 1501, 2),
    "HTTP": (b"GET / HTTP/1.1\r\n\r\n", 2),
    "a TLS hello": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 2),
    "STOMP": (b"CONNECT\n\n\0", 2),
    "a length and little more": (b"\x05\xdcabc", 13),
    "empty datagrams": (b"\0\0" * 30_000, 13),
    "noise like RTP": (framed(b"\x80\x60" + b"x" * 110) * 100, 13),
    "one byte": (b"\x05", 13),
}


def test_tcp_connections_that_prove_nothing_are_closed(fresh_server):
    own = {name: socket.create_connection(("127.0.0.1", fresh_server.media_port), 5) for name in FRAMES}
    begun = time.monotonic()
    for name, (data, _) in FRAMES.items():
        with contextlib.suppress(OSError):
            own[name].sendall(data)
    for name, (_, seconds) in sorted(FRAMES.items(), key=lambda item: item[1][1]):
        own[name].settimeout(max(0.1, seconds * PATIENCE - (time.monotonic() - begun)))
        try:
            assert own[name].recv(100) == b"", f"{name} is answered"
        except ConnectionError:
            pass
        except TimeoutError:
            pytest.fail(f"{name} is not closed within {seconds} s")
        own[name].close()
    for cause in ("tooLong", "unproven"):
        ended = lambda: fresh_server.metric_of("conclave_media_tcp_endings_total", f'cause="{cause}"')
        wait_for(lambda: ended() >= 4, 2, f"connections ended as {cause}")


def test_a_member_that_reads_nothing_over_tcp_costs_bounded_memory_and_hears_again_over_udp(fresh_server):
    unsent = lambda: fresh_server.metric_of("conclave_media_tcp_unsent_packets_total", 'reason="slowReader"')

    async def attack(own):
        async with Scene(fresh_server) as scene:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            own.connect(("127.0.0.1", fresh_server.media_port))
            own.sendall(framed(scene.member.check()))
            heard = len(scene.member.received)
            for _ in range(200):
                for _ in range(50):
                    await scene.speaker.send(1_000)
                await asyncio.sleep(0.02)
                if unsent() > 500:
                    break
            assert unsent() > 500, "what a slow reader does not take is kept"
            assert len(scene.member.received) - heard < 500, "the media never went over TCP: the test shows nothing"
            own.close()
            await scene.hears("media comes over UDP again")

    with socket.socket() as own:
        asyncio.run(attack(own))
