"""deploy/compose: Compose accepts it, every file that it mounts exists, and each program accepts its configuration."""

import base64
import hmac
import json
import os
import pathlib
import re
import shlex
import subprocess
import time

import pytest
import yaml

from conftest import BINARY, PATIENCE, Server, free_port, wait_for
from device import Device

FOLDER = pathlib.Path(__file__).parents[2] / "deploy/compose"
SECRET = "0123456789abcdef0123456789abcdef"


def config(**environment):
    command = ["docker-compose", "-f", str(FOLDER / "compose.yml"), "config"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **environment}, cwd=FOLDER)


@pytest.fixture(scope="module")
def services():
    told = config(TURN_SECRET=SECRET, SERVER_ADDRESS="127.0.0.1")
    assert told.returncode == 0, told.stderr
    return yaml.safe_load(told.stdout)["services"]


def test_it_does_not_start_without_its_secret():
    told = config(SERVER_ADDRESS="127.0.0.1", TURN_SECRET="")
    assert told.returncode != 0 and "write it into .env" in told.stderr


def test_files_that_are_mounted_are_there(services):
    sources = {volume.split(":")[0] for service in services.values() for volume in service.get("volumes", [])}
    files = {pathlib.Path(source) for source in sources if source.startswith("/")}
    # Made by the operator, as the file says.
    assert {file for file in files if not file.is_file()} == {FOLDER / "turn-secret"}
    assert {file.name for file in files} == {"conclave.json", "turn-secret", "turnserver.conf", "prometheus.yml", "alerts.yml"}


def test_coturn_gets_its_certificate_with_turn_tls(tmp_path):
    command = ["docker-compose", "-f", FOLDER / "compose.yml", "-f", FOLDER / "turn-tls.yml", "config"]
    environment = {"TURN_SECRET": SECRET, "SERVER_ADDRESS": "203.0.113.7", "TURN_ADDRESS": "203.0.113.8", "TURN_CERTIFICATES": str(tmp_path)}
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **environment}, cwd=FOLDER)
    assert told.returncode == 0, told.stderr
    coturn = yaml.safe_load(told.stdout)["services"]["coturn"]
    mounted = {volume.split(":")[1]: volume.split(":")[0] for volume in coturn["volumes"]}
    assert mounted["/etc/coturn/certificates"] == str(tmp_path) and mounted["/etc/coturn/turnserver.conf"] == str(FOLDER.parent / "turnserver.conf")
    options = dict(option.split("=", 1) for option in coturn["command"].split() if "=" in option)
    assert options["--tls-listening-port"] == "443" and options["--listening-ip"] == "203.0.113.8"
    assert {os.path.dirname(options[name]) for name in ("--cert", "--pkey")} == {"/etc/coturn/certificates"}


def test_the_server_accepts_its_configuration(tmp_path):
    text = (FOLDER / "conclave.json").read_text()
    assert json.loads(text)["turn"]["secretFile"] == "/etc/conclave/turn-secret"
    (tmp_path / "turn-secret").touch(0o600)
    (tmp_path / "turn-secret").write_text("s" * 64)
    (tmp_path / "config.json").write_text(text.replace("/etc/conclave", str(tmp_path)))
    command = [BINARY, "check-config", "--config", tmp_path / "config.json", "--state", tmp_path / "state"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=30)
    # Another server may be using the default ports; everything else was in order then.
    assert told.returncode == 0 or "cannot be opened: Address already in use" in told.stderr, told.stderr


def test_only_media_listens_to_others(fresh_server):
    server = fresh_server
    config = json.loads(server.config.read_text())
    config["listen"] |= json.loads((FOLDER / "conclave.json").read_text())["listen"]
    server.config.write_text(json.dumps(config))
    server.die()
    server.start()
    shown = subprocess.run(["ss", "-Hltun"], capture_output=True, text=True, check=True).stdout
    local = [line.split()[4].rsplit(":", 1) for line in shown.splitlines()]
    assert [address for address, port in local if int(port) in (server.stomp_port, server.http_port)] == ["127.0.0.1"] * 2
    media = [address for address, port in local if int(port) == server.media_port]
    assert media and "127.0.0.1" not in media


def test_the_healthcheck_says_whether_the_server_takes_calls(services, tmp_path):
    kind, program, *arguments = services["conclave"]["healthcheck"]["test"]
    assert (kind, program) == ("CMD", "/usr/bin/conclave")
    server = Server(tmp_path, drain=60)
    try:
        # In the container the command finds the mounted configuration.
        command = [BINARY, *arguments, "--config", server.config]
        check = lambda: subprocess.run(command, capture_output=True, text=True, timeout=30 * PATIENCE)
        assert check().returncode == 0
        Device(server, "alice").start()
        subprocess.run([BINARY, "drain", "--config", server.config], check=True, capture_output=True, timeout=30 * PATIENCE)
        wait_for(lambda: check().returncode == 2, 10, "the server drains")
        server.die()
        assert check().returncode == 1, "nobody answers"
    finally:
        server.die()


def test_releases_md_names_the_images_and_the_versions_that_are_tested(services):
    """The tests run Debian's programs, not the images."""
    support = (FOLDER.parents[1] / "docs/releases.md").read_text()
    for service, program in (("coturn", "turnserver"), ("prometheus", "prometheus")):
        told = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30)
        version = re.search(r"\d+\.\d+", told.stdout + told.stderr)[0]
        row = next(line for line in support.splitlines() if line.startswith(f"| `{services[service]['image']}` |"))
        assert f"{version} of Debian 12" in row, row


def test_prometheus_accepts_its_configuration(tmp_path):
    for file in (FOLDER / "prometheus.yml", FOLDER.parent / "monitoring/alerts.yml"):
        (tmp_path / file.name).write_text(file.read_text())
    told = subprocess.run(["promtool", "check", "config", tmp_path / "prometheus.yml"], capture_output=True, text=True, timeout=30)
    assert told.returncode == 0, told.stdout + told.stderr


@pytest.fixture(scope="module")
def relay(services, tmp_path_factory):
    """Asks the coturn of compose.yml to relay, with extra options only for this machine: (exit status, output)."""
    folder, port = tmp_path_factory.mktemp("coturn"), free_port()
    source, target, _ = services["coturn"]["volumes"][0].split(":")
    options = [source if option == target else option for option in services["coturn"]["command"].split()]
    assert f"--static-auth-secret={SECRET}" in options
    places = [f"--{kind}-ip={address}" for kind in ("listening", "relay") for address in ("127.0.0.1", "::1")]
    files = [f"--userdb={folder}/db", f"--pidfile={folder}/pid", "--log-file=stdout", "--verbose"]
    # coturn refuses 127.0.0.1, which is the server's address here, before it reads the list.
    command = ["turnserver", *options, *places, *files, f"--listening-port={port}", "--allow-loopback-peers"]
    log = folder / "log"
    process = subprocess.Popen(command, stdout=log.open("wb"), stderr=subprocess.STDOUT)
    user = f"{int(time.time()) + 600}:alice"
    password = base64.b64encode(hmac.digest(SECRET.encode(), user.encode(), "sha1")).decode()

    def ask(*arguments):
        client = ["turnutils_uclient", "-n", "2", "-c", "-p", str(port), "-u", user, "-w", password, *arguments, "127.0.0.1"]
        done = subprocess.run(client, capture_output=True, text=True, timeout=60 * PATIENCE)
        return done.returncode, done.stdout + done.stderr

    try:
        wait_for(lambda: "listener opened on" in log.read_text(), 10, log.read_text)
        told = log.read_text()
        assert "nrecognized option" not in told and "CONFIG ERROR" not in told, told
        yield ask
    finally:
        process.kill()
        process.wait()


def test_coturn_relays_to_the_server(relay):
    status, told = relay("-y")
    assert status == 0 and "Total lost packets 0 " in told, told


INTERNAL = """0.0.0.1 10.0.0.1 10.255.255.254 100.64.0.1 100.127.255.254 127.0.0.2 169.254.169.254 172.16.0.1 172.31.255.254 192.0.0.1 192.168.0.1
  198.18.0.1 198.19.255.254 :: ::1 ::127.0.0.2 ::ffff:10.0.0.1 ::ffff:127.0.0.1 64:ff9b::10.0.0.1 64:ff9b:1::1 2002:a00:1:: fc00::1 fdff:ffff::1 fe80::1 febf:ffff::1"""


@pytest.mark.parametrize("address", INTERNAL.split())
def test_coturn_does_not_relay_to_internal_addresses(relay, address):
    status, told = relay(*(["-x"] if ":" in address else []), "-e", address)
    assert status != 0 and "error 403 (Forbidden IP)" in told, told


def test_coturn_relays_no_tcp(relay):
    status, told = relay("-T", "-e", "127.0.0.1")
    assert status != 0 and "TCP Transport is not allowed" in told, told
