"""The proxy configurations of docs/deploy.md, in front of a real server."""

import json
import os
import socket
import ssl
import subprocess
import urllib.error
import urllib.request

import pytest
import websocket

from conftest import PATIENCE, UNVERIFIED, free_port, wait_for
from device import token
from recipes import recipe
from swift_stage import LOADTEST


def nginx(folder, port, upstream):
    made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost".split()
    made += ["-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*made, "-keyout", folder / "privkey.pem", "-out", folder / "fullchain.pem"], check=True, capture_output=True)
    site = recipe("deploy.md", "nginx", "map $http_upgrade").replace("/etc/letsencrypt/live/calls.app.example", str(folder))
    site = site.replace("listen 443", f"listen 127.0.0.1:{port}").replace("127.0.0.1:8080", upstream)
    places = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (folder / "nginx.conf").write_text(f"events {{}}\nhttp {{\naccess_log off;\n{places}{site}}}\n")
    return ["nginx", "-p", folder, "-c", folder / "nginx.conf", "-e", folder / "error.log", "-g", f"daemon off; pid {folder}/pid;"]


def caddy(folder, port, upstream):
    # Its internal authority instead of an ACME server, and no port below 1024.
    site = recipe("deploy.md", "caddy").replace("calls.app.example {", f"https://localhost:{port} {{\n  tls internal").replace("127.0.0.1:8080", upstream)
    (folder / "Caddyfile").write_text(f"{{\n  admin off\n  skip_install_trust\n  http_port {free_port()}\n}}\n{site}")
    return ["caddy", "run", "--config", folder / "Caddyfile", "--adapter", "caddyfile"]


@pytest.fixture(params=[nginx, caddy], ids=["nginx", "caddy"])
def proxy(request, server, tmp_path):
    """The port of a proxy in front of the server."""
    port = free_port()
    command = request.param(tmp_path, port, f"127.0.0.1:{server.http_port}")
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    log = tmp_path / "proxy.log"
    process = subprocess.Popen([str(part) for part in command], env=environment, stdout=log.open("wb"), stderr=subprocess.STDOUT)

    def answers():
        assert process.poll() is None, log.read_text()
        try:
            return get(port, "/healthz")[0] == 200
        except OSError:
            return False

    try:
        wait_for(answers, 20, "the proxy answers")
        yield port
    finally:
        process.terminate()
        process.wait(10)


def get(port, path):
    try:
        with urllib.request.urlopen(f"https://localhost:{port}{path}", timeout=5, context=UNVERIFIED) as reply:
            return reply.status, reply.read().decode(errors="replace")
    except urllib.error.HTTPError as refused:
        return refused.code, ""


def opened(port, origin):
    return websocket.create_connection(
        f"wss://localhost:{port}/stomp", 10, subprotocols=["v12.stomp"], origin=origin, sslopt={"cert_reqs": ssl.CERT_NONE, "check_hostname": False}
    )


def test_pages_and_signaling_go_through_the_proxy(server, proxy):
    status, page = get(proxy, "/")
    assert status == 200 and "<title>Conclave" in page
    # The page's origin is compared with the Host that the proxy forwards.
    web = opened(proxy, f"https://localhost:{proxy}")
    assert web.getsubprotocol() == "v12.stomp"
    web.send(f"CONNECT\naccept-version:1.2\nhost:h\npasscode:{token(server, 'alice')}\n\n\0")
    assert web.recv().startswith("CONNECTED\n")
    web.close()


def test_metrics_and_foreign_pages_stay_outside(server, proxy):
    assert server.get("/metrics") and get(proxy, "/metrics")[0] == 404
    with pytest.raises(websocket.WebSocketBadStatusException, match="403"):
        opened(proxy, "https://elsewhere.example")


def test_swift_clients_call_each_other_through_the_proxy(server, proxy, tmp_path):
    """`ConclaveClient`, which checks the proxy's certificate, over WebSockets with TLS."""
    authority = next(path for path in (tmp_path / "fullchain.pem", tmp_path / "data/caddy/pki/authorities/local/root.crt") if path.exists())
    report = tmp_path / "report.json"
    # Replaces the system's authorities by this one, for this process only; it needs root.
    trusting = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/ssl/certs/ca-certificates.crt && exec "$@"', authority]
    command = [LOADTEST, "--url", f"wss://localhost:{proxy}/stomp", "--state", server.state, "--participants", "3", "--duration", "3", "--audio-only"]
    done = called([*trusting, *command, "--json", report])
    assert done.returncode == 0, done.stderr
    told = json.loads(report.read_text())
    assert (told["joined"], told["decryptFailures"]) == (3, 0) and told["received"] > 0
    refused = called([*command, "--join-timeout", "5"])
    assert refused.returncode == 1 and "could not sign in" in refused.stderr


def called(command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=90 * PATIENCE)


@pytest.fixture
def path(server, tmp_path):
    """The address of the page under a path of a web server that also has other pages."""
    port = free_port()
    places = "".join(f"{kind}_temp_path {tmp_path}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    location = f"proxy_pass http://127.0.0.1:{server.http_port}/; proxy_http_version 1.1; proxy_set_header Host $http_host; proxy_set_header Upgrade $http_upgrade;"
    site = f"server {{ listen 127.0.0.1:{port}; location /calls/ {{ {location} proxy_set_header Connection $answer; }} }}"
    (tmp_path / "nginx.conf").write_text(f"events {{}}\nhttp {{\naccess_log off;\n{places}map $http_upgrade $answer {{ default upgrade; '' close; }}\n{site}\n}}\n")
    command = ["nginx", "-p", tmp_path, "-c", tmp_path / "nginx.conf", "-e", tmp_path / "error.log", "-g", f"daemon off; pid {tmp_path}/pid;"]
    process = subprocess.Popen([str(part) for part in command])

    def answers():
        assert process.poll() is None, (tmp_path / "error.log").read_text()
        try:
            with urllib.request.urlopen(f"http://localhost:{port}/calls/healthz", timeout=5) as reply:
                return reply.status == 200
        except OSError:
            return False

    try:
        wait_for(answers, 20, "the proxy answers")
        yield f"http://localhost:{port}/calls"
    finally:
        process.terminate()
        process.wait(10)


# Other people each time, since those of a lost call would rejoin it.
@pytest.mark.parametrize("slash,caller,callee", [("/", "Alice", "Bob"), ("", "Carol", "Dan")], ids=["with-slash", "without-slash"])
def test_the_page_works_under_a_path(path, person, slash, caller, callee):
    tabs = [person(name, at=path + slash) for name in (caller, callee)]
    tabs[0].call(callee)
    tabs[1].answer()
    for tab in tabs:
        tab.decodes(voices=1, seconds=20)


@pytest.mark.parametrize("head", ["OPTIONS / HTTP/1.0", "OPTIONS / HTTP/1.1\r\nHost: a.example", "OPTIONS * HTTP/1.1\r\nHost: a.example"], ids=["haproxy", "path", "server"])
def test_the_check_of_a_load_balancer_is_answered(server, head):
    """HAProxy's `option httpchk` sends this by default. RFC 9110 section 9.3.7 defines the form for the whole server."""
    with socket.create_connection(("127.0.0.1", server.http_port), timeout=10 * PATIENCE) as connection:
        connection.sendall(f"{head}\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: connection.recv(4096), b"")).decode()
    assert answer.split(" ")[1] in ("200", "204") and "\r\nallow: GET, HEAD, POST, OPTIONS" in answer.replace("Allow", "allow"), answer
