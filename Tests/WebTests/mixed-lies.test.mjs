// 1,000 random mixes of lies and of a member's attacks, against the clients of a call. Despite all of them, no (key, nonce) is used twice, nobody opens what
// was not for it, and nothing is attributed to a wrong sender. A world goes through many mixes, so that each meets the clients in the state that the previous
// one left. CONCLAVE_SEED runs only one world.

import assert from 'node:assert/strict';
import { availableParallelism } from 'node:os';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';

const MIXES = 1_000;
const MIXES_A_WORLD = 40;

const one = Number(process.env.CONCLAVE_SEED ?? 0);
const all = one ? [one] : Array.from({ length: MIXES / MIXES_A_WORLD }, (_, index) => index + 1);
const threads = Math.min(all.length, Math.max(2, availableParallelism()));

function runInThread(seeds) {
  const worker = new Worker(new URL('world/mixed-lies-thread.mjs', import.meta.url), { workerData: { seeds, mixes: MIXES_A_WORLD } });
  return new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
  });
}

test(`${all.length * MIXES_A_WORLD} mixes of lies break no invariant`, async () => {
  const parts = Array.from({ length: threads }, (_, part) => all.filter((_, index) => index % threads === part));
  const results = await Promise.all(parts.map(runInThread));
  for (const { failure } of results) assert.equal(failure, undefined, failure);
  const sum = (name) => results.reduce((count, { total }) => count + total[name], 0);
  // The lies were told, and people heard each other in between.
  const counts = [sum('frames'), sum('heard'), sum('warned')];
  assert.ok(counts[0] > 40 * all.length && counts[1] > 40 * all.length && counts[2] > all.length, String(counts));
});
