"""Certificates by the recipes of docs/deploy.md: certbot and Caddy request them from an ACME server (Let's Encrypt's Pebble), which validates their answers.

It resolves names with its own DNS server, and everything stays on the loopback address.
"""

import contextlib
import json
import os
import re
import socket
import ssl
import subprocess
import urllib.request

import pytest

from conftest import Server, free_port, wait_for
from device import Device
from recipes import recipe

NAME = "calls.app.example"


class Authority:
    """Pebble; `challenges` is the port at which it validates challenges."""

    def __init__(self, folder):
        self.folder, self.port, self.challenges = folder, free_port(), free_port()
        self.trust = folder / "pebble.pem"
        made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost -addext subjectAltName=DNS:localhost".split()
        subprocess.run([*made, "-keyout", folder / "pebble.key", "-out", self.trust], check=True, capture_output=True)
        management, dns = free_port(), free_port()
        config = {
            "listenAddress": f"127.0.0.1:{self.port}",
            "managementListenAddress": f"127.0.0.1:{management}",
            "certificate": str(self.trust),
            "privateKey": str(folder / "pebble.key"),
            "httpPort": self.challenges,
            "tlsPort": free_port(),
        }
        (folder / "pebble.json").write_text(json.dumps({"pebble": config}))
        # By default it waits for some seconds before it validates, and sometimes refuses good nonces.
        quick = {**os.environ, "PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "0"}
        off = [f"-{kind}01=" for kind in ("http", "https", "tlsalpn")]
        commands = {
            "dns": ["pebble-challtestsrv", "-defaultIPv4", "127.0.0.1", "-defaultIPv6", "", "-dns01", f"127.0.0.1:{dns}", "-management", f"127.0.0.1:{free_port()}", *off],
            "pebble": ["pebble", "-config", folder / "pebble.json", "-dnsserver", f"127.0.0.1:{dns}"],
        }
        self.processes = [
            subprocess.Popen([str(part) for part in command], env=quick, stdout=(folder / f"{name}.log").open("wb"), stderr=subprocess.STDOUT)
            for name, command in commands.items()
        ]
        self.context = ssl.create_default_context(cafile=self.trust)
        self.roots = wait_for(lambda: self.get(management, "/roots/0"), 20, lambda: (folder / "pebble.log").read_text() + (folder / "dns.log").read_text())

    @property
    def directory(self):
        return f"https://localhost:{self.port}/dir"

    def get(self, port, path):
        with contextlib.suppress(OSError), urllib.request.urlopen(f"https://localhost:{port}{path}", timeout=5, context=self.context) as reply:
            return reply.read().decode()

    def serial(self, port):
        """The serial number of the certificate for NAME presented on the port, if this authority issued it."""
        context = ssl.create_default_context(cadata=self.roots)
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as plain:
            with context.wrap_socket(plain, server_hostname=NAME) as secured:
                return secured.getpeercert()["serialNumber"]

    def stop(self):
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    running = Authority(tmp_path_factory.mktemp("pebble"))
    yield running
    running.stop()


def test_certbot_gets_a_certificate_and_renews_it_while_connections_stay(authority, tmp_path):
    """Uses the hook and the command of the document, except for its folders, its user, and ports below 1024."""
    config, ours = tmp_path / "letsencrypt", tmp_path / "etc"
    hook = config / "renewal-hooks/deploy/conclave"
    hook.parent.mkdir(parents=True)
    ours.mkdir()
    text = recipe("deploy.md", "sh", "#!/bin/sh").replace("/etc/conclave", str(ours)).replace("-g conclave", "-g root")
    hook.write_text(text)
    hook.chmod(0o755)
    places = [f"--{kind}-dir={folder}" for kind, folder in (("config", config), ("work", tmp_path / "work"), ("logs", tmp_path / "logs"))]
    common = [*places, "--non-interactive", f"--server={authority.directory}", f"--http-01-port={authority.challenges}", "--http-01-address=127.0.0.1"]

    def certbot(command, *more):
        command = command.replace("/etc/letsencrypt", str(config)).split()
        trusts = {**os.environ, "REQUESTS_CA_BUNDLE": str(authority.trust)}
        done = subprocess.run([*command, *common, *more], capture_output=True, text=True, timeout=120, env=trusts)
        assert done.returncode == 0, done.stdout + done.stderr

    first = re.search(r"^certbot certonly .*$", recipe("deploy.md", "sh", "certbot"), re.M)[0]
    certbot(first, "--agree-tos", "--register-unsafely-without-email")
    server = Server(tmp_path, tls={"certificate": str(ours / "chain.pem"), "key": str(ours / "key.pem")})
    try:
        shown = authority.serial(server.http_port)
        assert shown and shown == authority.serial(server.stomp_tls_port)
        alice = Device(server, "alice", keys=False)
        certbot("certbot renew", "--force-renewal", "--no-random-sleep-on-renew")
        wait_for(lambda: authority.serial(server.http_port) not in (None, shown), 20, "the renewed certificate is presented")
        alice.request("/app/calls/list")
        alice.close()
    finally:
        server.stop()


def test_caddy_gets_a_certificate_by_itself(authority, server, tmp_path):
    port = free_port()
    site = recipe("deploy.md", "caddy").replace(f"{NAME} {{", f"https://{NAME}:{port} {{").replace("127.0.0.1:8080", f"127.0.0.1:{server.http_port}")
    acme = f"acme_ca {authority.directory}\n  acme_ca_root {authority.trust}\n  http_port {authority.challenges}"
    (tmp_path / "Caddyfile").write_text(f"{{\n  admin off\n  skip_install_trust\n  {acme}\n}}\n{site}")
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    command = ["caddy", "run", "--config", str(tmp_path / "Caddyfile"), "--adapter", "caddyfile"]
    log = tmp_path / "caddy.log"
    process = subprocess.Popen(command, env=environment, stdout=log.open("wb"), stderr=subprocess.STDOUT)
    try:
        wait_for(lambda: authority.serial(port), 30, log.read_text)
        context = ssl.create_default_context(cadata=authority.roots)
        with socket.create_connection(("127.0.0.1", port), 5) as plain, context.wrap_socket(plain, server_hostname=NAME) as secured:
            secured.sendall(f"GET /healthz HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n".encode())
            assert secured.makefile().readline().startswith("HTTP/1.1 200")
    finally:
        process.terminate()
        process.wait(10)
