// 2,000 orders in which ciphers, look-ups and answers end, with a server's lies in between. In any order, an envelope has the secret that its signer uses, no
// (key, nonce) is used twice, nobody opens what was not for it, and nothing is sent from a past epoch or stay. The tests fail when a rule is removed.
// CONCLAVE_SEED runs only one seed.

import assert from 'node:assert/strict';
import { availableParallelism } from 'node:os';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';

const SEEDS = 2_000;
const SEEDS_TO_NOTICE = 300;

const one = Number(process.env.CONCLAVE_SEED ?? 0);
const threads = Math.max(2, availableParallelism());

/** `undone`: see `web.mjs`. */
function run(seeds, undone = []) {
  const worker = new Worker(new URL('world/interleaved-thread.mjs', import.meta.url), { workerData: { seeds }, env: { ...process.env, CONCLAVE_UNDONE: JSON.stringify(undone) } });
  return new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
  });
}

const upTo = (count) => Array.from({ length: count }, (_, index) => index + 1);

test('no order of ciphers, answers and events makes a device break the rules of keys', async () => {
  const all = one ? [one] : upTo(SEEDS);
  const parts = Array.from({ length: threads }, (_, part) => all.filter((_, index) => index % threads === part));
  const results = await Promise.all(parts.map((seeds) => run(seeds)));
  for (const { failure } of results) assert.equal(failure, undefined, failure);
  if (one) return;
  const sum = (name) => results.reduce((count, { total }) => count + (total[name] ?? 0), 0);
  const counts = ['envelopes', 'frames', 'heard', 'ended'].map(sum);
  assert.ok(counts.every((count) => count > all.length / 2), `something happened: ${counts}`);
});

const noOneAsks = [
  ['keys/handout.js', 'if (record.isOver || this.#lists.isBroken) throw', 'if (false) throw'],
  ['keys/keys.js', 'if (this.#isClosed) throw', 'if (false) throw'],
];
const unchecked = ['keys/epoch.js', 'if (!this.#lent || !equal(this.#lent, secret)) throw', 'if (false) throw'];

/** A rule, how it is undone, and the failure that is then found. */
const undoings = [
  [
    'the bytes of a secret are lent, not a copy',
    [...noOneAsks, unchecked, ['keys/epoch.js', 'this.#lent?.slice()', 'this.#lent'], ['keys/epoch.js', 'finally {\n      copy.fill(0);\n    }', 'finally {}']],
    /an envelope without a secret/,
  ],
  ['a past epoch or stay gives keys', [...noOneAsks, unchecked], /sends for an epoch or a stay that is over/],
  ['each answer of a leader has a different secret', [['keys/epoch.js', 'this.#proposal ??=', 'this.#proposal =']], /another secret|proposes \d secrets|over/],
  ['a leader takes another’s secret before it has its answer', [['keys/keys.js', 'if (offered) return', 'if (false) return']], /another secret of epoch/],
  [
    'a counter is taken only after its key is available',
    [
      ['frames/frames.js', '    this.#counters.set(name, counter + 1);\n', ''],
      ['frames/frames.js', 'return seal(await this.#keys.get(kid), BigInt(counter), metadata, plaintext);', 'const key = await this.#keys.get(kid); this.#counters.set(name, counter + 1); return seal(key, BigInt(counter), metadata, plaintext);'],
    ],
    /nonce\) came twice/,
  ],
];

for (const [what, undone, expected] of undoings) {
  test(`it is noticed when ${what}`, { skip: one > 0 }, async () => {
    const { failure } = await run(upTo(SEEDS_TO_NOTICE), undone);
    assert.match(failure ?? 'nothing', expected);
  });
}
