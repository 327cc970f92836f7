"""A lying server: a proxy between real clients and a real server. It reads STOMP over WebSocket and TCP, and changes what it tells some clients.

Pages and other HTTP pass unchanged. Media does not go through the proxy.
"""

import asyncio
import base64
import collections
import fnmatch
import itertools
import json
import os
import threading
import time

from conftest import PATIENCE, free_port
from told_lists import ToldLists

# Instead of a reply's body: the request fails with this code.
Failure = collections.namedtuple("Failure", "code")
# Instead of a request: it does not reach the server, and the client gets this reply.
Reply = collections.namedtuple("Reply", "body")


class Frame:
    """A STOMP frame. Header values stay escaped as on the wire, since none that is read here has an escape."""

    def __init__(self, command, headers, body=b""):
        self.command, self.headers, self.body = command, headers, body

    @classmethod
    def take(cls, buffer):
        """Removes and returns the first frame in `buffer`; None while it is incomplete. Heart-beats before it are dropped."""
        while buffer[:1] in (b"\n", b"\r"):
            del buffer[:1]
        end = buffer.find(b"\n\n")
        if end < 0:
            return None
        command, *lines = bytes(buffer[:end]).decode().replace("\r", "").split("\n")
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers.setdefault(name, value)
        start = end + 2
        length = int(headers["content-length"]) if "content-length" in headers else buffer.find(b"\0", start) - start
        if length < 0 or len(buffer) <= start + length:
            return None
        body = bytes(buffer[start : start + length])
        del buffer[: start + length + 1]
        return cls(command, headers, body)

    def encode(self):
        headers = {**self.headers, **({"content-length": len(self.body)} if self.body else {})}
        lines = [self.command, *(f"{name}:{value}" for name, value in headers.items())]
        return "\n".join(lines).encode() + b"\n\n" + self.body + b"\0"

    @property
    def json(self):
        return json.loads(self.body or b"{}")

    def with_json(self, body):
        return Frame(self.command, dict(self.headers), json.dumps(body).encode())


class Lie:
    """A replacement for a message. `tell(body, link)` returns the body to forward, or None to withhold the message. For an event it may also return a list of
    (name, body), for a reply a Failure, and for a request a Reply. `of` is an event's name, or a request's path after /app/, with * as in file name
    patterns."""

    def __init__(self, kind, of, tell, to=None):
        self.kind, self.of, self.tell, self.to = kind, of, tell, to
        self.told = 0

    def is_for(self, kind, of, link):
        return self.kind == kind and fnmatch.fnmatchcase(of, self.of) and self.to in (None, link.user)


class Link:
    """One client's connection. `write_down` and `write_up` send a whole frame."""

    def __init__(self, proxy, write_down, write_up):
        self.proxy, self.write_down, self.write_up = proxy, write_down, write_up
        self.user = self.device = None
        self.subscription = "events"
        self.requests = {}
        self.buffers = {"up": bytearray(), "down": bytearray()}
        self.queues = {}

    def feed(self, direction, data):
        buffer = self.buffers[direction]
        self.proxy.captured[direction].append(bytes(data))
        buffer += data
        while frame := Frame.take(buffer):
            (self.from_client if direction == "up" else self.from_server)(frame)

    # From the client

    def from_client(self, frame):
        if frame.command in ("CONNECT", "STOMP"):
            claims = frame.headers.get("passcode", "..").split(".")[1]
            self.user = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)) or b"{}").get("sub")
            self.device = frame.headers.get("device")
        if frame.command == "SUBSCRIBE" and frame.headers["destination"] == "/user/queue/events":
            self.subscription = frame.headers["id"]
        if frame.command in ("ACK", "NACK") and frame.headers["id"].startswith("lie-"):
            self.proxy.note(frame.command, self, frame.headers["id"])
            return
        if frame.command == "SEND" and frame.headers.get("destination", "").startswith("/app/"):
            path, body = frame.headers["destination"].removeprefix("/app/"), frame.json
            frame = self._request(frame, path, body)
            self.proxy.note("request", self, path, body)
        if frame:
            self.write_up(frame)

    def _request(self, frame, path, body):
        number = frame.headers["request-id"]
        self.requests[number] = (path, body)
        body = self.proxy.lists.asked(self, path, body)
        for lie in self.proxy.lies_for("request", path, self):
            body = lie.tell(body, self)
            lie.told += 1
            if isinstance(body, Reply):
                self._down("replies", self._message("replies", {"request-id": number, "status": "ok"}, body.body))
            if body is None or isinstance(body, Reply):
                return None
        return frame.with_json(body) if body != frame.json else frame

    # From the server

    def from_server(self, frame):
        if frame.command == "CONNECTED":
            self.user, self.device = frame.headers.get("user-name", self.user), frame.headers.get("device", self.device)
            for lie in self.proxy.lies_for("connected", "", self):
                frame.headers = lie.tell(dict(frame.headers), self)
                lie.told += 1
            self.proxy.links.append(self)
        destination = frame.headers.get("destination")
        if frame.command != "MESSAGE" or destination not in ("/user/queue/replies", "/user/queue/events"):
            self._down("replies", frame)
        elif destination.endswith("replies"):
            path, asked = self.requests.pop(frame.headers["request-id"], ("", {}))
            if frame.headers["status"] != "ok":
                return self._down("replies", frame)
            self._reply(frame, path, asked)
            self.proxy.note("reply", self, path, frame.json)
        else:
            name = frame.headers["event"]
            self._event(frame)
            self.proxy.note("event", self, name, frame.json)
        return None

    def _reply(self, frame, path, asked):
        body = self.proxy.lists.replied(self, path, asked, frame.json)
        for lie in self.proxy.lies_for("reply", path, self):
            body = lie.tell(body, self)
            lie.told += 1
            if body is None:
                return None
            if isinstance(body, Failure):
                frame.headers["status"] = "error"
                body = {"error": {"code": body.code, "message": "The server could not do it. Try again."}}
                break
        self._down("replies", frame.with_json(body) if body != frame.json else frame)

    def _event(self, frame):
        name, seq = frame.headers["event"], int(frame.headers["seq"])
        body = self.proxy.lists.announced(self, name, frame.json) if name in ("keys.rotate", "call.ring") else frame.json
        events = [(name, body)]
        for lie in self.proxy.lies_for("event", name, self):
            told = lie.tell(events[0][1], self)
            lie.told += 1
            events = told if isinstance(told, list) else [] if told is None else [(name, told)]
            if isinstance(told, list) or not events:
                break
        numbers = self.proxy.numbers_of(self)
        if not events:
            # The server gets its acknowledgement, and the client's numbers have no gap.
            return self.write_up(Frame("ACK", {"id": frame.headers["ack"]})) if "ack" in frame.headers else None
        first, *others = events
        out = frame.with_json(first[1]) if first[1] != frame.json else frame
        out.headers["event"], out.headers["seq"] = first[0], numbers.given(seq)
        self._down("events", out)
        for other in others:
            self.tell(*other)
        return None

    def tell(self, name, body):
        """An event made by the proxy."""
        numbers = self.proxy.numbers_of(self)
        mark = f"lie-{next(self.proxy.marks)}"
        # Without a time, the event would be refused for that reason.
        body = {"at": int(time.time() * 1000), **body}
        self._down("events", self._message("events", {"event": name, "seq": numbers.next(), "ack": mark, "message-id": mark}, body))
        self.proxy.note("told", self, name, mark)
        return mark

    def _message(self, queue, headers, body):
        subscription = self.subscription if queue == "events" else "replies"
        headers = {"subscription": subscription, "destination": f"/user/queue/{queue}", "content-type": "application/json", **headers}
        return Frame("MESSAGE", {"message-id": f"lie-{next(self.proxy.marks)}", **headers}, json.dumps(body).encode())

    # Sends frames in order, delayed if the proxy is told so.

    def _down(self, queue, frame):
        delay = self.proxy.delays.get((self.user, queue), 0)
        pending = self.queues.setdefault(queue, collections.deque())
        if not delay and not pending:
            return self.write_down(frame)
        pending.append(frame)
        asyncio.get_running_loop().call_later(delay, lambda: self.write_down(pending.popleft()))
        return None


class Numbers:
    """The `seq` for one device: without gaps, whatever is withheld or added."""

    def __init__(self):
        self.last, self.known = 0, {}

    def given(self, seq):
        if seq not in self.known:
            self.known[seq] = self.next()
        return self.known[seq]

    def next(self):
        self.last += 1
        return self.last


class LyingProxy:
    """Runs in its own thread until `close`. Browsers open `url`, and clients of STOMP over TCP connect to `stomp_port`."""

    def __init__(self, server):
        self.server = server
        self.lies, self.links, self.log = [], [], []
        self.lists = ToldLists(self)
        self.delays, self.absent = {}, set()
        self.captured = {"up": [], "down": []}
        self.marks = itertools.count(1)
        self._numbers, self._changed = {}, threading.Condition()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self._started = threading.Event()
        self.thread.start()
        assert self._started.wait(10)

    def _run(self):
        asyncio.set_event_loop(self.loop)
        # Each proxy has a new port, so that what a browser of the pool has stored belongs to another origin.
        self.http_port, self.stomp_port = free_port(), free_port()
        for handler, port in ((self._http, self.http_port), (self._stomp, self.stomp_port)):
            self.loop.run_until_complete(asyncio.start_server(handler, "127.0.0.1", port))
        self.url = f"http://localhost:{self.http_port}"
        self._started.set()
        self.loop.run_forever()

    def close(self):
        async def end():
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            self.loop.stop()

        asyncio.run_coroutine_threadsafe(end(), self.loop)
        self.thread.join(10)
        self.loop.close()

    # For tests

    def lie(self, kind, of="", tell=None, to=None):
        self.lies.append(Lie(kind, of, tell, to))
        return self.lies[-1]

    def be_honest(self):
        self.lies.clear()
        self.delays.clear()
        self.absent.clear()
        self.lists.forget()

    def tell(self, user, name, body):
        """Sends all of a user's connections an event that the server knows nothing about; returns its marks, for `Stage.handled`."""

        async def told():
            return [link.tell(name, body) for link in self.links if link.user == user]

        marks = asyncio.run_coroutine_threadsafe(told(), self.loop).result(10)
        assert marks, f"{user} is not connected"
        return marks

    def cut(self, user):
        """A user's network is gone while the name is in `absent`."""
        self.absent.add(user)

        async def close():
            for link in [link for link in self.links if link.user == user]:
                link.close()

        asyncio.run_coroutine_threadsafe(close(), self.loop).result(10)

    def seen(self, kind, of=None, user=None):
        """The messages of the server and the clients so far: (kind, user, name or path, body)."""
        with self._changed:
            return [entry for entry in self.log if entry[0] == kind and user in (None, entry[1]) and of in (None, entry[2])]

    def sees(self, kind, of, seconds=10, user=None, where=lambda body: True):
        """Waits until a message has passed, now or earlier; returns its body."""
        end = time.monotonic() + seconds * PATIENCE
        while True:
            for entry in self.seen(kind, user=user):
                if fnmatch.fnmatchcase(entry[2], of) and where(entry[3]):
                    return entry[3]
            with self._changed:
                assert self._changed.wait(end - time.monotonic()), f"no {kind} {of} of {user}: {[entry[1:3] for entry in self.log][-20:]}"

    # For the links

    def note(self, kind, link, of, body=None):
        """Records a message only after the lies about it were told, so that a test that has waited for it may end them."""
        with self._changed:
            self.log.append((kind, link.user, of, body))
            self._changed.notify_all()

    def lies_for(self, kind, of, link):
        return [lie for lie in self.lies if lie.is_for(kind, of, link)]

    def numbers_of(self, link):
        return self._numbers.setdefault((link.user, link.device), Numbers())

    # Connections

    async def _stomp(self, reader, writer):
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.server.stomp_port)
        link = Link(self, lambda frame: writer.write(frame.encode()), lambda frame: up_writer.write(frame.encode()))
        await self._relay(link, (reader, writer), (up_reader, up_writer), plain_chunks)

    async def _http(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.server.http_port)
        if b"upgrade: websocket" not in head.lower():
            up_writer.write(head)
            await asyncio.gather(pump(reader, up_writer), pump(up_reader, writer))
            return
        # Compressed messages would have to be decompressed.
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"sec-websocket-extensions")]
        up_writer.write(b"\r\n".join(lines))
        answer = await up_reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        if b" 101 " not in answer.split(b"\r\n")[0]:
            await pump(up_reader, writer)
            return
        link = Link(self, lambda frame: writer.write(message(frame.encode(), 1)), lambda frame: up_writer.write(message(frame.encode(), 1, is_masked=True)))
        await self._relay(link, (reader, writer), (up_reader, up_writer), web_messages)

    async def _relay(self, link, client, server, chunks):
        def close():
            for _, writer in (client, server):
                writer.close()

        link.close = close

        async def relay(direction, reader, writer):
            async for opcode, data in chunks(reader):
                if self.absent & {link.user}:
                    return
                if opcode is None:
                    link.feed(direction, data)
                    if not data.strip(b"\r\n"):
                        writer.write(data if chunks is plain_chunks else message(data, 1, direction == "up"))
                else:
                    writer.write(message(data, opcode, direction == "up"))
                await writer.drain()

        tasks = [asyncio.ensure_future(relay("up", client[0], server[1])), asyncio.ensure_future(relay("down", server[0], client[1]))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            # The other side's last frames, such as an ERROR, still pass.
            await asyncio.wait(tasks, timeout=0.2)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if link in self.links:
                self.links.remove(link)
            close()


async def pump(reader, writer):
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()


async def plain_chunks(reader):
    """(None, bytes) as they come over TCP."""
    try:
        while data := await reader.read(1 << 16):
            yield None, data
    except OSError:
        pass


async def web_messages(reader):
    """(None, data of a whole message) or (opcode, payload of a control frame), of WebSocket (RFC 6455 section 5.2)."""
    whole = b""
    try:
        while True:
            first, second = await reader.readexactly(2)
            size = second & 0x7F
            if size > 125:
                size = int.from_bytes(await reader.readexactly(2 if size == 126 else 8), "big")
            mask = await reader.readexactly(4) if second & 0x80 else None
            data = await reader.readexactly(size)
            if mask:
                data = masked(data, mask)
            if first & 8:
                yield first & 15, data
                continue
            whole += data
            if first & 0x80:
                yield None, whole
                whole = b""
    except (asyncio.IncompleteReadError, OSError):
        pass


def masked(data, mask):
    keys = (mask * (len(data) // 4 + 1))[: len(data)]
    return (int.from_bytes(data, "big") ^ int.from_bytes(keys, "big")).to_bytes(len(data), "big")


def message(data, opcode, is_masked=False):
    size = len(data)
    length = bytes([size]) if size < 126 else b"\x7e" + size.to_bytes(2, "big") if size < 1 << 16 else b"\x7f" + size.to_bytes(8, "big")
    head = bytes([0x80 | opcode, length[0] | (0x80 if is_masked else 0)]) + length[1:]
    if not is_masked:
        return head + data
    mask = os.urandom(4)
    return head + mask + masked(data, mask)
