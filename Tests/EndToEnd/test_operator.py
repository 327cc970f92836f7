"""What the program says to an operator when it cannot do what it is told: which thing is wrong, and what would be right; exit status 1."""

import json
import socket
import subprocess

import pytest

from conftest import BINARY, free_port


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
def test_a_server_that_cannot_start_says_why(tmp_path, config, words):
    status, told = run(tmp_path, "serve", config=config)
    assert status == 1 and words in told


def test_a_port_that_is_taken_is_named(tmp_path, taken):
    listen = {"address": "127.0.0.1", "stomp": taken, "http": free_port()}
    status, told = run(tmp_path, "serve", config={"listen": listen})
    assert status == 1
    assert f"port {taken} of 127.0.0.1 cannot be opened: Address already in use; is another server running?" in told


def test_no_token_is_made_by_a_secret_that_no_server_has(tmp_path):
    status, told = run(tmp_path, "token", "--user", "alice")
    assert status == 1 and f"{tmp_path}/state/secret: there is no secret that can be read; start the server once" in told
    assert not (tmp_path / "state").exists()


def test_forgetting_names_the_folder_that_it_looked_in(tmp_path):
    status, told = run(tmp_path, "forget", "--user", "alice")
    assert status == 1 and f"{tmp_path}/state/conclave.sqlite: there is no such file" in told
