"""A server whose state is in PostgreSQL, which these tests start and kill themselves: `kill -9` of either, a failover, a move there and back, and what an operator is told."""

import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import sqlite3
import subprocess
import threading
import time
import urllib.error

import pytest

from conftest import BINARY, PATIENCE, Server, free_port, wait_for
from device import Device, b64, envelope, states
from postgres import ROLE, Bouncer, Postgres


@pytest.fixture(scope="module")
def engine():
    """A PostgreSQL server that no test stops."""
    running = Postgres()
    yield running
    running.close()


@pytest.fixture
def own():
    """Starts PostgreSQL servers for one test, which may kill them: own(), own(of=primary)."""
    running = []

    def make(**options):
        running.append(Postgres(**options))
        return running[-1]

    yield make
    for server in running:
        server.close()


@pytest.fixture
def serve(tmp_path):
    """Starts servers, each in a folder of its own: serve(store). `keys_of` gives it the secret of another one, so that it takes the same tokens."""
    servers = []

    def make(store=None, keys_of=None, name="server"):
        folder = tmp_path / name
        (folder / "state").mkdir(parents=True, mode=0o700)
        if keys_of:
            shutil.copy2(keys_of.state / "secret", folder / "state")
        servers.append(Server(folder, **({"store": store} if store else {})))
        return servers[-1]

    yield make
    for server in servers:
        server.process.kill()
        server.process.wait()
        server.log.close()


def conclave(server, *words):
    """Runs a command with the server's configuration. Returns its exit status, and all that it said."""
    ran = subprocess.run([BINARY, *words, "--config", str(server.config)], capture_output=True, text=True, timeout=60 * PATIENCE)
    return ran.returncode, ran.stdout + ran.stderr


def told(tmp_path, command, store, *prefix):
    """Runs `serve` or `check-config` with a store. Returns its exit status, and all that it said. `prefix` is a command that starts it."""
    (tmp_path / "state").mkdir(mode=0o700, exist_ok=True)
    file = tmp_path / "config.json"
    listen = {"address": "127.0.0.1", "stomp": free_port(), "http": free_port()}
    file.write_text(json.dumps({"state": str(tmp_path / "state"), "listen": listen, "media": {"port": free_port(), "workers": 1}, "store": store}))
    ran = subprocess.run([*prefix, BINARY, command, "--config", str(file)], capture_output=True, text=True, timeout=60 * PATIENCE)
    return ran.returncode, ran.stdout + ran.stderr


def set_store(server, store):
    """Changes the configuration of a server that does not run; None: its state is in the file."""
    config = json.loads(server.config.read_text())
    config.pop("store", None)
    server.config.write_text(json.dumps({**config, **({"store": store} if store else {})}))


def unready(server):
    """Why the server is not ready; None if it is."""
    try:
        server.get("/readyz")
    except urllib.error.HTTPError as error:
        return error.read().decode()


def again(server, former):
    """The same device on a new connection."""
    device = Device(server, former.user, former.device, keys=False)
    device.wrap, device.sign_key, device.sign = former.wrap, former.sign_key, former.sign
    return device


def call_of_two(server):
    alice, bob = Device(server, "alice"), Device(server, "bob")
    call, _ = alice.start("bob")
    bob.event("call.ring")
    bob.enter(call)
    return alice, bob, call


def rung(server, alice, user):
    """A call to somebody who is away: its id, and the envelope that waits with it."""
    away = Device(server, user)
    away.close()
    sealed = envelope(1, user)
    call, _ = alice.start(user, policy={"ringSeconds": 120}, envelopes=[sealed])
    return away, call, sealed


def history(server, user):
    reader = Device(server, user, "reader", keys=False)
    calls = reader.request("/app/history/list")["calls"]
    reader.close()
    return {call["id"]: call["outcome"] for call in calls}


# MARK: kill -9 of the server


def test_everything_outlives_the_kill_of_the_server(serve, engine, tmp_path):
    server = serve(engine.store(tmp_path, engine.make_database()))
    alice, bob, call = call_of_two(server)
    carol, ring, sealed = rung(server, alice, "carol")
    for _ in range(2):
        server.die()
        server.start()
    alice, bob, carol = (again(server, device) for device in (alice, bob, carol))
    assert states(alice.call(call, "state")) == {"alice": "joined", "bob": "joined"}
    event = carol.event("call.ring")
    assert event["call"] == ring and event["envelope"]["ciphertext"] == sealed["ciphertext"]
    listed = bob.request("/app/devices/list", {"users": ["alice"]})["devices"]
    assert [device["fingerprint"] for device in listed] == [b64(alice.fingerprint)]
    alice.enter(call, "rejoin")
    alice.call(call, "end")
    alice.call(ring, "end")
    assert history(server, "bob") == {call: "answered"} and list(history(server, "carol")) == [ring]
    assert not list(server.state.glob("conclave.sqlite*"))


# MARK: kill -9 of the engine


def test_calls_go_on_while_the_engine_is_away(serve, own, tmp_path):
    engine = own()
    server = serve(engine.store(tmp_path, engine.make_database()))
    alice, bob, call = call_of_two(server)
    carol = Device(server, "carol")
    engine.kill()
    alice.call(call, "invite", {"callees": ["carol"]})
    carol.event("call.ring", 10)
    carol.enter(call)
    wait_for(lambda: unready(server), 10, "the server is not ready")
    assert f"postgresql://{engine.folder}/" in unready(server) and engine.password not in unready(server)
    assert server.metric("conclave_store_failing") == 1
    assert states(bob.call(call, "state"))["carol"] == "joined"
    engine.start()
    wait_for(server.is_ready, 20, "the server is ready again")
    assert server.metric("conclave_store_lost_facts_total") == 0
    server.die()
    server.start()
    assert states(again(server, alice).call(call, "state")) == dict.fromkeys(("alice", "bob", "carol"), "joined")


def test_a_short_absence_is_only_a_delay(serve, own, tmp_path):
    engine = own()
    server = serve(engine.store(tmp_path, engine.make_database()))
    alice, _, call = call_of_two(server)
    Device(server, "carol").close()
    began = time.monotonic()
    engine.stop()
    engine.start()
    alice.call(call, "invite", {"callees": ["carol"]})
    # A transaction is tried for 4 s.
    assert time.monotonic() - began > 3 or server.metric("conclave_store_failures_total") == 0
    wait_for(lambda: unready(server) is None, 20, lambda: unready(server))
    server.die()
    server.start()
    assert "carol" in states(again(server, alice).call(call, "state"))


def starts_through_crashes(alice, users, crash, when):
    """Starts a call to each user; the engine crashes about the time of those with the numbers `when`. Returns the calls that were acknowledged."""
    seed = int(os.environ.get("CONCLAVE_SEED", random.randrange(1 << 32)))
    print(f"CONCLAVE_SEED={seed}")
    chance = random.Random(seed)
    crashes, acknowledged = [], []
    for number, user in enumerate(users):
        if number in when:
            crashes.append(threading.Timer(chance.uniform(0, 0.03), crash))
            crashes[-1].start()
        acknowledged.append(alice.start(user, policy={"ringSeconds": 120})[0])
    for thread in crashes:
        thread.join()
    return acknowledged


def people_who_are_away(server, count):
    users = [f"away{number}" for number in range(count)]
    for user in users:
        Device(server, user).close()
    return users


def test_nothing_that_was_acknowledged_is_lost_when_the_engine_crashes(serve, own, tmp_path):
    engine = own()
    server = serve(engine.store(tmp_path, engine.make_database()))
    alice = Device(server, "alice")
    lock = threading.Lock()

    def crash():
        with lock:
            engine.kill()
            engine.start()

    acknowledged = starts_through_crashes(alice, people_who_are_away(server, 15), crash, {3, 7, 11})
    wait_for(lambda: unready(server) is None, 20, lambda: unready(server))
    server.die()
    server.start()
    listed = {call["id"] for call in again(server, alice).request("/app/calls/list")["calls"]}
    assert set(acknowledged) == listed and len(listed) == 15


def test_a_failover_to_a_synchronous_standby_loses_nothing(serve, own, tmp_path):
    primary = own()
    standby = own(of=primary)
    primary.sql(f"ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 ({standby.name})'")
    primary.sql("SELECT pg_reload_conf()")
    wait_for(lambda: primary.sql("SELECT sync_state FROM pg_stat_replication") == "quorum", 10, "the standby is synchronous")
    store = primary.store(tmp_path, primary.make_database(), standby)
    status, said = told(tmp_path, "check-config", store)
    assert status == 0 and f"A commit is on ANY 1 ({standby.name}), of 1 connected standbys." in said, said
    server = serve(store)
    wait_for(lambda: server.metric("conclave_store_synchronous") == 1, 10, "it knows of the standby")
    assert server.metric("conclave_store_standbys") == 1
    assert "database" not in conclave(server, "status")[1]
    alice = Device(server, "alice")

    def fail_over():
        primary.kill()
        standby.promote()

    acknowledged = starts_through_crashes(alice, people_who_are_away(server, 10), fail_over, {4})
    wait_for(lambda: unready(server) is None, 20, lambda: unready(server))
    # The one that is left has no standby, which the operator is told in three places.
    wait_for(lambda: server.metric("conclave_store_synchronous") == 0, 20, "it misses the standby")
    assert "No standby is synchronous" in conclave(server, "status")[1]
    log = (server.folder / "server.log").read_text()
    assert "No standby is synchronous" in log and "set synchronous_standby_names" in log
    server.die()
    server.start()
    listed = {call["id"] for call in again(server, alice).request("/app/calls/list")["calls"]}
    assert set(acknowledged) == listed and len(listed) == 10


def test_a_standby_that_is_gone_stops_no_call_and_is_named(serve, own, tmp_path):
    primary = own()
    standby = own(of=primary)
    primary.sql(f"ALTER SYSTEM SET synchronous_standby_names = '{standby.name}'")
    primary.sql("SELECT pg_reload_conf()")
    wait_for(lambda: primary.sql("SELECT sync_state FROM pg_stat_replication") == "sync", 10, "the standby is synchronous")
    store = primary.store(tmp_path, primary.make_database())
    server = serve(store)
    alice, bob, call = call_of_two(server)
    standby.kill()
    carol = Device(server, "carol")
    alice.call(call, "invite", {"callees": ["carol"]})
    carol.event("call.ring", 10)
    carol.enter(call)
    wait_for(lambda: unready(server), 20, "the server is not ready")
    # Asked every 15 s.
    wait_for(lambda: "no standby is connected" in conclave(server, "status")[1], 20, lambda: conclave(server, "status")[1])
    status, said = told(tmp_path, "check-config", store)
    assert status == 0 and f"synchronous_standby_names is {standby.name}, and no standby is connected" in said, said
    standby.start()
    wait_for(lambda: unready(server) is None, 30, lambda: unready(server))
    server.die()
    server.start()
    assert states(again(server, alice).call(call, "state")) == dict.fromkeys(("alice", "bob", "carol"), "joined")


# MARK: two servers


def test_a_server_that_starts_later_takes_the_database_over(serve, engine, tmp_path):
    store = engine.store(tmp_path, engine.make_database())
    first = serve(store, name="first")
    alice, bob, call = call_of_two(first)
    second = serve(store, keys_of=first, name="second")
    assert states(again(second, alice).call(call, "state")) == {"alice": "joined", "bob": "joined"}
    # Changes of the first one are nowhere from now on.
    bob.call(call, "leave")
    wait_for(lambda: unready(first), 10, "the first one is not ready")
    assert "a server that started later uses the database" in unready(first)
    assert "end one of the two" in (first.folder / "server.log").read_text()
    again(second, bob).enter(call, "rejoin")
    first.die()
    second.die()
    second.start()
    assert states(again(second, alice).call(call, "state")) == {"alice": "joined", "bob": "joined"}


# MARK: there and back


def test_the_state_moves_into_the_database_and_back(serve, engine, tmp_path):
    server = serve()
    store = engine.store(tmp_path, engine.make_database())
    file = server.state / "conclave.sqlite"
    alice, bob, call = call_of_two(server)
    carol, ring, sealed = rung(server, alice, "carol")
    _, over, _ = rung(server, alice, "dora")
    alice.call(over, "end")
    alice.request(f"/app/calls/{call}/report", {"user": "bob", "text": "rude"})
    before = history(server, "alice")
    assert over in before
    set_store(server, store)
    status, said = conclave(server, "migrate", "--to", "postgresql")
    assert status == 1 and "another server uses" in said, "the server runs"
    # Killed, so that the file's log has not been copied.
    server.die()
    assert file.with_name("conclave.sqlite-wal").stat().st_size > 0
    status, said = conclave(server, "migrate", "--to", "postgresql")
    assert status == 0 and "rows into postgresql://" in said, said
    assert not file.exists() and file.with_name("conclave.sqlite.moved").exists()
    assert conclave(server, "migrate", "--to", "postgresql")[0] == 1, "there is no file any more"

    server.start()
    alice, carol = again(server, alice), again(server, carol)
    assert states(alice.call(call, "state")) == {"alice": "joined", "bob": "joined"}
    assert carol.event("call.ring")["envelope"]["ciphertext"] == sealed["ciphertext"]
    assert history(server, "alice") == before
    assert "rude" in conclave(server, "reports", "--json")[1]
    alice.enter(call, "rejoin")
    alice.call(call, "end")
    assert history(server, "alice") == {**before, call: "answered"}

    server.die()
    status, said = conclave(server, "migrate", "--to", "sqlite")
    assert status == 0 and f"rows into {file}" in said, said
    set_store(server, None)
    server.start()
    alice = again(server, alice)
    assert history(server, "alice") == {**before, call: "answered"}
    assert states(alice.call(ring, "state")) == {"alice": "joined", "carol": "ringing"}
    with contextlib.closing(sqlite3.connect(file)) as db:
        assert db.execute("SELECT count(*) FROM report").fetchone() == (1,)
    # Nothing is overwritten.
    server.die()
    set_store(server, store)
    status, said = conclave(server, "migrate", "--to", "sqlite")
    assert status == 1 and "there is such a file already" in said, said
    status, said = conclave(server, "migrate", "--to", "postgresql")
    assert status == 1 and f"{file}.moved: " in said, said
    file.with_name("conclave.sqlite.moved").unlink()
    status, said = conclave(server, "migrate", "--to", "postgresql")
    assert status == 1 and "make an empty one" in said, said


# MARK: personal data


def test_a_forgotten_user_is_nowhere_in_the_database(serve, engine, tmp_path):
    database = engine.make_database()
    server = serve(engine.store(tmp_path, database))
    alice, bob = Device(server, "alice"), Device(server, "robert-the-forgotten")

    def has_trace(user):
        """In a column of its own, or within a record, whose bytes are written as digits."""
        dump = engine.dump(database)
        return user in dump or user.encode().hex() in dump

    call, _ = alice.start(bob.user)
    bob.event("call.ring")
    bob.enter(call)
    assert has_trace(bob.user)
    status, said = conclave(server, "forget", "--user", bob.user)
    assert status == 0, said
    wait_for(lambda: not has_trace(bob.user), 10, lambda: engine.dump(database)[-3000:])
    assert has_trace("alice")


def test_no_error_of_the_database_brings_personal_data_or_the_password_into_the_log(serve, own, tmp_path):
    engine = own()
    database = engine.make_database()
    server = serve(engine.store(tmp_path, database))
    alice, bobby = Device(server, "alicia-in-no-log"), Device(server, "bobby-in-no-log")
    # The server's error has the row in its message and in its detail.
    engine.sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no % %', NEW, current_query() USING DETAIL = NEW::text; END $$;"
        "CREATE TRIGGER refuse BEFORE INSERT ON part FOR EACH ROW EXECUTE FUNCTION refuse()", database)
    alice.start(bobby.user, media="video")
    wait_for(lambda: unready(server), 10, "the server is not ready")
    assert "PostgreSQL error P0001" in unready(server)
    engine.sql("DROP TRIGGER refuse ON part", database)
    wait_for(lambda: unready(server) is None, 20, lambda: unready(server))
    engine.kill()
    alice.start(bobby.user)
    wait_for(lambda: unready(server), 20, "the server is not ready")
    log = (server.folder / "server.log").read_text()
    assert "PostgreSQL error P0001" in log
    for secret in ("-in-no-log", engine.password):
        assert secret not in log and secret not in unready(server) and secret not in conclave(server, "status")[1]


# MARK: what an operator is told


@pytest.mark.parametrize("command", ["serve", "check-config"])
@pytest.mark.parametrize("case, remedy", [
    ("password", "check the role in store.url and store.passwordFile"),
    ("no password", "name it in store.passwordFile"),
    ("database", "make it: CREATE DATABASE"),
    ("role", "check the role in store.url"),
    ("rights", "make it the database's owner"),
    ("encoding", "ENCODING 'UTF8'"),
    ("socket", "start the server"),
    ("newer", "a newer version of the server made it"),
    ("password in the URL", "write it into the file of store.passwordFile"),
])
def test_a_database_that_cannot_be_used_is_told_with_the_remedy(engine, tmp_path, command, case, remedy):
    database = engine.make_database()
    store = engine.store(tmp_path, database)
    if case == "password":
        (tmp_path / "store-password").write_text("hunter2hunter2\n")
    elif case == "no password":
        del store["passwordFile"]
    elif case == "database":
        store["url"] = store["url"].replace(database, "nowhere")
    elif case == "role":
        store["url"] = store["url"].replace(ROLE + "@", "stranger@")
    elif case == "rights":
        with contextlib.suppress(subprocess.CalledProcessError):  # it is there from the other command
            engine.sql(f"CREATE ROLE visitor LOGIN PASSWORD '{engine.password}'")
        store["url"] = store["url"].replace(ROLE + "@", "visitor@")
    elif case == "encoding":
        engine.sql(f"DROP DATABASE {database}")
        engine.sql(f"CREATE DATABASE {database} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    elif case == "socket":
        store["url"] = store["url"].replace(str(engine.folder), "/nowhere")
    elif case == "newer":
        engine.sql("CREATE TABLE migration (number bigint PRIMARY KEY); INSERT INTO migration VALUES (99)", database)
    elif case == "password in the URL":
        store["url"] = store["url"].replace(ROLE + "@", f"{ROLE}:hunter2@")
    status, said = told(tmp_path, command, store)
    assert status == 1 and remedy in said, said
    assert "store" in said and engine.password not in said and "hunter2" not in said


def test_a_standby_alone_is_refused(own, tmp_path):
    primary = own()
    standby = own(of=primary)
    database = primary.make_database()
    wait_for(lambda: standby.sql("SELECT count(*) FROM pg_database") == primary.sql("SELECT count(*) FROM pg_database"), 10, "it follows")
    status, said = told(tmp_path, "check-config", standby.store(tmp_path, database))
    assert status == 1 and "name the primary" in said, said
    # Beside the primary it is passed over, wherever it stands.
    status, said = told(tmp_path, "check-config", standby.store(tmp_path, database, primary))
    assert status == 0 and "The store is PostgreSQL 15." in said, said


def test_check_config_reports_the_database_and_changes_nothing(engine, tmp_path):
    database = engine.make_database()
    store = engine.store(tmp_path, database)
    status, said = told(tmp_path, "check-config", store)
    assert status == 0 and "The store is PostgreSQL 15." in said and "the first start makes the tables" in said, said
    assert " ms, a commit " in said and "No standby is synchronous" in said and "clock" not in said
    assert engine.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", database) == "0"


@pytest.mark.parametrize("seconds, word", [(7, "behind"), (-7, "ahead of")])
def test_a_clock_that_is_off_is_told(engine, tmp_path, seconds, word):
    preload, offset = tmp_path / "set_clock.so", tmp_path / "offset"
    source = pathlib.Path(__file__).parent / "set_clock.c"
    subprocess.run(["clang", "-shared", "-fPIC", "-O1", "-o", preload, source, "-ldl"], check=True)
    offset.write_text(str(seconds))
    store = engine.store(tmp_path, engine.make_database())
    status, said = told(tmp_path, "check-config", store, "env", f"LD_PRELOAD={preload}", f"CLOCK_OFFSET={offset}")
    assert status == 0 and re.search(rf"The database's clock is (6[5-9]|7[0-4])\d\d ms {word} this machine's: let both follow NTP", said), said


def test_a_pooler_in_transaction_mode_is_refused_and_one_in_session_mode_is_not(serve, engine, tmp_path):
    store = engine.store(tmp_path, engine.make_database())

    def behind(bouncer):
        return {**store, "url": store["url"].replace(str(engine.folder), str(bouncer.folder))}

    with contextlib.closing(Bouncer(engine, "transaction")) as bouncer:
        for command in ("check-config", "serve"):
            status, said = told(tmp_path, command, behind(bouncer))
            assert status == 1 and "a pooler in transaction mode stands in between" in said, said
    with contextlib.closing(Bouncer(engine, "session")) as bouncer:
        status, said = told(tmp_path, "check-config", behind(bouncer))
        assert status == 0 and "A pooler stands between" in said, said
        server = serve(behind(bouncer))
        alice, _, call = call_of_two(server)
        server.die()
        server.start()
        assert states(again(server, alice).call(call, "state")) == {"alice": "joined", "bob": "joined"}


def test_a_server_elsewhere_proves_itself_with_a_certificate(own, engine, tmp_path):
    port = free_port()
    remote = own(port=port)
    database = remote.make_database()
    store = remote.store(tmp_path, database)

    def with_authority(file):
        return {**store, "url": f"postgresql://{ROLE}@127.0.0.1:{port}/{database}?sslmode=verify-full&sslrootcert={file}"}

    status, said = told(tmp_path, "check-config", with_authority(remote.data / "server.crt"))
    assert status == 0 and ", with TLS, empty" in said and "prove" not in said, said
    other = own(port=free_port())
    status, said = told(tmp_path, "check-config", with_authority(other.data / "server.crt"))
    assert status == 1 and "give the server a certificate for this name" in said, said
    plain = {**store, "url": f"postgresql://{ROLE}@127.0.0.1:{port}/{database}?sslmode=disable"}
    status, said = told(tmp_path, "check-config", plain)
    assert status == 0 and ", without TLS" in said, said
