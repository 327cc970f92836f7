// The events of a call for single parts of it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from './web.mjs';

const { Facets } = await load('call/facets.js');

test('a part of a call is reported when it changes, and only then', () => {
  const track = { id: 'a' };
  const call = { path: 'connecting', code: '', quality: undefined, hasKey: false, stop: undefined, facts: { rev: 1 }, local: () => ({ isOn: true, track }) };
  const facets = new Facets();
  facets.changed(call);
  assert.deepEqual(facets.changed(call), []);
  const changes = { path: { path: 'connected' }, code: { code: '123' }, quality: { quality: 3 }, hasKey: { hasKey: true }, stop: { stop: { cause: 'gone' } }, members: { facts: { rev: 2 } } };
  for (const [name, change] of Object.entries(changes)) {
    Object.assign(call, change);
    assert.deepEqual(facets.changed(call), [name]);
  }
  // Other people, but the same cause.
  call.stop = { cause: 'gone' };
  track.id = 'b';
  assert.deepEqual(facets.changed(call), ['local']);
});
