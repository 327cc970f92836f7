// A thread that runs interleaved worlds: `workerData` has the `seeds`. It stops at the first failure.

import { parentPort, workerData } from 'node:worker_threads';
import { Interleaved } from './interleaved.mjs';

console.warn = process.env.LOUD ? console.log : () => {};

const total = {};
let failure;
for (const seed of workerData.seeds) {
  try {
    for (const [name, count] of Object.entries(await new Interleaved(seed).run())) total[name] = (total[name] ?? 0) + count;
  } catch (error) {
    failure = `CONCLAVE_SEED=${seed}: ${error.message}\n${error.stack}`;
    break;
  }
}
parentPort.postMessage({ total, failure });
