"""Third-party STOMP libraries with an app's own topics and queues: connect, subscribe, send, ack, nack, transactions, receipts."""

import pathlib
import queue
import subprocess
import sys
import threading

import pytest
import stomp

from client import CONNECTIONS
from conftest import PATIENCE

FOLDER = pathlib.Path(__file__).parent / "stomp_libraries"


class Peer(stomp.ConnectionListener):
    """A stomp.py connection, with received frames in queues."""

    def __init__(self, server, user, version):
        self.version, self.refused = version, False
        self.messages, self.receipts, self.errors = queue.Queue(), queue.Queue(), queue.Queue()
        self.closed = threading.Event()
        self.connection = CONNECTIONS[version]([("127.0.0.1", server.stomp_port)])
        self.connection.set_listener("", self)
        self.connection.connect(user, server.token(user, "library"), wait=True)

    def on_message(self, frame):
        self.messages.put(frame)

    def on_receipt(self, frame):
        self.receipts.put(frame.headers["receipt-id"])

    def on_error(self, frame):
        self.refused = True
        self.errors.put(frame)

    def on_disconnected(self):
        self.closed.set()

    def subscribe(self, destination, ack="auto"):
        self.connection.subscribe(destination, id="1", ack=ack, headers={"receipt": "subscribed"})
        assert self.receipts.get(timeout=5 * PATIENCE) == "subscribed"

    def send(self, destination, body, **more):
        self.connection.send(destination, body, **more)

    def next(self):
        return self.messages.get(timeout=5 * PATIENCE)

    def acknowledge(self, frame, accepted=True, transaction=None):
        do = self.connection.ack if accepted else self.connection.nack
        if self.version == "1.2":
            do(frame.headers["ack"], transaction=transaction)
        elif self.version == "1.1":
            do(frame.headers["message-id"], frame.headers["subscription"], transaction=transaction)
        else:
            do(frame.headers["message-id"], transaction=transaction)

    def close(self):
        if self.refused:
            # The server closes the connection after an ERROR frame; a DISCONNECT may cross it and get no receipt.
            assert self.closed.wait(timeout=5 * PATIENCE)
        elif self.connection.is_connected():
            self.connection.disconnect(receipt="bye")
            assert self.receipts.get(timeout=5 * PATIENCE) == "bye"


@pytest.fixture
def peer(app_server):
    peers = []

    def make(user, version="1.2"):
        peers.append(Peer(app_server, user, version))
        return peers[-1]

    yield make
    for each in peers:
        each.close()


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_stomp_44_stomp_py_topic_reaches_everyone_in_order(peer, version):
    readers = [peer(f"reader{index}", version) for index in range(2)]
    for reader in readers:
        reader.subscribe("/topic/stomp-py")
    writer = peer("writer", version)
    for index in range(20):
        writer.send("/topic/stomp-py", f"{index} ä", headers={"mood": "good"})
    for reader in readers:
        for index in range(20):
            frame = reader.next()
            assert (frame.body, frame.headers["mood"]) == (f"{index} ä", "good")
            assert frame.headers["destination"] == "/topic/stomp-py"


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_stomp_52_stomp_py_acknowledges(peer, version):
    mode = "client" if version == "1.0" else "client-individual"
    destination = f"/queue/stomp-py-{version}"
    first = peer("first", version)
    first.subscribe(destination, mode)
    for index in range(3):
        first.send(destination, str(index))
    frames = [first.next() for _ in range(3)]
    first.acknowledge(frames[0])
    first.close()
    second = peer("second", version)
    second.subscribe(destination, mode)
    redelivered = [second.next() for _ in range(2)]
    assert [frame.body for frame in redelivered] == ["1", "2"]
    assert all(frame.headers["redelivered"] == "true" for frame in redelivered)


@pytest.mark.parametrize("version", ["1.1", "1.2"])
def test_stomp_53_stomp_py_nack_goes_to_another(peer, version):
    destination = f"/queue/nack-{version}"
    first, second = peer("first", version), peer("second", version)
    first.subscribe(destination, "client-individual")
    first.send(destination, "x")
    first.acknowledge(first.next(), accepted=False)
    second.subscribe(destination, "client-individual")
    frame = second.next()
    assert frame.body == "x"
    second.acknowledge(frame)


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_stomp_59_stomp_py_transactions(peer, version):
    reader, writer = peer("reader", version), peer("writer", version)
    reader.subscribe("/topic/transactions")
    for end, bodies in [(writer.connection.abort, "ab"), (writer.connection.commit, "cd")]:
        transaction = writer.connection.begin()
        for body in bodies:
            writer.send("/topic/transactions", body, transaction=transaction)
        end(transaction)
    assert [reader.next().body for _ in range(2)] == ["c", "d"]


def test_stomp_63_stomp_py_gets_a_receipt_for_each_frame(peer):
    one = peer("one")
    one.subscribe("/queue/receipts", "client-individual")
    one.send("/queue/receipts", "x", headers={"receipt": "sent"})
    frame = one.next()
    assert one.receipts.get(timeout=5 * PATIENCE) == "sent"
    one.connection.ack(frame.headers["ack"], receipt="acked")
    assert one.receipts.get(timeout=5 * PATIENCE) == "acked"
    one.connection.unsubscribe("1", headers={"receipt": "unsubscribed"})
    assert one.receipts.get(timeout=5 * PATIENCE) == "unsubscribed"


def test_stomp_84_stomp_py_may_not_send_where_only_the_server_may(peer):
    for destination in ["/topic/calls/x", "/exchange/calls/x", "/user/bob/queue/news", "/topic/service/calls"]:
        one = peer("one")
        one.send(destination, "x")
        assert one.errors.get(timeout=5 * PATIENCE).headers["message"]


@pytest.mark.parametrize(
    ("interpreter", "client"),
    [
        ("ruby", "ruby_stomp.rb"),
        ("perl", "net_stomp.pl"),
        ("php", "php_stomp.php"),
        ("/usr/bin/python3", "stomper_client.py"),
        (sys.executable, "stompest_client.py"),
    ],
    ids=["ruby-stomp", "Net::Stomp", "php-stomp", "stomper", "stompest"],
)
def test_another_library_goes_through_a_queue_and_a_topic(app_server, interpreter, client):
    """The libraries' Debian packages are in deploy/debian.sh. Clients in other languages print `ok` at the end."""
    arguments = [str(app_server.stomp_port), "library", app_server.token("library", "phone")]
    done = subprocess.run([interpreter, FOLDER / client, *arguments], capture_output=True, text=True, timeout=60 * PATIENCE)
    assert (done.returncode, done.stdout.strip()) == (0, "ok"), done.stdout + done.stderr
