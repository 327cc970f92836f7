// The library and the browser's safeguards: trusted types for its worker, and persistent storage.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from './web.mjs';

const { Conclave } = await load('conclave.js');
const { startWorker } = await load('media/worker.js');
const { MemoryStore, openStore } = await load('devices/store.js');

/** The worker's URL by default. */
const { workerURL } = new Conclave({ url: 'ws://a', device: 'b', credentials: async () => ({}) });

/** A worker whose constructor accepts the URLs that `isAllowed` allows, and which listens at once. */
function workersThatTake(t, isAllowed) {
  const started = [];
  globalThis.Worker = class extends EventTarget {
    constructor(url) {
      super();
      if (!isAllowed(url)) throw new TypeError('This document requires TrustedScriptURL assignment.');
      started.push(String(url));
      queueMicrotask(() => this.dispatchEvent(new Event('message')));
    }
  };
  t.after(() => delete globalThis.Worker);
  return started;
}

class TrustedURL {
  constructor(url) {
    this.url = url;
  }

  toString() {
    return this.url;
  }
}

test('a browser without trusted types starts the worker by its URL', async (t) => {
  const started = workersThatTake(t, (url) => typeof url === 'string');
  await startWorker(workerURL);
  assert.match(started[0], /^file:.*\/conclave\/sframe-worker\.js$/);
});

test('where trusted types are required, the one policy allows the library’s worker and no other URL', async (t) => {
  const policies = [];
  globalThis.trustedTypes = {
    createPolicy(name, { createScriptURL, ...others }) {
      policies.push({ name, createScriptURL, others: Object.keys(others) });
      return { createScriptURL: (url) => new TrustedURL(createScriptURL(url)) };
    },
  };
  t.after(() => delete globalThis.trustedTypes);
  const started = workersThatTake(t, (url) => url instanceof TrustedURL);
  await startWorker(workerURL);
  await startWorker(workerURL);
  assert.equal(started.length, 2);
  assert.deepEqual(policies.map(({ name, others }) => [name, others]), [['conclave', []]], 'one policy, only for script URLs');
  for (const url of ['data:text/javascript,', 'https://evil.example/sframe-worker.js', `${started[0]}?x`, '']) {
    assert.throws(() => policies[0].createScriptURL(url), TypeError, url);
  }
});

test('the browser is asked not to evict keys and pins, and may refuse', async (t) => {
  const asked = [];
  const before = Object.getOwnPropertyDescriptor(globalThis, 'navigator');
  const persist = () => (asked.push('persist'), Promise.reject(new Error('refused')));
  Object.defineProperty(globalThis, 'navigator', { value: { storage: { persist } }, configurable: true });
  globalThis.indexedDB = {
    open() {
      const request = { result: {} };
      queueMicrotask(() => request.onsuccess());
      return request;
    },
  };
  t.after(() => {
    delete globalThis.indexedDB;
    delete globalThis.navigator;
    if (before) Object.defineProperty(globalThis, 'navigator', before);
  });
  assert.ok(!((await openStore()) instanceof MemoryStore), 'a refusal is not an error');
  assert.deepEqual(asked, ['persist']);
});
