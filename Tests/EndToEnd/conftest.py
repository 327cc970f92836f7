"""A real server for each test session, on free ports, as an operator would run it."""

import hashlib
import itertools
import json
import os
import pathlib
import random
import socket
import ssl
import subprocess
import sys
import urllib.request

import pytest

# The parts that tests share.
sys.path.insert(0, str(pathlib.Path(__file__).parent / "kit"))

from client import Client  # noqa: E402
from device import Device  # noqa: E402
from waiting import PATIENCE, wait_for  # noqa: E402

BINARY = os.environ.get("CONCLAVE_BINARY", ".build/release/conclave")
# The tests' certificates are self-signed.
UNVERIFIED = ssl.create_default_context()
UNVERIFIED.check_hostname, UNVERIFIED.verify_mode = False, ssl.CERT_NONE


# Below the ports that Linux uses for outgoing connections (ip_local_port_range), which could take a port before its server does. Processes that run at the same
# time have separate ranges.
FIRST_PORT = int(os.environ.get("CONCLAVE_TEST_PORTS", "20000"))
PORTS_OF_A_PROCESS = 6_000
PORTS = itertools.count(random.randrange(PORTS_OF_A_PROCESS))


def free_port():
    """A port that is free for TCP and UDP. A process gets each one only once."""
    for number in PORTS:
        port = FIRST_PORT + number % PORTS_OF_A_PROCESS
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tcp.bind(("0.0.0.0", port))
                udp.bind(("0.0.0.0", port))
                return port
            except OSError:
                continue


def pytest_collection_modifyitems(items):
    """Tests with browsers run last, and those with a simulated network at the very end, since that is a Python program and has to keep up. For pictures, only
    the tests that look at the page run."""
    if os.environ.get("CONCLAVE_SCREENSHOTS"):
        items[:] = [item for item in items if "look" in item.fixturenames]
    browsers = {item.path for item in items if "person" in item.fixturenames}
    networks = {item.path for item in items if "network" in item.fixturenames}
    items.sort(key=lambda item: (item.path in browsers) + (item.path in networks))


class Server:
    """`conclave serve --demo` as a process; `more` are members of its configuration, `command` is a prefix that starts it (such as `prlimit`)."""

    def __init__(self, folder: pathlib.Path, command=(), demo=True, **more):
        self.folder, self.command, self.demo = folder, list(command), demo
        self.stomp_port, self.stomp_tls_port, self.http_port = free_port(), free_port(), free_port()
        self.has_tls = "tls" in more
        self.media_port = free_port()
        self.config = folder / "config.json"
        self.config.write_text(
            json.dumps(
                {
                    "state": str(folder / "state"),
                    "listen": {"stomp": self.stomp_port, "stompTLS": self.stomp_tls_port, "http": self.http_port},
                    "media": {"port": self.media_port, "workers": 1},
                    # The end does not wait for calls that a test has left running.
                    "drain": 0,
                    **more,
                }
            )
        )
        self.log = open(folder / "server.log", "wb")
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [*self.command, BINARY, "serve", *(["--demo"] if self.demo else []), "--config", str(self.config)],
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )
        wait_for(self.is_ready, 20, "the server answers /readyz")

    @property
    def url(self):
        return f"{'https' if self.has_tls else 'http'}://localhost:{self.http_port}"

    @property
    def pid(self):
        return self.process.pid

    def cpu_seconds(self):
        """The CPU time that the server has used."""
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def state(self):
        return self.folder / "state"

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=5 * PATIENCE, context=UNVERIFIED) as reply:
            return reply.read().decode()

    def metric(self, name):
        """The sum of a metric over its labels."""
        lines = [line for line in self.get("/metrics").splitlines() if line.startswith(name)]
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line[len(name)] in " {")

    def metric_of(self, name, label):
        """A metric's value for one label, as `reason="full"`."""
        line = f"{name}{{{label}}} "
        return sum(float(row[len(line) :]) for row in self.get("/metrics").splitlines() if row.startswith(line))

    def is_ready(self):
        assert self.process.poll() is None, (self.folder / "server.log").read_text()
        try:
            return self.get("/readyz") is not None
        except OSError:
            return False

    def token(self, user, device=None, *more):
        named = ["--device", device] if device else []
        command = [BINARY, "token", "--config", str(self.config), "--user", user, *named, *more]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def die(self):
        """Kills it as if the machine had crashed: it sends nothing and cleans up nothing."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10 * PATIENCE)
        finally:
            self.process.kill()
            self.log.close()


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory):
    """The folder for reports, logs and screenshots."""
    folder = pathlib.Path(os.environ.get("CONCLAVE_ARTIFACTS") or tmp_path_factory.mktemp("artifacts"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def server(tmp_path_factory, artifacts):
    running = Server(tmp_path_factory.mktemp("server"))
    yield running
    running.stop()
    (artifacts / "server.log").write_bytes((running.folder / "server.log").read_bytes())
    assert running.process.returncode == 0, "the server did not end cleanly on SIGTERM"


@pytest.fixture
def fresh_server(tmp_path, artifacts, request):
    """A server for one test only, which may kill and restart it."""
    running = Server(tmp_path)
    yield running
    running.stop()
    (artifacts / f"{request.node.name}-server.log").write_bytes((tmp_path / "server.log").read_bytes())


@pytest.fixture
def network(fresh_server):
    """The network between one page and the test's own server."""
    from network import Network

    between = Network(fresh_server)
    yield between
    between.close()


@pytest.fixture(scope="session")
def app_server(tmp_path_factory):
    """A server whose configuration opens destinations for an app's own messages."""
    running = Server(tmp_path_factory.mktemp("app-server"), destinations=["/topic/", "/queue/", "/exchange/"])
    yield running
    running.stop()


@pytest.fixture(scope="session")
def tls_server(tmp_path_factory):
    """A server with a certificate, whose app has its own destinations."""
    folder = pathlib.Path(__file__).parents[1] / "ListeningTests/Vectors"
    files = {kind: str(folder / f"test-{kind}.pem") for kind in ("certificate", "key")}
    running = Server(tmp_path_factory.mktemp("tls-server"), destinations=["/topic/", "/queue/"], tls=files)
    yield running
    running.stop()


@pytest.fixture
def connect(server):
    """Connects stomp.py clients: connect("alice", "laptop")."""
    clients = []

    def make(user, device="laptop", version="1.2", register=True):
        client = Client(server, user, device, version)
        clients.append(client)
        if register:
            client.register()
        return client

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def on(server):
    """Signs raw devices in: on("alice", "laptop"). A file may define its own `server`."""
    devices = []

    def make(user, device="phone", **options):
        devices.append(Device(server, user, device, **options))
        return devices[-1]

    yield make
    for device in devices:
        device.close()


@pytest.fixture
def names(request):
    """User ids that no other test has."""
    test = hashlib.sha256(request.node.name.encode()).hexdigest()[:8]
    return [f"{name}-{test}" for name in ("alice", "bob", "carol", "dave")]


@pytest.fixture
def url(request):
    return os.environ.get("CONCLAVE_URL") or request.getfixturevalue("server").url


@pytest.fixture
def look():
    """Checks what a tab shows, or takes pictures of it: look(alice, "the lobby")."""
    from views import look  # which imports this file

    return look


@pytest.fixture
def person(url, artifacts, request):
    """Signs somebody in, in a separate browser: person("Alice"). A module that tests the picture itself sets `HAS_SMALL_CAMERAS = False`."""
    from browser import SMALL_CAMERA, Tab, drawn_face  # which imports this file

    tabs = []
    camera = [SMALL_CAMERA] if getattr(request.module, "HAS_SMALL_CAMERAS", True) else []

    def sign_in(name, *scripts, at=url, **options):
        cameras = [drawn_face(name)] if "CONCLAVE_SCREENSHOTS" in os.environ else camera
        tabs.append(Tab(at, name, [*cameras, *scripts], **options))
        return tabs[-1]

    yield sign_in
    with open(artifacts / f"{request.node.name}.log", "w") as log:
        for tab in (tab for tab in tabs if not tab.is_closed):
            log.write(tab.log + "\n")
            tab.screenshot(artifacts / f"{request.node.name}-{tab.user}.png")
            tab.close()
