"""The network between one page and the server. It may lose the signaling, the media or both, come back at another address, and be slow."""

import collections
import contextlib
import os
import random
import selectors
import socket
import threading
import time

# Replaces the server's candidates by this network's port, so that there is no other path to it.
THROUGH_THE_NETWORK = """
(() => {
  window.conclaveMediaPort = %d;
  const through = ([foundation, component, transport, priority, address, , ...rest]) =>
    [foundation, component, transport, priority, address, window.conclaveMediaPort, ...rest].join(' ');
  const isWay = ([, , transport, , address]) => transport.toLowerCase() === 'udp' && !address.includes(':');
  const rewritten = (line) => {
    if (!line.startsWith('a=candidate:')) return [line];
    const fields = line.split(' ');
    return isWay(fields) ? [through(fields)] : [];
  };
  const set = RTCPeerConnection.prototype.setRemoteDescription;
  RTCPeerConnection.prototype.setRemoteDescription = function ({ type, sdp }) {
    return set.call(this, { type, sdp: sdp.split('\\r\\n').flatMap(rewritten).join('\\r\\n') });
  };
})();
"""


class Network:
    """A relay for one page: TCP to the server's HTTP port, UDP to its media port."""

    def __init__(self, server):
        self.server = server
        self.selector = selectors.DefaultSelector()
        self.lock = threading.Lock()
        self.streams = {}  # each end of a TCP connection, and its other end
        self.silent = set()  # ends of connections from which nothing arrives any longer
        self.page = None  # the source of the page's media
        self.rate = None  # bit/s from the page to the server
        self.credit, self.counted = 0.0, 0.0  # bytes that may pass, at that time
        self.down = None  # the path to the page: a `Path`, or nothing in between
        self.is_refusing = False
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.selector.register(self.listener, selectors.EVENT_READ, self.accept)
        self.open_media()
        self.is_running = True
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    @property
    def url(self):
        return f"http://localhost:{self.listener.getsockname()[1]}"

    @property
    def script(self):
        return THROUGH_THE_NETWORK % self.media_port

    @property
    def media_port(self):
        return self.front.getsockname()[1]

    def open_media(self):
        self.front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.front.bind(("0.0.0.0", 0))
        self.back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.back.connect(("127.0.0.1", self.server.media_port))
        self.selector.register(self.front, selectors.EVENT_READ, self.to_server)
        self.selector.register(self.back, selectors.EVENT_READ, self.to_page)

    def close_media(self):
        for end in (self.front, self.back):
            self.selector.unregister(end)
            end.close()
        self.page = None

    # Faults

    def lose_media(self):
        """The path is gone permanently; a client that restarts ICE finds another one (`media_port`)."""
        with self.lock:
            self.close_media()
            self.open_media()

    def refuse_signaling(self):
        """All connections break, and no new one is accepted."""
        with self.lock:
            self.is_refusing = True
            for end in list(self.streams):
                self.drop(end)

    def allow_signaling(self):
        self.is_refusing = False

    def move(self):
        """As when a phone changes its network: the old connections and the old path go silent, without any notice."""
        with self.lock:
            self.silent |= set(self.streams)
        self.lose_media()

    def narrow(self, rate):
        """Limits the page's media to the server to this many bit/s. Anything above is lost, except for bursts of a quarter of a second. None: no limit."""
        with self.lock:
            self.rate, self.credit, self.counted = rate, 0.0, time.monotonic()

    def impair(self, rate, loss=0.0, queue=0.3, delay=0.0):
        """Sends datagrams to the page over a link of `rate` bit/s with a queue of `queue` seconds, which loses a share of `loss` and adds `delay` seconds."""
        with self.lock:
            self.down = Path(rate, loss, queue, delay)

    def close(self):
        self.is_running = False
        self.thread.join()
        with self.lock:
            self.close_media()
            for end in list(self.streams):
                self.drop(end)
        self.listener.close()

    # Passing on

    def run(self):
        # A real network does not wait for a processor. In Linux, 0 means this thread.
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        while self.is_running:
            for key, _ in self.selector.select(0.002 if self.down else 0.05):
                with self.lock:
                    if key.fileobj.fileno() >= 0:
                        key.data(key.fileobj)
            with self.lock:
                for data in self.down.arrived(time.monotonic()) if self.down else ():
                    self.send_to_page(data)

    def accept(self, listener):
        page, _ = listener.accept()
        if self.is_refusing:
            return page.close()
        try:
            server = socket.create_connection(("127.0.0.1", self.server.http_port))
        except ConnectionRefusedError:
            return page.close()  # the server is away
        for end, other in ((page, server), (server, page)):
            self.streams[end] = other
            self.selector.register(end, selectors.EVENT_READ, self.stream)

    # A socket that was opened after `select` may have the number of one that was ready, and nothing to read, so reads must not block.

    def stream(self, end):
        try:
            data = end.recv(65_536, socket.MSG_DONTWAIT)
            if end in self.silent and data:
                return
            if data:
                return self.streams[end].sendall(data)
        except BlockingIOError:
            return
        except OSError:
            pass
        self.drop(end)

    def drop(self, end):
        for each in (end, self.streams.get(end)):
            if each in self.streams:
                self.selector.unregister(each)
                del self.streams[each]
                self.silent.discard(each)
                each.close()

    def to_server(self, front):
        try:
            data, self.page = front.recvfrom(65_536, socket.MSG_DONTWAIT)
            if self.carries(len(data)):
                self.back.send(data)
        except (BlockingIOError, ConnectionRefusedError):
            pass  # nothing to read, or the server is away

    def carries(self, size):
        if self.rate is None:
            return True
        now = time.monotonic()
        self.credit = min(self.rate / 8 / 4, self.credit + (now - self.counted) * self.rate / 8)
        self.counted = now
        if size > self.credit:
            return False
        self.credit -= size
        return True

    def to_page(self, back):
        try:
            data = back.recv(65_536, socket.MSG_DONTWAIT)
        except (BlockingIOError, ConnectionRefusedError):
            return
        if self.down:
            return self.down.take(data, time.monotonic())
        self.send_to_page(data)

    def send_to_page(self, data):
        if self.page:
            self.front.sendto(data, self.page)


class Path:
    """A link with a tail-drop queue in front and random loss behind it."""

    def __init__(self, rate, loss, queue, delay):
        self.rate, self.loss, self.queue, self.delay = rate, loss, queue, delay
        self.free = 0.0  # when the link will have sent its queue
        self.flying = collections.deque()  # (arrival, datagram)
        self.random = random.Random(1)
        self.carried, self.dropped, self.lost, self.bytes = 0, 0, 0, 0

    def take(self, data, now):
        begin = max(now, self.free)
        if begin - now > self.queue:
            self.dropped += 1
            return
        self.free = begin + len(data) * 8 / self.rate
        if self.random.random() < self.loss:
            self.lost += 1
        else:
            self.carried += 1
            self.bytes += len(data)
            self.flying.append((self.free + self.delay, data))

    def arrived(self, now):
        while self.flying and self.flying[0][0] <= now:
            yield self.flying.popleft()[1]
