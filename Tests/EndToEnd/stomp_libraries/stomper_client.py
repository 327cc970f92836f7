"""stomper (1.1), which only builds and parses frames, over a plain socket."""

import socket
import sys

import stomper

port, user, token = sys.argv[1:]
connection = socket.create_connection(("127.0.0.1", int(port)), 5)
buffer = b""


def receive():
    global buffer
    while b"\0" not in buffer:
        more = connection.recv(4096)
        assert more, buffer
        buffer += more
    frame, buffer = buffer.split(b"\0", 1)
    parsed = stomper.Frame()
    parsed.unpack(frame.decode().lstrip("\n") + "\0")
    return parsed


def send(text):
    connection.sendall(text.encode())


send(stomper.connect(user, token, "localhost"))
assert receive().cmd == "CONNECTED"
send(stomper.subscribe("/topic/stomper", "t"))
send(stomper.begin("tx"))
send(stomper.send("/topic/stomper", "in a transaction", transactionid="tx"))
send(stomper.commit("tx"))
message = receive()
assert (message.cmd, message.body) == ("MESSAGE", "in a transaction"), message.body
send(stomper.subscribe("/queue/stomper", "q", ack="client"))
send(stomper.send("/queue/stomper", "job"))
job = receive()
assert job.body == "job", job.body
send(stomper.ack(job.headers["message-id"], "q"))
send(stomper.unsubscribe("t"))
send(stomper.disconnect("bye"))
assert receive().headers["receipt-id"] == "bye"
print("ok")
