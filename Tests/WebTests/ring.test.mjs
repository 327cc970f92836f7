import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Person } from './person.mjs';
import { load, vectors } from './web.mjs';

const { concat, fromBase64, toBase64, u32, utf8 } = await load('bytes.js');
const { ringEpoch } = await load('envelopes.js');
const { callCodeOf, envelopeBytes, listBytes, listHashOf } = await load('transcript.js');
const { MemoryStore } = await load('store.js');

console.warn = () => {}; // refusals are said there

const vector = vectors('ring-envelope.json');
const url = (bytes) => Buffer.from(bytes).toString('base64url');

/** A key pair as WebCrypto has it, from a raw scalar and an SPKI. */
async function pairOf(name, usages, scalar, spki) {
  const point = fromBase64(spki).slice(-64);
  const jwk = { kty: 'EC', crv: 'P-256', x: url(point.slice(0, 32)), y: url(point.slice(32)) };
  const algorithm = { name, namedCurve: 'P-256' };
  return {
    publicKey: await crypto.subtle.importKey('jwk', jwk, algorithm, true, name === 'ECDSA' ? ['verify'] : []),
    privateKey: await crypto.subtle.importKey('jwk', { ...jwk, d: url(fromBase64(scalar)) }, algorithm, false, usages),
  };
}

async function personOf(device, participant, { privateKey, joinId, joinKey }, world) {
  const store = new MemoryStore();
  const [wrap, sign] = device.keys.map(({ publicKey }) => publicKey);
  await store.put('identities', `${device.user}/${device.device}`, {
    wrap: await pairOf('ECDH', ['deriveBits'], device.wrapPrivateKey, wrap),
    sign: await pairOf('ECDSA', ['sign'], device.signPrivateKey, sign),
  });
  const pair = await pairOf('ECDH', ['deriveBits'], privateKey, joinKey.publicKey);
  const join = { pair, wire: { joinId, joinKey } };
  return Person.make(device.user, participant, world, { store, join, call: vector.call, device: device.device });
}

/** The devices of the vector, of whom nobody is a `Person`. */
const listed = [{ user: 'alice', device: 'phone', ...vector.initiator }, ...vector.callees].map((device) => ({ asDevice: () => device }));

const theBob = () => personOf(vector.callees[0], 2, vector.accept, [...listed]);

async function baseKey(person, participant) {
  const { secret, listHash, senders } = person.posted.filter(({ type }) => type === 'epoch').at(-1);
  const sender = senders.find((other) => other.participant === participant);
  const info = concat(utf8('conclave-sender-v1'), u32(1), listHash, sender.fingerprint, sender.joinId);
  const parameters = { name: 'HKDF', hash: 'SHA-512', salt: utf8(vector.call), info };
  return toBase64(new Uint8Array(await crypto.subtle.deriveBits(parameters, secret, 512)));
}

test('a callee opens the ring envelope of the vector and derives both sender keys', async () => {
  const bob = await theBob();
  bob.keys.seated(new Map([['bob/laptop', { participant: 2, joinId: vector.accept.joinId }]]));
  await bob.keys.beginRung(vector.ring);
  assert.equal(bob.keys.canSend, true);
  for (const { participant, baseKey: expected } of vector.senderKeys) assert.equal(await baseKey(bob, participant), expected);
  assert.equal(await bob.keys.code(), vector.callCode);
});

test('list, hash and signed bytes are those of the vector', async () => {
  assert.equal(toBase64(await listBytes(vector.list)), vector.listBytes);
  const listHash = await listHashOf(vector.list);
  assert.equal(toBase64(listHash), vector.listHash);
  for (const envelope of vector.start.envelopes) {
    const facts = { ...envelope, call: '', from: { user: 'alice', device: 'phone' }, ciphertext: fromBase64(envelope.ciphertext), listHash };
    assert.equal(toBase64(await envelopeBytes(facts)), vector.signatureInputs[`${envelope.to.user}/${envelope.to.device}`]);
  }
  assert.equal(await callCodeOf(vector.call, vector.list), vector.callCode);
});

test('a ring that is not the caller’s is refused, and harms nothing', async () => {
  const { envelope, list } = vector.ring;
  const forged = { ...envelope, signature: vector.start.envelopes[1].signature };
  const bad = [
    { ...vector.ring, from: 'carol' },
    { ...vector.ring, envelope: forged },
    { ...vector.ring, envelope: { ...envelope, epoch: 2 } },
    { ...vector.ring, envelope: { ...envelope, signature: undefined } },
    { ...vector.ring, list: list.slice(0, 2) },
    { ...vector.ring, list: list.map((entry) => ({ ...entry, joinId: entry.joinId ?? vector.accept.joinId })) },
  ];
  for (const ring of bad) {
    const bob = await theBob();
    await bob.keys.beginRung(ring);
    assert.deepEqual([bob.keys.canSend, bob.keys.list], [false, []]);
    await bob.keys.beginRung(vector.ring);
    assert.equal(bob.keys.canSend, true);
  }
});

test('who starts is understood by who accepts, under the same list', async () => {
  const world = [];
  const alice = await Person.make('alice', 1, world);
  const bob = await Person.make('bob', 2, world);
  const made = await ringEpoch({ ...alice, callees: ['bob'] });
  const seats = new Map([['bob/d', { participant: 2, joinId: bob.join.wire.joinId }]]);
  await alice.keys.begin(made);
  await alice.keys.seated(seats);
  const envelope = { ...made.envelopes[0], from: { user: 'alice', device: 'd' } };
  bob.keys.seated(seats);
  await bob.keys.beginRung({ from: 'alice', list: made.list, envelope });
  const keyOf = (person, participant) => person.posted.filter(({ type }) => type === 'epoch').at(-1).senders.find((one) => one.participant === participant);
  for (const participant of [1, 2]) assert.deepEqual(keyOf(alice, participant), keyOf(bob, participant));
  assert.equal(await alice.derived(1), await bob.derived(1));
});

test('a callee’s device whose key has changed gets no ring envelope', async () => {
  const world = [];
  const alice = await Person.make('alice', 1, world);
  const bob = await Person.make('bob', 2, world);
  await ringEpoch({ ...alice, callees: ['bob'] });
  world.splice(world.indexOf(bob), 1);
  await Person.make('bob', 2, world);
  const made = await ringEpoch({ ...alice, callees: ['bob'] });
  assert.deepEqual([made.envelopes.length, made.list.length], [0, 1]);
});

test('changes that do not fit the list here bring the whole list, as when the server dropped an envelope', async () => {
  const world = [];
  const [alice, bob, carol] = [await Person.make('alice', 1, world), await Person.make('bob', 2, world), await Person.make('carol', 0, world)];
  await alice.keys.begin(await ringEpoch({ ...alice, callees: ['bob', 'carol'] }));
  const list = [alice.entry(), bob.entry()];
  const event = { epoch: 2, mode: 'fresh', leader: 1, listHash: toBase64(await listHashOf(list)) };
  alice.answer = (path) => (path === 'keys/list' ? { ...event, list } : {});
  // To the server Carol was never on the list: it does not say that she goes.
  await alice.keys.rotate({ ...event, added: [bob.entry()], removed: [{ user: 'bob', device: 'd' }], deliver: [bob.withKeys()] });
  assert.equal(alice.sent().length, 1);
  assert.equal(carol.requests.length, 0);
});
