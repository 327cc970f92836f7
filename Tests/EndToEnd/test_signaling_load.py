"""Signaling under load: what a delivery and an idle connection cost, and how fast many come in."""

import contextlib
import json
import os
import subprocess

from conftest import Server

BINARY = os.environ.get("LOADTEST_BINARY", ".build/release/loadtest")

# The product's figures are 10 µs, 30 KB and 10 s; a shared machine gets half as much again.
CPU_MICROS, IDLE_BYTES, CONNECT_SECONDS = 15, 45_000, 15


@contextlib.contextmanager
def fresh_broker(folder, artifacts):
    """A server of its own, because memory is measured on a fresh one; it lets clients use topics."""
    folder.mkdir()
    running = Server(folder, destinations=["/topic/"])
    try:
        yield running
    finally:
        running.stop()
        (artifacts / "signaling-server.log").write_bytes((folder / "server.log").read_bytes())


def trial(server, report):
    """One run of the load test: its faults, a line each."""
    # 100@50 shows latency in the report; only figures of CPU and memory are judged on a shared machine.
    command = [BINARY, "--scenario", "signaling", "--url", f"stomp://127.0.0.1:{server.stomp_port}", "--connections", "5000"]
    command += ["--fan-out", "100@max", "--fan-out", "100@50", "--runs", "3", "--duration", "3"]
    command += ["--state", str(server.state), "--server-pid", str(server.pid), "--json", str(report)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=240)
    print(process.stdout, process.stderr)
    if process.returncode != 0:
        return [process.stdout + process.stderr]
    figures = json.loads(report.read_text())["servers"][0]
    assert figures["lost"] == 0
    fan_out = figures["fanOuts"][0]
    assert fan_out["deliveriesPerSecond"]["min"] > 0
    measured = {
        "CPU a delivery, in microseconds": (fan_out["cpuMicrosPerDelivery"]["min"], CPU_MICROS),
        "bytes a connection": (figures["bytesAConnection"], IDLE_BYTES),
        "seconds until all are connected": (figures["connectSeconds"]["min"], CONNECT_SECONDS),
    }
    return [f"{name}: {value}, limit {limit}" for name, (value, limit) in measured.items() if not 0 < value <= limit]


def test_a_crowd_comes_in_and_deliveries_are_cheap(tmp_path, artifacts):
    # Another program on this machine can take caches and cores. It does not do so three times if the server is not the cause.
    faults = []
    for attempt in range(3):
        with fresh_broker(tmp_path / str(attempt), artifacts) as broker:
            found = trial(broker, artifacts / "signaling.json")
        if not found:
            return
        faults.append(found)
    assert not faults, faults


def test_a_topic_that_is_not_configured_is_a_failure_that_says_so(server, tmp_path):
    command = [BINARY, "--scenario", "signaling", "--url", f"stomp://127.0.0.1:{server.stomp_port}"]
    command += ["--state", str(server.state), "--connections", "0", "--fan-out", "1@1", "--runs", "1"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert process.returncode == 1 and "refused" in process.stderr
