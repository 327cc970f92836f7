// How a client evaluates words of admission (protocol section 5.13). vectors.test.mjs tests their bytes, and the table of lies (rows 400 to 420) what servers
// try.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CALL, Person, directoryFor } from './person.mjs';
import { load } from './web.mjs';

const { Admissions } = await load('trust/admissions.js');
const { toBase64 } = await load('wire/bytes.js');
const { Identity } = await load('trust/identity.js');
const { MemoryStore } = await load('devices/store.js');
const { LinkSecret, isWordSigned, makeLinkWord, makeWord, wordsIn } = await load('trust/words.js');

const from = (first, count) => Uint8Array.from({ length: count }, (_, at) => first + at);
const TEXT = 'AAECAwQFBgcICQoLDA0OD2RlZmdoaWprbG1ub3BxcnN0dXZ3eHl6e3x9fn-AgYKD';

test('a word counts only for its call, its user and its signer', async () => {
  const [alice, bob] = await Promise.all(['alice', 'bob'].map((user) => Identity.open(new MemoryStore(), user, 'd')));
  const isGood = (value, call = CALL, keys = alice.keys) => isWordSigned(wordsIn({ admissions: [value] }).words[0], call, keys);
  const word = await makeWord(alice, CALL, 'carol');
  assert.equal(await isGood(word), true);
  assert.equal(await isGood({ ...word, user: 'dave' }), false);
  assert.equal(await isGood(word, '11111111-2222-4333-8444-555555555555'), false);
  assert.equal(await isGood(word, CALL, bob.keys), false);
  assert.equal(await isGood({ ...word, fingerprint: toBase64(bob.fingerprint) }), false);
  const secret = LinkSecret.make(alice);
  const link = await makeLinkWord(alice, CALL, await secret.link(CALL));
  const join = await secret.join(bob, CALL);
  assert.deepEqual([await isGood(link), await isGood(join)], [true, true]);
  assert.equal(await isGood({ ...join, user: 'carol' }), false);
  assert.equal(await isGood({ ...link, link: toBase64(await LinkSecret.make(alice).link(CALL)) }), false);
});

test('a link’s secret of another form is invalid', () => {
  for (const text of ['', TEXT.slice(1), `${TEXT}A`, TEXT.replace('A', '+')]) assert.throws(() => LinkSecret.from(text), /another form/);
});

/** Devices of `users`, who know each other's keys, and how `viewer`, one of them, judges the words for a call that alice started. */
async function scene(t, viewer, ...users) {
  const world = [];
  const people = {};
  for (const user of users) {
    people[user] = await Person.make(user, world.length + 1, world);
    t.after(() => people[user].close());
  }
  const { identity } = people[viewer];
  const directory = directoryFor(viewer, new MemoryStore(), world);
  const admissions = new Admissions({ identity, directory });
  const word = (by, user) => makeWord(people[by].identity, CALL, user);
  const told = async (words, signers = users) => {
    await admissions.take({ admissions: words, signers: signers.map((user) => ({ ...people[user].asDevice() })) }, { isList: true });
    await admissions.judge();
  };
  return { admissions, directory, word, told, people, of: (user) => admissions.of({ user, fingerprint: people[user].asDevice().fingerprint }) };
}

test('the chain leads from one’s own invitation to the initiator, in whatever order words come', async (t) => {
  const { admissions, word, told, of } = await scene(t, 'dave', 'alice', 'bob', 'carol', 'dave', 'erin');
  await admissions.joins(CALL, { inviters: ['carol'] });
  await told([await word('carol', 'dave')]);
  assert.equal(admissions.isByService, true, 'no chain yet');
  assert.equal(admissions.uninvited({ user: 'erin', fingerprint: 'x' }), undefined, 'so nobody is uninvited');
  await told([await word('bob', 'carol'), await word('dave', 'erin')]);
  await told([await word('alice', 'alice'), await word('alice', 'bob')]);
  assert.equal(admissions.isByService, false);
  assert.deepEqual(['alice', 'bob', 'carol', 'dave', 'erin'].map(of), [{ how: 'start' }, ...['alice', 'bob', 'carol', 'dave'].map((by) => ({ how: 'member', by }))]);
  assert.equal(admissions.uninvited({ user: 'zed', fingerprint: 'x' }), 'yes');
});

test('without a root, only a word of the caller counts for oneself', async (t) => {
  const { admissions, word, told } = await scene(t, 'dave', 'alice', 'bob', 'dave');
  await admissions.joins(CALL, { inviters: ['alice'] });
  await told([await word('bob', 'bob'), await word('bob', 'dave')]);
  assert.equal(admissions.isByService, true);
  await told([await word('alice', 'alice'), await word('alice', 'dave')]);
  assert.equal(admissions.isByService, false);
});

test('a person who was let in remains let in, also when words come again', async (t) => {
  const { admissions, word, told, of, people } = await scene(t, 'alice', 'alice', 'bob', 'carol');
  admissions.started(CALL);
  await told([await word('alice', 'bob'), await word('bob', 'carol')]);
  let changes = 0;
  admissions.addEventListener('change', () => (changes += 1));
  await told([await word('alice', 'carol')]);
  await told([]);
  assert.deepEqual([of('carol'), changes], [{ how: 'member', by: 'bob' }, 0]);
  assert.equal(admissions.uninvited({ ...people.carol.entry(), fingerprint: 'another device of hers' }), undefined, 'words are for users');
});

test('many words of a ghost do not displace a good one that comes later', async (t) => {
  const { admissions, word, told, of } = await scene(t, 'alice', 'alice', 'bob');
  admissions.started(CALL);
  const good = await word('alice', 'bob');
  await told(Array.from({ length: 20 }, (_, at) => ({ ...good, signature: toBase64(from(at, 64)) })));
  assert.equal(of('bob'), undefined);
  await told([good]);
  assert.deepEqual(of('bob'), { how: 'member', by: 'alice' });
});

test('the root of a call that a start has crossed is one of the called people', async (t) => {
  const { admissions, word, told } = await scene(t, 'dave', 'alice', 'mallory', 'dave');
  await admissions.joins(CALL, { inviters: ['alice', 'dave'] });
  await told([await word('mallory', 'mallory'), await word('mallory', 'dave')]);
  assert.equal(admissions.isByService, true);
  await told([await word('alice', 'alice'), await word('alice', 'dave')]);
  assert.equal(admissions.isByService, false);
  assert.equal(admissions.uninvited({ user: 'mallory', fingerprint: 'x', participant: 3 }), 'yes');
});

test('a new device of a known person lets nobody in before its look-up, listed or not', async (t) => {
  const { admissions, directory, told, of, people } = await scene(t, 'alice', 'alice', 'bob', 'carol');
  const tablet = await Person.make('bob', 9, [], { device: 'tablet' });
  t.after(() => tablet.close());
  const deviceOf = (person) => person.asDevice();
  await directory.examine([deviceOf(people.bob)]);
  admissions.started(CALL);
  const signed = async (by, user) => ({ admissions: [await makeWord(by.identity, CALL, user)], signers: [deviceOf(by)] });
  await told([await makeWord(people.alice.identity, CALL, 'bob')]);
  admissions.listed([tablet.entry()], () => new Set());
  await admissions.take(await signed(tablet, 'carol'));
  await admissions.judge();
  assert.equal(of('carol'), undefined);
  await directory.examine([deviceOf(tablet)]);
  admissions.learn([deviceOf(tablet)]);
  await admissions.judge();
  assert.deepEqual(of('carol'), { how: 'member', by: 'bob' });
});

test('if no device of a person is known, only a listed device’s signature counts', async (t) => {
  const { admissions, told, of, people } = await scene(t, 'alice', 'alice', 'bob', 'carol');
  const tablet = await Person.make('bob', 9, [], { device: 'tablet' });
  t.after(() => tablet.close());
  admissions.started(CALL);
  await told([await makeWord(people.alice.identity, CALL, 'bob')]);
  admissions.listed([people.bob.entry()], () => new Set());
  await admissions.take({ admissions: [await makeWord(tablet.identity, CALL, 'carol')], signers: [tablet.asDevice()] });
  await admissions.judge();
  assert.equal(of('carol'), undefined);
  await told([await makeWord(people.bob.identity, CALL, 'carol')]);
  assert.deepEqual(of('carol'), { how: 'member', by: 'bob' });
});

test('after a reload the call keeps its root, whatever chain the server reports first', async (t) => {
  const { admissions, word, told, of } = await scene(t, 'dave', 'alice', 'bob', 'mallory', 'dave', 'eve');
  await admissions.joins(CALL, { root: 'alice' });
  await told([await word('mallory', 'mallory'), await word('mallory', 'dave'), await word('mallory', 'eve')]);
  assert.deepEqual([admissions.root, of('alice'), admissions.isByService], ['alice', { how: 'start' }, false]);
  for (const user of ['mallory', 'eve']) assert.equal(admissions.uninvited({ user, fingerprint: 'x', participant: 3 }), 'yes', user);
  await told([await word('alice', 'bob'), await word('bob', 'dave')]);
  assert.deepEqual(of('bob'), { how: 'member', by: 'alice' });
});
