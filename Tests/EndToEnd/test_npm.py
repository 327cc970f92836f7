"""The page library as an npm package: its types, and the guide of docs/clients.md with both of its back ends, followed to the letter by a bundler and two browsers."""

import hmac
import json
import pathlib
import re
import shutil
import socket
import subprocess
import tarfile
import time
import urllib.error
import urllib.request

import pytest
from selenium.common.exceptions import NoAlertPresentException

from browser import Tab
from conftest import BINARY, PATIENCE, free_port, wait_for
from recipes import recipe

ROOT = pathlib.Path(__file__).parents[2]

# Members that a page need not know, although JavaScript exposes them: `Call` and `Conclave` use them of each other.
INTERNAL = {
    "Conclave": {"directory", "rings", "connectionNumber", "takeRing"},
    "Call": {"admissions", "facts", "join", "joinCrossed", "capture", "sendCaptured", "reopen", "giveUp", "reconsiderKeys", "handle", "connectionReady", "networkChanged", "openLasting"},
    "Capture": set(),
    "Presence": {"connectionReady", "take"},
    "Push": {"registered"},
    "OwnDevices": {"take"},
    "LastingLinks": {"changed", "waiting", "connectionReady", "startable"},
}

# The names of the public members of each class, from an object if it has fields.
MEMBERS = """
import { Call } from '%(library)s/call/call.js';
import { Capture } from '%(library)s/capture.js';
import * as index from '%(library)s/index.js';
import { LastingLinks } from '%(library)s/devices/lasting-links.js';
import { OwnDevices } from '%(library)s/devices/own-devices.js';
import { Presence } from '%(library)s/devices/presence.js';
import { Push } from '%(library)s/devices/push.js';
const identity = { user: 'a', device: 'b', fingerprint: new Uint8Array(32), keys: [] };
const conclave = new index.Conclave({ url: 'ws://a', device: 'b', credentials: async () => ({}) });
const made = { Conclave: conclave, Call: new Call({ id: '', connection: { capture: conclave.capture, identity } }), Capture: new Capture(),
  Presence: new Presence(() => {}), Push: new Push(() => {}), OwnDevices: new OwnDevices({ identity }), LastingLinks: new LastingLinks({ identity }) };
const membersOf = (object) => {
  const names = new Set(Object.getOwnPropertyNames(object));
  for (let kind = Object.getPrototypeOf(object); kind !== EventTarget.prototype && kind !== Object.prototype; kind = Object.getPrototypeOf(kind)) {
    for (const name of Object.getOwnPropertyNames(kind)) names.add(name);
  }
  names.delete('constructor');
  return [...names];
};
console.log(JSON.stringify({ exports: Object.keys(index), ...Object.fromEntries(Object.entries(made).map(([name, object]) => [name, membersOf(object)])) }));
process.exit();
"""

# The same of the second entry. The members of an output are for players only.
RECORDINGS = """
import * as recordings from '%(library)s/recordings.js';
const browser = {
  MediaRecorder: class extends EventTarget {},
  MediaStream: class {},
  AudioContext: class {
    createGain = () => ({ connect() {}, gain: {} });
  },
};
const source = { length: 0, start: 0, end: 0, indexAt: () => 0 };
const output = { now: 0, lane: () => output, reset() {}, silence() {}, show() {} };
const made = { Recordings: new recordings.Recordings({ connection: {} }), Player: new recordings.Player([source], output),
  DeviceRecorder: new recordings.DeviceRecorder({ tracks: [], writer: new EventTarget(), browser }), WebOutput: new recordings.WebOutput({ draw() {}, browser }) };
const membersOf = (object) => [...new Set([...Object.getOwnPropertyNames(object), ...Object.getOwnPropertyNames(Object.getPrototypeOf(object))])].filter((name) => name !== 'constructor');
console.log(JSON.stringify({ exports: Object.keys(recordings), ...Object.fromEntries(Object.entries(made).map(([name, object]) => [name, membersOf(object)])) }));
process.exit();
"""
OF_PLAYERS = {"Player": {"tick"}, "WebOutput": {"lane", "decoded", "now", "picturesAhead", "picture", "sound", "show", "blank", "silence", "reset", "close"}}

# A message, from the camera to its playback.
MESSAGE = """
import { Conclave } from 'conclave-client';
import { DeviceRecorder, Player, Recordings, WebOutput, openRecordings, recordingObstacle, streamsFor } from 'conclave-client/recordings';
export async function message(conclave: Conclave, tracks: MediaStreamTrack[], canvas: CanvasRenderingContext2D): Promise<void> {
  const recordings = new Recordings({ connection: conclave, store: await openRecordings(), base: 'https://a/recordings', token: async (wasRefused) => String(wasRefused) });
  if (recordingObstacle(true) === 'no-format') return;
  const { writer, upload } = await recordings.begin({ kind: 'message', readers: ['bob'], hasPicture: true, streams: streamsFor(true) });
  const recorder = new DeviceRecorder({ tracks, writer });
  recorder.start();
  await recorder.stop();
  if (upload.state === 'stored') console.log((await recordings.send(writer.row.id)).bob);
  const live = await recordings.beginLive({ readers: ['bob'], hasPicture: true, streams: streamsFor(true), alerts: true, keepsCopy: false });
  await live.telling.note({ kind: 'place', lat: 50, lon: 14, at: 0 });
  live.telling.addEventListener('change', () => console.log(live.telling.contacts.all.every(({ state }) => state === 'seen')));
  if (live.upload.state === 'stored') await recordings.finish(live.id);
  conclave.addEventListener('recording', async ({ detail }) => {
    if (detail.isAlert && !(await recordings.announced(detail.recording)).isAlert) return;
    const { reels, reader, live } = await recordings.open(detail.recording);
    const player = new Player(reels.map(({ source }) => source), new WebOutput({ draw: (picture) => picture && canvas.drawImage(picture, 0, 0, picture.displayWidth, picture.displayHeight) }));
    live?.addEventListener('change', () => player.grown());
    console.log(reader.statement.by.user, player.state === 'paused');
    player.play();
  });
}
"""

# The use of the package by a page in TypeScript.
PAGE = """
import { Conclave, RequestError, isSupported, type Call, type Requests, type Ring } from 'conclave-client';
const canvas = document.createElement('canvas');
const conclave = new Conclave({ url: 'wss://a/stomp', device: 'b', credentials: async (wasRefused) => ({ token: String(wasRefused), user: 'a' }) });
conclave.addEventListener('ring', ({ detail }) => answer(detail));
conclave.addEventListener('ring-over', ({ detail }) => console.log(detail.ring.from, detail.reason === 'missed'));
async function answer(ring: Ring): Promise<void> {
  const call: Call = await conclave.accept(ring, { camera: canvas.captureStream().getVideoTracks()[0], microphone: false });
  call.addEventListener('message', ({ detail }) => console.log(detail.participant, 'text' in detail && detail.text.length));
  call.addEventListener('path', () => console.log(call.path === 'connected'));
  for (const tile of call.tiles()) console.log(tile.video?.id, tile.doubt === 'stranger');
}
async function start(): Promise<void> {
  const call = await conclave.call(['bob'], { policy: { ringSeconds: 60, invite: 'initiator' }, metadata: btoa('x') });
  console.log(call.results?.bob === 'no-keys');
  const body: Requests['/app/calls/list'][1] = await conclave.request('calls/list');
  console.log(body.calls.length, isSupported());
  await call.leave().catch((error: RequestError) => error.code);
}
void start;
"""

WRONG = {
    "conclave.call('bob')": "string' is not assignable",
    "conclave.call(['bob'], { policy: { ringSecond: 60 } })": "ringSecond",
    "conclave.addEventListener('ring', ({ detail }) => detail.call.caller)": "caller",
    "conclave.directory": "directory",
}


@pytest.fixture(scope="module")
def tarball(tmp_path_factory):
    folder = tmp_path_factory.mktemp("npm")
    subprocess.run([ROOT / "deploy/npm/pack", "1.2.3", folder], check=True, timeout=60 * PATIENCE)
    return folder / "conclave-client-1.2.3.tgz"


@pytest.fixture(scope="module")
def package(tarball, tmp_path_factory):
    """The package as npm unpacks it."""
    folder = tmp_path_factory.mktemp("app")
    with tarfile.open(tarball) as files:
        files.extractall(folder)
    (folder / "node_modules").mkdir()
    (folder / "package").rename(folder / "node_modules/conclave-client")
    return folder / "node_modules/conclave-client"


def checked(package, name, text):
    """The errors of tsc for a page with this text, in its strictest mode."""
    folder = package.parents[1]
    (folder / f"{name}.ts").write_text(text)
    options = {"strict": True, "noEmit": True, "target": "es2022", "module": "node16", "moduleResolution": "node16", "lib": ["es2022", "dom", "dom.iterable"], "types": []}
    (folder / "package.json").write_text('{"type":"module"}')
    (folder / f"{name}.json").write_text(json.dumps({"compilerOptions": options, "files": [f"{name}.ts"]}))
    done = subprocess.run(["tsc", "-p", folder / f"{name}.json"], capture_output=True, text=True, timeout=120 * PATIENCE)
    return done.stdout


def test_the_tarball_is_what_npm_installs(package):
    manifest = json.loads((package / "package.json").read_text())
    assert (manifest["name"], manifest["version"], manifest["license"]) == ("conclave-client", "1.2.3", "Apache-2.0")
    for target in [manifest["types"], *(part for entry in manifest["exports"].values() for part in ([entry] if isinstance(entry, str) else entry.values()))]:
        assert (package / target).is_file(), target
    assert (package / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_the_worker_is_one_file_for_any_bundler(package):
    assert not re.search(r"^\s*(import|export)\b[^(]", (package / "sframe-worker.js").read_text(), re.M)
    assert "new URL('./sframe-worker.js', import.meta.url)" in (package / "conclave.js").read_text()


def test_every_public_member_is_declared_and_no_other(package, tmp_path):
    (tmp_path / "members.mjs").write_text(MEMBERS % {"library": (ROOT / "Sources/Web/conclave").as_uri()})
    names = json.loads(subprocess.run(["node", tmp_path / "members.mjs"], capture_output=True, text=True, check=True, timeout=60 * PATIENCE).stdout)
    exports = names.pop("exports")
    assert set(names) == set(INTERNAL)
    text = "import * as library from 'conclave-client';\nimport type { %s } from 'conclave-client';\n" % ", ".join(names)
    text += "type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : { only: Exclude<B, A> }) : { missing: Exclude<A, B> };\n"
    union = " | ".join(map(repr, exports))
    # Types that the package declares as classes, whose constructors a page cannot reach.
    unreachable = " | ".join(map(repr, sorted(set(names) - set(exports))))
    text += f"export const exported: Same<{union}, Exclude<keyof typeof library, {unreachable}>> = true;\n"
    for name, members in names.items():
        wanted = " | ".join(map(repr, sorted(set(members) - INTERNAL[name])))
        inherited = "keyof EventTarget" if name != "Push" else "never"
        text += f"export const of{name}: Same<{wanted}, Exclude<keyof {name}, {inherited}>> = true;\n"
    assert checked(package, "members", text) == "", "declare it in deploy/npm/index.d.ts, or list it in INTERNAL"


def test_the_entry_for_recordings_is_declared_too(package, tmp_path):
    (tmp_path / "members.mjs").write_text(RECORDINGS % {"library": (ROOT / "Sources/Web/conclave").as_uri()})
    names = json.loads(subprocess.run(["node", tmp_path / "members.mjs"], capture_output=True, text=True, check=True, timeout=60 * PATIENCE).stdout)
    exports = names.pop("exports")
    text = "import * as library from 'conclave-client/recordings';\nimport type { %s } from 'conclave-client/recordings';\n" % ", ".join(names)
    text += "type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : { only: Exclude<B, A> }) : { missing: Exclude<A, B> };\n"
    text += f"export const exported: Same<{' | '.join(map(repr, exports))}, keyof typeof library> = true;\n"
    for name, members in names.items():
        wanted = " | ".join(map(repr, sorted(set(members) - OF_PLAYERS.get(name, set()))))
        text += f"export const of{name}: Same<{wanted}, Exclude<keyof {name}, keyof EventTarget>> = true;\n"
    assert checked(package, "recordings", text) == "", "declare it in deploy/npm/recordings.d.ts"
    assert checked(package, "message", MESSAGE) == ""
    assert '"all"' in checked(package, "wrong", MESSAGE.replace("kind: 'message'", "kind: 'all'"))


def test_pages_in_typescript_are_checked(package):
    assert checked(package, "page", PAGE) == ""
    for wrong, words in WRONG.items():
        assert words in checked(package, "wrong", PAGE + wrong), wrong


def app(folder, tarball, backend):
    """Follows the guide in a folder: the configuration, the back end and the page, on free ports. Yields the commands of the server and the back end."""
    page_port, http_port, media_port = free_port(), free_port(), free_port()

    def text(language, start):
        return recipe("clients.md", language, start).replace("8000", str(page_port)).replace("8080", str(http_port))

    subprocess.run(["sh", "-e", "-c", text("sh", "# secrets")], cwd=folder, check=True)
    config = json.loads(text("json", '{"listen": {"address"'))
    config["listen"]["http"] = http_port
    (folder / "config.json").write_text(json.dumps({**config, "media": {"port": media_port, "workers": 1}, "drain": 0}))
    (folder / "public").mkdir()
    (folder / "public/index.html").write_text(text("html", "<!doctype html>"))
    (folder / "app.js").write_text(text("js", "// app.js"))
    shutil.copy(tarball, folder)
    unpack = "mkdir -p node_modules/conclave-client && tar -xzf conclave-client-*.tgz --strip-components=1 -C node_modules/conclave-client"
    # Without a network: npm would unpack the tarball, and esbuild is Debian's.
    steps = text("sh", "# page").replace("npm install ./conclave-client-*.tgz esbuild", unpack).replace("npx ", "")
    assert unpack in steps
    subprocess.run(["sh", "-e", "-c", steps], cwd=folder, check=True, capture_output=True, timeout=60 * PATIENCE)
    language, name, program = backend
    (folder / name).write_text(text(language, f"# {name}" if language == "python" else f"// {name}"))
    serve = text("sh", "# start").splitlines()[1].split()
    return page_port, http_port, [[BINARY, *serve[1:]], [program, name]]


BACK_ENDS = {"python": ("python", "backend.py", "python3"), "node": ("js", "backend.mjs", "node")}


@pytest.fixture(params=BACK_ENDS)
def built(request, tmp_path, tarball, artifacts):
    page_port, http_port, commands = app(tmp_path, tarball, BACK_ENDS[request.param])
    (tmp_path / "state").mkdir(mode=0o700)
    log = tmp_path / "log"
    with log.open("wb") as output:
        processes = [subprocess.Popen([str(part) for part in command], cwd=tmp_path, stdout=output, stderr=subprocess.STDOUT) for command in commands]
    try:
        for port in (http_port, page_port):
            wait_for(lambda: is_open(port) and all(process.poll() is None for process in processes), 20, lambda: log.read_text())
        yield f"http://localhost:{page_port}/", log
    finally:
        for process in processes:
            process.terminate()
            process.wait(10 * PATIENCE)
        (artifacts / f"guide-{request.param}.log").write_bytes(log.read_bytes())


def is_open(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_the_guide_brings_two_people_together(built):
    url, log = built
    tabs = [Tab(url, name, words=None) for name in ("Alice", "Bob")]
    try:
        for tab in tabs:
            tab.driver.add_cookie({"name": "session", "value": f"a-secret-of-{tab.user}"})
            tab.driver.get(url)
            wait_for(lambda: "ready" in said(tab), 20, lambda: said(tab) + tab.log)
        alice, bob = tabs
        alice.driver.find_element("id", "call").click()
        wait_for(lambda: alert(bob), 20, lambda: said(alice) + log.read_text())
        assert bob.driver.switch_to.alert.text == "alice is calling"
        bob.driver.switch_to.alert.accept()
        # Both see the other beside themselves, and the same digits.
        for tab in tabs:
            wait_for(lambda: moving(tab) == 2, 30, lambda: said(tab) + tab.log + log.read_text())
        wait_for(lambda: said(alice) == said(bob) and re.search(r"\d{5}", said(alice)), 20, lambda: said(alice) + said(bob))
        bob.driver.find_element("id", "end").click()
        wait_for(lambda: said(alice) == "all-left", 20, lambda: said(alice) + log.read_text())
        # The back end was notified, lets nobody ring strangers, and accepts requests only from Conclave.
        wait_for(lambda: "call.ended" in log.read_text(), 20, lambda: log.read_text())
        assert asked(url, log.parent) == (200, {"allowed": ["bob"]})
        assert asked(url, log.parent, secret=b"another")[0] == 403
    finally:
        for tab in tabs:
            tab.close()


def asked(url, folder, secret=None):
    """The back end's answer to a question of Conclave's, signed with the hooks' secret or another."""
    body = json.dumps({"action": "ring", "from": "alice", "to": ["bob", "carol"]}).encode()
    at = int(time.time())
    key = secret or (folder / "hook-secret").read_text().strip().encode()
    code = hmac.digest(key, f"{at}.".encode() + body, "sha256").hex()
    request = urllib.request.Request(url + "authorize", body, {"Conclave-Signature": f"t={at},v1={code}"})
    try:
        with urllib.request.urlopen(request, timeout=10 * PATIENCE) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as refused:
        return refused.code, None


def said(tab):
    return tab.driver.execute_script("return document.getElementById('said').value")


def alert(tab):
    try:
        return tab.driver.switch_to.alert
    except NoAlertPresentException:
        return None


def moving(tab):
    """The number of videos that show a picture."""
    return tab.driver.execute_script("return [...document.querySelectorAll('video')].filter((video) => video.videoWidth > 2 && video.currentTime > 0).length")
