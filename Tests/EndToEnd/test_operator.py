"""Errors for an operator: the program says what is wrong and what would be right, with exit status 1."""

import json
import socket
import subprocess
import urllib.error
import urllib.request

import pytest

from conftest import BINARY, Server, free_port


def run(tmp_path, *arguments, config=None):
    """Exit status and what stands on standard error."""
    file = tmp_path / "config.json"
    listen = {"address": "127.0.0.1", "stomp": free_port(), "http": free_port(), "stompTLS": free_port()}
    media = {"port": free_port(), "workers": 1}
    file.write_text(json.dumps({"state": str(tmp_path / "state"), "listen": listen, "media": media, **(config or {})}))
    command = [BINARY, *arguments, "--config", str(file)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=30)
    return run.returncode, run.stderr


@pytest.fixture
def taken():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize(
    "config, words",
    [
        ({"tls": {"certificate": "/no/chain.pem", "key": "/no/key.pem"}}, "tls: /no/chain.pem and /no/key.pem cannot be"),
        ({"listen": {"address": "192.0.2.1"}}, "listen.address is to be one of this machine's own"),
        ({"auth": {"secretFile": "/no/secret"}}, "/no/secret: cannot be read; check its name and mode"),
        ({"drainn": 1}, "drainn: is not an option; there are auth"),
    ],
    ids=["certificate", "address", "secret", "mistyped"],
)
@pytest.mark.parametrize("command", ["serve", "check-config"])
def test_a_server_that_cannot_start_says_why(tmp_path, command, config, words):
    status, told = run(tmp_path, command, config=config)
    assert status == 1 and words in told


@pytest.mark.parametrize("command", ["serve", "check-config"])
@pytest.mark.parametrize("name", ["stomp", "http", "metrics"])
def test_a_port_that_is_taken_is_named(tmp_path, taken, command, name):
    listen = {"address": "127.0.0.1", "stomp": free_port(), "http": free_port(), name: taken}
    status, told = run(tmp_path, command, config={"listen": listen})
    assert status == 1
    assert f"port {taken} of 127.0.0.1 cannot be opened: " in told and "Address already in use" in told


@pytest.mark.parametrize(
    "config, words",
    [
        ({"turn": {"urls": ["turn:t.example"], "secretFile": "/no/secret"}}, "/no/secret: cannot be read"),
        ({"webhooks": {"url": "https://a.example", "secret": "short"}}, "webhooks: the secret has 5 bytes"),
        ({"auth": {"jwksFile": "/no/keys", "issuer": "i", "audience": "a"}}, "/no/keys"),
        ({"media": {"announce": ["here"]}}, "media.announce: here is not an IPv4 or IPv6 address"),
        ({"state": "/etc/passwd/state"}, "state: /etc/passwd cannot be"),
    ],
    ids=["turn", "webhooks", "keys", "announce", "state"],
)
def test_check_config_finds_what_a_start_would_refuse(tmp_path, config, words):
    status, told = run(tmp_path, "check-config", config=config)
    assert status == 1 and words in told, told


def test_check_config_leaves_nothing_behind_and_knows_a_running_server(tmp_path):
    status, _ = run(tmp_path, "check-config")
    assert status == 0 and not (tmp_path / "state").exists()
    folder = tmp_path / "running"
    folder.mkdir()
    server = Server(folder)
    try:
        command = [BINARY, "check-config", "--config", str(server.config)]
        told = subprocess.run(command, capture_output=True, text=True, timeout=30)
        assert told.returncode == 0 and "A server runs on" in told.stdout
        assert server.get("/healthz") == "ok\n"
    finally:
        server.stop()


def test_metrics_have_a_port_of_their_own(tmp_path):
    port = free_port()
    server = Server(tmp_path)
    try:
        config = json.loads(server.config.read_text())
        config["listen"] |= {"metrics": port, "stomp": None}
        server.config.write_text(json.dumps(config))
        server.die()
        # /readyz is on that port, too.
        server.is_ready = lambda: connects(server.http_port)
        server.start()
        with urllib.request.urlopen(f"http://localhost:{port}/metrics", timeout=5) as reply:
            assert f'conclave_build_info{{version="' in reply.read().decode()
        with urllib.request.urlopen(f"http://localhost:{port}/readyz", timeout=5) as reply:
            assert reply.read() == b"ready\n"
        with pytest.raises(urllib.error.HTTPError, match="404"):
            server.get("/metrics")
        assert not connects(server.stomp_port), "STOMP without TLS is closed"
    finally:
        server.stop()


def connects(port):
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
        return True
    except OSError:
        return False


def test_no_token_is_made_by_a_secret_that_no_server_has(tmp_path):
    status, told = run(tmp_path, "token", "--user", "alice")
    assert status == 1 and f"{tmp_path}/state/secret: there is no secret that can be read; start the server once" in told
    assert not (tmp_path / "state").exists()


def test_forgetting_names_the_folder_that_it_looked_in(tmp_path):
    status, told = run(tmp_path, "forget", "--user", "alice")
    assert status == 1 and f"{tmp_path}/state/conclave.sqlite: there is no such file" in told
