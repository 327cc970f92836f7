"""The frames that browsers seal and open, recorded by a hook on WebCrypto in the page and in its worker: the key, the nonce and the header. Only for tests."""

import collections
import itertools
import json
import threading
import time
import urllib.request

import websocket

# Keys are identified by the SHA-256 of their bytes. Key pairs and derived secrets are recorded as bytes, since a test searches for them.
PROBE = """
(() => {
  // A worker has no SubtleCrypto yet when it is stopped before its first line: its first listener brings the hook.
  const listen = self.addEventListener;
  if (self.SubtleCrypto) return void install();
  self.addEventListener = (...parameters) => {
    self.addEventListener = listen;
    install();
    return listen.apply(self, parameters);
  };
  function install() {
  const { subtle } = crypto;
  const of = (name) => SubtleCrypto.prototype[name];
  const [digest, importKey, encrypt, decrypt, deriveBits, generateKey, exportKey] =
    ['digest', 'importKey', 'encrypt', 'decrypt', 'deriveBits', 'generateKey', 'exportKey'].map(of);
  const hex = (bytes) => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('');
  const copy = (data) => new Uint8Array(ArrayBuffer.isView(data) ? data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength) : data.slice(0));
  const names = new WeakMap();
  const note = (entry) => self.conclaveNote?.(JSON.stringify({ ...entry, at: Date.now() }));
  const nameOf = (algorithm) => (algorithm.name ?? algorithm).toUpperCase();
  const proto = SubtleCrypto.prototype;
  proto.importKey = async function (format, data, algorithm, ...rest) {
    const raw = format === 'raw' ? copy(data) : undefined;
    const key = await importKey.call(this, format, data, algorithm, ...rest);
    if (raw) {
      names.set(key, hex(await digest.call(subtle, 'SHA-256', raw)));
      if (raw.length >= 16 && nameOf(algorithm) !== 'ECDH') note({ op: 'secret', bytes: hex(raw) });
    }
    return key;
  };
  proto.encrypt = async function (algorithm, key, data) {
    const isNoted = nameOf(algorithm) === 'AES-GCM';
    const facts = isNoted && { key: names.get(key), iv: hex(copy(algorithm.iv)), header: hex(copy(algorithm.additionalData ?? new Uint8Array())).slice(0, 64), clear: hex(copy(data)).slice(0, 96) };
    if (isNoted) note({ op: 'seal', ...facts });
    return encrypt.call(this, algorithm, key, data);
  };
  proto.decrypt = async function (algorithm, key, data) {
    const isNoted = nameOf(algorithm) === 'AES-GCM';
    const iv = isNoted && hex(copy(algorithm.iv));
    const clear = await decrypt.call(this, algorithm, key, data);
    if (isNoted) note({ op: 'open', key: names.get(key), iv, clear: hex(clear).slice(0, 96) });
    return clear;
  };
  proto.deriveBits = async function (...parameters) {
    const bits = await deriveBits.apply(this, parameters);
    note({ op: 'secret', bytes: hex(bits) });
    return bits;
  };
  proto.generateKey = async function (algorithm, isExtractable, usages) {
    if (!/^EC/.test(nameOf(algorithm))) return generateKey.call(this, algorithm, isExtractable, usages);
    const open = await generateKey.call(this, algorithm, true, usages);
    const { d } = await exportKey.call(subtle, 'jwk', open.privateKey);
    const bytes = Uint8Array.from(atob(d.replace(/-/g, '+').replace(/_/g, '/')), (character) => character.charCodeAt(0));
    note({ op: 'private', bytes: hex(bytes) });
    if (isExtractable) return open;
    const jwk = await exportKey.call(subtle, 'jwk', open.privateKey);
    const privateKey = await importKey.call(subtle, 'jwk', jwk, algorithm, false, open.privateKey.usages);
    return { privateKey, publicKey: open.publicKey };
  };
  }
})();
"""

Sealed = collections.namedtuple("Sealed", "user key iv kid counter at")
Opened = collections.namedtuple("Opened", "user key iv at")


def sframe_numbers(header):
    """(KID, CTR) of an SFrame header in front of the authenticated data (RFC 9605 section 4.3)."""
    config, offset, numbers = header[0], 1, []
    for is_long, value in ((config & 0x80, config >> 4 & 7), (config & 8, config & 7)):
        size = value + 1 if is_long else 0
        numbers.append(int.from_bytes(header[offset : offset + size], "big") if is_long else value)
        offset += size
    return numbers


class Watch:
    """The records of one tab, over the Chrome DevTools Protocol. It reloads `tab`, so that it begins before the page makes a key."""

    def __init__(self, audit, tab):
        self.audit, self.tab = audit, tab
        address = tab.driver.capabilities["goog:chromeOptions"]["debuggerAddress"]
        with urllib.request.urlopen(f"http://{address}/json/list", timeout=5) as reply:
            pages = {page["id"]: page["webSocketDebuggerUrl"] for page in json.load(reply)}
        self.socket = websocket.create_connection(pages[tab.driver.current_window_handle], timeout=30, suppress_origin=True)
        self.numbers, self.lock = itertools.count(1), threading.Lock()
        # Sessions of the tab's SFrame workers, the newest last, and the scripts to run in each before its own first line.
        self.workers, self.worker_script = [], ""
        self.results, self.changed = {}, threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()
        self._send("Page.enable")
        self._send("Runtime.enable")
        self._send("Runtime.addBinding", name="conclaveNote")
        self._send("Page.addScriptToEvaluateOnNewDocument", source=PROBE)
        self._send("Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=True, flatten=True)

    def close(self):
        self.socket.close()

    def in_worker(self, expression):
        """The value of an expression, or of its promise, in the newest SFrame worker."""
        number = self._send("Runtime.evaluate", self.workers[-1], expression=expression, awaitPromise=True, returnByValue=True)
        with self.changed:
            assert self.changed.wait_for(lambda: number in self.results, 10), f"the worker of {self.tab.user} does not answer"
            result = self.results.pop(number)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def _send(self, method, session=None, **parameters):
        message = {"id": next(self.numbers), "method": method, "params": parameters}
        with self.lock:
            self.socket.send(json.dumps(message | ({"sessionId": session} if session else {})))
        return message["id"]

    def _read(self):
        while True:
            try:
                message = json.loads(self.socket.recv())
            except websocket.WebSocketTimeoutException:
                continue
            except (websocket.WebSocketException, OSError, ValueError):
                return
            parameters = message.get("params", {})
            if message.get("method") == "Target.attachedToTarget":
                session = parameters["sessionId"]
                self._send("Runtime.enable", session)
                self._send("Runtime.addBinding", session, name="conclaveNote")
                self._send("Runtime.evaluate", session, expression=PROBE)
                if parameters["targetInfo"]["url"].endswith("/sframe-worker.js"):
                    if self.worker_script:
                        self._send("Runtime.evaluate", session, expression=self.worker_script)
                    self.workers.append(session)
                self._send("Runtime.runIfWaitingForDebugger", session)
            if "result" in message.get("result", {}):
                with self.changed:
                    self.results[message["id"]] = message["result"]
                    self.changed.notify_all()
            if message.get("method") == "Runtime.bindingCalled" and parameters["name"] == "conclaveNote":
                self.audit.note(self.tab.user, json.loads(parameters["payload"]))


class Audit:
    """The records of all tabs, and the invariants that they must satisfy."""

    def __init__(self):
        self.lock = threading.Lock()
        self.watches = []
        self.begin()

    def begin(self):
        with self.lock:
            self.sealed, self.opened, self.secrets, self.privates, self.clear = [], [], set(), set(), set()

    def watch(self, tab):
        self.watches.append(Watch(self, tab))
        return self.watches[-1]

    def close(self):
        for watch in self.watches:
            watch.close()

    def note(self, user, entry):
        with self.lock:
            if entry["op"] == "seal":
                header = bytes.fromhex(entry["header"])
                numbers = sframe_numbers(header) if header else (None, None)
                self.sealed.append(Sealed(user, entry["key"], entry["iv"], *numbers, entry["at"]))
                self.clear.add(entry["clear"])
            elif entry["op"] == "open":
                self.opened.append(Opened(user, entry["key"], entry["iv"], entry["at"]))
            else:
                (self.secrets if entry["op"] == "secret" else self.privates).add(entry["bytes"])

    def frames(self, user=None, since=0):
        """The frames that were sealed, by their SFrame header."""
        with self.lock:
            return [s for s in self.sealed if s.kid is not None and user in (None, s.user) and s.at >= since]

    def is_sending(self, user, within=1.0):
        return bool(self.frames(user, since=(time.time() - within) * 1000))

    def epochs(self, user, since=0):
        """The low bytes of the epochs under which frames were sealed."""
        return {sealed.kid & 255 for sealed in self.frames(user, since)}

    def repeats(self):
        """The (key, nonce) pairs that were used more than once, with the users who did it."""
        with self.lock:
            count = collections.Counter((sealed.key, sealed.iv) for sealed in self.sealed)
            users = collections.defaultdict(set)
            for sealed in self.sealed:
                users[sealed.key, sealed.iv].add(sealed.user)
        return {pair: users[pair] for pair, times in count.items() if times > 1}

    def check(self, known_keys=(), hearers=()):
        """Asserts that no (key, nonce) is used twice, that no device opens its own frames, and that no sealing key is among `known_keys`, except those with
        which the `hearers` seal."""
        with self.lock:
            sealed, opened = list(self.sealed), list(self.opened)
        repeats = self.repeats()
        assert not repeats, f"{len(repeats)} nonces were used again, by {set().union(*repeats.values())}"
        assert all(entry.key for entry in sealed), "a frame was sealed with a key that the probe has not seen made"
        sealer = {(entry.key, entry.iv): entry.user for entry in sealed}
        own = [entry for entry in opened if sealer.get((entry.key, entry.iv)) == entry.user and entry.user]
        assert not own, f"{own[0].user} opened {len(own)} frames of its own"
        heard = [entry for entry in sealed if entry.key in known_keys and entry.user not in hearers]
        assert not heard, f"{len(heard)} frames of {set(entry.user for entry in heard)} can be opened by somebody who is on no list of theirs"
