"""SIGTERM, SIGINT and a second signal end the server as docs/operate.md says."""

import signal
import urllib.error

import pytest

from client import Client, RequestFailed
from conftest import PATIENCE, Server, wait_for


@pytest.fixture
def draining(tmp_path):
    server = Server(tmp_path, drain=60)
    alice = Client(server, "alice", "laptop")
    alice.register()
    call = alice.request("/app/calls/start", {"callees": [], "media": "audio", **alice.starting()})["call"]["id"]
    yield server, alice, call
    alice.close()
    server.process.kill()
    server.process.wait()


def is_draining(server):
    try:
        server.get("/readyz")
    except urllib.error.HTTPError as error:
        return error.code == 503
    return False


def test_sigterm_waits_for_the_calls_to_end(draining):
    server, alice, call = draining
    server.process.send_signal(signal.SIGTERM)
    wait_for(lambda: is_draining(server), 5, "/readyz says 503")
    assert server.get("/healthz") == "ok\n"
    with pytest.raises(RequestFailed, match="server.draining"):
        alice.request("/app/calls/start", {"callees": [], "media": "audio", **alice.starting()})
    # A later request on the connection is served: the server has not started to shut down.
    assert alice.request("/app/calls/list")["calls"]
    assert server.process.poll() is None, "it waits for the call"
    alice.request(f"/app/calls/{call}/end")
    assert server.process.wait(5 * PATIENCE) == 0
    assert alice.errors.get(timeout=5 * PATIENCE).headers["message"] == "the server is shutting down"


@pytest.mark.parametrize("first, second", [(signal.SIGINT, None), (signal.SIGTERM, signal.SIGTERM)])
def test_sigint_and_a_second_signal_end_at_once(draining, first, second):
    server, _, _ = draining
    server.process.send_signal(first)
    if second:
        wait_for(lambda: is_draining(server), 5, "/readyz says 503")
        server.process.send_signal(second)
    assert server.process.wait(5 * PATIENCE) == 0
