"""Signaling under load: the cost of a delivery and of an idle connection, and how fast many connect."""

import contextlib
import json
import os
import socket
import statistics
import subprocess
import time

from conftest import PATIENCE, Server

BINARY = os.environ.get("LOADTEST_BINARY", ".build/release/loadtest")

# A delivery may cost the CPU time of four bare sends of such a frame, measured in the same run: other programs that use caches and cores make both more
# expensive. Wall-clock time is only a limit for waiting, as in all tests.
SENDS_A_DELIVERY, IDLE_BYTES, CONNECT_SECONDS = 4, 45_000, 15


@contextlib.contextmanager
def fresh_broker(folder, artifacts):
    """A separate server, because memory is measured on a new one; it lets clients use topics."""
    folder.mkdir()
    running = Server(folder, destinations=["/topic/"])
    try:
        yield running
    finally:
        running.stop()
        (artifacts / "signaling-server.log").write_bytes((folder / "server.log").read_bytes())


def bare_send_micros(receivers=100, rounds=200):
    """The CPU time of one `send` of a frame of 330 bytes over loopback to one of many receivers, the median of several rounds."""
    took = []
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        senders = [stack.enter_context(socket.create_connection(listener.getsockname())) for _ in range(receivers)]
        ends = [stack.enter_context(listener.accept()[0]) for _ in senders]
        for _ in range(rounds):
            start = time.thread_time_ns()
            for sender in senders:
                sender.send(bytes(330))
            took.append(time.thread_time_ns() - start)
            for end in ends:
                end.recv(1000)
    return statistics.median(took) / receivers / 1000


def faults_of(server, report):
    """One run of the load test; returns its faults, a line each."""
    # 100@50 shows latency in the report; on a shared machine only CPU and memory are judged.
    command = [BINARY, "--scenario", "signaling", "--url", f"stomp://127.0.0.1:{server.stomp_port}", "--connections", "5000"]
    command += ["--fan-out", "100@max", "--fan-out", "100@50", "--runs", "3", "--duration", "3"]
    command += ["--state", str(server.state), "--server-pid", str(server.pid), "--json", str(report)]
    send_micros = bare_send_micros()
    process = subprocess.run(command, capture_output=True, text=True, timeout=240 * PATIENCE)
    send_micros = max(send_micros, bare_send_micros())
    print(process.stdout, process.stderr, f"a bare send: {send_micros:.2f} µs")
    if process.returncode != 0:
        return [process.stdout + process.stderr]
    figures = json.loads(report.read_text())["servers"][0]
    assert figures["lost"] == 0
    fan_out = figures["fanOuts"][0]
    assert fan_out["deliveriesPerSecond"]["min"] > 0
    measured = {
        "CPU a delivery, in microseconds": (fan_out["cpuMicrosPerDelivery"]["min"], SENDS_A_DELIVERY * send_micros),
        "bytes a connection": (figures["bytesAConnection"], IDLE_BYTES),
        "seconds until all are connected": (figures["connectSeconds"]["min"], CONNECT_SECONDS * PATIENCE),
    }
    return [f"{name}: {value}, limit {limit}" for name, (value, limit) in measured.items() if not 0 < value <= limit]


def test_a_crowd_comes_in_and_deliveries_are_cheap(tmp_path, artifacts):
    with fresh_broker(tmp_path / "broker", artifacts) as broker:
        assert not faults_of(broker, artifacts / "signaling.json")
