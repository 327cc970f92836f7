import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { load, loadPage, vectors as vectorsIn } from './web.mjs';

const { fromBase64, sha256, toBase64, utf8 } = await load('wire/bytes.js');
const { Pairing, commitmentOf, deviceText, fingerprintIn, pairingCode } = await load('devices/pairing.js');

const { qrOf } = await loadPage('qr.js');

const vectors = JSON.parse(readFileSync(new URL('../Vectors/keys.json', import.meta.url), 'utf8')).pairing;
const random = (count) => new Uint8Array(randomBytes(count));
const contentOf = ({ body }) => JSON.parse(new TextDecoder().decode(fromBase64(body)));
const bodyOf = (content) => toBase64(utf8(JSON.stringify(content)));
const MINUTE_MS = 60_000;

function devices({ user = 'alice', randomN = random, randomE = random } = {}) {
  const theNew = new Pairing({ user, fingerprint: random(32), random: randomN });
  const existing = new Pairing({ user, fingerprint: random(32), random: randomE });
  return { theNew, existing };
}

const arrives = (message, from) => ({ from, body: message.body });

/** The whole session up to the code; `change(message)` is what a server does to each message. */
async function upToCode({ theNew, existing }, change = (message) => message, now = 0) {
  existing.open(now);
  const commit = change(await theNew.begin('phone', now));
  const open = change(await existing.take(arrives(commit, 'laptop'), now));
  const reveal = open && change(await theNew.take(arrives(open, 'phone'), now));
  return { commit, open, reveal, last: reveal && (await existing.take(arrives(reveal, 'laptop'), now)) };
}

test('commitment, code and texts are those of the shared vectors', async () => {
  const [session, fpN, fpE, rN, rE] = ['session', 'newFingerprint', 'existingFingerprint', 'newNonce', 'existingNonce'].map((name) => fromBase64(vectors[name]));
  assert.equal(toBase64(await commitmentOf(session, fpN, rN)), vectors.commit);
  assert.equal(toBase64(await sha256(fromBase64(vectors.commitBytes))), vectors.commit);
  const code = (nonce) => pairingCode({ user: vectors.user, session, theNew: { fingerprint: fpN, nonce }, existing: { fingerprint: fpE, nonce: rE } });
  assert.equal(await code(rN), vectors.code);
  assert.equal(await code(fromBase64(vectors.flipped.newNonce)), vectors.flipped.code);
  assert.equal(toBase64(await commitmentOf(session, fpN, fromBase64(vectors.flipped.newNonce))), vectors.flipped.commit);
  assert.equal(deviceText(fpN), vectors.scanned);
  assert.equal(fingerprintIn(` ${vectors.scanned}\n`), vectors.newFingerprint);
  assert.notEqual(fingerprintIn(vectors.flipped.scanned), vectors.newFingerprint);
});

test('two devices send the messages of the shared vectors and compute their code', async () => {
  const feed = (...values) => () => fromBase64(values.shift());
  const theNew = new Pairing({ user: vectors.user, fingerprint: fromBase64(vectors.newFingerprint), random: feed(vectors.session, vectors.newNonce) });
  const existing = new Pairing({ user: vectors.user, fingerprint: fromBase64(vectors.existingFingerprint), random: feed(vectors.existingNonce) });
  const { commit, open, reveal } = await upToCode({ theNew, existing });
  assert.equal(theNew.code, vectors.code);
  assert.equal(existing.enter(vectors.code, 1), true);
  assert.deepEqual([commit, open, reveal, existing.done()].map(contentOf), vectors.bodies);
  assert.deepEqual([commit.to, open.to, reveal.to], ['phone', 'laptop', 'phone']);
});

test('both confirm each other; the new device only after the person has said that the other one did', async () => {
  const pair = devices();
  const { theNew, existing } = pair;
  await upToCode(pair);
  assert.match(theNew.code, /^\d{6}$/);
  assert.equal(existing.code, undefined, 'the existing device shows no digits');
  assert.equal(theNew.confirm(1), false, 'before “done”');
  assert.equal(existing.done(), undefined, 'before the code');
  assert.equal(existing.enter(theNew.code, 1), true);
  await theNew.take(arrives(existing.done(), 'phone'), 2);
  assert.equal(theNew.state, 'asking');
  assert.equal(theNew.confirm(3), true);
  assert.deepEqual([theNew.state, existing.state], ['confirmed', 'confirmed']);
  assert.equal(toBase64(theNew.peerFingerprint).length, 44);
  assert.notDeepEqual(theNew.peerFingerprint, existing.peerFingerprint);
});

test('a key or nonce that the server swaps changes the code or ends the session', async () => {
  for (const step of ['commit', 'open', 'reveal']) {
    for (const field of ['commit', 'fingerprint', 'nonce']) {
      const pair = devices();
      const swap = (message) => {
        const content = contentOf(message);
        if (content.step !== step || !content[field]) return message;
        return { ...message, body: bodyOf({ ...content, [field]: toBase64(random(32)) }) };
      };
      await upToCode(pair, swap);
      const { theNew, existing } = pair;
      if (step === 'open' && field !== 'commit') {
        assert.equal(existing.state, 'typing');
        assert.equal(existing.enter(theNew.code, 1), false, `${step} ${field}`);
      } else if ((step === 'commit') === (field === 'commit')) {
        assert.deepEqual([existing.state, existing.reason], ['failed', 'broken'], `${step} ${field}`);
      }
    }
  }
});

test('a server in the middle, with its own key on both sides, gets different digits', async () => {
  let fits = 0;
  for (let i = 0; i < 20; i += 1) {
    const { theNew, existing } = devices();
    const attacker = devices();
    // In one session it plays the existing device, in the other the new one.
    await upToCode({ theNew, existing: attacker.existing });
    await upToCode({ theNew: attacker.theNew, existing });
    if (existing.enter(theNew.code, 1)) fits += 1;
  }
  assert.equal(fits, 0);
});

test('a premature message ends the session and says so, whichever side sends it', async () => {
  const early = async (victim, from, step, session, fields = { fingerprint: toBase64(random(32)), nonce: toBase64(random(32)) }) => {
    const answer = await victim.take({ from, body: bodyOf({ step, session, ...fields }) }, 1);
    assert.equal(contentOf(answer).step, 'cancel');
    assert.deepEqual([victim.state, victim.reason], ['failed', 'broken']);
  };
  // The new device is shown a key before it has committed to its own: it does not answer.
  const { theNew } = devices();
  assert.equal(await theNew.take({ from: 'phone', body: bodyOf({ step: 'open', session: toBase64(random(16)), fingerprint: toBase64(random(32)), nonce: toBase64(random(32)) }) }, 1), undefined);
  // A reveal instead of the opening.
  const { session } = contentOf(await theNew.begin('phone', 0));
  await early(theNew, 'phone', 'reveal', session);
  // A second opening, another commitment, “done” too early.
  for (const step of ['open', 'done']) {
    const pair = devices();
    const { open } = await upToCode(pair);
    await early(pair.existing, 'laptop', step, contentOf(open).session);
  }
  const again = devices();
  again.existing.open(0);
  const commit = await again.theNew.begin('phone', 0);
  await again.existing.take(arrives(commit, 'laptop'), 0);
  await early(again.existing, 'laptop', 'commit', contentOf(commit).session, { commit: toBase64(random(32)) });
  const twice = devices();
  const { open } = await upToCode(twice);
  assert.equal(contentOf(await twice.theNew.take(arrives(open, 'phone'), 1)).step, 'cancel');
});

test('the existing device does not answer unless the person has opened pairing', async () => {
  const { theNew, existing } = devices();
  const commit = await theNew.begin('phone', 0);
  assert.equal(await existing.take(arrives(commit, 'laptop'), 0), undefined);
  assert.equal(existing.state, 'idle');
});

test('messages of another device or session are ignored and do not end the session', async () => {
  const pair = devices();
  const { theNew, existing } = pair;
  existing.open(0);
  const commit = await theNew.begin('phone', 0);
  const open = await existing.take(arrives(commit, 'laptop'), 0);
  const { session } = contentOf(open);
  for (const [from, of] of [['tablet', session], ['phone', toBase64(random(16))]]) {
    assert.equal(await theNew.take({ from, body: bodyOf({ step: 'cancel', session: of }) }, 0), undefined);
    assert.equal(await theNew.take({ from, body: bodyOf({ ...contentOf(open), session: of }) }, 0), undefined);
  }
  assert.equal(theNew.state, 'committed');
  const other = devices();
  assert.equal(await existing.take(arrives(await other.theNew.begin('phone', 0), 'tablet'), 0), undefined);
  assert.equal(existing.peer, 'laptop', 'one session at a time');
});

test('malformed messages are ignored', async () => {
  const pair = devices();
  pair.existing.open(0);
  const session = toBase64(random(16));
  const commit = toBase64(random(32));
  const bodies = [undefined, null, 7, '', 'x', '!!!!', bodyOf(null), bodyOf([]), bodyOf({}), bodyOf({ step: 'commit' }), bodyOf({ step: 'commit', session }),
    bodyOf({ step: 'commit', session, commit: 'AAAA' }), bodyOf({ step: 'commit', session: 'AAAA', commit }), bodyOf({ step: 'constructor', session, commit }),
    bodyOf({ step: '__proto__', session, commit }), bodyOf({ step: 'commit', session, commit: { length: 32 } }), toBase64(Uint8Array.of(0xff, 0xfe)),
    bodyOf({ step: 'commit', session, commit, padding: 'x'.repeat(8_192) })];
  for (const body of bodies) assert.equal(await pair.existing.take({ from: 'laptop', body }, 0), undefined);
  assert.equal(await pair.existing.take({ from: { toString: () => 'laptop' }, body: bodyOf({ step: 'commit', session, commit }) }, 0), undefined);
  assert.equal(pair.existing.state, 'waiting');
});

test('a session ends after two minutes on both devices', async () => {
  const pair = devices();
  await upToCode(pair);
  const { theNew, existing } = pair;
  const code = theNew.code;
  assert.equal(existing.enter(code, 2 * MINUTE_MS), false);
  theNew.tick(2 * MINUTE_MS);
  for (const device of [theNew, existing]) assert.deepEqual([device.state, device.reason, device.code], ['failed', 'expired', undefined]);
});

test('three wrong codes end the session, one does not', async () => {
  const pair = devices();
  await upToCode(pair);
  const wrong = pair.theNew.code === '000000' ? '000001' : '000000';
  assert.equal(pair.existing.enter(wrong, 1), false);
  assert.equal(pair.existing.enter('', 1), false);
  assert.equal(pair.existing.state, 'typing');
  assert.equal(pair.existing.enter(wrong, 1), false);
  assert.deepEqual([pair.existing.state, pair.existing.reason], ['failed', 'wrong-code']);
  assert.equal(pair.existing.enter(pair.theNew.code, 1), false, 'too late');
});

test('at most five sessions an hour are allowed', async () => {
  const pair = devices();
  for (let i = 0; i < 5; i += 1) {
    await upToCode(pair, undefined, i * 1_000);
    pair.theNew.cancel();
    pair.existing.cancel();
  }
  assert.equal(pair.existing.open(60_000), false);
  assert.equal(await pair.theNew.begin('phone', 60_000), undefined);
  assert.equal(pair.existing.open(60 * MINUTE_MS), true);
  assert.notEqual(await pair.theNew.begin('phone', 60 * MINUTE_MS), undefined);
});

test('a cancelled session is over on both devices, and a new one may begin', async () => {
  const pair = devices();
  await upToCode(pair);
  const { theNew, existing } = pair;
  await theNew.take(arrives(existing.cancel(), 'phone'), 1);
  for (const device of [theNew, existing]) assert.deepEqual([device.state, device.reason], ['failed', 'cancelled']);
  await upToCode(pair, undefined, 2);
  assert.equal(existing.enter(theNew.code, 3), true);
});

test('an existing device that finds another key at the server revokes its confirmation', async () => {
  const pair = devices();
  await upToCode(pair);
  const { theNew, existing } = pair;
  existing.enter(theNew.code, 1);
  const message = existing.cancel('refused');
  assert.equal(existing.state, 'failed');
  await theNew.take(arrives(message, 'phone'), 1);
  assert.equal(theNew.state, 'failed');
});

test('a device does not pair with its own key', async () => {
  const fingerprint = random(32);
  const pair = { theNew: new Pairing({ user: 'alice', fingerprint, random }), existing: new Pairing({ user: 'alice', fingerprint, random }) };
  await upToCode(pair);
  assert.equal(pair.theNew.reason, 'broken');
});

test('a text that does not name a device is invalid', () => {
  const good = deviceText(new Uint8Array(32).fill(0xff));
  assert.equal(fingerprintIn(good), toBase64(new Uint8Array(32).fill(0xff)));
  for (const bad of ['', 'conclave-device:', good.slice(0, -1), `${good}A`, good.replace(':', '/'), `x${good}`, good.slice(0, -1) + '9']) {
    assert.equal(fingerprintIn(bad), undefined, bad);
  }
});

test('the QR code of a device’s text matches another implementation’s', () => {
  const { text, rows } = vectorsIn('qr.json');
  assert.deepEqual(qrOf(text).map((row) => row.map(Number).join('')), rows);
  assert.throws(() => qrOf('x'.repeat(63)), RangeError);
});
