"""No secret of a browser reaches the server: everything that it receives, stores and logs is searched for the secrets that the hook on WebCrypto has seen."""

import asyncio
import base64
import os

import pytest
from audit import Audit
from browser import SMALL_CAMERA, Tab
from conftest import Server, wait_for
from device import Device
from lying_proxy import LyingProxy
from lying_stage import Member
from test_tap import Capture, listen


@pytest.fixture
def server(tmp_path):
    running = Server(tmp_path, log="debug")
    yield running
    running.stop()


def encodings(secret):
    """The encodings in which bytes may occur: raw, hex, and base64 and base64url at any offset in longer data."""
    yield secret
    yield secret.hex().encode()
    yield secret.hex().upper().encode()
    for shift in range(3):
        text = base64.b64encode(bytes(shift) + secret)
        # The first and last characters depend on the bytes around the secret.
        whole = text[(shift * 8 + 5) // 6 : (shift + len(secret)) * 8 // 6]
        yield whole
        yield whole.replace(b"+", b"-").replace(b"/", b"_")


def found(secrets, places):
    """The places where one of `secrets` occurs: [(place, index of the encoding)]."""
    return [(place, number) for place, data in places.items() for secret in secrets for number, form in enumerate(encodings(secret)) if form in data]


def is_random(secret):
    """Zeros and other constant bytes are not secret, and are everywhere."""
    return len(set(secret)) >= min(12, len(secret) * 3 // 4)


# The server makes these itself. They are too short for a meaningful search.
OWN_SECRETS = {"secret", "guest-secret", "push-key"}


def everything(server, proxy, capture):
    """Everything that the server received, stored and wrote, by place."""
    stored = {path.name: path.read_bytes() for path in server.state.iterdir() if path.is_file() and path.name not in OWN_SECRETS}
    payloads = b"".join(payload for kind in capture.packets.values() for packets in kind.values() for _, payload in packets.values()) if capture else b""
    return {
        "signaling": b"".join(proxy.captured["up"] + proxy.captured["down"]),
        "media": payloads,
        "log": (server.folder / "server.log").read_bytes(),
        **stored,
    }


def secrets_of(audit):
    with audit.lock:
        frames = {bytes.fromhex(clear)[:24] for clear in audit.clear if len(clear) >= 48}
        groups = {
            "private keys": {bytes.fromhex(key) for key in audit.privates},
            "derived secrets": {bytes.fromhex(secret) for secret in audit.secrets if len(secret) >= 32},
            "clear frames": frames,
        }
    return {name: {secret for secret in group if is_random(secret)} for name, group in groups.items()}


def test_no_secret_of_a_browser_reaches_the_server(server, connect, monkeypatch):
    proxy, audit, tabs = LyingProxy(server), Audit(), []
    words = "canary " + os.urandom(12).hex()
    try:
        for name in ("Alice", "Bob"):
            tabs.append(Tab(proxy.url, name, [SMALL_CAMERA]))
            audit.watch(tabs[-1])
            tabs[-1].driver.refresh()
            tabs[-1].sees("#lobby")
        alice, bob = tabs
        guest = connect("guest")
        carol = Member(server, proxy, "carol")
        alice.call("Bob", "guest", "carol")
        bob.answer()
        wait_for(lambda: {opened.user for opened in audit.opened} >= {"alice", "bob"}, 15, "they hear each other")
        alice.press("Chat")
        alice.find("#chat-text", None).send_keys(words)
        alice.driver.execute_script("document.querySelector('#chat-form').requestSubmit()")
        wait_for(lambda: words in bob.text("#chat-list"), 10, "Bob reads the words")
        # The SFU's view: the frames after SRTP at somebody who has no key.
        capture = Capture(monkeypatch)
        call = guest.event("call.ring", seconds=10)["call"]
        guest.request(f"/app/calls/{call}/accept", guest.join())
        asyncio.run(listen(guest, call, capture))
        # A member who joins and leaves causes ratchets, fresh keys, envelopes and confirmations.
        carol.come(call)
        proxy.sees("event", "keys.switch", user="carol")
        carol.go(call)
        proxy.sees("request", f"calls/{call}/keys", user="alice", where=lambda body: body["epoch"] > 3)
        wait_for(lambda: proxy.seen("request", f"calls/{call}/keys/confirm", "bob"), 20, "the key is confirmed")
        places = everything(server, proxy, capture)
        assert all(len(data) > 100 for name, data in places.items() if name not in ("lock",)), {name: len(data) for name, data in places.items()}
        secrets = {**secrets_of(audit), "words": {words.encode()}}
        for name, group in secrets.items():
            assert group, f"there are no {name} to search for"
            assert found(group, places) == [], f"{name} reached the server"
        # A public name is found in the same places.
        assert found({b'"joinId"'}, places)
    finally:
        audit.close()
        for tab in tabs:
            tab.close()
        proxy.close()


def test_the_search_finds_a_secret_that_a_client_gives_away(server):
    """If a client puts its key into a call's metadata, it is detected on the wire and in storage."""
    proxy = LyingProxy(server)
    secret = os.urandom(32)
    through = type("Through", (), {"stomp_port": proxy.stomp_port, "state": server.state})
    device = Device(through, "mallory")
    try:
        metadata = base64.b64encode(b"title" + secret + b"end").decode()
        device.start(metadata=metadata)
        device.sync()
        places = {place for place, _ in found({secret}, everything(server, proxy, None))}
        assert "signaling" in places and any(name.startswith("conclave.sqlite") for name in places), places
    finally:
        device.close()
        proxy.close()


@pytest.mark.parametrize("before", range(4))
def test_the_search_finds_every_encoding(before):
    secret = os.urandom(32)
    around = lambda data: b"x" * 7 + data + b"y" * 5
    raw = os.urandom(before) + secret + os.urandom(2)
    for data in (raw, raw.hex().encode(), raw.hex().upper().encode(), base64.b64encode(raw), base64.urlsafe_b64encode(raw)):
        assert found({secret}, {"place": around(data)})
        changed = bytearray(secret)
        changed[10] ^= 1
        assert not found({bytes(changed)}, {"place": around(data)})
