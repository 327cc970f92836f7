"""The servers under measurement and their loads: a server has core 0, and the load test core 1."""

import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.append(str(pathlib.Path(__file__).parents[2] / "Tests/EndToEnd/kit"))
from janus_server import JanusServer, wait_until_it_listens

BINARIES = pathlib.Path(os.environ.get("BINARIES", ".build/release"))
PORT = int(os.environ.get("PORTS", "18800"))
# Each shape with its options.
SHAPES = {
    "5 × 5, audio and 1 Mbit/s": ["--participants", "5", "--video-kbps", "1000"],
    "10 × 10, audio and 600 kbit/s": ["--participants", "10"],
    "3 + 60, audio and 1 Mbit/s": ["--scenario", "webinar"],
    "25 × 25, audio": ["--scenario", "audio-room"],
}
# Each call with its options, and for Conclave and Janus each the participants of the first step and of each further step.
CALLS = {
    "3 + N, audio and 1 Mbit/s": (["--publishers", "3", "--video-kbps", "1000"], (80, 80), (40, 20)),
    "1 + N, audio and 4 Mbit/s": (["--publishers", "1", "--video-kbps", "4000"], (80, 80), (20, 10)),
    "20 + N, audio and 600 kbit/s": (["--publishers", "20"], (30, 10), (20, 5)),
}
MEDIA = 8  # seconds of media in each run
LIMIT = 45 * 60


class Server:
    """A new server on core 0."""

    def __init__(self, folder):
        self.state = folder / "state"
        configuration = folder / "conclave.json"
        listen = {"address": "127.0.0.1", "stomp": PORT, "http": PORT + 1}
        media = {"port": PORT + 2, "workers": 1}
        members = {"state": str(self.state), "media": media, "listen": listen, "destinations": ["/topic/"]}
        configuration.write_text(json.dumps(members))
        self.log = (folder / "server.log").open("wb")
        command = ["taskset", "-c", "0", BINARIES / "conclave", "serve", "--config", configuration]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        wait_until_it_listens(self.process, PORT, self.log.name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.log.close()

    def passes(self, name):
        """The number of passes that took at most a millisecond of CPU time, and the number of all passes."""
        page = urllib.request.urlopen(f"http://127.0.0.1:{PORT + 1}/metrics").read().decode()
        counts = dict(re.findall(rf'conclave_media_pass_seconds_bucket{{pass="{name}",le="([^"]+)"}} (\d+)', page))
        return int(counts["0.001"]), int(counts["+Inf"])

    @property
    def target(self):
        return ("--url", f"stomp://127.0.0.1:{PORT}", "--state", self.state)


class Janus(JanusServer):
    def __init__(self, folder):
        super().__init__(folder, PORT + 3, ("taskset", "-c", "0"))


def memory(server):
    """Resident memory, and the part of it that is not backed by files, in MB."""
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return [int(re.search(rf"{name}:\s+(\d+) kB", status)[1]) * 1024 / 1e6 for name in ("VmRSS", "RssAnon")]


def load(server, folder, *options):
    """The report of a load."""
    report = folder / "report.json"
    command = ["taskset", "-c", "1", BINARIES / "loadtest", *server.target]
    command += ["--server-pid", str(server.process.pid), "--json", report, "--join-timeout", "120", *options]
    if "--duration" not in options:
        command += ["--duration", str(MEDIA)]
    before = memory(server)[1]
    run = subprocess.Popen(command, stdout=sys.stderr, stderr=subprocess.STDOUT)
    most, deadline = before, time.monotonic() + LIMIT
    while run.poll() is None and time.monotonic() < deadline:
        most = max(most, memory(server)[1])
        time.sleep(0.2)
    run.kill()  # a process that is still alive took too long
    run.wait()
    if not report.exists():
        sys.exit("the load test has no report: see its output above")
    found = json.loads(report.read_text())
    report.unlink()
    # The first call also touches pages of the program, which do not count for participants.
    return found | {"addedMemory": most - before}


def alone(kind, *options):
    """The report of a load on a new server."""
    with tempfile.TemporaryDirectory() as folder, kind(pathlib.Path(folder)) as server:
        return load(server, pathlib.Path(folder), *options)


def prepare():
    """Exits with a reason if this machine cannot measure."""
    if os.cpu_count() < 2:
        sys.exit("two cores are needed: one for the server, one for the load test")
    if not (BINARIES / "loadtest").exists():
        sys.exit(f"{BINARIES}/loadtest is missing: swift build -c release -Xswiftc -enable-testing, or set BINARIES")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
