"""docs/example/client.py, run as by a newcomer: against the real server, with itself and with the web client."""

import json
import os
import pathlib
import queue
import subprocess
import sys
import threading
import time

import pytest

from conftest import PATIENCE, wait_for
from device import token
from swift_stage import LOADTEST

CLIENT = pathlib.Path(__file__).parents[2] / "docs/example/client.py"


class Person:
    """The example as a process: its output, line by line, and its input."""

    def __init__(self, server, folder, user, *what):
        self.user, self.lines, self.arrived = user, [], queue.Queue()
        command = [sys.executable, CLIENT, "--server", f"ws://127.0.0.1:{server.http_port}/stomp", "--user", user, "--token", server.token(user)]
        command += ["--keys", folder / f"{user}.keys", *what]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.reader = threading.Thread(target=lambda: [self.arrived.put(line.rstrip("\n")) for line in self.process.stdout])
        self.reader.start()

    def says(self, start, seconds=10):
        """The rest of the next line that begins with `start`; earlier lines stay in `lines`."""
        end = time.monotonic() + seconds * PATIENCE
        while True:
            try:
                line = self.arrived.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                pytest.fail(f"{self.user} does not say {start!r}, but {self.lines}")
            self.lines.append(line)
            if line.startswith(start):
                return line[len(start) :]

    def types(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def leave(self):
        self.process.stdin.close()
        assert self.process.wait(10 * PATIENCE) == 0, self.lines

    def close(self):
        self.process.kill()
        self.process.wait()
        self.reader.join(10)


@pytest.fixture
def run(server, tmp_path):
    people = []

    def start(user, *what):
        people.append(Person(server, tmp_path, user, *what))
        people[-1].says("ready: ")
        return people[-1]

    yield start
    for one in people:
        one.close()


def codes_agree(*people):
    """Reads until the latest call code of all is the same."""
    last = {}

    def same():
        for one in people:
            while not one.arrived.empty():
                line = one.arrived.get()
                one.lines.append(line)
            last[one.user] = next((line for line in reversed(one.lines) if line.startswith("code: ")), None)
        return None not in last.values() and len(set(last.values())) == 1

    wait_for(same, 10, lambda: f"one call code: {last}")


def no_warning(*people):
    assert not [line for one in people for line in one.lines if line.startswith(("warning", "Traceback"))], [one.lines for one in people]


def test_two_strangers_ring_agree_on_keys_and_write(run, names):
    alice, bob = names[:2]
    callee = run(bob, "answer")
    caller = run(alice, "call", bob)
    caller.types("Hello, Bob")
    assert callee.says("message: ") == f"{alice}: Hello, Bob"
    callee.types("Hello, Alice")
    assert caller.says("message: ") == f"{bob}: Hello, Alice"
    codes_agree(caller, callee)
    callee.leave()
    assert caller.says("ended: ") == "all-left"
    assert caller.process.wait(10 * PATIENCE) == 0
    no_warning(caller, callee)


def test_the_keys_change_when_somebody_goes(run, names):
    people = [run(user, "answer") for user in names[1:3]]
    caller = run(names[0], "call", *names[1:3])
    for one in people:
        one.says("answered: ")
    codes_agree(caller, *people)
    people[0].leave()
    left = next(line for line in reversed(people[0].lines) if line.startswith("code: "))
    caller.says("code: ")
    codes_agree(caller, people[1])
    assert left not in caller.lines[-1:], "the list without Bob has another code"
    people[1].types("only us")
    assert caller.says("message: ") == f"{names[2]}: only us"
    no_warning(caller, *people)


def test_a_device_whose_keys_have_changed_gets_no_key(run, names, tmp_path):
    alice, bob = names[:2]
    callee = run(bob, "answer")
    caller = run(alice, "call", bob)
    codes_agree(caller, callee)
    callee.leave()
    caller.says("ended: ")
    # The same device with other keys: the first contact's keys are pinned.
    os.remove(tmp_path / f"{bob}.keys")
    callee = run(bob, "answer")
    caller = run(alice, "call", bob)
    caller.types("for Bob's first keys")
    assert caller.says("warning: ") == f"the keys of {bob} client.py have changed"
    callee.says("waiting: for the key")
    assert not [line for line in callee.lines if line.startswith("code: ")]


def test_keys_are_kept_beside_the_user_if_no_file_is_named(server, tmp_path, names):
    user = names[0]
    command = [sys.executable, CLIENT, "--server", f"ws://127.0.0.1:{server.http_port}/stomp", "--user", user, "--token", server.token(user), "answer"]
    for _ in range(2):
        done = subprocess.run(command, cwd=tmp_path, input="", capture_output=True, text=True, timeout=30 * PATIENCE)
        assert done.returncode == 0 and done.stdout.startswith("ready: "), done.stdout + done.stderr
        kept = (tmp_path / f"{user}.keys").read_bytes()
        assert [file.name for file in tmp_path.iterdir()] == [f"{user}.keys"] and kept
    assert (tmp_path / f"{user}.keys").read_bytes() == kept, "the keys are read again"


def test_with_the_web_client(run, person, names):
    bob = person("Bob")
    caller = run(names[0], "call", "bob")
    bob.answer("Accept with audio")
    code = caller.says("code: ")
    wait_for(lambda: bob.call_code() == code, 10, lambda: f"the code {code} in the browser")
    bob.press("Chat")
    caller.types("Hello, browser")
    wait_for(lambda: "Hello, browser" in bob.text("#chat-list"), 10, "Bob reads the message")
    bob.find("#chat-text", None).send_keys("Hello, Python")
    bob.driver.execute_script("document.querySelector('#chat-form').requestSubmit()")
    assert caller.says("message: ") == "bob: Hello, Python"
    no_warning(caller)


def test_with_conclave_client(run, server, names, tmp_path):
    """Two ConclaveClients of the load test ring it. The leader among them gives it the key, and it hands out the next key if it leads."""
    guest = run(names[0], "answer")
    tokens, report = tmp_path / "tokens", tmp_path / "report.json"
    tokens.write_text("\n".join(token(server, user, device="loadtest") for user in names[1:3]))
    command = [LOADTEST, "--url", f"stomp://127.0.0.1:{server.stomp_port}", "--tokens", tokens, "--participants", "2", "--audio-only"]
    command += ["--duration", "2", "--guest", guest.user, "--json", report]
    loadtest = subprocess.run(command, capture_output=True, text=True, timeout=60 * PATIENCE)
    assert loadtest.returncode == 0, loadtest.stdout + loadtest.stderr
    assert len(guest.says("code: ")) == 40
    assert json.loads(report.read_text())["failures"] == []
    no_warning(guest)
