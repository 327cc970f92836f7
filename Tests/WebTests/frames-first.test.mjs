// The picture sizes that are requested when frame rate matters more than resolution. Time is an argument.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadPage } from './web.mjs';

const { FramesFirst } = await loadPage('frames-first.js');

/** One track that is shown at `height`; `at(s, picture)` is the height requested at that second, given the picture since the previous call. */
function track(height) {
  const frames = new FramesFirst();
  return { frames, at: (s, picture) => frames.heightOf('2.2', { picture, height, now: s * 1_000 }) };
}

test('the shown height is requested, but at most 720 lines', () => {
  assert.deepEqual([1_080, 720, 300, 90].map((height) => track(height).at(0, 'shown')), [720, 720, 300, 90]);
});

test('after three seconds without enough bandwidth half the height is requested, step by step, but never below 180 lines', () => {
  const { at } = track(720);
  const heights = [[0, 'lower'], [2.9, 'lower'], [3, 'lower'], [5.9, 'lower'], [6, 'lower'], [9, 'paused'], [60, 'lower']].map((when) => at(...when));
  assert.deepEqual(heights, [720, 720, 360, 360, 180, 180, 180]);
  assert.deepEqual([0, 3, 6].map((s) => track(90).at(s, 'lower')), [90, 90, 90]);
});

test('a brief drop in quality changes nothing', () => {
  const { at } = track(720);
  for (let s = 0; s < 100; s += 2) assert.equal(at(s, s % 4 ? 'lower' : 'shown'), 720, `${s} s`);
});

test('a larger picture is requested after 20 s at the full frame rate; each failure halves how often that is tried', () => {
  const { at } = track(720);
  const tried = [];
  let [before, since] = [720, 0];
  // The bandwidth is enough for 360 lines.
  for (let s = 0; s < 1_000; s += 1) {
    const height = at(s, before > 360 ? 'lower' : 'shown');
    if (height > before) tried.push(s - since);
    if (height < before) since = s;
    before = height;
  }
  assert.deepEqual(tried, [20, 40, 80, 160, 160, 160, 160, 160]);
});

test('a track that comes back starts from the beginning', () => {
  const { frames, at } = track(720);
  assert.deepEqual([0, 3].map((s) => at(s, 'lower')), [720, 360]);
  frames.wishesOf([], new Map([['3.2', 90]]), { pinned: undefined, isRaised: () => false, now: 3_500 });
  assert.equal(at(4, 'lower'), 720);
});

test('the pinned person and raised hands get the highest priority, and a screen keeps its resolution', () => {
  const tile = (key, participant, source = 'camera') => ({ key, participant, source, track: `${participant}.${source === 'camera' ? 2 : 3}`, picture: 'shown' });
  const tiles = [tile('ann', 2), tile('bob', 3), tile('bob/screen', 3, 'screen'), tile('cleo', 4), { key: 'dan', source: 'ringing' }];
  const shown = new Map([['2.2', 1_080], ['3.2', 300], ['3.3', 1_080]]); // Cleo is on another page
  const isRaised = (participant) => participant !== 2;
  const { heights, priorities } = new FramesFirst().wishesOf(tiles, shown, { pinned: 'ann', isRaised, now: 0 });
  assert.deepEqual([...heights], [['2.2', 720], ['3.2', 300], ['3.3', 1_080]]);
  assert.deepEqual([...priorities], [['2.2', 2], ['3.2', 1]]);
});
