// The table of lies, rows about secrets and their use: who gets one, when, and in what order frames count.

import assert from 'node:assert/strict';
import { Announcer, CALL, Person, directoryFor } from '../person.mjs';
import { hex, load } from '../web.mjs';
import { announcement, comes, entryOf, envelopeBy, epochOf, inCall, isSilent, requestsOf, settled, slotOf, tell, warns } from './lying.mjs';
import { attacker } from './time.mjs';
import { inWorld } from './world.mjs';

const { concat, fromBase64, random, toBase64, utf8 } = await load('wire/bytes.js');
const { Directory } = await load('trust/directory.js');
const { ringEpoch } = await load('keys/envelopes.js');
const { FrameKeys } = await load('frames/frames.js');
const { Identity } = await load('trust/identity.js');
const { OwnDevices } = await load('devices/own-devices.js');
const { deriveKey, seal } = await load('frames/sframe.js');
const { MemoryStore } = await load('devices/store.js');
const { baseKeyOf, kidOf } = await load('wire/transcript.js');
const { wrap } = await load('wire/wrap.js');

export const rows = new Map();
const row = (n, run) => rows.set(n, run);

const keysOf = (requests) => requests.filter(({ path }) => path === 'keys');

/** Runs `action` when `count` more ciphers have ended. */
function atCipher(world, count, action) {
  let left = count;
  world.time.audit.hold = async (running) => {
    const result = await running;
    left -= 1;
    if (left === 0) action();
    return result;
  };
}

row(300, async () => {
  for (const count of [1, 3, 6, 9, 12, 15, 18]) {
    await inCall(async ({ world, call, alice, bob }) => {
      const requests = requestsOf(alice);
      const secret = alice.call.epoch;
      void tell(world, alice, 'keys.request', { call: call.id, epoch: secret, to: { ...entryOf(call, bob), keys: bob.identity.keys } });
      let sent;
      atCipher(world, count, () => {
        void alice.call.rejoin();
        sent = keysOf(requests).length;
      });
      await world.run(500);
      world.time.audit.hold = undefined;
      assert.ok(sent !== undefined, 'the stay ended while the envelope was sealed');
      const late = keysOf(requests).slice(sent).filter(({ body }) => body.epoch === secret);
      assert.deepEqual(late, [], `after ${count} ciphers`);
      await settled(world, call, world.clients);
      await world.assertAllHear();
    });
  }
});

row(301, () =>
  inCall(async ({ world, call, alice, bob, carol }) => {
    world.server.lie.event = (to, name, body) => (to === bob && name === 'keys.envelope' ? undefined : name === 'keys.request' ? undefined : body);
    call.rotate();
    await world.until(() => call.epoch === 3);
    const own = entryOf(call, bob);
    const options = { to: own, target: call.stayOf(bob).refresh ?? own.joinKey };
    await tell(world, bob, 'keys.envelope', await envelopeBy(alice, call, { ...options, secret: new Uint8Array(32) }));
    assert.ok(!bob.secrets.some(({ epoch }) => epoch === 3));
    warns(bob, 'refused-envelope');
    await isSilent(bob);
    await tell(world, bob, 'keys.envelope', await envelopeBy(alice, call, { ...options, secret: random(32) }));
    assert.ok(bob.secrets.some(({ epoch }) => epoch === 3), 'the same with another secret is opened');
    await world.assertAllHear([alice, carol]);
  }));

row(302, async () => {
  const world = [];
  const [alice, bob, carol] = await Promise.all(['alice', 'bob', 'carol'].map((user, i) => Person.make(user, i + 1, world)));
  const lists = new Announcer();
  await lists.rotation(1, 'fresh', [alice]);
  await alice.keys.start();
  const event = await lists.rotation(2, 'fresh', world);
  const refusals = [true, true, false];
  alice.answer = (path) => (path === 'keys' && refusals.shift() ? Promise.reject(Object.assign(new Error(), { code: 'keys.epoch-stale' })) : {});
  const sent = [];
  for (const person of [bob, carol, bob]) {
    await alice.keys.rotate({ ...event, deliver: [person.withKeys()] }).catch(() => {});
    sent.push(alice.sent()[0]);
  }
  for (const person of [bob, carol]) {
    await person.keys.rotate(event);
    await person.keys.envelope(sent[person === bob ? 0 : 1]);
  }
  const secrets = world.map((person) => hex(person.keys.record(2).secret));
  assert.equal(new Set(secrets).size, 1);
  for (const person of world) person.close();
});

row(303, () =>
  inCall(async ({ world, call, alice }) => {
    let answer;
    world.server.lie.reply = (to, path) => (to === alice && path.endsWith('/keys') ? new Promise((resolve) => (answer = () => resolve({}))) : undefined);
    const event = await announcement(call, { epoch: call.newest.epoch, mode: 'fresh', previous: call.newest.previous });
    await tell(world, alice, 'keys.rotate', { ...event, deliver: [{ ...call.newest.list[1], keys: world.clients[1].identity.keys }] });
    await world.until(() => answer);
    world.server.lie.reply = undefined;
    call.rotate();
    await world.until(() => alice.call.epoch === 3);
    await world.run(10_500); // the worker has forgotten epoch 2
    const { length } = alice.worker.posted;
    answer();
    await world.run(500);
    assert.ok(!alice.worker.posted.slice(length).some(({ type, epoch }) => type === 'epoch' && epoch === 2));
    await world.assertAllHear();
  }));

row(304, async () => {
  for (const isAnswered of [true, false]) {
    const world = [];
    const [alice, phone, made] = [await Person.make('alice', 1, world), await Person.make('bob', 2, world, { device: 'phone' }), await Person.make('bob', 3, world, { device: 'made-up' })];
    const listed = [phone];
    const directory = directoryFor('alice', new MemoryStore(), listed);
    await directory.examine([phone.entry()]);
    await directory.verify([phone.entry()]);
    listed.push(made);
    const ring = await ringEpoch({ identity: alice.identity, directory, join: alice.join, call: CALL, callees: ['bob'] });
    assert.deepEqual(ring.envelopes.map(({ to }) => to.device), ['phone'], 'the made-up device rings without a key');
    if (isAnswered) {
      const caller = await Person.make('alice', 1, world, { store: new MemoryStore(), directory });
      await caller.keys.start(ring);
      assert.deepEqual(caller.warnings.map(({ problem, device }) => [problem, device]), [['new-device', 'made-up']]);
      caller.close();
    } else {
      // The server refused the start, so the person was not told, and the device is as new as before.
      const [{ isNew }] = await directory.examine([made.entry()]);
      assert.ok(isNew);
    }
    for (const person of world) person.close();
  }
  // A complete stranger is rung as usual.
  const world = [];
  const [alice, bob] = [await Person.make('alice', 1, world), await Person.make('bob', 2, world)];
  const ring = await ringEpoch({ identity: alice.identity, directory: alice.directory, join: alice.join, call: CALL, callees: ['bob'] });
  assert.deepEqual([ring.envelopes.length, ring.news.length], [1, 0]);
  for (const person of [alice, bob]) person.close();
});

row(305, () =>
  inWorld(['alice', 'bob'], async (world, alice, bob) => {
    alice.start(['bob']);
    await world.until(() => bob.rung.length > 0);
    for (let s = 0; s < 60; s += 5) {
      await isSilent(alice);
      await world.run(5_000);
    }
    assert.equal(alice.call.stop, undefined, 'there is no problem');
    bob.accept();
    await world.until(() => alice.call.members.get('bob')?.participants.length > 0);
    await world.run(50);
    assert.equal(alice.call.epoch, 1);
    assert.ok(await alice.say(), 'the first to join is spoken to at once, under epoch 1');
    const [call] = world.server.calls.values();
    await settled(world, call, [alice, bob]);
    await world.assertAllHear();
  }));

row(306, async () => {
  const [laptop, phone] = [await Identity.open(new MemoryStore(), 'alice', 'laptop'), await Identity.open(new MemoryStore(), 'alice', 'phone')];
  const of = ({ user, device, keys, fingerprint }) => ({ user, device, name: device, keys, fingerprint: toBase64(fingerprint), registeredAt: 0, vouches: [] });
  const old = await Identity.open(new MemoryStore(), 'alice', 'old-laptop');
  for (const shown of [laptop, phone]) {
    const listed = [of(laptop), of(phone), { ...of(old), keys: shown.keys, fingerprint: toBase64(shown.fingerprint) }];
    const directory = new Directory({ store: new MemoryStore(), owner: 'alice', own: of(laptop), fetchDevices: async () => ({ devices: listed, revokes: [] }) });
    const sent = [];
    const own = new OwnDevices({ identity: laptop, directory, request: async (path, body) => void sent.push(body) });
    await own.remove((await own.list()).find(({ device }) => device === 'old-laptop'));
    assert.deepEqual(sent, [{ device: 'old-laptop' }], 'removed, and nothing signed');
    listed[2] = of(old);
    await own.remove((await own.list()).find(({ device }) => device === 'old-laptop'));
    assert.equal(sent[1].revoke.fingerprint, toBase64(old.fingerprint), 'its own fingerprint is signed');
    await own.remove(own.self);
    assert.equal(sent[2].revoke.fingerprint, toBase64(laptop.fingerprint), 'and this device’s own only for itself');
    await own.remove({ ...own.self, device: 'old-laptop', keys: laptop.keys });
    assert.equal(sent[3].revoke, undefined);
  }
});

row(307, () =>
  inCall(async ({ world, call, alice, bob, carol }) => {
    const ratchet = await announcement(call, { mode: 'ratchet' });
    await tell(world, bob, 'keys.rotate', ratchet);
    assert.ok(!bob.secrets.some(({ epoch }) => epoch === 3));
    warns(bob, 'refused-list');
    await world.assertAllHear([alice, bob, carol], 'under the previous epoch');
  }));

row(308, () =>
  inCall(async ({ world, call, alice, bob }) => {
    const kept = [];
    world.server.lie.forward = (to, frame) => {
      if (to === alice && frame.mid === slotOf(call, alice, bob)) kept.push(frame);
      return undefined;
    };
    const words = [];
    for (let count = 0; count < 140; count += 1) words.push(await bob.say());
    await world.run(100);
    assert.equal(kept.length, 140);
    const plays = async (index) => {
      alice.receive(kept[index].mid, kept[index].data);
      await world.run(10);
      return alice.hasHeard(words[index]);
    };
    const heard = [];
    for (const index of [130, 66, 65, 0]) heard.push(await plays(index));
    assert.deepEqual(heard, [true, true, false, false], 'up to 64 counters behind the newest are late, more would be reordering');
    const video = new FrameKeys();
    video.identify({ call: call.id, participant: 99, fingerprint: random(32), joinId: random(16) });
    const { secret, listHash } = epochOf(bob, 2);
    const { participant, fingerprint, joinId } = entryOf(call, bob);
    video.install({ epoch: 2, listHash, secret, senders: [{ participant, fingerprint: fromBase64(fingerprint), joinId: fromBase64(joinId) }] });
    for (const index of [130, 0]) await video.open(kept[index].data, 0, video.inspect(kept[index].data, 0), undefined, true);
  }));

row(309, () =>
  inCall(async ({ world, call, alice, bob, carol }) => {
    let sealed;
    world.server.lie.event = (to, name, body) => {
      if (name === 'message' && to === alice) sealed = body;
      return body;
    };
    void bob.call.send({ text: 'bob/d writes once' }, { to: [entryOf(call, alice).participant] });
    await world.run(500);
    assert.equal(alice.messages.length, 1);
    // Carol, a member, opens the SFrame and seals its content again under Bob's key.
    const { secret, listHash } = epochOf(carol, call.epoch);
    const { participant, fingerprint, joinId } = entryOf(call, bob);
    const program = new FrameKeys();
    program.identify({ call: call.id, participant: 99, fingerprint: random(32), joinId: random(16) });
    program.install({ epoch: call.epoch, listHash, secret, senders: [{ participant, fingerprint: fromBase64(fingerprint), joinId: fromBase64(joinId) }] });
    const { data } = await program.openMessage(fromBase64(sealed.body), participant);
    const base = await baseKeyOf(secret, { call: call.id, epoch: call.epoch, listHash }, { participant, fingerprint: fromBase64(fingerprint), joinId: fromBase64(joinId) });
    for (const counter of [900n, 901n, 902n]) {
      attacker.isSealing = true;
      const again = seal(await deriveKey(base, BigInt(kidOf(participant, 0, call.epoch))), counter, utf8('private'), data);
      attacker.isSealing = false;
      await tell(world, alice, 'message', { ...sealed, body: toBase64(concat(Uint8Array.of(1), await again)) });
    }
    assert.equal(alice.messages.length, 1, 'read once');
    void bob.call.send({ text: 'bob/d writes once' }, { to: [entryOf(call, alice).participant] });
    await world.run(500);
    assert.equal(alice.messages.length, 2, 'the same text sent again by Bob is another message');
  }));

row(310, () =>
  inCall(async ({ world, call, alice, bob, carol }) => {
    const { secret, listHash } = epochOf(carol, call.epoch);
    const { participant, fingerprint, joinId } = entryOf(call, bob);
    const base = await baseKeyOf(secret, { call: call.id, epoch: call.epoch, listHash }, { participant, fingerprint: fromBase64(fingerprint), joinId: fromBase64(joinId) });
    const text = utf8('{"text":"bare"}');
    for (const [at, data] of [text, concat(text, Uint8Array.of(0x80)), concat(text, new Uint8Array(64 - text.length)), concat(text, Uint8Array.of(0x80), new Uint8Array(127 - text.length))].entries()) {
      attacker.isSealing = true;
      const sealed = seal(await deriveKey(base, BigInt(kidOf(participant, 0, call.epoch))), BigInt(500 + at), utf8('message'), data);
      attacker.isSealing = false;
      await tell(world, alice, 'message', { call: call.id, from: participant, body: toBase64(concat(Uint8Array.of(0), await sealed)) });
    }
    assert.deepEqual(alice.messages, []);
    void bob.call.send({ text: 'bob/d writes padded' });
    await world.run(500);
    assert.deepEqual(alice.messages.map(({ text: written }) => written), ['bob/d writes padded']);
  }));

row(311, async () => {
  const world = [];
  const [alice, bob, carol] = await Promise.all(['alice', 'bob', 'carol'].map((user, i) => Person.make(user, i + 1, world)));
  const lists = new Announcer();
  await lists.rotation(1, 'fresh', [alice]);
  await alice.keys.start();
  await alice.keys.rotate({ ...(await lists.rotation(2, 'fresh', world)), deliver: [bob.withKeys(), carol.withKeys()] });
  const asks = async () => {
    await alice.keys.requested({ epoch: 2, to: bob.withKeys() });
    return keysOf(alice.requests).length;
  };
  assert.equal(await asks(), 2, 'before');
  await alice.keys.rotate(await lists.rotation(2, 'fresh', [alice, bob], { isAside: true }));
  assert.ok(alice.problems.includes('broken-history') && alice.keys.isBroken);
  assert.ok(alice.keys.record(2).hasSecret);
  assert.equal(await asks(), 2, 'and not when the history is broken');
  for (const person of world) person.close();
});

row(312, async () => {
  for (const [modulusLength, isSealed] of [[1_024, false], [2_047, false], [2_048, true]]) {
    const pair = await crypto.subtle.generateKey({ name: 'RSA-OAEP', modulusLength, publicExponent: Uint8Array.of(1, 0, 1), hash: 'SHA-256' }, true, ['encrypt', 'decrypt']);
    const spki = new Uint8Array(await crypto.subtle.exportKey('spki', pair.publicKey));
    const sealed = await wrap('RSA-OAEP-256', spki, random(32)).catch(() => undefined);
    assert.equal(sealed !== undefined, isSealed, `${modulusLength} bits`);
  }
});
