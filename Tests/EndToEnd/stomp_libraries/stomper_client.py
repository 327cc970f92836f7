"""stomper (1.0 and 1.1), which only makes and reads frames, over a plain socket."""

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


send(stomper.connect(user, token))
assert receive().cmd == "CONNECTED"
send(stomper.subscribe("/topic/stomper", ack="auto"))
send(stomper.begin("tx"))
frame = stomper.Frame()
frame.unpack(stomper.send("/topic/stomper", "in a transaction", transactionid="tx"))
send(frame.pack())
send(stomper.commit("tx"))
message = receive()
assert (message.cmd, message.body.rstrip("\n\0")) == ("MESSAGE", "in a transaction"), message.body
send(stomper.subscribe("/queue/stomper", ack="client"))
send(stomper.send("/queue/stomper", "job"))
job = receive()
assert job.body.rstrip("\n\0") == "job"
send(stomper.ack(job.headers["message-id"]))
send(stomper.unsubscribe("/topic/stomper"))
send(stomper.disconnect())
assert connection.recv(1) == b"", "no ERROR came"
print("ok")
