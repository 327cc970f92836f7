// Lets Node load the page's modules: as ES modules whatever their extension, and with the globals that Node 18 lacks.

import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { webcrypto } from 'node:crypto';
import { pathToFileURL } from 'node:url';

globalThis.crypto ??= webcrypto;
globalThis.CustomEvent ??= class CustomEvent extends Event {
  constructor(name, { detail } = {}) {
    super(name);
    this.detail = detail;
  }
};

// The page remembers nothing here; a test that needs storage brings its own.
const nothing = { getItem: () => null, setItem() {}, removeItem() {} };
for (const name of ['localStorage', 'sessionStorage']) Object.defineProperty(globalThis, name, { value: nothing, configurable: true, writable: true });

const folder = mkdtempSync(join(tmpdir(), 'conclave-web-'));
cpSync(new URL('../../Sources/Web/', import.meta.url), folder, { recursive: true });
writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
// Rules to undo, each `[module, text, instead]`: a test shows that it would notice.
for (const [name, text, instead] of JSON.parse(process.env.CONCLAVE_UNDONE ?? '[]')) {
  const file = join(folder, 'conclave', name);
  const before = readFileSync(file, 'utf8');
  assert.ok(before.includes(text), `${name} has not: ${text}`);
  writeFileSync(file, before.replace(text, instead));
}
process.on('exit', () => rmSync(folder, { recursive: true }));

/** A module of the library. */
export const load = (name) => import(pathToFileURL(join(folder, 'conclave', name)));

/** A module of the page. */
export const loadPage = (name) => import(pathToFileURL(join(folder, 'page', name)));

/** Waits for turns of the event loop. One turn runs everything that follows only from promises; work with its own turns takes more. */
export async function aside(turns = 50) {
  for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** Waits for `condition`, 30 s at most: WebCrypto runs on its own threads and is slow on a busy machine. */
export async function until(condition) {
  const end = process.hrtime.bigint() + 30_000_000_000n;
  while (!condition() && process.hrtime.bigint() < end) await aside(1);
  assert.ok(condition(), String(condition));
}

/** Until the test `t` ends, time-outs fire only by `tick(ms)`, and intervals not at all. */
export function fakeTimers(t) {
  const { setTimeout, clearTimeout, setInterval } = globalThis;
  t.after(() => Object.assign(globalThis, { setTimeout, clearTimeout, setInterval }));
  const timers = new Map();
  let [now, next] = [0, 1];
  globalThis.setTimeout = (action, ms) => (timers.set(next, { action, at: now + ms }), next++);
  globalThis.clearTimeout = (id) => timers.delete(id) || clearTimeout(id);
  globalThis.setInterval = () => undefined;
  return (ms) => {
    now += ms;
    for (const [id, { action, at }] of [...timers]) if (at <= now && timers.delete(id)) action();
  };
}

/** A vector file; whole numbers beyond 2^53 come as text. */
export function vectors(name) {
  const text = readFileSync(new URL(`vectors/${name}`, import.meta.url), 'utf8');
  return JSON.parse(text.replace(/:\s*(\d{16,})/g, ':"$1"'));
}

export const bytes = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
export const hex = (array) => Buffer.from(array).toString('hex');
