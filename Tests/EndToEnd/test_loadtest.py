"""The load test against a real server: its scenarios, its limits and what it reports."""

import csv
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

from conftest import PATIENCE, Server, free_port, wait_for
from janus_server import JanusServer

BINARY = os.environ.get("LOADTEST_BINARY", ".build/release/loadtest")


def run(server, report, *options, command=()):
    command = [*command, BINARY, "--url", f"stomp://127.0.0.1:{server.stomp_port}", "--state", str(server.state)]
    command += ["--server-pid", str(server.pid), "--json", str(report), *options]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120 * PATIENCE)
    print(process.stdout, process.stderr)
    return process.returncode, json.loads(report.read_text())


def test_the_same_media_goes_through_janus(tmp_path):
    with JanusServer(tmp_path, free_port(), ports="40000-40999") as janus:
        command = [BINARY, *janus.target, "--server-pid", str(janus.process.pid), "--json", str(tmp_path / "report.json")]
        call = ("--participants", "4", "--publishers", "3", "--duration", "4", "--fail-if", "loss>1%")
        process = subprocess.run([*command, *call], timeout=60 * PATIENCE)
        report = json.loads((tmp_path / "report.json").read_text())
    assert (process.returncode, report["joined"], report["decryptFailures"]) == (0, 4, 0)
    assert report["received"] > 0.99 * report["expected"] > 0
    assert report["server"]["cpuMicrosPerPacket"] > 0


def test_a_course_that_janus_cannot_take_is_an_error_at_once(tmp_path):
    process = subprocess.run([BINARY, "--target", "janus", "--layers"], capture_output=True, text=True, timeout=10 * PATIENCE)
    assert process.returncode == 64 and "without --churn" in process.stderr
    nobody = f"http://127.0.0.1:{free_port()}/janus"
    process = subprocess.run([BINARY, "--target", "janus", "--url", nobody], capture_output=True, text=True, timeout=20 * PATIENCE)
    assert process.returncode != 0 and "does not answer as Janus does" in process.stderr


def test_watchers_receive_what_publishers_send(server, tmp_path):
    status, report = run(
        server, tmp_path / "watch.json", "--participants", "6", "--publishers", "2", "--duration", "5", "--audio-only"
    )
    assert (status, report["joined"], report["loss"]) == (0, 6, 0)


def test_a_call_over_ipv6_loses_nothing(tmp_path):
    server = Server(tmp_path, media={"port": free_port(), "workers": 1, "announce": ["::1"]})
    try:
        command = [BINARY, "--url", f"stomp://[::1]:{server.stomp_port}", "--state", str(server.state)]
        process = subprocess.run(
            [*command, "--participants", "4", "--duration", "4", "--json", str(tmp_path / "report.json")], timeout=60 * PATIENCE
        )
        report = json.loads((tmp_path / "report.json").read_text())
        assert (process.returncode, report["joined"], report["loss"]) == (0, 4, 0)
        assert report["received"] > 0
    finally:
        server.stop()


def complaint(tmp_path, *options, secret="s" * 64):
    """Returns the message of a load test that cannot use its server, and its duration in seconds."""
    (tmp_path / "secret").write_text(secret)
    start = time.monotonic()
    # The join timeout is long, as in a terminal: an error must not wait for it.
    command = [BINARY, "--secret", str(tmp_path / "secret"), "--participants", "3", "--join-timeout", "60", *options]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60 * PATIENCE)
    assert process.returncode == 1 and not process.stdout, process.stdout
    return process.stderr, time.monotonic() - start


def at_once(seconds):
    return seconds < 2 * PATIENCE


def test_a_server_that_is_not_there_is_an_error_at_once(tmp_path):
    text, seconds = complaint(tmp_path, "--url", "stomp://127.0.0.1:1")
    assert "connection refused" in text and "listen.stomp" in text and at_once(seconds), (text, seconds)


@pytest.mark.parametrize("scenario", ["meeting", "signaling"])
def test_a_wrong_secret_is_an_error_at_once(server, tmp_path, scenario):
    text, seconds = complaint(tmp_path, "--scenario", scenario, "--url", f"stomp://127.0.0.1:{server.stomp_port}")
    assert "authentication failed" in text and "--state" in text and at_once(seconds), (text, seconds)


def test_a_wrong_port_is_an_error_at_once(server, tls_server, tmp_path):
    secret = (server.state / "secret").read_text()
    with socket.create_server(("127.0.0.1", 0)) as other:

        def greet():
            peer, _ = other.accept()
            with peer:
                peer.sendall(b"220 mail.example ESMTP\r\n")
                peer.recv(1_000)

        threading.Thread(target=greet, daemon=True).start()
        ports = {
            f"stomp://127.0.0.1:{server.http_port}": ("HTTP port", "closed the connection"),
            f"stomp://127.0.0.1:{tls_server.stomp_tls_port}": ("TLS port", "closed the connection"),
            f"stomps://127.0.0.1:{server.stomp_port}": ("TLS failed", "closed the connection"),
            f"stomp://127.0.0.1:{other.getsockname()[1]}": ("220 mail.example",),
        }
        for url, words in ports.items():
            text, seconds = complaint(tmp_path, "--url", url, secret=secret)
            assert any(word in text for word in words) and "listen.stomp" in text or "stomps://" in text, (url, text)
            # The mail server waits for the end of a line, and the load test for the end of a frame.
            assert at_once(seconds) or "220" in text, (url, seconds)


def test_a_topic_that_is_not_configured_is_a_failure_that_says_so(server, tmp_path):
    command = [BINARY, "--scenario", "signaling", "--url", f"stomp://127.0.0.1:{server.stomp_port}"]
    command += ["--state", str(server.state), "--connections", "0", "--fan-out", "1@1", "--runs", "1"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60 * PATIENCE)
    assert process.returncode == 1 and "refused" in process.stderr


class Running:
    """A load test that runs until it is interrupted."""

    def __init__(self, server, folder, *options):
        self.report = folder / "report.json"
        command = [BINARY, "--url", f"stomp://127.0.0.1:{server.stomp_port}", "--state", str(server.state)]
        self.process = subprocess.Popen(
            [*command, "--json", str(self.report), *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        try:
            text, _ = self.process.communicate(timeout=10 * PATIENCE)
        finally:
            self.process.kill()
        return self.process.returncode, json.loads(self.report.read_text()), text


def test_an_interruption_while_joining_writes_the_report(server, tmp_path):
    forwarded = server.metric("conclave_media_forwarded_packets_total")
    running = Running(server, tmp_path, "--participants", "60", "--join-rate", "2/s", "--audio-only")
    wait_for(lambda: server.metric("conclave_media_forwarded_packets_total") > forwarded + 50, 20, "some are in the call")
    status, report, text = running.interrupt()
    assert status == 1 and report["interrupted"] == "joining" and not report["ok"], text
    assert 0 < report["joined"] < 60 and report["expected"] == 0 and "interrupted" in text


def test_an_interruption_while_measuring_ends_it_with_a_report(server, tmp_path):
    forwarded = server.metric("conclave_media_forwarded_packets_total")
    running = Running(server, tmp_path, "--participants", "4", "--audio-only", "--duration", "600")
    wait_for(lambda: server.metric("conclave_media_forwarded_packets_total") > forwarded + 1_500, 20, "media flows")
    status, report, text = running.interrupt()
    assert status == 0 and report["interrupted"] == "measuring", text
    assert report["received"] == report["expected"] > 0 and 0 < report["durationSeconds"] < 600


def test_participants_come_and_go_without_loss_for_the_others(server, tmp_path):
    status, report = run(
        server, tmp_path / "churn.json", "--scenario", "churn", "--participants", "6", "--publishers", "3", "--churn", "2/s",
        "--duration", "4", "--audio-only",
    )
    assert status == 0 and report["loss"] == 0 and report["expected"] > 0, report["faults"]
    # All joins count: the first six, and those of the participants that came back.
    assert report["joins"] >= 6 + 4 and report["joined"] == 6


def test_a_ramp_ends_at_the_first_step_over_a_limit(server, tmp_path):
    options = ("--scenario", "ramp", "--participants", "12", "--step", "4", "--publishers", "2", "--audio-only", "--duration", "2")
    # Each step adds 2 × 50 packets a second for each new watcher, but not for the senders.
    status, report = run(server, tmp_path / "ramp.json", *options, "--until", "packets>450")
    assert [step["participants"] for step in report["steps"]] == [4, 8], report["steps"]
    assert report["lastGoodStep"] == 4 and "packets>450" in report["steps"][1]["limit"] and status == 0
    assert report["steps"][0]["packetsPerSecond"] < 450 < report["steps"][1]["packetsPerSecond"]
    status, report = run(server, tmp_path / "low.json", *options, "--until", "packets>1")
    assert status == 1 and report.get("lastGoodStep") is None and len(report["steps"]) == 1


def test_all_come_back_from_the_loss_of_all_connections(server, tmp_path):
    status, report = run(
        server, tmp_path / "storm.json", "--scenario", "rejoin-storm", "--participants", "12", "--publishers", "3",
        "--duration", "2", "--fail-if", "rejoined<100%,rejoin-p99>20s,loss>0",
    )
    assert status == 0, report["faults"]
    assert report["outages"]["away"] == 0 and report["outages"]["gaps"] == 12
    # A join ends before the loss. If it were counted until the return, it would be longer than the gap.
    assert report["joinMs"]["p50"] < report["outages"]["gapMs"]["p50"]
    # Each had two stays, and heard the others in both.
    assert all(len(stays) == 2 and all(sum(stay["opened"].values()) > 0 for stay in stays) for stays in report["stays"])


def test_a_bad_path_loses_its_share_and_spares_the_others(server, tmp_path):
    options = ("--scenario", "lossy", "--participants", "5", "--impaired", "40%", "--impair", "loss=10%,delay=40ms", "--duration", "3")
    page, rows = tmp_path / "lossy.html", tmp_path / "lossy.csv"
    status, report = run(server, tmp_path / "lossy.json", *options, "--audio-only", "--html", str(page), "--csv", str(rows))
    assert status == 0 and report["impaired"] > 50, report["faults"]
    # One of the five gets 4 × 10 %, or 1 - 0.9² of the two impaired ones' packets: about 9 % in all.
    assert 0.03 < report["loss"] < 0.2
    # Six of the twenty pairs have good paths in both directions; each bad path adds 40 ms.
    assert report["latencyMs"]["p50"] > 30 and report["latencyMs"]["p99"] > 75
    with rows.open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(report["samples"]) >= 3 and {"joined", "loss", "latency_p99_ms"} <= set(lines[0])
    text = page.read_text()
    assert text.count("<svg") >= 8 and not re.search(r"<script|https?:|src=|href=", text)
    status, report = run(server, tmp_path / "failed.json", *options, "--audio-only", "--fail-if", "loss>1%")
    assert status == 1 and any("loss>1%" in fault for fault in report["faults"])


def test_receivers_that_report_have_their_paths_estimated(fresh_server, tmp_path):
    call = ("--participants", "6", "--publishers", "2", "--video-kbps", "300", "--duration", "4", "--feedback")
    status, report = run(fresh_server, tmp_path / "feedback.json", *call)
    assert (status, report["joined"], report["loss"]) == (0, 6, 0), report["faults"]
    assert fresh_server.metric("conclave_media_feedback_received_total") > 6 * 4
    assert fresh_server.metric("conclave_media_estimate_bytes_count") > 6
    # On a fast path the estimate costs no layer.
    assert fresh_server.metric("conclave_media_withheld_videos_total") == 0


def test_a_call_on_three_workers_is_as_whole_as_on_one(tmp_path):
    server = Server(tmp_path, media={"port": 0, "workers": 3, "callShare": 2})
    try:
        call = ("--participants", "6", "--publishers", "3", "--layers", "--video-kbps", "900", "--feedback", "--duration", "6")
        status, report = run(server, tmp_path / "workers.json", *call)
        assert (status, report["joined"], report["loss"]) == (0, 6, 0), report["faults"]
        layers = report["layers"]
        # Each of six participants receives the cameras of the others.
        assert layers["undecodable"] == 0 and layers["decodable"]["f"] > 15 * 30 * 6 * 0.9, layers
        assert layers["longestFreezeMs"] < 1_000
        # At least each voice goes to the two other workers.
        assert server.metric("conclave_media_relayed_packets_total") > 3 * 2 * 50 * 6 * 0.9
        assert server.metric_of("conclave_media_dropped_packets_total", 'reason="relayFull"') == 0
    finally:
        server.stop()


def test_layered_cameras_are_decodable_and_a_narrow_path_gets_a_lower_layer(fresh_server, tmp_path):
    call = ("--participants", "6", "--publishers", "2", "--layers", "--video-kbps", "900", "--feedback")
    status, report = run(fresh_server, tmp_path / "layers.json", *call, "--duration", "4")
    assert status == 0, report["faults"]
    layers = report["layers"]
    # Ten cameras are received, each with up to 30 frames a second, in their highest layer.
    frames = sum(layers["decodable"].values())
    assert layers["undecodable"] == 0 and layers["decodable"]["f"] == frames > 10 * 30 * 4 / 2, layers
    assert layers["longestFreezeMs"] < 1_000

    page = tmp_path / "narrow.html"
    narrow = ("--settle", "6", "--impaired", "20%", "--impair", "rate=700kbit/s,delay=20ms", "--html", str(page))
    status, report = run(fresh_server, tmp_path / "narrow.json", *call, *narrow, "--duration", "8")
    assert status == 0, report["faults"]
    layers = report["layers"]
    # One of the six has a narrow path for two cameras; eight others are received whole.
    frames = sum(layers["decodable"].values())
    assert frames > 10 * 30 * 8 / 2 and 0.75 < layers["decodable"]["f"] / frames < 0.95, layers
    assert "Pictures by layer" in page.read_text()
