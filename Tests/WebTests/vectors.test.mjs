// The shared vectors of the key agreement (Tests/Vectors/keys.json), made by an independent implementation. Each has a twin with one bit changed.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { load } from './web.mjs';

const { LinkSecret, admissionBytes, callLinkBytes, guestAdmissionBytes, isGuestAdmitted, isWordSigned, linkJoinBytes, waitingLinkBytes, wordsIn } = await load('trust/words.js');
const { concat, fromBase64, sha256, toBase64, utf8 } = await load('wire/bytes.js');
const { bucketsIn, entryIn } = await load('wire/checks.js');
const { envelopeIn } = await load('wire/checks.js');
const { openEnvelope } = await load('keys/envelopes.js');
const { FrameKeys } = await load('frames/frames.js');
const { fingerprintOf, isSignedBy } = await load('trust/identity.js');
const { isJoinKeySigned } = await load('keys/join-keys.js');
const { decodeMessage, encodeMessage } = await load('keys/messages.js');
const { openPrivate, sealPrivate } = await load('keys/private-messages.js');
const { Roster } = await load('keys/roster.js');
const { deriveKey, open, parseHeader, seal } = await load('frames/sframe.js');
const transcript = await load('wire/transcript.js');
const { hpkeOpen, hpkeSeal } = await load('wire/wrap.js');
const { statementBytes } = await load('trust/vouching.js');
const { kidOf } = await load('wire/transcript.js');

const vectors = JSON.parse(readFileSync(new URL('../Vectors/keys.json', import.meta.url), 'utf8'));
const same = (bytes, base64, what) => assert.equal(toBase64(bytes), base64, what);
const curve = { name: 'ECDH', namedCurve: 'P-256' };

async function pairOf({ privatePKCS8, publicKey }) {
  return {
    privateKey: await crypto.subtle.importKey('pkcs8', fromBase64(privatePKCS8), curve, false, ['deriveBits']),
    publicKey: await crypto.subtle.importKey('spki', fromBase64(publicKey), curve, true, []),
  };
}

const signKeys = (publicKey) => [{ use: 'sign', alg: 'ES256', publicKey }];
const deviceKeys = ({ wrap, sign }) => [{ use: 'wrap', alg: wrap.alg, publicKey: wrap.publicKey }, { use: 'sign', alg: sign.alg, publicKey: sign.publicKey }];
const listHashOf = (call, { epoch, previous, rosterHash }) =>
  transcript.listHashOf({ call, epoch, previous: fromBase64(previous), roster: fromBase64(rosterHash) });

test('fingerprints of devices', async () => {
  for (const device of vectors.devices) {
    same(await fingerprintOf(device.user, device.device, deviceKeys(device)), device.fingerprint);
    const changed = { ...device, wrap: { ...device.wrap, publicKey: device.flipped.wrapPublicKey } };
    same(await fingerprintOf(device.user, device.device, deviceKeys(changed)), device.flipped.fingerprint);
  }
});

test('join keys and their signatures', async () => {
  for (const { call, joinKey, signKey, keyHash, bytes, flipped, ...stay } of vectors.joins) {
    const { alg, publicKey, generation, at } = joinKey;
    const facts = { call, fingerprint: fromBase64(stay.fingerprint), joinId: fromBase64(stay.joinId), generation, at, alg, spki: fromBase64(publicKey) };
    same(transcript.joinBytes(facts), bytes);
    same(await sha256(fromBase64(publicKey)), keyHash);
    const isSigned = (changes = {}, key = {}, other = call) => isJoinKeySigned({ ...stay, ...changes }, { ...joinKey, ...key }, other, signKeys(signKey));
    assert.equal(await isSigned(), true);
    assert.equal(await isSigned({}, { signature: flipped.signature }), false);
    assert.equal(await isSigned({}, { at: flipped.at }), false);
    assert.equal(await isSigned({ joinId: flipped.joinId }), false);
    assert.equal(await isSigned({}, {}, flipped.call), false);
    assert.equal(await isSigned({}, { generation: generation + 1 }), false);
  }
});

test('rosters, and a chain of four epochs, one of which was abandoned', async () => {
  const { entries, entryBytes, rosterHash, flipped } = vectors.roster;
  for (const [index, entry] of entries.entries()) same(await transcript.entryBytes(entry), entryBytes[index]);
  same(await transcript.rosterHashOf(entries), rosterHash);
  same(await transcript.rosterHashOf(flipped.entries), flipped.rosterHash);
  const { call, epochs, links, listHash, flipped: other, since } = vectors.chain;
  for (const epoch of epochs) {
    same((await Roster.of(epoch.list.map((entry) => entryIn(entry)))).hash, epoch.rosterHash);
    same(await listHashOf(call, epoch), epoch.listHash);
  }
  const follow = async (rows) => {
    let hash = fromBase64(epochs.find(({ epoch }) => epoch === since).listHash);
    for (const { epoch, roster } of rows) hash = await transcript.listHashOf({ call, epoch, previous: hash, roster: fromBase64(roster) });
    return hash;
  };
  same(await follow(links), listHash);
  same(await follow(other.links), other.listHash);
});

test('the list of a ring', async () => {
  const { call, list, rosterHash, listHash, flipped } = vectors.ringList;
  const roster = await Roster.of(list.map((entry) => entryIn(entry, { mayRing: true })));
  same(roster.hash, rosterHash);
  same(await listHashOf(call, vectors.ringList), listHash);
  same(await listHashOf(flipped.call, vectors.ringList), flipped.listHash);
});

test('the ratchet is bound to the next list', async () => {
  const { call, epoch, listHash, secret, next, flipped } = vectors.ratchet;
  const step = (hash) => transcript.ratchet(fromBase64(secret), { call, epoch, listHash: fromBase64(hash) });
  same(await step(listHash), next);
  same(await step(flipped.listHash), flipped.next);
});

test('sender keys, and a frame under one', async () => {
  const { call, secret, epoch, listHash, frame, flipped, ...sender } = vectors.sender;
  const key = await transcript.importSecret(fromBase64(secret));
  const scope = { call, epoch, listHash: fromBase64(listHash) };
  const stay = { fingerprint: fromBase64(sender.fingerprint), joinId: fromBase64(sender.joinId) };
  const base = await transcript.baseKeyOf(key, scope, { participant: sender.participant, ...stay });
  same(base, sender.baseKey);
  same(await transcript.baseKeyOf(key, scope, { participant: flipped.participant, ...stay }), flipped.baseKey);
  assert.equal(kidOf(sender.participant, frame.n, epoch), frame.kid);
  const derived = await deriveKey(base, BigInt(frame.kid));
  same(await seal(derived, BigInt(frame.ctr), fromBase64(frame.metadata), fromBase64(frame.text)), frame.frame);
  const twin = fromBase64(flipped.frame);
  await assert.rejects(open(derived, parseHeader(twin), fromBase64(frame.metadata), twin), { reason: 'authentication' });
});

test('envelopes: the signed bytes, and the devices that open them', async () => {
  for (const vector of vectors.envelopes) {
    const { call, listHash, sealedTo, signKey, envelope, flipped } = vector;
    const parsed = envelopeIn(envelope);
    same(await transcript.envelopeBytes({ ...parsed, call, listHash: fromBase64(listHash) }), vector.transcript);
    assert.deepEqual(parsed.key, await sha256(fromBase64(sealedTo.publicKey)));
    const options = { identity: envelope.to, call, listHash: fromBase64(listHash), pair: await pairOf(sealedTo), keys: signKeys(signKey) };
    same(await openEnvelope(parsed, options), vector.secret);
    for (const [member, value] of Object.entries(flipped)) {
      if (!(member in envelope)) continue;
      await assert.rejects(openEnvelope(envelopeIn({ ...envelope, [member]: value }), options), { message: /an envelope/ }, member);
    }
    const ephemeral = await pairOf(vector.ephemeral);
    same(await hpkeSeal(fromBase64(sealedTo.publicKey), fromBase64(vector.secret), { ephemeral }), envelope.ciphertext);
  }
});

test('confirmations: tags, buckets, and bits beyond the list', async () => {
  const { call, epoch, secret, list, listHash, tags, buckets } = vectors.confirmation;
  const key = await transcript.confirmationKeyOf(fromBase64(secret), { call, epoch, listHash: fromBase64(listHash) });
  const made = new Map();
  for (const entry of list) made.set(entry.participant, await transcript.tagOf(key, entry));
  for (const { participant, tag } of tags) same(made.get(participant), tag);
  for (const bucket of bucketsIn([...buckets, ...vectors.confirmation.some.buckets])) {
    const expected = new Uint8Array(16);
    list.slice(bucket.index * 64, bucket.index * 64 + 64).forEach(({ participant }, at) => {
      if ((bucket.bits >> BigInt(63 - at)) & 1n) made.get(participant).forEach((byte, i) => (expected[i] ^= byte));
    });
    assert.deepEqual(bucket.tag, expected);
  }
});

test('the call code', async () => {
  const { call, rosterHash, code, flipped } = vectors.code;
  assert.equal(await transcript.callCodeOf(call, fromBase64(rosterHash)), code);
  assert.equal(await transcript.callCodeOf(call, fromBase64(flipped.rosterHash)), flipped.code);
});

/** A receiver with the sender of a message vector on its list. */
async function receiver({ call, epoch, secret, listHash, from, fingerprint, joinId }) {
  const keys = new FrameKeys();
  keys.identify({ call, participant: 99, fingerprint: new Uint8Array(32), joinId: new Uint8Array(16).fill(1) });
  const senders = [{ participant: from, fingerprint: fromBase64(fingerprint), joinId: fromBase64(joinId) }];
  keys.install({ epoch, listHash: fromBase64(listHash), secret: await transcript.importSecret(fromBase64(secret)), senders });
  return keys;
}

test('a message to all', async () => {
  const vector = vectors.message;
  const keys = await receiver(vector);
  for (const twin of [vector.flipped.body, vector.flipped.otherKind]) await assert.rejects(keys.openMessage(fromBase64(twin), vector.from));
  await assert.rejects(keys.openMessage(fromBase64(vector.body), vector.from + 1), { reason: 'attribution' });
  const { data, kind } = await keys.openMessage(fromBase64(vector.body), vector.from);
  same(data, vector.padded);
  assert.equal(kind, 0);
  assert.deepEqual(decodeMessage(data), JSON.parse(atob(vector.text)));
  same(encodeMessage(decodeMessage(data)), vector.padded);
});

test('a message with any other padding than the shortest is refused', async () => {
  const keys = await receiver(vectors.message);
  assert.equal(vectors.message.mispadded.length, 6);
  for (const { what, data, body } of vectors.message.mispadded) {
    const opened = await keys.openMessage(fromBase64(body), vectors.message.from);
    same(opened.data, data);
    assert.equal(decodeMessage(opened.data), undefined, what);
  }
});

test('a private message to two: each opens it, and nobody does after a change or under the same wraps in another seal', async () => {
  const vector = vectors.privateMessage;
  const keys = await receiver(vector);
  const scope = { call: vector.call, listHash: fromBase64(vector.listHash) };
  const sender = { participant: vector.from, joinKey: { publicKey: vector.senderKey.publicKey } };
  const { data, kind } = await keys.openMessage(fromBase64(vector.body), vector.from);
  assert.equal(kind, 1);
  same(data, vector.payload);
  const resealed = (await keys.openMessage(fromBase64(vector.flipped.resealed.body), vector.from)).data;
  for (const { participant, key, wrap, info } of vector.wraps) {
    const own = { participant, pair: await pairOf(key) };
    const opened = await openPrivate(data, { scope, own, sender });
    same(opened, vector.padded);
    assert.deepEqual(decodeMessage(opened), JSON.parse(atob(vector.text)));
    await assert.rejects(openPrivate(resealed, { scope, own, sender }), 'resealed');
    await assert.rejects(openPrivate(data, { scope, own: { ...own, participant: 77 }, sender }), /somebody else/);
    same(await hpkeOpen(own.pair, fromBase64(wrap), { info: fromBase64(info), aad: fromBase64(vector.aad), sender: fromBase64(vector.senderKey.publicKey) }), vector.contentKey);
    const impostor = vector.wraps.find((other) => other.participant !== participant).key.publicKey;
    await assert.rejects(openPrivate(data, { scope, own, sender: { ...sender, joinKey: { publicKey: impostor } } }), 'by another');
  }
  const from = { participant: vector.from, pair: await pairOf(vector.senderKey) };
  const recipients = vector.wraps.map(({ participant, key }) => ({ participant, joinKey: { alg: 'HPKE-P256-SHA256-AES256GCM', publicKey: key.publicKey } }));
  const made = await sealPrivate(utf8('for two'), { scope, from, recipients });
  for (const { participant, key } of vector.wraps) {
    assert.deepEqual(await openPrivate(made, { scope, own: { participant, pair: await pairOf(key) }, sender }), utf8('for two'));
  }
  await assert.rejects(openPrivate(concat(made, Uint8Array.of(0)), { scope, own: { participant: 2, pair: await pairOf(vector.wraps[0].key) }, sender }));
});

test('HPKE’s auth mode is that of RFC 9180 A.3.3', async () => {
  const vector = JSON.parse(readFileSync(new URL('vectors/hpke-auth.json', import.meta.url), 'utf8'));
  const hex = (text) => Uint8Array.from(Buffer.from(text, 'hex'));
  const pair = async (scalar, point) => {
    const url = (part) => Buffer.from(part).toString('base64url');
    const jwk = { kty: 'EC', crv: 'P-256', x: url(hex(point).slice(1, 33)), y: url(hex(point).slice(33)), d: url(hex(scalar)) };
    const { d, ...known } = jwk;
    return {
      privateKey: await crypto.subtle.importKey('jwk', jwk, curve, false, ['deriveBits']),
      publicKey: await crypto.subtle.importKey('jwk', known, curve, true, []),
    };
  };
  const [recipient, sender, ephemeral] = [await pair(vector.skRm, vector.pkRm), await pair(vector.skSm, vector.pkSm), await pair(vector.skEm, vector.pkEm)];
  const spki = async ({ publicKey }) => new Uint8Array(await crypto.subtle.exportKey('spki', publicKey));
  const options = { info: hex(vector.info), aad: hex(vector.aad), aead: { id: 1, keyBytes: 16 } };
  const sealed = await hpkeSeal(await spki(recipient), hex(vector.pt), { ...options, sender, ephemeral });
  assert.equal(Buffer.from(sealed).toString('hex'), vector.enc + vector.ct);
  assert.deepEqual(await hpkeOpen(recipient, sealed, { ...options, sender: await spki(sender) }), hex(vector.pt));
  await assert.rejects(hpkeOpen(recipient, sealed, { ...options, sender: await spki(ephemeral) }));
  await assert.rejects(hpkeOpen(recipient, sealed, options), 'in base mode');
});

test('vouches and revocations', async () => {
  for (const kind of ['vouch', 'revoke']) {
    const { user, byFingerprint, fingerprint, at, bytes, sigAlg, signature, signKey, flipped } = vectors[kind];
    const data = statementBytes(kind, { user, by: fromBase64(byFingerprint), about: fromBase64(fingerprint), at });
    same(data, bytes);
    assert.equal(await isSignedBy(signKeys(signKey), sigAlg, fromBase64(signature), data), true);
    assert.equal(await isSignedBy(signKeys(signKey), sigAlg, fromBase64(flipped.signature), data), false);
  }
});

test('words of admission, and a link’s secret', async () => {
  const isGood = (call, signKey, word) => isWordSigned(wordsIn({ admissions: [word] }).words[0], call, signKeys(signKey));
  for (const { call, signKey, bytes, word, flipped } of [vectors.admission, vectors.root]) {
    same(admissionBytes({ call, fingerprint: fromBase64(word.fingerprint), user: word.user }), bytes);
    assert.equal(await isGood(call, signKey, word), true);
    assert.equal(await isGood(call, signKey, { ...word, signature: flipped.signature }), false);
    assert.equal(await isGood('7d1f0d6c-5a3e-4c0b-9b0e-2f64c1a8e3d4', signKey, word), false);
    assert.equal(await isGood(call, signKey, { ...word, user: `${word.user}x` }), false);
  }
  const { call, shown, id, link, signKey, made, madeBytes, joined, joinedBytes, flipped } = vectors.link;
  const secret = LinkSecret.from(shown.replaceAll('+', '-').replaceAll('/', '_'));
  assert.equal(secret.maker, made.fingerprint);
  assert.equal(await secret.id(), id);
  same(await secret.link(call), link);
  same(callLinkBytes({ call, fingerprint: fromBase64(made.fingerprint), link: fromBase64(link) }), madeBytes);
  same(linkJoinBytes({ call, link: fromBase64(link), fingerprint: fromBase64(joined.fingerprint), user: joined.user }), joinedBytes);
  assert.deepEqual(await secret.join({ user: joined.user, fingerprint: fromBase64(joined.fingerprint) }, call), joined);
  assert.deepEqual([await isGood(call, signKey, made), await isGood(call, signKey, joined)], [true, true]);
  assert.equal(await isGood(call, signKey, { ...made, signature: flipped.made }), false);
  assert.equal(await isGood(call, signKey, { ...joined, signature: flipped.joined }), false);
  const other = LinkSecret.from(toBase64(concat(fromBase64(flipped.secret), fromBase64(made.fingerprint))).replaceAll('+', '-').replaceAll('/', '_'));
  assert.notDeepEqual(await other.link(call), await secret.link(call));
  assert.notEqual(await other.id(), id);
  const maker = fromBase64(made.fingerprint);
  maker[maker.length - 1] ^= 1;
  assert.equal(await new LinkSecret(fromBase64(vectors.link.secret), toBase64(maker)).id(), flipped.idOfOtherMaker);
});

test('a link whose guests wait, and a guest whom a member has admitted', async () => {
  const { call, link, signKey, made, madeBytes, memberSignKey, admitted, admittedBytes, flipped } = vectors.waitingLink;
  const wordOf = (value) => wordsIn({ admissions: [value] }).words[0];
  same(waitingLinkBytes({ call, fingerprint: fromBase64(made.fingerprint), link: fromBase64(link) }), madeBytes);
  assert.equal(await isWordSigned(wordOf(made), call, signKeys(signKey)), true);
  assert.equal(await isWordSigned(wordOf({ ...made, signature: flipped.made }), call, signKeys(signKey)), false);
  const { waits, ...bare } = made;
  assert.equal(waits, true);
  assert.equal(await isWordSigned(wordOf(bare), call, signKeys(signKey)), false, 'the mark is signed');
  const scope = { call, fingerprint: fromBase64(admitted.admittedBy.fingerprint), link: fromBase64(link), guest: fromBase64(admitted.fingerprint), user: admitted.user };
  same(guestAdmissionBytes(scope), admittedBytes);
  assert.equal(await isWordSigned(wordOf(admitted), call, []), true);
  const isAdmitted = (word, keys = memberSignKey) => isGuestAdmitted(wordOf(word), call, signKeys(keys));
  assert.equal(await isAdmitted(admitted), true);
  assert.equal(await isAdmitted(admitted, signKey), false);
  assert.equal(await isAdmitted({ ...admitted, user: 'guest~ann' }), false);
  assert.equal(await isAdmitted({ ...admitted, admittedBy: { ...admitted.admittedBy, signature: flipped.admitted } }), false);
});

test('KIDs, and numbers that have none', () => {
  for (const { participant, n, epoch, kid } of vectors.kids.valid) assert.equal(kidOf(participant, n, epoch), kid);
  for (const { participant, n, epoch } of vectors.kids.refused) assert.throws(() => kidOf(participant, n, epoch), RangeError);
});
