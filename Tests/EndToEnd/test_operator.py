"""Errors for an operator: the program says what is wrong and how to fix it, with exit status 1."""

import base64
import contextlib
import hmac
import json
import os
import pathlib
import re
import socket
import sqlite3
import subprocess
import urllib.error
import urllib.request

import pytest

from conftest import BINARY, PATIENCE, Server, free_port, wait_for
from device import Device
from recipes import DOCS

VECTORS = pathlib.Path(__file__).parents[1] / "ListeningTests/Vectors"
CERTIFICATE = {kind: str(VECTORS / f"test-{file}.pem") for kind, file in (("certificate", "certificate"), ("key", "key"))}


def run(tmp_path, *arguments, config=None):
    """The exit status and the text on standard error."""
    file = tmp_path / "config.json"
    listen = {"address": "127.0.0.1", "stomp": free_port(), "http": free_port(), "stompTLS": free_port()}
    media = {"port": free_port(), "workers": 1}
    file.write_text(json.dumps({"state": str(tmp_path / "state"), "listen": listen, "media": media, **(config or {})}))
    command = [BINARY, *arguments, "--config", str(file)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=30 * PATIENCE)
    return run.returncode, run.stderr


@pytest.fixture
def taken():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize(
    "config, words",
    [
        ({"tls": {"certificate": "/no/chain.pem", "key": "/no/key.pem"}}, "tls.certificate: /no/chain.pem cannot be read: No such file or directory"),
        ({"tls": {"certificate": CERTIFICATE["key"], "key": CERTIFICATE["certificate"]}}, "has not a certificate in PEM; are tls.certificate and tls.key swapped?"),
        ({"tls": {"certificate": CERTIFICATE["certificate"], "key": CERTIFICATE["certificate"]}}, "has not a private key in PEM"),
        ({"listen": {"address": "192.0.2.1"}}, "listen.address is to be one of this machine's own"),
        ({"auth": {"secretFile": "/no/secret"}}, "/no/secret: cannot be read; check its name and mode"),
        ({"drainn": 1}, "drainn: is not an option; there are auth"),
    ],
    ids=["certificate", "swapped", "no-key", "address", "secret", "mistyped"],
)
@pytest.mark.parametrize("command", ["serve", "check-config"])
def test_a_server_that_cannot_start_says_why(tmp_path, command, config, words):
    status, told = run(tmp_path, command, config=config)
    assert status == 1 and words in told


def test_check_config_remarks_on_what_a_start_takes_all_the_same(tmp_path):
    key = tmp_path / "key.pem"
    key.write_bytes(pathlib.Path(CERTIFICATE["key"]).read_bytes())
    key.chmod(0o604)
    file = tmp_path / "config.json"
    listen = {"address": "127.0.0.1", "stomp": free_port(), "http": free_port(), "stompTLS": free_port()}
    file.write_text(json.dumps({
        "state": str(tmp_path / "state"), "listen": listen, "media": {"port": free_port(), "workers": 1},
        "tls": {"certificate": CERTIFICATE["certificate"], "key": str(key)}, "auth": {"jwksURL": f"http://127.0.0.1:{free_port()}/keys", "issuer": "https://a.example", "audience": "calls"},
    }))
    ran = subprocess.run([BINARY, "check-config", "--config", str(file)], capture_output=True, text=True, timeout=30 * PATIENCE)
    assert ran.returncode == 0, ran.stderr
    assert "chmod o-rwx" in ran.stdout and "auth.jwksURL gives no key set now" in ran.stdout
    key.chmod(0o600)
    ran = subprocess.run([BINARY, "check-config", "--config", str(file)], capture_output=True, text=True, timeout=30 * PATIENCE)
    assert ran.returncode == 0 and "chmod" not in ran.stdout


def test_log_lines_for_the_journal_have_their_priority(tmp_path):
    end, other_end = os.pipe()
    stamp = os.fstat(other_end)
    environment = {**os.environ, "JOURNAL_STREAM": f"{stamp.st_dev}:{stamp.st_ino}"}
    file = tmp_path / "config.json"
    listen = {"address": "127.0.0.1", "stomp": free_port(), "http": free_port()}
    file.write_text(json.dumps({"state": str(tmp_path / "state"), "listen": listen, "media": {"port": free_port(), "workers": 1}, "auth": {"jwksURL": f"http://127.0.0.1:{free_port()}/keys", "issuer": "https://a.example", "audience": "calls"}}))
    with subprocess.Popen([BINARY, "serve", "--config", str(file)], stdout=subprocess.DEVNULL, stderr=other_end, env=environment) as server, open(end) as log:
        os.close(other_end)
        line = next(line for line in log if "the key set cannot be read" in line)
        server.terminate()
    assert line.startswith("<3>error conclave: "), line


@pytest.mark.parametrize("command", ["serve", "check-config"])
@pytest.mark.parametrize("name", ["stomp", "stompTLS", "http", "metrics"])
def test_a_port_that_is_taken_is_named(tmp_path, taken, command, name):
    listen = {"address": "127.0.0.1", "stomp": free_port(), "http": free_port(), "stompTLS": free_port(), name: taken}
    status, told = run(tmp_path, command, config={"listen": listen, "tls": CERTIFICATE})
    assert status == 1
    assert f"port {taken} of 127.0.0.1 cannot be opened: " in told and "Address already in use" in told


@pytest.mark.parametrize("command", ["serve", "check-config"])
@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_a_media_port_that_is_taken_is_named(tmp_path, command, kind):
    first = free_port()
    while (second := free_port()) != first + 1:
        first = second
    with socket.socket(socket.AF_INET, kind) as other:
        other.bind(("0.0.0.0", second))
        if kind == socket.SOCK_STREAM:
            other.listen()
        status, told = run(tmp_path, command, config={"media": {"port": first, "workers": 2}})
    assert status == 1 and "media.port: " in told and str(second) in told, told


def make_state(tmp_path, **files):
    """A state folder with these files."""
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    for name, content in files.items():
        path = folder / name.replace("_", "-")
        path.touch(mode=0o600)
        path.write_text(content)
    return folder


@pytest.mark.parametrize("command", ["serve", "check-config"])
@pytest.mark.parametrize(
    "name, config",
    [("guest-secret", {"guests": True}), ("push-key", {"webPush": {"contact": "mailto:a@b.example"}}), ("secret", {})],
)
@pytest.mark.parametrize("content", ["short", None], ids=["short", "unreadable"])
def test_a_stored_secret_that_cannot_be_used_is_named(tmp_path, command, name, config, content):
    folder = make_state(tmp_path)
    if content is None:
        # root can read any file, but cannot read a folder as a file.
        (folder / name).mkdir(mode=0o700)
    else:
        (folder / name).touch(mode=0o600)
        (folder / name).write_text(content)
    status, told = run(tmp_path, command, config=config)
    assert status == 1 and f"{folder}/{name}: " in told, told


@pytest.mark.parametrize("command", ["serve", "check-config"])
@pytest.mark.parametrize("name", ["admin", "lock"])
def test_another_file_in_the_place_of_socket_or_lock_is_named(tmp_path, command, name):
    (make_state(tmp_path) / name).mkdir(mode=0o700)
    status, told = run(tmp_path, command)
    assert status == 1 and f"{tmp_path}/state/{name}: " in told, told


@pytest.mark.parametrize("command", ["serve", "check-config"])
@pytest.mark.parametrize(
    "damage, words",
    [
        (lambda db: db.write_bytes(b"no database" * 1_000), "the file is damaged"),
        (lambda db: change(db, "INSERT INTO grdb_migrations VALUES ('99')"), "a newer version of the server made it"),
        (lambda db: change(db, "INSERT INTO call VALUES ('x', x'00')"), "the file is damaged"),
    ],
    ids=["no-database", "newer", "record"],
)
def test_a_database_that_cannot_be_used_is_named(tmp_path, command, damage, words):
    database = stopped(tmp_path)
    damage(database)
    before = contents(database.parent)
    status, told = run(tmp_path, command)
    assert status == 1 and f"{database}: " in told and words in told, told
    if command == "check-config":
        assert contents(database.parent) == before, "nothing is changed"


def test_check_config_finds_damage_that_a_start_may_not_read(tmp_path):
    database = stopped(tmp_path)
    assert run(tmp_path, "check-config")[0] == 0
    overwrite(database)
    before = contents(database.parent)
    status, told = run(tmp_path, "check-config")
    assert status == 1 and f"{database}: the file is damaged" in told
    assert contents(database.parent) == before


def stopped(tmp_path):
    """The database of a server that ran and ended, in a single file."""
    server = Server(tmp_path)
    server.stop()
    database = server.state / "conclave.sqlite"
    change(database, "PRAGMA wal_checkpoint(TRUNCATE)")
    assert not database.with_name("conclave.sqlite-wal").exists()
    return database


def test_the_page_has_the_defaults_of_the_configuration(tmp_path):
    server = Server(tmp_path, page={"videoFirst": True, "guestsWait": True})
    try:
        assert '<html data-video-first data-guests-wait lang="en">' in server.get("/")
    finally:
        server.stop()


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def change(database, sql):
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute(sql)


def overwrite(database):
    """A page of a table."""
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        page = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'device'").fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    content = bytearray(database.read_bytes())
    content[(page - 1) * size : page * size] = b"\xaa" * size
    database.write_bytes(content)


def test_check_config_names_everything_at_once(tmp_path, taken):
    folder = make_state(tmp_path, secret="short", guest_secret="short", push_key="no key")
    (folder / "conclave.sqlite").touch(mode=0o600)
    (folder / "conclave.sqlite").write_bytes(b"no database" * 1_000)
    (folder / "admin").mkdir()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("0.0.0.0", 0))
        media = other.getsockname()[1]
        config = {
            "listen": {"address": "127.0.0.1", "stomp": taken, "http": free_port(), "metrics": free_port()},
            "media": {"port": media, "workers": 1, "announce": ["here"], "voices": 0},
            "guests": True, "drain": -1, "limits": {"body": 0, "ringing": 0}, "history": {"days": 0},
            "telemetry": {"otlp": "nowhere"}, "webPush": {"contact": "nobody", "trust": "/no/trust"},
            "webhooks": {"url": "ftp://a", "secret": "short", "events": ["x"]},
            "tls": {"certificate": "/no/chain.pem", "key": "/no/key.pem"},
            "turn": {"urls": ["turn:t.example"], "secretFile": "/no/turn", "seconds": 1},
        }
        status, told = run(tmp_path, "check-config", config=config)
    assert status == 1
    for words in (
        "drain: -1", "limits.body", "limits.ringing", "history.days", "media.voices", "telemetry.otlp", "webPush.contact",
        "webPush.trust", "webhooks.url", "webhooks.events", "webhooks: the secret", "turn.seconds", "/no/turn", "media.announce",
        "tls.certificate: /no/chain.pem", f"port {taken} of 127.0.0.1", f"{media}", f"{folder}/secret", f"{folder}/guest-secret",
        f"{folder}/push-key", f"{folder}/admin", f"{folder}/conclave.sqlite",
    ):
        assert words in told, f"{words} is missing in {told}"
    assert len(told.strip().splitlines()) >= 22


@pytest.mark.parametrize("command", ["serve", "check-config"])
def test_two_members_with_one_port_are_named(tmp_path, command):
    port = free_port()
    status, told = run(tmp_path, command, config={"listen": {"address": "127.0.0.1", "stomp": port, "http": port}})
    assert status == 1 and f"listen.http: {port} is the port of listen.stomp already" in told


@pytest.mark.parametrize("url", ["collector:4318", "ftp://c", "http://u:p@c", "http://c/v1/traces", "http://c?x=1", ""])
def test_a_collector_that_is_no_address_is_named(tmp_path, url):
    status, told = run(tmp_path, "check-config", config={"telemetry": {"otlp": url}})
    assert status == 1 and "telemetry.otlp: " in told


@pytest.mark.parametrize(
    "config, words",
    [
        ({"turn": {"urls": ["turn:t.example"], "secretFile": "/no/secret"}}, "/no/secret: cannot be read"),
        ({"webhooks": {"url": "https://a.example", "secret": "short"}}, "webhooks: the secret has 5 bytes"),
        ({"auth": {"jwksFile": "/no/keys", "issuer": "i", "audience": "a"}}, "/no/keys"),
        ({"media": {"announce": ["here"]}}, "media.announce: here is not an IPv4 or IPv6 address"),
        ({"state": "/etc/passwd/state"}, "state: /etc/passwd cannot be"),
    ],
    ids=["turn", "webhooks", "keys", "announce", "state"],
)
def test_check_config_finds_what_a_start_would_refuse(tmp_path, config, words):
    status, told = run(tmp_path, "check-config", config=config)
    assert status == 1 and words in told, told


def test_check_config_leaves_nothing_behind_and_knows_a_running_server(tmp_path):
    status, _ = run(tmp_path, "check-config")
    assert status == 0 and not (tmp_path / "state").exists()
    folder = tmp_path / "running"
    folder.mkdir()
    server = Server(folder)
    try:
        command = [BINARY, "check-config", "--config", str(server.config)]
        told = subprocess.run(command, capture_output=True, text=True, timeout=30 * PATIENCE)
        assert told.returncode == 0 and "A server runs on" in told.stdout
        assert server.get("/healthz") == "ok\n"
    finally:
        server.stop()


def test_metrics_have_a_port_of_their_own(tmp_path):
    port = free_port()
    server = Server(tmp_path)
    try:
        config = json.loads(server.config.read_text())
        config["listen"] |= {"metrics": port, "stomp": None}
        server.config.write_text(json.dumps(config))
        server.die()
        # /readyz is on that port, too.
        server.is_ready = lambda: connects(server.http_port)
        server.start()
        with urllib.request.urlopen(f"http://localhost:{port}/metrics", timeout=5) as reply:
            assert f'conclave_build_info{{version="' in reply.read().decode()
        with urllib.request.urlopen(f"http://localhost:{port}/readyz", timeout=5) as reply:
            assert reply.read() == b"ready\n"
        with pytest.raises(urllib.error.HTTPError, match="404"):
            server.get("/metrics")
        assert not connects(server.stomp_port), "STOMP without TLS is closed"
    finally:
        server.stop()


def connects(port, host="127.0.0.1"):
    try:
        socket.create_connection((host, port), 5).close()
        return True
    except OSError:
        return False


def test_no_token_is_made_by_a_secret_that_no_server_has(tmp_path):
    status, told = run(tmp_path, "token", "--user", "alice")
    assert status == 1 and f"{tmp_path}/state/secret: there is no secret that can be read; start the server once" in told
    assert not (tmp_path / "state").exists()


def test_forgetting_names_the_folder_that_it_looked_in(tmp_path):
    status, told = run(tmp_path, "forget", "--user", "alice")
    assert status == 1 and f"{tmp_path}/state/conclave.sqlite: there is no such file" in told


def help_of(*command):
    """The help of a command, or of the subcommand that it stands for."""
    told = subprocess.run([BINARY, *command, "--help"], capture_output=True, text=True, timeout=30 * PATIENCE)
    assert told.returncode == 0, command
    default = re.search(r"^  ([a-z]+) \(default\)", told.stdout, re.M)
    return help_of(*command, default[1]) if default else told.stdout


@pytest.mark.parametrize("document", ["deploy.md", "operate.md"])
def test_commands_accept_the_options_of_the_document(document):
    section = re.search(r"^## Commands\n(.*?)^## ", (DOCS / document).read_text(), re.S | re.M)[1]
    rows = re.findall(r"^\| (`conclave .*?) \| (.*) \|$", section, re.M)
    assert len(rows) > 7
    for named, text in rows:
        for command in re.findall(r"`(?:conclave )?([a-z-]+(?: [a-z]+)?)", named):
            accepted = set(re.findall(r"^  (--[a-z-]+)", help_of(*command.split()), re.M))
            # All commands that read the configuration take --config and --state, as the section says above its table.
            everywhere = set() if command in ("version", "config-schema") else {"--config", "--state"}
            assert accepted >= everywhere | set(re.findall(r"(?<![\w-])--[a-z]+", named)), command
            if "Each accepts" in text or "Accepts" in text:
                assert accepted >= set(re.findall(r"`(--[a-z]+)`", re.search(r"[aA]ccepts (.*)", text)[1])), command


def test_check_config_looks_into_the_folder_that_it_is_told(tmp_path):
    config = {"state": str(tmp_path / "not-a-folder")}
    (tmp_path / "not-a-folder").touch()
    status, told = run(tmp_path, "check-config", config=config)
    assert status == 1 and "not-a-folder" in told
    assert run(tmp_path, "check-config", "--state", tmp_path / "another", config=config) == (0, "")
    assert not (tmp_path / "another").exists(), "it changes no file"


def test_exit_statuses_are_those_of_the_document(tmp_path):
    server = Server(tmp_path)
    try:
        config = ["--config", str(server.config)]
        status = lambda *arguments: subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=30 * PATIENCE)
        assert status("status", *config).returncode == 0 and status("version").returncode == 0 and status("check-config", *config).returncode == 0
        assert status("end", "00000000-0000-4000-8000-000000000000", *config).returncode == 1
        assert status("status", "--state", str(tmp_path / "elsewhere")).returncode == 1
        for mistake in (["stat"], ["status", "--jsn"], ["token"], ["status", "--config"]):
            assert status(*mistake).returncode == 64, mistake
        for word, meant in (("stat", "Did you mean status?"), ("tokne", "Did you mean token?"), ("check", "Did you mean check-config, check-turn?"), ("weather", "lists all commands")):
            told = status(word).stderr
            assert f"There is no command '{word}'." in told and meant in told, told
        assert "Did you mean" not in status("weather").stderr
        alice = Device(server, "alice")
        call, _ = alice.start()
        assert status("drain", *config).returncode == 0
        drained = wait_for(lambda: (told := status("status", *config)).returncode == 2 and told, 10, "status says that the server drains")
        assert "the server is draining" in drained.stdout
        assert json.loads(status("status", "--json", *config).stdout)["isDraining"] and status("status", "--json", *config).returncode == 2
        alice.call(call, "end")
        assert server.process.wait(10 * PATIENCE) == 0
    finally:
        server.process.kill()


def test_commands_find_the_installed_configuration(tmp_path):
    """`/etc/conclave/config.json`, in a mount namespace with its own /etc."""
    if os.getuid() != 0:
        pytest.skip("only root can mount")
    secret = tmp_path / "secret"
    secret.touch(mode=0o600)
    secret.write_text("the secret of the installed server, which is not in its state\n")
    server = Server(tmp_path, auth={"secretFile": str(secret)})
    etc = tmp_path / "etc"
    subprocess.run(["cp", "-a", "/etc", etc], check=True)
    (etc / "conclave").mkdir(exist_ok=True)
    (etc / "conclave/config.json").write_text(server.config.read_text())

    def installed(*arguments):
        command = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc; exec "$@"', str(etc), os.path.realpath(BINARY), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=30 * PATIENCE)

    try:
        token = installed("token", "--user", "alice")
        assert token.returncode == 0, token.stderr
        text, signature = token.stdout.strip().rsplit(".", 1)
        key = secret.read_text().strip().encode()
        assert base64.urlsafe_b64encode(hmac.digest(key, text.encode(), "sha256")).decode().rstrip("=") == signature
        assert json.loads(installed("status", "--json").stdout)["process"] == server.pid
        assert "A server runs on" in installed("check-config").stdout
        # Another server is still named by its configuration or its state.
        (tmp_path / "empty.json").write_text("{}")
        assert "no server runs on /nowhere" in installed("status", "--config", str(tmp_path / "empty.json"), "--state", "/nowhere").stderr
        assert f"no server runs on {tmp_path}/other" in installed("status", "--state", str(tmp_path / "other")).stderr
        (etc / "conclave/config.json").write_text("{")
        broken = installed("status")
        assert broken.returncode == 1 and "/etc/conclave/config.json:1:1: not JSON" in broken.stderr
    finally:
        server.stop()


def is_ready(url):
    try:
        with urllib.request.urlopen(url + "/readyz", timeout=5) as reply:
            return reply.read() == b"ready\n"
    except OSError:
        return False


def test_a_listener_may_have_an_address_of_its_own(tmp_path):
    """127.0.0.2 and 127.0.0.3 are also addresses of this machine."""
    port, stomp = free_port(), free_port()
    listen = {"address": "127.0.0.1", "stomp": f"127.0.0.3:{stomp}", "http": free_port(), "stompTLS": free_port(), "metrics": f"127.0.0.2:{port}"}
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"state": str(tmp_path / "state"), "listen": listen, "media": {"port": free_port(), "workers": 1}}))
    with (tmp_path / "server.log").open("wb") as output:
        process = subprocess.Popen([BINARY, "serve", "--config", str(config)], stdout=output, stderr=subprocess.STDOUT)
    try:
        wait_for(lambda: connects(listen["http"]), 20, "the HTTP port is open")
        wait_for(lambda: is_ready(f"http://127.0.0.2:{port}"), 20, "the address of the metrics answers")
        assert connects(stomp, "127.0.0.3") and not connects(stomp) and not connects(port)
        assert not connects(listen["http"], "127.0.0.2"), "the others have listen.address"
    finally:
        process.terminate()
        assert process.wait(10 * PATIENCE) == 0
    taken = {"listen": {**listen, "http": f"127.0.0.2:{port}"}}
    status, told = run(tmp_path, "check-config", config=taken)
    assert status == 1 and f"listen.metrics: {port} is the port of listen.http already" in told


def test_a_mistake_is_told_with_its_place(tmp_path):
    file = tmp_path / "config.json"
    file.write_text('{\n  "log": "info",\n  "media": {\n    "voices": 99}}')
    command = [BINARY, "check-config", "--config", str(file), "--state", str(tmp_path / "state")]
    told = subprocess.run(command, capture_output=True, text=True, timeout=30 * PATIENCE)
    assert told.returncode == 1 and f"{file}:4:5: media.voices: 99 is out of range; take 1 to 32" in told.stderr
    file.write_text('{\n  "log": "warn"}')
    told = subprocess.run(command, capture_output=True, text=True, timeout=30 * PATIENCE)
    assert f'{file}:2:3: log: "warn" is none; take one of debug, info, notice, warning, error' in told.stderr
