// The table of lies, rows about frames, slots and messages: server and key must name the same sender.

import assert from 'node:assert/strict';
import { load } from '../web.mjs';
import { comes, entryOf, forge, inCall, isSilent, requestsOf, settled, slotOf, tell } from './lying.mjs';

const { concat, random, toBase64, utf8 } = await load('wire/bytes.js');
const { FrameKeys } = await load('frames/frames.js');
const { openPrivate, sealPrivate } = await load('keys/private-messages.js');
const { HPKE } = await load('wire/wrap.js');

export const rows = new Map();
const row = (n, run) => rows.set(n, run);

const endOf = (client, mid) => client.pc.transceivers.find((transceiver) => transceiver.mid === mid).receiver.transform.end;

row(56, () =>
  inCall(async ({ world, call, alice, bob, carol }) => {
    await world.assertAllHear();
    const mid = slotOf(call, alice, carol);
    const { foreign } = endOf(alice, mid);
    for (const counter of [1n, 5n, 2n ** 47n]) alice.receive(mid, await forge(carol, bob, { call, epoch: 2, counter }));
    await world.run(1_500);
    await world.assertAllHear(undefined, 'Bob is not muted');
    alice.receive(mid, await forge(carol, bob, { call, epoch: 2, counter: 9n }));
    await world.run(1_500);
    assert.ok(endOf(alice, mid).foreign > foreign, 'counted');
    assert.ok(!alice.heard.some(({ said }) => said === 'forged'));
  }));

row(57, () =>
  inCall(async ({ world, call, alice, bob, carol }) => {
    await world.assertAllHear();
    const [bobs, carols] = [slotOf(call, alice, bob), slotOf(call, alice, carol)];
    const shown = call.stayOf(alice).receive;
    const swap = shown.map((slot) => ({ ...slot, mid: slot.mid === bobs ? carols : bobs }));
    const forged = await forge(carol, bob, { call, epoch: 2, counter: 2n ** 47n });
    await tell(world, alice, 'media.slots', { call: call.id, rev: 1_000, receive: swap });
    alice.receive(bobs, forged); // within the second in which the slot's former track still counts
    await world.run(100);
    await tell(world, alice, 'media.slots', { call: call.id, rev: 1_001, receive: shown });
    await world.run(1_500);
    assert.ok(!alice.heard.some(({ said }) => said === 'forged'));
    await world.assertAllHear(undefined, 'Bob is not muted');
  }));

row(58, () =>
  inCall(async ({ world, call, alice, bob, carol }) => {
    const [bobs, carols] = [slotOf(call, alice, bob), slotOf(call, alice, carol)];
    await world.run(2_000);
    const swap = call.stayOf(alice).receive.map((slot) => ({ ...slot, mid: slot.mid === bobs ? carols : bobs }));
    await tell(world, alice, 'media.slots', { call: call.id, rev: 1_000, receive: swap });
    await world.run(2_000);
    for (const client of [bob, carol]) await client.say();
    await world.run(2_000);
    assert.deepEqual(alice.heard, []);
    // A state that gives Bob's number to Carol changes nobody's name either: the list of keys says whose it is.
    const state = call.state();
    const [b, c] = ['bob', 'carol'].map((user) => state.members.find((member) => member.user === user));
    [b.participants, c.participants] = [c.participants, b.participants];
    await tell(world, bob, 'call.state', { call: call.id, ...state });
    bob.heard.length = 0;
    await carol.say();
    await world.run(300);
    assert.deepEqual(bob.heard.map(({ from }) => from), ['carol/d']);
  }));

for (const isLate of [true, false]) {
  const before = rows.get(59);
  row(59, async () => {
    await before?.();
    await inCall(async ({ world, call, alice, bob, carol, others: [dave] }) => {
      if (isLate) world.server.lie.event = (to, name, body) => (name === 'media.slots' ? new Promise((resolve) => world.time.after(500, () => resolve(body))) : body);
      comes(call, dave);
      await settled(world, call, [alice, bob, carol, dave]);
      await world.run(3_000);
      world.server.lie = {};
      const mid = slotOf(call, alice, bob);
      const shown = call.stayOf(alice).receive;
      const without = shown.filter((slot) => slot.mid !== mid);
      const said = [];
      if (isLate) {
        // Bob's track was in no slot, and gets one again: frames arrive 500 ms before the event.
        await tell(world, alice, 'media.slots', { call: call.id, rev: 1_000, receive: without });
        await world.run(1_500);
        for (let i = 0; i < 10; i += 1) said.push(await bob.say());
        await world.run(500);
        await tell(world, alice, 'media.slots', { call: call.id, rev: 1_001, receive: shown });
      } else {
        for (let i = 0; i < 3; i += 1) said.push(await bob.say());
        await tell(world, alice, 'media.slots', { call: call.id, rev: 1_000, receive: without });
        for (let i = 0; i < 10; i += 1) said.push(await bob.say());
        await world.run(500);
      }
      await world.run(300);
      assert.deepEqual(said.filter((text) => !alice.hasHeard(text)), []);
      assert.equal(endOf(alice, mid).failed, 0);
    }, ['dave']);
  });
}

row(60, () =>
  inCall(async ({ world, call, alice, bob }) => {
    const mid = slotOf(call, alice, bob);
    let sealed;
    const { spoke } = world;
    world.spoke = (...options) => {
      sealed = options[2];
      spoke.apply(world, options);
    };
    await alice.say();
    alice.receive(mid, sealed);
    const { participant } = entryOf(call, alice);
    await tell(world, alice, 'media.slots', { call: call.id, rev: 1_000, receive: [{ mid, track: `${participant}.1`, participant }] });
    alice.receive(mid, sealed);
    let body;
    const { request } = alice;
    alice.request = (path, sent) => {
      if (path.endsWith('/message')) ({ body } = sent);
      return request.call(alice, path, sent);
    };
    alice.call.send({ text: 'mine' });
    await world.run(500);
    alice.messages.length = 0;
    for (const from of [participant, entryOf(call, bob).participant]) await tell(world, alice, 'message', { call: call.id, from, body });
    await world.run(1_500);
    assert.deepEqual([alice.heard, alice.messages], [[], []]);
  }));

row(61, () =>
  inCall(async ({ world, call, alice, bob, carol }) => {
    world.server.lie.forward = (to, frame) => [frame, frame, { ...frame, mid: slotOf(call, to, frame.mid === slotOf(call, to, bob) ? carol : bob) ?? frame.mid }];
    const said = await bob.say();
    await world.run(2_000);
    assert.equal(alice.heard.filter((each) => each.said === said).length, 1);
  }));

const chat = async (world, from, text, options) => {
  from.call.send({ text: `${from.name} writes ${text}` }, options).catch(() => {});
  await world.run(300);
};

row(62, () =>
  inCall(async ({ world, call, alice, bob, carol }) => {
    await chat(world, carol, 'hello');
    assert.equal(alice.messages.length, 1);
    world.server.lie.event = (to, name, body) => (name === 'message' ? { ...body, from: entryOf(call, bob).participant } : body);
    await chat(world, carol, 'as Bob');
    world.server.lie = {};
    // A member makes it under Bob's key, and an honest server says who sent it.
    const forged = concat(Uint8Array.of(0), await forge(carol, bob, { call, epoch: 2, n: 0, metadata: utf8('message'), plain: utf8('{"text":"bob/d writes money"}') }));
    await tell(world, alice, 'message', { call: call.id, from: entryOf(call, carol).participant, body: toBase64(forged) });
    for (const from of [0, -1, '2', 1.5, undefined]) await tell(world, alice, 'message', { call: call.id, from, body: toBase64(forged) });
    assert.equal(alice.messages.length, 1);
    await chat(world, bob, 'still here');
    assert.equal(alice.messages.length, 2, 'his window was not touched');
  }));

row(63, () =>
  inCall(async ({ world, call, alice, bob, carol }) => {
    let sealed;
    world.server.lie.event = (to, name, body) => {
      if (name === 'message') sealed = body;
      return body;
    };
    await chat(world, carol, 'for Bob alone', { to: [entryOf(call, bob).participant] });
    assert.deepEqual(bob.messages.map(({ text, isPrivate, participant }) => [text, isPrivate, participant]), [['carol/d writes for Bob alone', true, entryOf(call, carol).participant]]);
    await tell(world, alice, 'message', sealed);
    await world.run(500);
    assert.deepEqual(alice.messages, []);
    await chat(world, carol, 'for nobody', { to: [99] });
    assert.equal(bob.messages.length, 1);
  }));

row(64, async () => {
  const pair = () => crypto.subtle.generateKey({ name: 'ECDH', namedCurve: 'P-256' }, true, ['deriveBits']);
  const stay = async (participant) => {
    const keys = await pair();
    return { participant, pair: keys, joinKey: { alg: HPKE, publicKey: toBase64(new Uint8Array(await crypto.subtle.exportKey('spki', keys.publicKey))) } };
  };
  const [alice, bob, carol] = await Promise.all([1, 2, 3].map(stay));
  const scope = { call: 'c', epoch: 2, listHash: new Uint8Array(32) };
  const content = await sealPrivate(utf8('meet at nine'), { scope, from: alice, recipients: [bob, carol] });
  assert.equal(new TextDecoder().decode(await openPrivate(content, { scope, own: carol, sender: alice })), 'meet at nine');
  // Bob knows the content's key; he keeps the wraps and puts another text under it.
  const wraps = content.slice(0, 1 + 2 * 117);
  const other = concat(wraps, random(12 + 16));
  await assert.rejects(openPrivate(other, { scope, own: carol, sender: alice }));
  const fewer = concat(Uint8Array.of(1), content.slice(1 + 117, 1 + 234), content.slice(1 + 234));
  await assert.rejects(openPrivate(fewer, { scope, own: carol, sender: alice }), undefined, 'other recipients');
  const reversed = concat(Uint8Array.of(2), content.slice(1 + 117, 1 + 234), content.slice(1, 1 + 117), content.slice(1 + 234));
  await assert.rejects(openPrivate(reversed, { scope, own: carol, sender: alice }), undefined, 'another order');
  await assert.rejects(openPrivate(content, { scope: { ...scope, listHash: new Uint8Array(32).fill(1) }, own: carol, sender: alice }), undefined, 'another epoch');
  await assert.rejects(openPrivate(content, { scope, own: carol, sender: bob }), undefined, 'another sender');
});

row(65, async () => {
  const stay = (participant) => ({ participant, fingerprint: new Uint8Array(32).fill(participant), joinId: new Uint8Array(16).fill(participant) });
  const secretOf = (fill) => crypto.subtle.importKey('raw', new Uint8Array(32).fill(fill), 'HKDF', false, ['deriveBits']);
  const [alice, bob] = [1, 2].map((participant) => {
    const keys = new FrameKeys();
    keys.identify({ call: 'c', ...stay(participant) });
    return keys;
  });
  const install = async (keys, epoch) => keys.install({ epoch, listHash: new Uint8Array(32).fill(epoch % 251), secret: await secretOf(epoch % 251), senders: [stay(1), stay(2)] });
  await install(alice, 3);
  await install(bob, 3);
  alice.switchTo(3);
  const old = await alice.seal(1, new Uint8Array(30), 0);
  await install(bob, 259);
  await assert.rejects(async () => bob.open(old, 0, bob.inspect(old, 0)), { reason: 'authentication' }, 'only the key of epoch 259');
  bob.forgetBefore(260);
  assert.equal(bob.inspect(old, 0).isKnown, false);
});

row(66, () =>
  inCall(async ({ world, call, alice, bob }) => {
    const { worker } = alice;
    const requests = requestsOf(alice);
    alice.call.leave();
    await world.run(500);
    requests.length = 0;
    const posted = worker.posted.length;
    await tell(world, alice, 'keys.rotate', { call: call.id, leader: 1, ...call.newest });
    await tell(world, alice, 'keys.request', { call: call.id, epoch: 2, to: entryOf(call, bob) });
    await tell(world, alice, 'call.state', { call: call.id, ...call.state() });
    assert.deepEqual([worker.isTerminated, worker.posted.length, requests, alice.call], [true, posted, [], undefined]);
    await isSilent(alice);
  }));
