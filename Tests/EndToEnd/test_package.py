"""The packages, installed as by an operator: the .deb under systemd in a fresh Debian 12, and the OCI image with the command and user of its configuration.

`deploy/package --test` runs this on packages with a static Swift runtime. Elsewhere it packages the build of the other tests. It needs root.
"""

import contextlib
import ctypes
import gzip
import json
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import urllib.request

import pytest

from conftest import BINARY, PATIENCE, free_port, wait_for
from device import Device, join, states, token
from recipes import recipe

ROOT = pathlib.Path(__file__).parents[2]
MIRROR = "http://deb.debian.org/debian"
CLONE_NEWNET = 0x40000000


def run(*command, **more):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300 * PATIENCE, **more)
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def bootstrap(folder):
    """Makes a minimal Debian. Failed downloads are retried, since debootstrap keeps finished ones."""
    command = ["debootstrap", "--variant=minbase", "bookworm", str(folder), MIRROR]
    for _ in range(3):
        done = subprocess.run(command, capture_output=True, text=True, timeout=300 * PATIENCE)
        if "Couldn't download packages" not in done.stdout + done.stderr:
            break
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.fixture(scope="module", autouse=True)
def namespaces():
    tried = subprocess.run(["unshare", "-m", "true"], capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.fail(f"run these tests as root that may make namespaces (a container needs CAP_SYS_ADMIN): {tried.stderr.strip()}")


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    if given := os.environ.get("CONCLAVE_PACKAGES"):
        return pathlib.Path(given)
    folder = tmp_path_factory.mktemp("packages")
    run(ROOT / "deploy/package", "--from", pathlib.Path(BINARY).resolve().parent, "--output", folder)
    return folder


@pytest.fixture(scope="module")
def package(packages):
    return next(packages.glob("conclave_*.deb"))


@pytest.fixture(scope="module")
def debian(package, tmp_path_factory):
    """The files of a Debian 12 with systemd, and the package's dependencies in apt's cache; kept in .build for the next run."""
    depends = [part.split()[0] for part in run("dpkg-deb", "-f", package, "Depends").split(", ")]
    needed = ["systemd", "dbus", "sqlite3", *depends]
    kept = ROOT / ".build/debian12"
    if not (kept / "made-with").exists() or (kept / "made-with").read_text() != " ".join(needed):
        shutil.rmtree(kept, ignore_errors=True)
        bootstrap(kept)
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "TMPDIR": "/tmp"}
        install = "chroot", kept, "apt-get", "install", "-y", "-qq", "--no-install-recommends"
        run(*install, "systemd", "dbus", "sqlite3", env=quiet)
        run(*install, "--download-only", *depends, env=quiet)
        (kept / "made-with").write_text(" ".join(needed))
    root = tmp_path_factory.mktemp("debian") / "root"
    run("cp", "-a", kept, root)
    yield root
    shutil.rmtree(root, ignore_errors=True)


class Machine:
    """A booted Debian with its own network. It replaces the server for `Device`, within `network()`."""

    stomp_port, http_port = 61613, 8080

    def __init__(self, root, log):
        self.root, self.state = root, root / "var/lib/conclave"
        self.nspawn = subprocess.Popen(
            ["systemd-nspawn", "-q", "-D", str(root), "--boot", "--register=no", "--keep-unit", "--private-network"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            self.init = wait_for(self._init, 60, "the machine boots")
            wait_for(lambda: self.do("systemctl", "is-system-running", check=False).strip() in ("running", "degraded"), 60, "the machine has booted")
        except BaseException:
            self.halt()
            raise

    def _init(self):
        assert self.nspawn.poll() is None, "systemd-nspawn does not run here"
        children = pathlib.Path(f"/proc/{self.nspawn.pid}/task/{self.nspawn.pid}/children").read_text().split()
        return next((child for child in children if pathlib.Path(f"/proc/{child}/comm").read_text() == "systemd\n"), None)

    def do(self, *command, check=True):
        inside = ["nsenter", "-t", self.init, "-m", "-u", "-i", "-n", "-p", "--", *map(str, command)]
        done = subprocess.run(inside, capture_output=True, text=True, timeout=120 * PATIENCE)
        assert not check or done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def apt(self, *command):
        """The machine has no network access: packages come from its cache."""
        options = "-o", "APT::Install-Recommends=false", "-o", "APT::AutoRemove::SuggestsImportant=false", "-o", "Dpkg::Options::=--force-confold"
        return self.do("env", "DEBIAN_FRONTEND=noninteractive", "TMPDIR=/tmp", "apt-get", "-y", "-q", *options, *command)

    @contextlib.contextmanager
    def network(self):
        """New sockets of this thread belong to the machine's network."""
        setns = ctypes.CDLL(None, use_errno=True).setns
        with open("/proc/self/ns/net") as own, open(f"/proc/{self.init}/ns/net") as its:
            assert setns(its.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
            try:
                yield
            finally:
                assert setns(own.fileno(), CLONE_NEWNET) == 0

    def is_ready(self):
        try:
            with self.network(), urllib.request.urlopen("http://127.0.0.1:8080/readyz", timeout=5) as reply:
                return reply.status == 200
        except OSError:
            return False

    def files(self):
        """Everything that a package could leave, with its owner."""
        skipped = "proc sys dev run tmp var/log var/cache var/lib/dpkg var/lib/systemd var/tmp made-with".split()
        prune = [part for place in skipped for part in ("-path", f"./{place}", "-o")][:-1]
        return set(run("find", ".", "(", *prune, ")", "-prune", "-o", "-printf", "%p %u %g %m\n", cwd=self.root).splitlines())

    def halt(self):
        self.nspawn.terminate()
        try:
            self.nspawn.wait(60)
        finally:
            self.nspawn.kill()
            self.nspawn.wait()


def next_version(package, folder):
    """The same package with a higher version."""
    files, renamed = folder / "files", folder / "next.deb"
    run("dpkg-deb", "-R", package, files)
    control = files / "DEBIAN/control"
    control.write_text(re.sub("^Version: (.*)$", r"Version: \1+next", control.read_text(), flags=re.M))
    run("dpkg-deb", "--root-owner-group", "-Znone", "--build", files, renamed)
    return renamed


@pytest.fixture(scope="module")
def machine(debian, package, artifacts):
    with open(artifacts / "package-machine.log", "wb") as log:
        booted = Machine(debian, log)
        try:
            booted.before = booted.files()
            run("cp", package, debian / "root/conclave.deb")
            booted.apt("install", "/root/conclave.deb")
            yield booted
        finally:
            booted.halt()


def test_the_server_runs_after_the_installation(machine):
    wait_for(machine.is_ready, 30, "the installed server answers /readyz")
    shown = machine.do("systemctl", "show", "conclave", "-p", "User,NRestarts,ActiveState,UnitFileState,LimitNOFILE").split()
    assert set(shown) == {"User=conclave", "NRestarts=0", "ActiveState=active", "UnitFileState=enabled", "LimitNOFILE=65536"}
    with machine.network(), urllib.request.urlopen("http://127.0.0.1:8080/", timeout=5) as page:
        assert b"<title>Conclave" in page.read()
    token = machine.do("setpriv", "--reuid=conclave", "--regid=conclave", "--clear-groups", "conclave", "token", "--user", "alice").strip()
    assert token.count(".") == 2


def test_the_unit_is_hardened(machine):
    told = machine.do("systemd-analyze", "security", "--no-pager", "conclave.service")
    score = float(re.search(r"Overall exposure level for conclave.service: ([\d.]+)", told)[1])
    assert score <= 2.0
    # The limits on system calls block nothing that the server needs.
    journal = machine.do("journalctl", "-u", "conclave", "--no-pager")
    assert "8080" in journal and "not permitted" not in journal


def test_a_reload_takes_the_configuration_and_fails_for_one_that_cannot_be_used(machine):
    wait_for(machine.is_ready, 30, "the server is ready")
    file = machine.root / "etc/conclave/config.json"
    before = file.read_text()
    running = lambda: machine.do("systemctl", "show", "conclave", "-p", "MainPID,ActiveState", "--value")
    first = running()
    try:
        file.write_text('{"log":"debug"}')
        machine.do("systemctl", "reload", "conclave")
        journal = lambda: machine.do("journalctl", "-u", "conclave", "--no-pager")
        wait_for(lambda: "changed=log" in journal(), 10, "the server has read it")
        file.write_text('{"log":"loud"}')
        machine.do("systemctl", "reload", "conclave", check=False)
        wait_for(lambda: "/etc/conclave/config.json:1:2: log: " in journal(), 10, "the journal has the mistake")
        assert running() == first, "it is the same process"
    finally:
        file.write_text(before)
    schema = json.loads((machine.root / "usr/share/conclave/config.schema.json").read_text())
    assert schema["properties"]["log"]["enum"]


def test_commands_find_the_installed_configuration(machine):
    wait_for(machine.is_ready, 30, "the server is ready")
    assert machine.do("conclave", "token", "--user", "alice").count(".") == 2
    assert "ready" in machine.do("conclave", "status")


def test_an_upgrade_keeps_running_calls_and_the_configuration(machine, package, tmp_path):
    run("cp", next_version(package, tmp_path), machine.root / "root/next.deb")
    wait_for(machine.is_ready, 30, "the server is ready")
    (machine.root / "etc/conclave/config.json").write_text('{"drain":1}')
    machine.do("systemctl", "restart", "conclave")
    wait_for(machine.is_ready, 30, "the server is ready")
    with machine.network():
        alice, bob = (Device(machine, user) for user in ("alice", "bob"))
        call, _ = alice.start("bob")
        bob.event("call.ring")
        bob.enter(call)
        before = machine.do("systemctl", "show", "conclave", "-p", "MainPID", "--value")
        machine.apt("install", "/root/next.deb")
        assert machine.do("dpkg-query", "-W", "-f", "${Version}", "conclave").endswith("+next")
        wait_for(machine.is_ready, 30, "the new server is ready")
        assert machine.do("systemctl", "show", "conclave", "-p", "MainPID", "--value") != before, "the upgrade started the new program"
        assert (machine.root / "etc/conclave/config.json").read_text() == '{"drain":1}'
        # The tokens and the call are unchanged.
        devices = [Device(machine, user, keys=False) for user in ("alice", "bob")]
        state = devices[0].event("call.state")
        assert state["call"] == call and states(state) == {"alice": "joined", "bob": "joined"}
        assert devices[1].call(call, "rejoin", join())["participant"] == 3


def test_a_backup_brings_back_tokens_keys_and_history(machine):
    wait_for(machine.is_ready, 30, "the server is ready")
    # Files with other modes and owners than the configuration's, and a folder.
    config = {"drain": 1, "turn": {"urls": ["turn:127.0.0.1:3478"], "secretFile": "/etc/conclave/turn/secret"}}
    (machine.root / "etc/conclave/config.json").write_text(json.dumps(config))
    machine.do("install", "-d", "-m", "700", "-o", "conclave", "/etc/conclave/turn")
    machine.do("install", "-m", "600", "-o", "conclave", "/var/lib/conclave/secret", "/etc/conclave/turn/secret")
    machine.do("systemctl", "restart", "conclave")
    wait_for(machine.is_ready, 30, "the server is ready")
    listing = "find", "/etc/conclave", "-printf", r"%p %u %g %m\n"
    configured = machine.do(*listing)
    old = token(machine, "carol")
    with machine.network():
        carol, dave = Device(machine, "carol"), Device(machine, "dave")
        call, _ = carol.start("dave")
        dave.event("call.ring")
        dave.enter(call)
        carol.call(call, "end")
        wait_for(lambda: carol.request("/app/history/list")["calls"], 5, "the call is in the history")
        machine.do("bash", "-e", "-c", recipe("deploy.md", "sh", "# backup"))
        machine.do("bash", "-e", "-c", "systemctl stop conclave; rm -rf /var/lib/conclave/* /etc/conclave/*; echo {} >/etc/conclave/config.json; systemctl start conclave")
        wait_for(machine.is_ready, 30, "an empty server is ready")
        assert token(machine, "carol") != old, "another secret"
        machine.do("bash", "-e", "-c", recipe("deploy.md", "sh", "# restore"))
        wait_for(machine.is_ready, 30, "the restored server is ready")
        assert machine.do(*listing) == configured
        again = Device(machine, "carol", keys=False, connect={"passcode": old})
        assert [entry["id"] for entry in again.request("/app/history/list")["calls"]] == [call]
        assert {entry["user"] for entry in again.request("/app/devices/list", {"users": ["dave"]})["devices"]} == {"dave"}


def certificate(folder, name):
    """A certificate lineage as certbot leaves it, for its hook."""
    folder.mkdir()
    names = [str(folder / file) for file in ("fullchain.pem", "privkey.pem")]
    made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj".split()
    run(*made, f"/CN={name}", "-out", names[0], "-keyout", names[1])


def test_a_renewed_certificate_is_taken_while_connections_stay(machine):
    hook = machine.root / "root/hook"
    hook.write_text(recipe("deploy.md", "sh", "#!/bin/sh"))
    hook.chmod(0o755)

    def shown():
        with machine.network(), contextlib.suppress(OSError):
            return ssl.get_server_certificate(("127.0.0.1", 61614), timeout=5)

    for name in ("first", "second"):
        lineage = machine.root / "root" / name
        certificate(lineage, name)
        machine.do("env", f"RENEWED_LINEAGE=/root/{name}", "/root/hook")
        if name == "first":
            tls = {"certificate": "/etc/conclave/chain.pem", "key": "/etc/conclave/key.pem"}
            (machine.root / "etc/conclave/config.json").write_text(json.dumps({"tls": tls, "drain": 1}))
            machine.do("systemctl", "restart", "conclave")
        expected = (lineage / "fullchain.pem").read_text()
        wait_for(lambda: shown() == expected, 20, f"the {name} certificate is presented")
        if name == "first":
            with machine.network():
                alice = Device(machine, "alice", keys=False)
    # A client that signed in before the second certificate came.
    alice.request("/app/calls/list")
    for name in ("hook", "first", "second"):
        run("rm", "-r", machine.root / "root" / name)


def test_an_installation_for_the_tests_starts_no_service(machine):
    """`install` of deploy/debian.sh, with an apt-get that starts a service like the maintainer scripts of nginx or coturn."""
    machine.do("systemctl", "stop", "conclave")
    folder, policy = machine.root / "root/apt", machine.root / "usr/sbin/policy-rc.d"
    folder.mkdir()
    (folder / "debian.sh").write_text((ROOT / "deploy/debian.sh").read_text())
    (folder / "apt-get").write_text("#!/bin/sh\n[ $1 = update ] || deb-systemd-invoke start conclave.service || exit 5\nexit $APT_STATUS\n")
    (folder / "swift").write_text("#!/bin/sh\n")
    for program in ("apt-get", "swift"):
        (folder / program).chmod(0o755)

    def install(status):
        """The exit status of `install`, and whether the service runs."""
        script = "cd /root/apt && PATH=$PWD:$PATH; . ./debian.sh; install no-such-package; echo $?"
        printed = machine.do("env", "TMPDIR=/tmp", f"APT_STATUS={status}", "bash", "-c", script).split()
        return int(printed[-1]), machine.do("systemctl", "is-active", "conclave", check=False).strip()

    for status in (0, 100):
        assert install(status) == (status, "inactive")
        assert not policy.exists()
    theirs = "#!/bin/sh\nexit 0\n"
    policy.write_text(theirs)
    policy.chmod(0o755)
    assert install(0) == (0, "inactive")
    assert policy.read_text() == theirs and policy.stat().st_mode & 0o777 == 0o755
    policy.unlink()
    shutil.rmtree(folder)
    machine.do("systemctl", "start", "conclave")


def test_a_purge_leaves_nothing(machine):
    machine.apt("remove", "conclave")
    assert machine.do("systemctl", "is-active", "conclave", check=False).strip() != "active"
    assert (machine.state / "secret").exists(), "calls and the secret stay until the purge"
    machine.apt("purge", "--auto-remove", "conclave")
    shutil.rmtree(machine.root / "var/backups/conclave", ignore_errors=True)
    for name in ("conclave", "next"):
        (machine.root / f"root/{name}.deb").unlink()
    # Backups of the user database, which every change of a user leaves.
    after = {line for line in machine.files() if not re.match(r"\./etc/(passwd|shadow|group|gshadow|subuid|subgid)-? ", line)}
    left = {line for line in after - machine.before if not line.startswith("./root ")}
    assert left == set()
    assert machine.do("getent", "passwd", "conclave", check=False) == ""


def test_the_image_runs(packages, tmp_path):
    archive = next(packages.glob("*_oci.tar"))
    version = archive.name.split("_")[1]
    run("skopeo", "copy", "-q", f"oci-archive:{archive}:conclave:{version}", f"oci:{tmp_path}/layout:{version}")
    config = json.loads(run("skopeo", "inspect", "--config", f"oci:{tmp_path}/layout:{version}"))["config"]
    run("umoci", "unpack", "--image", f"{tmp_path}/layout:{version}", tmp_path / "bundle")
    rootfs = tmp_path / "bundle/rootfs"
    assert not (rootfs / "bin/sh").exists() and config["User"] == "900:900"
    installed = Machine.__new__(Machine)
    installed.stomp_port, installed.http_port, installed.state = free_port(), free_port(), rootfs / "var/lib/conclave"
    listen = {"stomp": installed.stomp_port, "http": installed.http_port, "address": "127.0.0.1"}
    # Mounts a configuration as an operator would.
    (rootfs / "etc/conclave/config.json").write_text(json.dumps({"listen": listen, "media": {"port": free_port(), "workers": 1}, "drain": 0}))
    (rootfs / "proc").mkdir(exist_ok=True)
    command = ["chroot", f"--userspec={config['User']}", str(rootfs), *config["Entrypoint"], *config["Cmd"]]
    within = ["unshare", "-m", "sh", "-c", 'mount -t proc proc "$0/proc" && exec "$@"', str(rootfs), *command]
    log = tmp_path / "log"
    process = subprocess.Popen(within, stdout=log.open("wb"), stderr=subprocess.STDOUT, env={"PATH": "/usr/bin:/usr/sbin:/bin:/sbin"})
    try:

        def is_ready():
            assert process.poll() is None, log.read_text()
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{installed.http_port}/readyz", timeout=5) as reply:
                return reply.status == 200

        wait_for(is_ready, 30, "the image's server answers /readyz")
        alice, bob = (Device(installed, user) for user in ("alice", "bob"))
        alice.start("bob")
        assert bob.event("call.ring")["from"] == "alice"
    finally:
        process.terminate()
    assert process.wait(10 * PATIENCE) == 0, log.read_text()


def test_the_list_of_components_is_whole(packages):
    bom = json.loads(next(packages.glob("*.cdx.json")).read_text())
    assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.5")
    components = {item["name"]: item for item in bom["components"]}
    for item in components.values():
        assert item["version"] and item["purl"].startswith("pkg:") and item["licenses"][0]["expression"]
    depends = run("dpkg-deb", "-f", next(packages.glob("conclave_*.deb")), "Depends").split(", ")
    wanted = {part.split()[0] for part in depends} - {"adduser"}
    manifest = (ROOT / "Package.swift").read_text()
    wanted |= {url.rsplit("/", 1)[1] for url in re.findall(r'\.package\(url: "([^"]+)"', manifest)}
    assert wanted | {"swift", "boringssl", "llhttp"} <= set(components)


@pytest.fixture(scope="module")
def unpacked(package, tmp_path_factory):
    """The files of the .deb."""
    folder = tmp_path_factory.mktemp("unpacked")
    run("dpkg-deb", "-x", package, folder)
    return folder


def test_every_link_of_the_installed_documents_leads_somewhere(unpacked):
    folder = unpacked / "usr/share/doc/conclave"
    documents = list(folder.rglob("*.md"))
    assert {"deploy.md", "operate.md", "clients.md", "protocol.md", "releases.md", "security.md", "CHANGELOG.md"} <= {document.name for document in documents}
    links = [(document, link) for document in documents for link in re.findall(r"\]\(([^)\s]+)\)", document.read_text()) if "://" not in link and not link.startswith(("#", "mailto:"))]
    assert len(links) > 50
    dead = [f"{document.name}: {link}" for document, link in links if not (document.parent / link.partition("#")[0]).exists()]
    assert dead == []
    assert (folder / "deploy/turnserver.conf").read_text() == (ROOT / "deploy/turnserver.conf").read_text()


def test_the_manual_and_the_completions_have_every_command(unpacked):
    told = json.loads(run(BINARY, "--experimental-dump-help"))["command"]["subcommands"]
    commands = {each["commandName"] for each in told if each["commandName"] != "help"}
    manual = gzip.decompress((unpacked / "usr/share/man/man1/conclave.1.gz").read_bytes()).decode()
    assert {line.removeprefix(".SS ").replace("\\-", "-") for line in manual.splitlines() if line.startswith(".SS ")} == commands
    completions = unpacked / "usr/share/bash-completion/completions/conclave"
    run("bash", "-n", completions)
    for file in (completions, unpacked / "usr/share/zsh/vendor-completions/_conclave", unpacked / "usr/share/fish/vendor_completions.d/conclave.fish"):
        assert all(command in file.read_text() for command in commands), file


def test_the_program_names_its_version_and_its_commit(package, tmp_path):
    run("dpkg-deb", "-x", package, tmp_path)
    told = run(tmp_path / "usr/lib/conclave/conclave", "version", env={"LD_LIBRARY_PATH": str(tmp_path / "usr/lib/conclave")})
    # deploy/package --from also accepts a build without a commit.
    assert re.fullmatch(r"conclave \d+\.\d+\.\d+( \(commit [0-9a-f]{12,40}(-dirty)?\))?\n", told)
    assert os.environ.get("CONCLAVE_COMMIT", "") in told, "deploy/package --test names the commit that it built"


@pytest.mark.parametrize("name, told", [("conclave-loadtest", "--participants"), ("conclave-recording", "export")])
def test_the_other_programs_are_packages(packages, tmp_path, name, told):
    package = next(packages.glob(f"{name}_*.deb"))
    run("dpkg-deb", "-x", package, tmp_path)
    folder = tmp_path / "usr/lib" / name
    assert told in run(folder / name, "--help", env={"LD_LIBRARY_PATH": str(folder)})
    assert (tmp_path / "usr/bin" / name).resolve() == (folder / name).resolve()
    assert gzip.decompress((tmp_path / f"usr/share/man/man1/{name}.1.gz").read_bytes()).startswith(b".TH")


def test_the_program_for_recordings_makes_a_key_that_others_cannot_read(packages, tmp_path):
    run("dpkg-deb", "-x", next(packages.glob("conclave-recording_*.deb")), tmp_path)
    folder, key = tmp_path / "usr/lib/conclave-recording", tmp_path / "key.json"
    environment = {"LD_LIBRARY_PATH": str(folder)}
    told = run(folder / "conclave-recording", "make-key", "--user", "alice", "--device", "archive", key, env=environment)
    assert re.fullmatch(r"fingerprint [0-9a-f]{64}\n", told) and key.stat().st_mode & 0o777 == 0o600
    key.chmod(0o644)
    check = subprocess.run([folder / "conclave-recording", "check", "--key", key, tmp_path], capture_output=True, text=True, env=environment)
    assert check.returncode != 0 and "chmod 600" in check.stderr


@pytest.fixture
def tagged(packages, tmp_path):
    """The files of a release in a separate, tagged repository. Its deploy/package copies the packages that have already been built."""
    copy = tmp_path / "project"
    for file in ["deploy/release", "deploy/compose/compose.yml", "deploy/helm/conclave/Chart.yaml", "Sources/ConclaveServer/Server.swift", "CHANGELOG.md"]:
        (copy / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, copy / file)
    (copy / "deploy/package").write_text(f"#!/bin/sh\n[ $# -eq 2 ] && [ $1 = --output ] && cp {packages}/* $2\n")
    (copy / "deploy/package").chmod(0o755)
    version = run(BINARY, "version").split()[1]
    git = "git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", copy
    run("git", "init", "-q", copy)
    run(*git, "add", "-A")
    run(*git, "commit", "-qm", "All")
    run(*git, "tag", f"v{version}")
    return copy, version


@pytest.fixture(params=["minisign", "gpg"])
def signer(request, tmp_path, monkeypatch):
    """The options that sign a release, the name of the signature, and the command that verifies it."""
    key = tmp_path / "key"
    if request.param == "minisign":
        run("minisign", "-G", "-W", "-s", key, "-p", f"{key}.pub")
        return ["--minisign", key], "SHA256SUMS.minisig", ["minisign", "-V", "-q", "-p", f"{key}.pub", "-m", "SHA256SUMS"]
    key.mkdir(mode=0o700)
    monkeypatch.setenv("GNUPGHOME", str(key))
    run("gpg", "-q", "--batch", "--passphrase", "", "--quick-generate-key", "conclave@app.example")
    return ["--gpg", "conclave@app.example"], "SHA256SUMS.asc", ["gpg", "--verify", "SHA256SUMS.asc"]


def test_a_release_is_whole_and_signed(tagged, signer, tmp_path):
    (copy, version), (signing, signature, verify), output = tagged, signer, tmp_path / "release"
    release = [copy / "deploy/release", version, *signing, "--output", output]

    def refusal(*command):
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        assert done.returncode != 0
        return done.stderr

    (copy / "more").touch()
    assert "has changes" in refusal(*release)
    (copy / "more").unlink()
    assert "not tagged v9.9.9" in refusal(copy / "deploy/release", "9.9.9", *signing)
    assert "deploy/release VERSION" in refusal(copy / "deploy/release", version), "releases must be signed"
    run(*release)
    machine = run("dpkg", "--print-architecture").strip()
    assert {file.name for file in output.iterdir()} == {
        f"conclave_{version}_{machine}.deb", f"conclave-loadtest_{version}_{machine}.deb", f"conclave_{version}_oci.tar", f"conclave-{version}.tgz",
        f"conclave-recording_{version}_{machine}.deb",
        f"conclave-client-{version}.tgz", f"conclave_{version}.cdx.json", "NOTES.md", "SHA256SUMS", signature,
    }
    run(*verify, cwd=output)
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=output)
    notes = (output / "NOTES.md").read_text()
    assert notes.startswith("### ") and "\n- " in notes and "\n## " not in notes, "the notes are the section of this version only"
    (output / "SHA256SUMS").write_text("0\n")
    assert subprocess.run([str(part) for part in verify], capture_output=True, cwd=output).returncode != 0
