"""deploy/compose: Compose accepts it, every file that it mounts is there, and each program accepts what it is given."""

import json
import os
import pathlib
import subprocess

import pytest
import yaml

from conftest import BINARY, free_port, wait_for

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
    assert {file.name for file in files} == {"conclave.json", "turn-secret", "prometheus.yml", "alerts.yml"}


def test_the_server_accepts_its_configuration():
    told = subprocess.run([BINARY, "check-config", "--config", FOLDER / "conclave.json"], capture_output=True, text=True, timeout=30)
    assert told.returncode == 0, told.stderr
    assert json.loads((FOLDER / "conclave.json").read_text())["turn"]["secretFile"] == "/etc/conclave/turn-secret"


def test_prometheus_accepts_its_configuration(tmp_path):
    for file in (FOLDER / "prometheus.yml", FOLDER.parent / "monitoring/alerts.yml"):
        (tmp_path / file.name).write_text(file.read_text())
    told = subprocess.run(["promtool", "check", "config", tmp_path / "prometheus.yml"], capture_output=True, text=True, timeout=30)
    assert told.returncode == 0, told.stdout + told.stderr


def test_coturn_accepts_its_options(services, tmp_path):
    options = services["coturn"]["command"].split()
    assert f"--static-auth-secret={SECRET}" in options
    own = [f"--listening-port={free_port()}", "--listening-ip=127.0.0.1", f"--userdb={tmp_path}/db", f"--pidfile={tmp_path}/pid", "--log-file=stdout", "--verbose"]
    log = tmp_path / "log"
    process = subprocess.Popen(["turnserver", "-n", *options, *own], stdout=log.open("wb"), stderr=subprocess.STDOUT)
    try:
        wait_for(lambda: "listener opened on" in log.read_text(), 10, log.read_text)
        assert "nrecognized option" not in log.read_text()
    finally:
        process.kill()
        process.wait()
