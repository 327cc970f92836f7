// The address of a link: its content, and names that somebody else wrote.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadPage } from './web.mjs';

Object.defineProperty(globalThis, 'location', { value: { origin: 'https://calls.example', pathname: '/c/', hash: '' }, configurable: true });
const { addressOf, linkIn } = await loadPage('link.js');

const secret = 'A'.repeat(64);
const link = { id: '6f0c2f6e-4d5e-4b52-9f0c-1f2a3b4c5d6e', link: 'AbC-_9', secret };
const hashOf = (parts) => new URL(addressOf({ ...link, ...parts })).hash;

test('an address decodes to the same link, with or without a name', () => {
  assert.equal(addressOf(link), `https://calls.example/c/#join=${link.id}/${link.link}/${secret}`);
  assert.deepEqual(linkIn(hashOf({})), { ...link, name: '' });
  for (const name of ['Team meeting', 'Ça va / bien?', '50 % #1', '会議', 'اجتماع', '👩‍👩‍👧']) assert.deepEqual(linkIn(hashOf({ name })), { ...link, name });
  for (const name of ['', '   ', '\u202e\n']) assert.equal(addressOf({ ...link, name }), addressOf(link));
});

test('a lasting link has neither a call nor a token', () => {
  const address = addressOf({ secret, name: 'Office hours', isLasting: true });
  assert.equal(address, `https://calls.example/c/#meet=${secret}/Office%20hours`);
  assert.deepEqual(linkIn(new URL(address).hash), { id: '', link: '', secret, name: 'Office hours', isLasting: true });
  assert.deepEqual(linkIn(`#meet=${secret}`), { id: '', link: '', secret, name: '', isLasting: true });
  for (const hash of ['#meet=', '#meet=short', `#meet=${secret}x`, `#meet=x/y/${secret}`, `#meet=${secret}?x`]) assert.equal(linkIn(hash), undefined, hash);
});

test('the name is in the part of the address that is not sent to a server', () => {
  const { pathname, search, hash } = new URL(addressOf({ ...link, name: 'Secret plans' }));
  assert.deepEqual([pathname, search, hash.includes('Secret%20plans')], ['/c/', '', true]);
});

test('a name that somebody else wrote stays on one short line and does not reverse text', () => {
  const nameOf = (name) => linkIn(`#join=${link.id}/${link.link}/${secret}/${name}`).name;
  assert.equal(nameOf(encodeURIComponent('a\nb\u0000c\u2028d')), 'a b c d');
  assert.equal(nameOf(encodeURIComponent('\u202egnp.exe\u202c')), 'gnp.exe');
  assert.equal([...nameOf(encodeURIComponent('👍'.repeat(500)))].length, 60);
  for (const broken of ['%', '%E4%A', '%ff']) assert.equal(nameOf(broken), '', broken);
});

test('an address of another form is not a link', () => {
  for (const hash of ['', '#', '#join=', `#join=${link.id}/${link.link}`, `#join=${link.id}/${link.link}/short`, `#join=${link.id}/${link.link}/${secret}x`, `#other=${link.id}/${link.link}/${secret}`]) {
    assert.equal(linkIn(hash), undefined, hash);
  }
});
