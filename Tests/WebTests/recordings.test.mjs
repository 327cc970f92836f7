// The shared vectors of recordings (Tests/RecordingTests/Golden/recordings.json), made by another implementation, which the Swift side is tested against, too.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { holder, person, wrapKey } from './recorded.mjs';
import { load } from './web.mjs';

const { concat, equal, fromBase64, random, toBase64 } = await load('wire/bytes.js');
const { Refusal } = await load('wire/checks.js');
const { fingerprintOf, isSignedBy } = await load('trust/identity.js');
const { ChainKey, openReelKey, sealReelKey } = await load('recordings/chain-key.js');
const { timedFrames } = await load('recordings/clocks.js');
const { grantIn, makeGrant, makeRecordingKey, openGrant } = await load('consent/grants.js');
const layouts = await load('consent/layouts.js');
const { manifestIn } = await load('recordings/manifest.js');
const { makeNote, noteIn, openNote } = await load('recordings/notes.js');
const { RecordList, encodeRecord, parseRecords } = await load('recordings/records.js');
const { SealedContents } = await load('recordings/sealed-contents.js');
const { ReelReader } = await load('recordings/reel-reader.js');
const { openSegment, parseHeader, sealSegment } = await load('recordings/segment.js');
const { makeStatement, openStatement, statementIn } = await load('consent/statement.js');
const { isWitnessSigned, makeWitness, witnessHeader, witnessIn } = await load('recordings/witnesses.js');

const vectors = JSON.parse(readFileSync(new URL('../RecordingTests/Golden/recordings.json', import.meta.url), 'utf8'));
const same = (bytes, base64, what) => assert.equal(toBase64(bytes), base64, what);
const curve = { name: 'ECDH', namedCurve: 'P-256' };
const [alice, bob] = vectors.devices;
const fingerprint = fromBase64(alice.fingerprint);
const [{ statement: message, statementHash }] = vectors.statements;
const st = fromBase64(statementHash);
const { id } = message;
const publicKey = fromBase64(vectors.recordingKey.publicKey);
const now = message.at;

/** A key pair of a scalar in the vectors, whose public key, an SPKI, is known. */
async function pairOf(scalar, spki) {
  const key = await crypto.subtle.importKey('spki', fromBase64(spki), curve, true, []);
  const { x, y } = await crypto.subtle.exportKey('jwk', key);
  const d = Buffer.from(scalar, 'base64').toString('base64url');
  return { publicKey: key, privateKey: await crypto.subtle.importKey('jwk', { kty: 'EC', crv: 'P-256', x, y, d }, curve, false, ['deriveBits']) };
}
const recordingPair = () => pairOf(vectors.recordingKey.privateScalar, vectors.recordingKey.publicKey);

/** Alice's device as far as it signs: what it signs must be the bytes of the vector. */
const signing = ({ signed, signature }) => ({
  ...alice,
  fingerprint,
  sign: async (data) => {
    same(data, signed);
    return { sigAlg: 'ES256', signature: fromBase64(signature) };
  },
});

const TABLES = { source: 'microphone camera screen screen-audio', codec: 'opus vp8 vp9 av1 h264', how: 'report arrivals device', what: 'muted unmuted held resumed ended paused continued consent-ended' };
const WHY = { gap: 'network server disk restart no-key away unknown', end: 'more complete recovered' };
/** A vector's record, whose numbers are those of the format, with this implementation's names. */
function named(record) {
  const named = { ...record };
  for (const [member, names] of Object.entries(TABLES)) if (member in named) named[member] = names.split(' ')[named[member] - 1] ?? named[member];
  if (named.type in WHY) named.why = WHY[named.type].split(' ')[named.why - 1];
  if (named.type !== 'frame') return named;
  const { flags, time, data, ...rest } = named;
  const layers = { orientation: (flags >> 2) & 3, spatial: (flags >> 4) & 3, temporal: flags >> 6 };
  return { ...rest, isKey: flags % 2 === 1, isDisposable: (flags & 2) > 0, ...layers, data: fromBase64(data) };
}
const plain = (value) => JSON.parse(JSON.stringify(value, (_, each) => (each instanceof Uint8Array ? toBase64(each) : each)));
const timesOf = (records) => records.filter(({ type }) => type === 'frame').map(({ time }) => time);

test('fingerprints of the vectors’ devices', async () => {
  for (const device of [alice, bob]) same(await fingerprintOf(device.user, device.device, device.keys), device.fingerprint);
});

test('ids are random UUIDs in lower case', () => {
  same(layouts.idBytes(vectors.id.text), vectors.id.bytes);
  for (const other of vectors.id.refused) assert.throws(() => layouts.idBytes(other), Refusal, other);
});

test('statements: their bytes and hashes, and every changed one is refused', async () => {
  for (const { statement, statementHash: hash, signed, signature, flipped } of vectors.statements) {
    const made = await makeStatement(signing({ signed, signature }), { ...statement, publicKey });
    assert.deepEqual(made.statement, statement);
    same(made.st, hash);
    const open = (wire, { keys } = alice) => openStatement(statementIn(wire), { keys, fingerprint, now });
    same(await open(statement), hash);
    await assert.rejects(open({ ...statement, signature: flipped.signature }), /wrong signature/);
    await assert.rejects(open(statement, bob), /wrong signature/);
    assert.equal(await isSignedBy(alice.keys, 'ES256', fromBase64(signature), fromBase64(flipped.signed)), false);
  }
  const other = { id: id.replace('0d6f', '0d6e'), kind: 'call', call: '6f0c2a8e-1d3b-4c5a-8e9f-a0b1c2d3e4f6', publicKey: wrapKey(alice).publicKey, media: ['audio'], readers: ['alice'], at: message.at + 1 };
  for (const [member, value] of Object.entries(other)) {
    await assert.rejects(openStatement(statementIn({ ...message, [member]: value }), { keys: alice.keys, fingerprint, now: now + 1 }), /wrong signature/, member);
  }
  await assert.rejects(openStatement(statementIn(message), { keys: alice.keys, fingerprint: fromBase64(bob.fingerprint), now }), /wrong signature/);
  await assert.rejects(openStatement(statementIn(message), { keys: alice.keys, fingerprint, now: now - 10 * 60_000 - 1 }), /to come/);
  await openStatement(statementIn(message), { keys: alice.keys, fingerprint, now: now - 10 * 60_000 });
});

test('a signed statement about a key that is no point of the curve is refused', async () => {
  const signer = await person('alice', 'phone');
  const off = Uint8Array.from(publicKey);
  off[off.length - 1] ^= 1;
  for (const [spki, isPoint] of [[publicKey, true], [off, false]]) {
    const { statement } = await makeStatement(signer, { ...message, publicKey: spki });
    const opening = openStatement(statementIn(statement), { keys: signer.keys, fingerprint: signer.fingerprint, now });
    if (isPoint) await opening;
    else await assert.rejects(opening, /no point/);
  }
});

test('statements of another form are refused', () => {
  const wrong = [
    { kind: 'other' }, { kind: 'call', call: undefined }, { kind: 'own' }, { media: [] }, { media: ['audio', 'audio'] }, { media: ['sound'] }, { readers: [] }, { readers: ['bob', 'bob'] },
    { readers: Array.from({ length: 65 }, (_, n) => `u${n}`) }, { readers: ['a b'] }, { id: id.toUpperCase() }, { at: -1 }, { at: '1' }, { by: { user: 'alice' } }, { publicKey: '' }, { signature: '' },
  ];
  for (const change of wrong) assert.throws(() => statementIn({ ...message, ...change }), Refusal, JSON.stringify(change));
  assert.equal(statementIn({ ...message, extra: 1 }).extra, undefined);
});

test('a reel’s key opens, its chain is that of the vectors, and their segments open', async () => {
  const { reel, aad, reelKey, flipped } = vectors.reelKey;
  same(layouts.reelKeyData({ st, reel, fingerprint }), aad);
  const scope = { id, st, reel, pair: await recordingPair(), keys: alice.keys, fingerprint };
  const parsed = (changes = {}) => {
    const { ciphertext, sigAlg, signature } = { ...reelKey, ...changes };
    return { ciphertext: fromBase64(ciphertext), sigAlg, signature: fromBase64(signature) };
  };
  same(await layouts.reelKeyBytes({ st, reel, fingerprint, ciphertext: fromBase64(reelKey.ciphertext) }), vectors.reelKey.signed);
  let key = await openReelKey(parsed(), scope);
  for (const { number, start, file, contents, records } of vectors.sealed) {
    assert.equal(key.n, number);
    const bytes = fromBase64(file);
    const opened = await openSegment(bytes, parseHeader(bytes), key);
    same(opened, contents);
    const { records: read, end } = parseRecords(opened);
    assert.deepEqual(plain([...read, end]), plain(records.map(named)));
    assert.deepEqual(timedFrames(read, start).map(({ time }) => time), timesOf(records));
    key = await key.next();
  }
  await assert.rejects(openReelKey(parsed({ signature: flipped.signature }), scope), /wrong signature/);
  await assert.rejects(openReelKey(parsed({ ciphertext: toBase64(random(113)) }), scope), /wrong signature/);
  await assert.rejects(openReelKey(parsed(), { ...scope, reel: 2 }), /wrong signature/);
  await assert.rejects(openReelKey(parsed(), { ...scope, pair: await pairOf(bob.wrapScalar, wrapKey(bob).publicKey) }), /does not open/);
});

test('a reel key that is sealed here opens here, and is signed over the same bytes', async () => {
  const signer = await person('alice', 'phone');
  const chain = random(32);
  const { ciphertext, sigAlg, signature } = await sealReelKey(signer, Uint8Array.from(chain), { st, reel: 3, publicKey });
  const scope = { id, st, reel: 3, pair: await recordingPair(), keys: signer.keys, fingerprint: signer.fingerprint };
  const opened = await openReelKey({ ciphertext: fromBase64(ciphertext), sigAlg, signature: fromBase64(signature) }, scope);
  const mine = await ChainKey.begin(chain, { id, reel: 3 });
  const sealed = await sealSegment(mine, new Uint8Array(3), { start: 1, previous: new Uint8Array(32), nonce: random(12) });
  assert.deepEqual(await openSegment(sealed.file, parseHeader(sealed.file), opened), new Uint8Array(3));
});

test('segments are sealed as the vectors are, and each opens under its own key only', async () => {
  for (const { number, chainKey, start, previous, nonce, contents, file, hash } of vectors.sealed) {
    const key = new ChainKey({ id, reel: 1, n: number, key: (await ChainKey.begin(fromBase64(chainKey), { id, reel: 1 })).key });
    const sealed = await sealSegment(key, fromBase64(contents), { start, previous: fromBase64(previous), nonce: fromBase64(nonce) });
    same(sealed.file, file);
    same(sealed.hash, hash);
    const header = parseHeader(sealed.file);
    assert.deepEqual(plain(header), { isSealed: true, id: id.replaceAll('-', ''), reel: 1, n: number, start, previous, nonce });
    await assert.rejects(openSegment(sealed.file, header, await key.next()), /does not open/);
  }
});

test('records are written as the vectors are', () => {
  const [{ contents, records }] = vectors.sealed;
  const list = new RecordList();
  for (const record of records.slice(0, -1)) list.add(named(record));
  assert.equal(list.length, fromBase64(contents).length - 17);
  same(list.close(named(records.at(-1)).why, records.at(-1).time), contents);
  for (const record of vectors.clear.records) assert.deepEqual(plain(parseAs(record)), plain(named(record)), record.type);
});

/** The record as it is read after it was written; behind a stream, without which only a stream or an end is read. */
function parseAs(record) {
  const stream = { type: 'stream', index: record.index, n: 1, source: 'camera', codec: 'vp8', layer: 0, clockRate: 1, epoch: 1 };
  const isFirst = record.type === 'stream' || record.type === 'end';
  const end = record.type === 'end' ? { ...named(record), records: 0 } : named(record);
  const { records, end: ending } = parseRecords(concat(...(isFirst ? [] : [encodeRecord(stream)]), encodeRecord(end)));
  return ending ? { ...ending, records: record.records } : records.at(-1);
}

test('headers are accepted and refused as in the vectors', () => {
  for (const header of vectors.headers.accepted) assert.equal(parseHeader(fromBase64(header)).n, 1);
  for (const [what, header] of Object.entries(vectors.headers.refused)) assert.throws(() => parseHeader(fromBase64(header)), Refusal, what);
  assert.throws(() => parseHeader(new Uint8Array(8 * 1_048_576 + 1)), /bytes/);
});

test('contents of all kinds are read as far as in the vectors', () => {
  for (const { name, contents, repeated, times, kept, state } of vectors.contents) {
    const tail = repeated ? Buffer.concat(Array(times).fill(Buffer.from(repeated, 'base64'))) : [];
    const { records, end, isDamaged } = parseRecords(concat(fromBase64(contents), Uint8Array.from(tail)));
    const found = isDamaged ? 'damaged' : end ? 'closed' : 'open';
    assert.deepEqual({ kept: records.length + (end ? 1 : 0), state: found }, { kept, state }, name);
  }
});

test('a segment of a call’s reel is read, and its frames get the times of the vectors', () => {
  const { file, records } = vectors.clear;
  const bytes = fromBase64(file);
  const header = parseHeader(bytes);
  assert.equal(header.isSealed, false);
  const { records: read, end } = parseRecords(bytes.subarray(96));
  assert.deepEqual(plain([...read, end]), plain(records.map(named)));
  assert.deepEqual(timedFrames(read, header.start).map(({ time }) => time), timesOf(records));
});

const FINDINGS = { complete: 'complete', unfinished: 'not-finished', cutOff: 'cut-off', changed: 'changed' };
const { people, grants } = { people: [{ participant: 1, ...alice }], grants: [] };
const manifest = (reel) => manifestIn({ statement: message, people, grants, reels: [reel] });

test('the worth of a reel by its list, its witnesses and what was seen is as in the vectors', async () => {
  const chainKey = await ChainKey.begin(random(32), { id, reel: 1 });
  const head = (value) => value && { ...value, head: fromBase64(value.head) };
  for (const { name, finding, reel, witnesses, remembered } of vectors.manifests.checked) {
    const [{ segments }] = manifest(reel).reels;
    const reader = new ReelReader({ id, contents: new SealedContents(chainKey), segments, witnesses: witnesses.map(head), remembered: head(remembered) });
    assert.equal(reader.state, FINDINGS[finding], name);
  }
  for (const { name, reel } of vectors.manifests.refused) {
    const append = async () => {
      const [page] = manifest(reel).reels;
      new ReelReader({ id, contents: new SealedContents(chainKey), segments: [], witnesses: [] }).append(page, []);
    };
    await assert.rejects(append, Refusal, name);
  }
});

test('pages of a list follow each other', async () => {
  const chainKey = await ChainKey.begin(random(32), { id, reel: 1 });
  const [{ segments }] = manifest(vectors.manifests.checked[0].reel).reels;
  const reader = new ReelReader({ id, contents: new SealedContents(chainKey), segments: segments.slice(0, 1), witnesses: [] });
  assert.throws(() => reader.append({ from: 0, segments }, []), Refusal);
  reader.append({ from: 1, segments: segments.slice(1) }, []);
  assert.deepEqual(reader.segments, segments);
  assert.throws(() => reader.append({ from: 3, segments: Array(131_070).fill(segments[0]) }, []), Refusal);
});

test('no bit of a sealed segment can be changed', async () => {
  const [{ chainKey, file }] = vectors.sealed;
  const key = await ChainKey.begin(fromBase64(chainKey), { id, reel: 1 });
  const bytes = fromBase64(file);
  for (let at = 0; at < bytes.length; at += at < 96 ? 1 : 13) {
    const changed = Uint8Array.from(bytes);
    changed[at] ^= 1;
    await assert.rejects(async () => openSegment(changed, parseHeader(changed), key), Refusal, `byte ${at}`);
  }
  for (const length of [0, 95, 96, 111, bytes.length - 1]) {
    const cut = bytes.slice(0, length);
    await assert.rejects(async () => openSegment(cut, parseHeader(cut), key), Refusal, `${length} bytes`);
  }
});

test('chain keys forget their bytes and cannot be exported', async () => {
  const bytes = fromBase64(vectors.firstChainKey);
  const key = await ChainKey.begin(bytes, { id, reel: 1 });
  assert.ok(bytes.every((byte) => byte === 0));
  for (const each of [key, await key.next()]) {
    assert.equal(each.key.extractable, false);
    await assert.rejects(crypto.subtle.exportKey('raw', each.key));
  }
});

test('random bytes never trap the parser of records, and what it reads is within them', () => {
  let state = Number(process.env.CONCLAVE_SEED ?? 7);
  const random = (most) => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) % most;
  const parts = vectors.clear.records.map((record) => encodeRecord(named(record)));
  for (let round = 0; round < 2_000; round += 1) {
    const bytes = concat(...Array.from({ length: 1 + random(8) }, () => parts[random(parts.length)]));
    for (let flips = random(4); flips > 0; flips -= 1) bytes[random(bytes.length)] = random(256);
    const { records } = parseRecords(bytes);
    for (const { type, data } of records) if (type === 'frame') assert.ok(data.length < bytes.length, `seed ${state}`);
  }
});

test('a grant to an RSA key and to none', async () => {
  const identity = { ...bob, sign: async () => ({ sigAlg: 'ES256', signature: Uint8Array.of(1) }) };
  const algorithm = { name: 'RSA-OAEP', modulusLength: 2_048, publicExponent: Uint8Array.of(1, 0, 1), hash: 'SHA-256' };
  const pair = await crypto.subtle.generateKey(algorithm, false, ['encrypt', 'decrypt']);
  const spki = new Uint8Array(await crypto.subtle.exportKey('spki', pair.publicKey));
  const scalar = new Uint8Array(32).fill(9);
  const grant = (target) => makeGrant(identity, scalar, { id, st, to: { user: 'carol', device: 'old' }, target, at: 1 });
  const { ciphertext } = await grant({ alg: 'RSA-OAEP-256', publicKey: toBase64(spki) });
  assert.deepEqual(new Uint8Array(await crypto.subtle.decrypt({ name: 'RSA-OAEP' }, pair.privateKey, fromBase64(ciphertext))), scalar);
  assert.equal(await grant({ alg: 'RSA-OAEP-256', publicKey: toBase64(spki.slice(4)) }), undefined);
  assert.equal(await grant({ alg: 'other', publicKey: toBase64(spki) }), undefined);
});


test('every prefix of a segment’s records that ends at a record is read, and what is behind it is left', () => {
  const parts = vectors.sealed[1].records.map((record) => encodeRecord(named(record)));
  const whole = concat(...parts);
  const ends = parts.map(((sum) => (part) => (sum += part.length))(0));
  for (let length = 0; length < whole.length; length += 1) {
    const { records, end, isDamaged } = parseRecords(whole.subarray(0, length));
    assert.equal(records.length, ends.filter((at) => at <= length).length);
    assert.deepEqual([end, isDamaged], [undefined, length > 0 && !ends.includes(length)]);
  }
});

test('grants open on their device as in the vectors, and every changed one is refused', async () => {
  const [{ grant: wire, info, signed, signature, flipped }, toReadingKey] = vectors.grants;
  const own = { user: 'bob', device: 'laptop', wrap: await pairOf(bob.wrapScalar, wrapKey(bob).publicKey), publicKey: fromBase64(wrapKey(bob).publicKey) };
  const open = (changes = {}, scope = {}) => openGrant(grantIn({ ...wire, ...changes }), { id, st, publicKey, own, keys: alice.keys, ...scope });
  same(layouts.grantInfo(id), info);
  for (const { grant, signed: bytes } of vectors.grants) same(await layouts.grantBytes({ ...grantIn(grant), st }), bytes);
  const { scalar, pair } = await open();
  same(scalar, vectors.recordingKey.privateScalar);
  assert.equal(pair.privateKey.extractable, false);
  assert.equal(await isSignedBy(alice.keys, 'ES256', fromBase64(signature), fromBase64(signed)), true);
  const changes = { signature: flipped.signature, ciphertext: toBase64(random(113)), at: wire.at + 1, key: toBase64(random(32)), alg: 'RSA-OAEP-256' };
  for (const [member, value] of Object.entries(changes)) await assert.rejects(open({ [member]: value }), /a grant/, member);
  await assert.rejects(open({}, { own: { ...own, device: 'phone' } }), /somebody else/);
  await assert.rejects(open({}, { keys: bob.keys }), /wrong signature/);
  await assert.rejects(open({}, { st: new Uint8Array(32) }), /wrong signature/, 'of another recording');
  await assert.rejects(open({}, { publicKey: fromBase64(wrapKey(alice).publicKey) }), /another recording key/);
  await assert.rejects(openGrant(grantIn(toReadingKey.grant), { id, st, publicKey, own, keys: alice.keys }), /somebody else/);
});

test('a new recording key’s scalar is its private half, and a grant of it opens', async () => {
  const [one, other] = [await makeRecordingKey(), await makeRecordingKey()];
  assert.equal(equal(one.publicKey, other.publicKey), false);
  const carol = await person('carol', 'd');
  const made = await makeGrant(carol, one.scalar, { id, st, to: { user: 'carol', device: 'd' }, target: wrapKey(carol), at: 1 });
  const open = (spki) => openGrant(grantIn(made), { id, st, publicKey: spki, own: holder(carol), keys: carol.keys });
  assert.deepEqual((await open(one.publicKey)).scalar, one.scalar);
  await assert.rejects(open(other.publicKey), /another recording key/);
});

test('witnesses: their bytes, the header of an upload, and every changed one is refused', async () => {
  for (const { witness, signed, signature, flipped } of vectors.witnesses) {
    const made = await makeWitness(signing({ signed, signature }), { ...witness, st, head: fromBase64(witness.head) });
    assert.deepEqual(made, witness);
    assert.equal(witnessHeader(made), `${witness.at}:ES256:${signature}`);
    const isGood = (changes = {}, { keys } = alice) => isWitnessSigned(witnessIn({ ...witness, ...changes }), { st, keys });
    assert.equal(await isGood(), true);
    const changes = { signature: flipped.signature, reel: 2, segments: 2, head: toBase64(random(32)), at: 1, isEnd: !witness.isEnd };
    for (const [member, value] of Object.entries(changes)) assert.equal(await isGood({ [member]: value }), false, member);
    assert.equal(await isGood({}, bob), false);
  }
});

test('notes open as in the vectors, and every changed one is refused', async () => {
  const pair = await recordingPair();
  for (const { note, text, aad, signed, flipped } of vectors.notes) {
    const scope = { st, number: note.number };
    same(layouts.noteData(scope), aad);
    same(await layouts.noteBytes({ ...scope, ciphertext: fromBase64(note.ciphertext) }), signed);
    const open = (changes = {}) => openNote(noteIn({ ...note, ...changes }), { st, pair, keys: alice.keys });
    assert.deepEqual(await open(), JSON.parse(text));
    const changes = { signature: flipped.signature, ciphertext: toBase64(random(81 + 256)), number: note.number + 1 };
    for (const [member, value] of Object.entries(changes)) await assert.rejects(open({ [member]: value }), /a note/, member);
  }
});

test('a note that is made here opens here, at a multiple of 256 bytes, and one of more than 2 KiB is refused', async () => {
  const signer = await person('alice', 'phone');
  const pair = await recordingPair();
  for (const [length, size] of [[1, 256], [246, 512], [2_000, 2_048]]) {
    const content = { text: 'x'.repeat(length) };
    const made = await makeNote(signer, content, { st, number: 4, publicKey });
    assert.equal(fromBase64(made.ciphertext).length, 81 + size);
    assert.deepEqual(await openNote(noteIn(made), { st, pair, keys: signer.keys }), content);
  }
  await assert.rejects(makeNote(signer, { text: 'x'.repeat(2_048) }, { st, number: 0, publicKey }), RangeError);
});
