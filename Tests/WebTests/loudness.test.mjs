// Which audio of a PeerConnection is loud, from its statistics.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from './web.mjs';

const { Loudness } = await load('media/loudness.js');

/** Measurements 400 ms apart of streams with running sums, as a browser has them: `measure({a: [[level, seconds], …]})` returns the ids of those that are loud. */
function streams() {
  const loudness = new Loudness();
  const sums = {};
  return (sounds) => {
    for (const [id, parts] of Object.entries(sounds)) {
      sums[id] ??= { id, type: 'inbound-rtp', totalAudioEnergy: 0, totalSamplesDuration: 0 };
      for (const [level, seconds] of parts) {
        sums[id].totalAudioEnergy += level ** 2 * seconds;
        sums[id].totalSamplesDuration += seconds;
      }
    }
    return loudness.loud([{ id: 'path', type: 'candidate-pair' }, ...Object.values(sums)]).map(({ id }) => id);
  };
}

test('a word that ends before the measurement counts, but only in that measurement', () => {
  const measure = streams();
  const quiet = [[0.002, 0.4]];
  assert.deepEqual(measure({ a: quiet, b: quiet }), []);
  assert.deepEqual(measure({ a: [[0.3, 0.02], [0.002, 0.38]], b: quiet }), ['a']);
  assert.deepEqual(measure({ a: quiet, b: quiet }), []);
});

test('a quiet room is not speech, however long it lasts; without new samples there is silence', () => {
  const measure = streams();
  for (let count = 0; count < 100; count += 1) assert.deepEqual(measure({ a: [[0.012, 0.4]] }), []);
  assert.deepEqual(measure({ a: [[0.1, 0.4]] }), ['a']);
  assert.deepEqual(measure({}), [], 'no new samples');
});
