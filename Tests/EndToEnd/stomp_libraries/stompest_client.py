"""stompest's synchronous client on all three versions."""

import sys

from stompest.config import StompConfig
from stompest.protocol import StompSpec
from stompest.sync import Stomp

port, user, token = sys.argv[1:]
for version in StompSpec.VERSION_1_0, StompSpec.VERSION_1_1, StompSpec.VERSION_1_2:
    config = StompConfig(f"tcp://127.0.0.1:{port}", login=user, passcode=token, version=version)
    client = Stomp(config)
    client.connect(versions=[version], heartBeats=None if version == "1.0" else (5000, 5000), connectedTimeout=5)
    client.subscribe("/topic/stompest", {"id": "t", "ack": "auto"})
    with client.transaction("tx") as transaction:
        client.send("/topic/stompest", b"in a transaction", {"transaction": transaction})
    assert client.canRead(5)
    assert client.receiveFrame().body == b"in a transaction"
    mode = StompSpec.ACK_CLIENT if version == "1.0" else StompSpec.ACK_CLIENT_INDIVIDUAL
    client.subscribe("/queue/stompest", {"id": "q", "ack": mode})
    client.send("/queue/stompest", b"a\0b", {"content-length": "3"}, receipt="sent")
    frames = [client.receiveFrame(), client.receiveFrame()]
    job = next(frame for frame in frames if frame.command == "MESSAGE")
    assert job.body == b"a\0b" and {frame.command for frame in frames} == {"MESSAGE", "RECEIPT"}
    client.ack(job, receipt="acked")
    assert client.receiveFrame().headers["receipt-id"] == "acked"
    client.disconnect(receipt="bye")
    assert client.receiveFrame().headers["receipt-id"] == "bye"
    client.close()
print("ok")
