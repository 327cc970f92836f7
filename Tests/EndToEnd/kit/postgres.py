"""PostgreSQL servers of Debian's package in temporary folders, run by an unprivileged user, and PgBouncer in front of one."""

import concurrent.futures
import contextlib
import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import tempfile

from waiting import PATIENCE, wait_for

BINARIES = pathlib.Path("/usr/lib/postgresql/15/bin")
ROLE = "conclave"
# The kernel kills a server when the thread that started it ends. This one ends with the process.
STARTER = concurrent.futures.ThreadPoolExecutor(1)


def unprivileged(*command):
    """PostgreSQL does not run as root. The process ends with this one, however that ends."""
    prefix = ["setpriv", "--pdeathsig=KILL"]
    if os.geteuid() == 0:
        prefix += ["--reuid=nobody", "--regid=nogroup", "--clear-groups"]
    return [*prefix, *map(str, command)]


def children(pid):
    """The processes whose parent this is."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rsplit(")", 1)[1].split()[1]) == pid:
                found.append(int(stat.parent.name))
    return found


class Folder:
    """A folder of the unprivileged user, which also has the socket."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="postgres-"))
        if os.geteuid() == 0:
            shutil.chown(self.folder, "nobody", "nogroup")
        self.process = None

    def run(self, *command):
        ran = subprocess.run(unprivileged(*command), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60 * PATIENCE, cwd=self.folder)
        assert ran.returncode == 0, ran.stdout + ran.stderr

    @property
    def log(self):
        return (self.folder / "log").read_text()

    def spawn(self, *command):
        with open(self.folder / "log", "ab") as log:
            options = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, "cwd": self.folder}
            self.process = STARTER.submit(subprocess.Popen, unprivileged(*command), **options).result()

    def close(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self):
        """As if its machine had died: it sends nothing and writes nothing more."""
        if self.process is None:
            return
        # The first one makes no more of the others.
        os.kill(self.process.pid, signal.SIGSTOP)
        for pid in [*children(self.process.pid), self.process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self.process = None


class Postgres(Folder):
    """One server. Its role has a password; clients come by a socket, and by TLS where it has a certificate."""

    def __init__(self, of=None, port=None, **settings):
        """`of`: it is a standby of this one. `port`: for TLS on the loopback address."""
        super().__init__()
        self.password = of.password if of else secrets.token_hex(12)
        self.settings = {"unix_socket_directories": self.folder, "listen_addresses": "", "fsync": "off", "max_connections": 100, **settings}
        self.data = self.folder / "data"
        if of:
            conninfo = f"host={of.folder} user={ROLE} password={of.password} application_name={self.folder.name.replace('-', '_')}"
            self.run(BINARIES / "pg_basebackup", "-D", self.data, "-R", "-X", "stream", "-c", "fast", "-d", conninfo)
        else:
            # The folder is closed to others.
            (self.folder / "password").write_text(self.password + "\n")
            how = ["-U", ROLE, "-A", "scram-sha-256", f"--pwfile={self.folder}/password", "-E", "UTF8", "--locale=C.UTF-8", "-N"]
            self.run(BINARIES / "initdb", "-D", self.data, *how)
        if port:
            self.settings |= {"listen_addresses": "127.0.0.1", "port": port, "ssl": "on"}
            self.make_certificate()
        self.start()

    @property
    def name(self):
        """As a standby, in `synchronous_standby_names`."""
        return self.folder.name.replace("-", "_")

    def make_certificate(self):
        subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
        files = ["-keyout", self.data / "server.key", "-out", self.data / "server.crt"]
        self.run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", *subject, *files)

    def start(self):
        settings = [f"--{name}={value}" for name, value in self.settings.items()]
        self.spawn(BINARIES / "postgres", "-D", self.data, *settings)

        def is_ready():
            assert self.process.poll() is None, self.log
            with contextlib.suppress(subprocess.CalledProcessError):
                return self.sql("SELECT 1") == "1"

        wait_for(is_ready, 20, lambda: self.log)

    def stop(self):
        """Ends its sessions and stops, as for an upgrade."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(20 * PATIENCE)
        self.process = None

    def promote(self):
        self.run(BINARIES / "pg_ctl", "promote", "-w", "-D", self.data)

    def environment(self):
        return {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "PGPASSWORD": self.password}

    def psql(self, program, *arguments, database="postgres"):
        where = ["-h", str(self.folder), "-p", str(self.settings.get("port", 5432)), "-U", ROLE, "-d", database]
        command = [BINARIES / program, *where, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=self.environment(), timeout=60 * PATIENCE).stdout

    def sql(self, text, database="postgres"):
        """The rows, with `|` between the columns."""
        return self.psql("psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", text, database=database).rstrip("\n")

    def dump(self, database):
        return self.psql("pg_dump", "--inserts", database=database)

    def make_database(self):
        """A new one. Returns its name."""
        name = "c" + secrets.token_hex(8)
        self.sql(f"CREATE DATABASE {name}")
        return name

    def store(self, folder, database, *others, role=ROLE, **parameters):
        """The member `store` of a configuration; `others` are further servers of the same cluster."""
        file = folder / "store-password"
        file.touch(mode=0o600)
        file.write_text(self.password + "\n")
        hosts = ",".join(str(server.folder) for server in [self, *others])
        query = "&".join(f"{name}={value}" for name, value in {"host": hosts, **parameters}.items())
        return {"url": f"postgresql://{role}@/{database}?{query}", "passwordFile": str(file)}


class Bouncer(Folder):
    """PgBouncer on a socket of its own in front of a server."""

    def __init__(self, postgres, mode):
        super().__init__()
        # It knows the password itself, to sign in at the server.
        (self.folder / "users").write_text(f'"{ROLE}" "{postgres.password}"\n')
        (self.folder / "ini").write_text(
            f"[databases]\n* = host={postgres.folder}\n"
            f"[pgbouncer]\nunix_socket_dir = {self.folder}\nlisten_port = 5432\npool_mode = {mode}\n"
            f"auth_type = scram-sha-256\nauth_file = {self.folder}/users\npidfile = {self.folder}/pid\n"
        )
        self.spawn(shutil.which("pgbouncer") or "/usr/sbin/pgbouncer", self.folder / "ini")

        def is_ready():
            assert self.process.poll() is None, self.log
            return (self.folder / ".s.PGSQL.5432").exists()

        wait_for(is_ready, 10, lambda: self.log)
