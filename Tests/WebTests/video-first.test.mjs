// Video first, for sign language: who chooses it, and visible rings.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { page } from './fake-page.mjs';
import { load, loadPage } from './web.mjs';

const stored = new Map();
Object.defineProperty(globalThis, 'localStorage', {
  value: { getItem: (key) => stored.get(key) ?? null, setItem: (key, value) => void stored.set(key, value) },
  configurable: true,
});
const byID = page();
const { Capture } = await load('capture.js');
const { beginVideoFirst, isVideoFirst, showRingLight } = await loadPage('video-first.js');

const classes = new Map();
for (const node of [document.body, byID('call')]) {
  const own = new Set();
  classes.set(node, own);
  node.classList.toggle = (name, isOn) => void (isOn ? own.add(name) : own.delete(name));
}
const isCalm = () => classes.get(byID('call')).has('calm');
const isLit = () => classes.get(document.body).has('ring-light');

/** Presses the page's switch. */
function choose(isOn) {
  byID('video-first').checked = isOn;
  byID('video-first').listeners.change();
}

test('it is off until the person chooses it, which is remembered and changes the camera and the page at once', () => {
  const capture = new Capture();
  beginVideoFirst(capture);
  assert.deepEqual([isVideoFirst(), byID('video-first').checked, capture.choice.isVideoFirst, isCalm()], [false, false, false, false]);
  choose(true);
  assert.deepEqual([isVideoFirst(), capture.choice.isVideoFirst, isCalm(), stored.get('setting/video-first')], [true, true, true, 'true']);
  const next = new Capture();
  beginVideoFirst(next);
  assert.deepEqual([byID('video-first').checked, next.choice.isVideoFirst], [true, true]);
});

test('the operator’s choice counts until the person makes another', () => {
  stored.clear();
  document.documentElement.dataset.videoFirst = '';
  const capture = new Capture();
  beginVideoFirst(capture);
  assert.deepEqual([isVideoFirst(), byID('video-first').checked, capture.choice.isVideoFirst], [true, true, true]);
  choose(false);
  beginVideoFirst(capture);
  assert.deepEqual([isVideoFirst(), byID('video-first').checked, capture.choice.isVideoFirst, isCalm()], [false, false, false, false]);
  delete document.documentElement.dataset.videoFirst;
});

test('a ring is visible only with video first, and until it is over', () => {
  const lit = (isChosen) => {
    choose(isChosen);
    return [true, false].map((isRinging) => {
      showRingLight(isRinging);
      return isLit();
    });
  };
  assert.deepEqual([lit(false), lit(true)], [[false, false], [true, false]]);
});

const style = readFileSync(new URL('../../Sources/Web/page/style.css', import.meta.url), 'utf8');

test('a ring flashes less than three times a second (WCAG 2.3.1), and with reduced motion has a constant colour', () => {
  const animations = [...style.matchAll(/\.ring-light[^{]*\{[^}]*animation: ([\w-]+) ([\d.]+)s/g)].map(([, name, seconds]) => ({ name, seconds: Number(seconds) }));
  assert.deepEqual(animations.map(({ name }) => name), ['ring-light', 'ring-light-behind']);
  for (const { name, seconds } of animations) {
    const [, steps] = style.match(new RegExp(`@keyframes ${name} \\{(.*)\\}`)) ?? [];
    const flashes = steps.match(/%/g).length; // each step changes the colour and back
    assert.ok(flashes >= 1 && flashes / seconds < 3, `${name}: ${flashes} in ${seconds} s`);
  }
  assert.match(style, /prefers-reduced-motion: reduce\) \{\s*\*, \*::before, \*::after, \*::backdrop \{ animation: none !important/);
  assert.match(style, /@media \(prefers-reduced-motion: reduce\) \{ \.ring-light::after \{ border-color: #\w+; \} \.ring-light \.ring::backdrop \{ background: #\w+; \} \}/);
});
