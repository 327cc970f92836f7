"""Rooms for clients of Janus: their answers beside those of Debian's Janus, and media between aiortc peers in a room."""

import asyncio
import json
import pathlib
import urllib.error
import urllib.request

import pytest
import websocket
from aiortc import RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import AudioStreamTrack, VideoStreamTrack

from conftest import Server, free_port
from janus_client import PollingClient, WebSocketClient
from janus_server import JanusServer


@pytest.fixture(scope="module")
def rooms(tmp_path_factory):
    """A server with open rooms, on the HTTP port and on a port of their own."""
    port = free_port()
    janus = {"open": True, "create": "anyone", "listen": port, "reclaimSeconds": 5, "rooms": {"1234": {"secret": "adminpwd"}}}
    server = Server(tmp_path_factory.mktemp("rooms"), janus=janus)
    server.room_url = f"ws://127.0.0.1:{port}/"
    server.poll_url = f"http://127.0.0.1:{server.http_port}/janus"
    yield server
    server.stop()


# MARK: beside Janus

# Requests to handles a, b and c of one session, in their order, with what Janus 1.1.2 of Debian answered. None of them needs media. JanusAPITests plays them, too.
SCENARIO = json.loads((pathlib.Path(__file__).parents[1] / "JanusAPITests/Vectors/answers.json").read_text())


def comparable(data):
    """Without random ids, and without the texts of errors."""
    return {name: value for name, value in data.items() if name not in ("private_id", "error") and not (name == "id" and value > 100)}


def play(client):
    handles = {name: client.attach() for name in "abc"}
    answers = []
    for step in SCENARIO:
        message = handles[step["handle"]].message(step["body"])
        answers.append({**step, "janus": message["janus"], "data": comparable(message["plugindata"]["data"])})
    client.ask(janus="destroy")
    client.close()
    return answers


def test_janus_still_answers_as_recorded(tmp_path):
    with JanusServer(tmp_path, free_port()) as janus:
        for step, answer in zip(SCENARIO, play(PollingClient(f"http://127.0.0.1:{janus.port}/janus"))):
            assert answer == step


@pytest.mark.parametrize("transport", [lambda rooms: WebSocketClient(rooms.room_url), lambda rooms: PollingClient(rooms.poll_url)], ids=["websocket", "poll"])
def test_answers_are_those_of_janus(rooms, transport):
    for step, answer in zip(SCENARIO, play(transport(rooms))):
        assert answer == step


def test_the_core_answers_as_janus_does(rooms, tmp_path):
    requests = [
        {}, {"janus": "create"}, {"janus": "create", "transaction": 5}, {"janus": 7, "transaction": "t"}, {"janus": "nonsense", "transaction": "t"},
        {"janus": "ping", "transaction": "t"}, {"janus": "attach", "transaction": "t"}, {"janus": "create", "id": "x", "transaction": "t"},
    ]  # fmt: skip

    def codes(url):
        return [PollingClient.post(url, json.dumps(request).encode()).get("error", {}).get("code") for request in requests]

    with JanusServer(tmp_path, free_port()) as janus:
        expected = codes(f"http://127.0.0.1:{janus.port}/janus")
    assert codes(rooms.poll_url) == expected


# MARK: transports


def test_a_websocket_has_to_offer_the_subprotocol(rooms):
    with pytest.raises(websocket.WebSocketBadStatusException) as refusal:
        websocket.create_connection(rooms.room_url)
    assert refusal.value.status_code == 400
    for url in (rooms.room_url, f"ws://127.0.0.1:{rooms.http_port}/janus"):
        client = WebSocketClient(url)
        assert client.socket.getsubprotocol() == "janus-protocol"
        assert client.ask(janus="keepalive")["janus"] == "ack"
        client.close()


def test_a_session_is_claimed_by_another_websocket(rooms):
    first = WebSocketClient(rooms.room_url)
    handle = first.attach()
    assert handle.data({"request": "join", "room": 1234, "ptype": "publisher", "id": 31})["id"] == 31
    # Without a Close frame.
    first.socket.sock.shutdown(2)
    second = WebSocketClient(rooms.room_url)
    second.session = first.session
    assert second.ask(janus="claim")["janus"] == "success"
    handle.client = second
    assert handle.data({"request": "configure"})["configured"] == "ok"
    second.ask(janus="destroy")
    second.close()


def test_a_closed_websocket_leaves_no_participant(rooms):
    watcher = WebSocketClient(rooms.room_url)
    watching = watcher.attach()
    watching.data({"request": "join", "room": 1234, "ptype": "publisher"})
    leaver = WebSocketClient(rooms.room_url)
    leaver.attach().data({"request": "join", "room": 1234, "ptype": "publisher", "id": 41})
    leaver.close()
    assert watching.event(lambda data: "leaving" in data)["leaving"] == 41
    watcher.close()


def test_secrets_are_needed_unless_the_rooms_are_open(tmp_path):
    (tmp_path / "api").write_text("a secret of the app\n")
    (tmp_path / "api").chmod(0o600)
    server = Server(tmp_path, janus={"apiSecretFile": str(tmp_path / "api"), "create": "anyone"})
    try:
        url = f"http://127.0.0.1:{server.http_port}/janus"
        refused = PollingClient.post(url, b'{"janus":"create","transaction":"t"}')
        assert refused["error"]["code"] == 403
        client = PollingClient(url, apisecret="a secret of the app")
        assert client.attach().data({"request": "create"})["videoroom"] == "created"
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"{url}/nonsense")
    finally:
        server.stop()


# MARK: media


async def publish(handle, run):
    peer = RTCPeerConnection()
    peer.addTransceiver(AudioStreamTrack(), "sendonly")
    peer.addTransceiver(VideoStreamTrack(), "sendonly")
    await peer.setLocalDescription(await peer.createOffer())
    answer = await run(handle.message, {"request": "configure"}, {"type": "offer", "sdp": peer.localDescription.sdp})
    await peer.setRemoteDescription(RTCSessionDescription(answer["jsep"]["sdp"], "answer"))
    await run(handle.event, lambda message: message.get("janus") == "webrtcup")
    return peer


async def subscribe(handle, feed, run):
    """The peer, and its first picture."""
    peer, tracks = RTCPeerConnection(), []
    peer.on("track", tracks.append)
    attached = await run(handle.message, {"request": "join", "room": 1234, "ptype": "subscriber", "streams": [{"feed": feed}]})
    await peer.setRemoteDescription(RTCSessionDescription(attached["jsep"]["sdp"], "offer"))
    await peer.setLocalDescription(await peer.createAnswer())
    started = await run(handle.data, {"request": "start"}, {"type": "answer", "sdp": peer.localDescription.sdp})
    assert started == {"videoroom": "event", "room": 1234, "started": "ok"}
    video = next(track for track in tracks if track.kind == "video")
    frame = await asyncio.wait_for(video.recv(), 30)
    return peer, frame


@pytest.mark.parametrize("transport", [lambda rooms: WebSocketClient(rooms.room_url), lambda rooms: PollingClient(rooms.poll_url)], ids=["websocket", "poll"])
def test_two_peers_see_each_other_in_a_room(rooms, transport):
    async def talk():
        run = asyncio.to_thread
        peers, feeds, clients = [], [], []
        for name in ("Ana", "Bea"):
            client = await run(transport, rooms)
            handle = await run(client.attach)
            joined = await run(handle.data, {"request": "join", "room": 1234, "ptype": "publisher", "display": name})
            feeds.append(joined["id"])
            clients.append(client)
            peers.append(await publish(handle, run))
        for client, feed in zip(clients, reversed(feeds)):
            handle = await run(client.attach)
            peer, frame = await subscribe(handle, feed, run)
            assert (frame.width, frame.height) == (640, 480)
            peers.append(peer)
        for peer in peers:
            await peer.close()
        for client in clients:
            await run(lambda: client.ask(janus="destroy"))
            client.close()

    asyncio.run(talk())
    assert rooms.metric("conclave_janus_sessions") == 0
