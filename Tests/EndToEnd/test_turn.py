"""A real coturn over UDP, TCP and TLS: it accepts the server's credentials, and media reaches the server through it."""

import asyncio
import contextlib
import json
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import threading

import pytest
from aiortc import RTCConfiguration, RTCIceServer, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import AudioStreamTrack

from client import Client
from conftest import BINARY, PATIENCE, Server, free_port, wait_for
from recipes import DOCS, recipe


SECRET = "a secret that coturn shares with the server"


# The transports to coturn, with the options of turnutils_uclient for each.
TRANSPORTS = {"udp": [], "tcp": ["-t"], "tls": ["-t", "-S"]}


@pytest.fixture
def coturn(tmp_path, artifacts):
    """Starts coturn on free ports of 127.0.0.1, without and with TLS, with `use-auth-secret` and `more` lines of configuration: its ports and its log."""
    if shutil.which("turnserver") is None:
        pytest.fail("turnserver is missing: install coturn")
    port, tls_port = free_port(), free_port()
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1", "-subj", "/CN=coturn",
         "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", tmp_path / "turn.key", "-out", tmp_path / "turn.crt"],
        check=True, capture_output=True,
    )
    config = tmp_path / "turnserver.conf"
    lines = (
        f"listening-ip=127.0.0.1\nrelay-ip=127.0.0.1\nlistening-port={port}\ntls-listening-port={tls_port}\nuse-auth-secret\n"
        f"static-auth-secret={SECRET}\nrealm=conclave\nallow-loopback-peers\ndenied-peer-ip=10.0.0.0-10.255.255.255\ncli-password=none\nno-cli\nno-dtls\n"
        f"cert={tmp_path / 'turn.crt'}\npkey={tmp_path / 'turn.key'}\n"
        f"userdb={tmp_path / 'turn.sqlite'}\npidfile={tmp_path / 'turn.pid'}\nlog-file=stdout\nverbose\n"
    )
    log = artifacts / "coturn.log"
    processes = []

    def start(*more):
        config.write_text(lines + "".join(f"{line}\n" for line in more))
        with log.open("wb") as output:
            processes.append(subprocess.Popen(["turnserver", "-c", str(config)], stdout=output, stderr=subprocess.STDOUT))
        wait_for(lambda: b"listener opened on" in log.read_bytes(), 10, lambda: log.read_text())
        return {"udp": port, "tcp": port, "tls": tls_port}, log

    yield start
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture
def turn(coturn):
    return coturn()


@pytest.fixture
def with_turn(turn, tmp_path):
    ports, log = turn
    secret = tmp_path / "turn-secret"
    secret.touch(mode=0o600)
    secret.write_text(SECRET + "\n")
    urls = [f"turn:127.0.0.1:{ports['udp']}?transport={transport}" for transport in ("udp", "tcp")]
    urls.append(f"turns:127.0.0.1:{ports['tls']}?transport=tcp")
    server = Server(tmp_path, **{"turn": {"urls": urls, "secretFile": str(secret), "seconds": 600}})
    yield server, ports, log
    server.stop()


def start(server):
    alice = Client(server, "alice", "laptop")
    alice.register()
    reply = alice.request("/app/calls/start", {"callees": [], "media": "audio", **alice.starting()})
    return alice, reply["call"]["id"], reply["ice"]["servers"]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_coturn_takes_the_credentials(with_turn, transport):
    server, ports, _ = with_turn
    alice, _, servers = start(server)
    assert re.fullmatch(r"\d+:alice", servers[0]["username"])
    command = ["turnutils_uclient", *TRANSPORTS[transport], "-y", "-n", "2", "-c", "-L", "127.0.0.1", "-p", str(ports[transport])]
    command += ["-u", servers[0]["username"]]

    def relays(credential):
        return subprocess.run(command + ["-w", credential, "127.0.0.1"], capture_output=True, timeout=60).returncode == 0

    assert relays(servers[0]["credential"])
    assert not relays("another")
    alice.close()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_media_reaches_the_server_through_coturn_alone(with_turn, transport, tmp_path, monkeypatch):
    server, _, log = with_turn
    # aiortc checks coturn's certificate, as browsers do.
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "turn.crt"))
    alice, call, servers = start(server)
    way = ("turns:", "?transport=tcp") if transport == "tls" else ("turn:", f"?transport={transport}")
    servers = [s | {"urls": [u for u in s["urls"] if u.startswith(way[0]) and u.endswith(way[1])]} for s in servers]
    assert [len(s["urls"]) for s in servers] == [1]

    async def run():
        ice = [RTCIceServer(urls=s["urls"], username=s["username"], credential=s["credential"]) for s in servers]
        connection = RTCPeerConnection(RTCConfiguration(iceServers=ice))
        connection.addTransceiver(AudioStreamTrack(), direction="sendonly")
        await connection.setLocalDescription(await connection.createOffer())
        # aiortc has no relay-only policy: the server gets only the relayed candidate, and coturn's log confirms the relay.
        lines = connection.localDescription.sdp.splitlines()
        assert any(" typ relay " in line for line in lines), "no relayed candidate"
        gatherer = connection.getTransceivers()[0].sender.transport.transport.iceGatherer
        ice_connection = gatherer._connection
        ice_connection._protocols = [p for p in ice_connection._protocols if p.local_candidate.type == "relay"]
        ice_connection._local_candidates = [c for c in ice_connection._local_candidates if c.type == "relay"]
        sdp = "\r\n".join(line for line in lines if "a=candidate" not in line or " typ relay " in line) + "\r\n"
        reply = await asyncio.to_thread(
            alice.request, f"/app/calls/{call}/media", {"sdp": sdp, "tracks": [{"mid": "0", "source": "microphone"}]}
        )
        before = server.metric("conclave_media_received_packets_total")
        await connection.setRemoteDescription(RTCSessionDescription(reply["sdp"], "answer"))
        for _ in range(200):
            if connection.connectionState == "connected":
                break
            await asyncio.sleep(0.05)
        assert connection.connectionState == "connected"
        await asyncio.sleep(1)
        assert server.metric("conclave_media_received_packets_total") > before + 20
        await connection.close()

    asyncio.run(run())
    assert "peer usage" in log.read_text() or "ALLOCATE processed, success" in log.read_text()
    alice.request(f"/app/calls/{call}/end")
    alice.close()


def check_turn(folder, urls, secret=SECRET, announce="127.0.0.1", trust=None):
    """The exit status of `conclave check-turn`, and its line about each URL."""
    config = {"turn": {"urls": urls, "secret": secret}, "media": {"announce": [announce]}}
    (folder / "check.json").write_text(json.dumps(config))
    command = [BINARY, "check-turn", "--config", folder / "check.json", *(["--trust", trust] if trust else [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60 * PATIENCE)
    return done.returncode, [line.split(": ", 1)[1] for line in done.stdout.splitlines()], done.stderr


def urls_of(ports):
    return [f"turn:127.0.0.1:{ports['udp']}", f"turn:127.0.0.1:{ports['tcp']}?transport=tcp", f"turns:localhost:{ports['tls']}?transport=tcp", f"stun:127.0.0.1:{ports['udp']}"]


def test_check_turn_finds_a_good_server_good_over_each_transport(turn, tmp_path):
    ports, _ = turn
    status, told, _ = check_turn(tmp_path, urls_of(ports), trust=tmp_path / "turn.crt")
    assert (status, told) == (0, ["good: it relays from 127.0.0.1"] * 3 + ["good: it tells clients their address"])


def test_coturn_behind_nat_announces_the_public_address_of_external_ip(coturn, tmp_path):
    ports, _ = coturn("external-ip=203.0.113.8/127.0.0.1")
    status, told, errors = check_turn(tmp_path, urls_of(ports)[:1])
    assert (status, told) == (0, ["good: it relays from 203.0.113.8"]), errors


def test_the_ports_of_deploy_md_are_those_that_coturn_takes():
    usage = subprocess.run(["turnserver", "-h"], capture_output=True, text=True, timeout=30)
    usage = usage.stdout + usage.stderr
    first, last = (re.search(rf"--{bound}-port\b[^\n]*\n[^\n]*Default value is (\d+)", usage)[1] for bound in ("min", "max"))
    listening = re.search(r"--listening-port\b.*\(Default: (\d+)\)", usage)[1]
    rows = (DOCS / "deploy.md").read_text().partition("| port of the TURN server |")[2].splitlines()
    assert any(row.startswith(f"| UDP {first} to {last} |") for row in rows) and any(row.startswith(f"| UDP and TCP {listening} |") for row in rows)
    shipped = (DOCS.parent / "deploy/turnserver.conf").read_text()
    assert not re.search(r"^(min-port|max-port|listening-port)", shipped, re.M), "the shipped file keeps the defaults"


def test_check_turn_says_what_is_wrong_and_what_to_do(turn, tmp_path):
    ports, _ = turn
    udp = [f"turn:127.0.0.1:{ports['udp']}"]
    with socket.create_server(("127.0.0.1", 0)) as web:
        closed, silent = free_port(), free_port()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as deaf:
            deaf.bind(("127.0.0.1", silent))
            answer_as_a_web_server(web)
            cases = {
                "static-auth-secret": check_turn(tmp_path, udp, secret="another secret of 16 bytes"),
                "allowed-peer-ip=10.1.2.3": check_turn(tmp_path, udp, announce="10.1.2.3"),
                "certificate is not trusted for localhost": check_turn(tmp_path, urls_of(ports)[2:3]),
                f"nothing listens on TCP {closed}": check_turn(tmp_path, [f"turn:127.0.0.1:{closed}?transport=tcp"]),
                f"nothing listens on UDP {closed}": check_turn(tmp_path, [f"turn:127.0.0.1:{closed}"]),
                f"no answer: open UDP {silent}": check_turn(tmp_path, [f"turn:127.0.0.1:{silent}"]),
                "a web server answers there": check_turn(tmp_path, [f"turn:127.0.0.1:{web.getsockname()[1]}?transport=tcp"]),
                "there is no host nowhere.invalid": check_turn(tmp_path, ["turn:nowhere.invalid"]),
                "not tried": check_turn(tmp_path, ["turns:127.0.0.1?transport=udp"]),
            }
    for words, (status, told, errors) in cases.items():
        assert status == 2 and len(told) == 1 and words in told[0], (words, status, told, errors)


def answer_as_a_web_server(listener):
    def answer():
        with contextlib.suppress(OSError):
            peer, _ = listener.accept()
            with peer:
                peer.recv(1_000)
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    threading.Thread(target=answer, daemon=True).start()


def test_check_turn_without_servers_has_a_status_of_its_own(tmp_path):
    (tmp_path / "none.json").write_text("{}")
    done = subprocess.run([BINARY, "check-turn", "--config", tmp_path / "none.json"], capture_output=True, text=True, timeout=30 * PATIENCE)
    assert done.returncode == 1 and "names no TURN server" in done.stderr


def test_a_web_proxy_and_coturn_share_port_443_by_the_name(turn, tmp_path):
    """The recipe of deploy.md: the TURN server's name is routed to coturn, any other name to the web site."""
    ports, _ = turn
    port = free_port()
    with socket.create_server(("127.0.0.1", 0)) as web:
        site = recipe("deploy.md", "nginx", "stream {").replace("turn.app.example", "localhost").replace("listen 443", f"listen 127.0.0.1:{port}")
        site = site.replace("203.0.113.7:5349", f"127.0.0.1:{ports['tls']}").replace("127.0.0.1:8443", f"127.0.0.1:{web.getsockname()[1]}")
        module = pathlib.Path("/usr/lib/nginx/modules/ngx_stream_module.so")
        if not module.exists():
            pytest.fail("nginx has no module for streams: install libnginx-mod-stream")
        (tmp_path / "nginx.conf").write_text(f"load_module {module};\nevents {{}}\n{site}")
        command = ["nginx", "-p", tmp_path, "-c", tmp_path / "nginx.conf", "-e", tmp_path / "error.log", "-g", f"daemon off; pid {tmp_path}/pid;"]
        proxy = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(lambda: accepts(port), 10, lambda: (tmp_path / "error.log").read_text())
            status, told, errors = check_turn(tmp_path, [f"turns:localhost:{port}?transport=tcp"], trust=tmp_path / "turn.crt")
            assert (status, told) == (0, ["good: it relays from 127.0.0.1"]), errors
            with socket.create_connection(("127.0.0.1", port), 10) as other:
                other.sendall(hello("calls.app.example"))
                web.settimeout(10 * PATIENCE)
                assert took_name(web, b"calls.app.example")
        finally:
            proxy.terminate()
            proxy.wait(10)


def accepts(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def hello(name):
    """The first bytes of a TLS client that asks for a name."""
    outgoing = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def took_name(listener, name):
    """Whether a connection for this name comes; others come from the check that the proxy is running."""
    while True:
        peer, _ = listener.accept()
        with peer:
            peer.settimeout(10 * PATIENCE)
            if name in peer.recv(4_096):
                return True
