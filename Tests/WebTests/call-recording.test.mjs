// Recording a call, in virtual time: who is asked, what is handed out and when, and what a reader who has everything that the server ever saw can open.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inCall, requestsOf, settled } from './world/lying.mjs';
import { capture, captured, readable, speakersOf } from './world/readers.mjs';

console.warn = process.env.LOUD ? console.log : () => {};

/** Everybody says something every 100 ms for `ms`; returns the texts of those who said it. */
async function talk(world, clients, ms = 500) {
  const said = [];
  for (let passed = 0; passed < ms; passed += 100) {
    for (const client of clients) said.push(await client.say());
    await world.run(100);
  }
  return said.filter(Boolean);
}

const entriesOf = (call) => {
  const entries = [...call.newest.list];
  return entries.map((entry) => ({ ...entry, keys: call.server.client(entry.user, entry.device).identity.keys }));
};

const opened = (call, recorded, frames, { reader, starter, entries = entriesOf(call) }) => readable(recorded, frames, { reader, starter, entries });

const isAsked = ({ call }) => Boolean(call.recording) && !call.recording.isOwn && call.recording.answer === undefined;
const agree = (client, media = ['audio']) => client.call.answerRecording(client.call.recording.id, media);

/** Alice records; Bob agrees, Carol declines. */
async function begun({ world, call, alice, bob, carol }) {
  const devices = await alice.running(alice.call.record({ media: ['audio'], readers: ['bob', 'carol'] }));
  await world.until(() => isAsked(bob) && isAsked(carol));
  return devices;
}

/** Lets time go by until `promise` is settled. */
async function settle(world, promise) {
  let result;
  promise.then((value) => (result = { value }), (error) => (result = { error }));
  await world.until(() => result);
  if (result?.error) throw result.error;
  return result.value;
}

const recordedCall = (action) =>
  inCall(async (scene) => {
    for (const client of scene.world.clients) client.running = (promise) => settle(scene.world, promise);
    await action({ ...scene, devices: await begun(scene) });
  });

test('everybody is asked, and only those who agree are recorded, from the next epoch on', () =>
  recordedCall(async ({ world, call, alice, bob, carol, devices }) => {
    assert.deepEqual(devices, { alice: 1, bob: 1, carol: 1 });
    const { view } = { view: bob.call.recording };
    assert.deepEqual({ ...view, since: 0, id: '' }, { id: '', by: { user: 'alice', device: 'd' }, level: 'known', isOwn: false, readers: ['alice', 'bob', 'carol'], media: ['audio'], since: 0, answer: undefined, lack: undefined });
    const frames = capture(world);
    const before = await talk(world, [bob, carol]);
    assert.ok(before.length >= 8, 'they speak before they answer');
    await bob.running(agree(bob));
    await carol.running(agree(carol, []));
    assert.deepEqual(carol.call.recording.answer, []);
    await settled(world, call, [alice, bob, carol]);
    await world.until(() => bob.call.exported.length > 0 && alice.call.exported.length > 0);
    const during = await talk(world, [alice, bob, carol]);
    const texts = await opened(call, captured(call), frames, { reader: bob, starter: alice });
    assert.deepEqual(speakersOf(texts), ['alice/d', 'bob/d']);
    assert.deepEqual(texts.filter((text) => before.includes(text)), [], 'nothing from before the consent');
    assert.equal(texts.length, during.filter((text) => !text.startsWith('carol')).length, 'everything of those who agreed');
    assert.deepEqual(carol.call.exported, []);
  }));

test('marks follow what this device hands out, the starter’s signature, and the server’s word, in this order', () =>
  recordedCall(async ({ world, call, alice, bob, carol }) => {
    const numbers = Object.fromEntries(call.newest.list.map(({ user, participant }) => [user, participant]));
    const marks = (client) => ['alice', 'bob', 'carol'].map((user) => client.call.recordedOf(numbers[user]));
    await bob.running(agree(bob));
    await world.until(() => bob.call.exported.length > 0 && alice.call.exported.length > 0 && call.epoch === call.newest.epoch);
    await settled(world, call, [alice, bob, carol]);
    assert.deepEqual(marks(bob), ['signed', 'exported', undefined]);
    assert.deepEqual(marks(alice), ['exported', 'told', undefined]);
    // The starter's word goes only to those who agreed.
    assert.deepEqual(marks(carol), [undefined, 'told', undefined]);
    const tile = bob.call.tiles().find(({ isOwn }) => isOwn);
    assert.equal(tile.recorded, 'exported');
  }));

test('a withdrawal ends it at the next epoch, and an erasure is asked for with it', () =>
  recordedCall(async ({ world, call, alice, bob, carol }) => {
    await bob.running(agree(bob));
    await world.until(() => bob.call.exported.length > 0 && call.epoch === call.newest.epoch);
    const requests = requestsOf(bob);
    await bob.running(bob.call.answerRecording(bob.call.recording.id, [], { isErased: true }));
    assert.deepEqual(requests.find(({ path }) => path === 'record/consent').body, { recording: bob.call.recording.id, media: [], erase: true });
    assert.deepEqual(bob.call.exported, ['audio'], 'the key is in use until another follows');
    await settled(world, call, [alice, bob, carol]);
    await world.until(() => bob.call.exported.length === 0);
    assert.equal(bob.call.stop, undefined);
    const frames = capture(world);
    await talk(world, [bob]);
    assert.deepEqual(await opened(call, captured(call), frames, { reader: carol, starter: alice }), []);
    // Its person may agree again.
    await bob.running(agree(bob));
    await world.until(() => bob.call.exported.length > 0 && call.epoch === call.newest.epoch);
    await talk(world, [bob]);
    assert.deepEqual(speakersOf(await opened(call, captured(call), frames, { reader: carol, starter: alice })), ['bob/d']);
  }));

test('a newcomer is asked before anything of it is handed out, and each new key is handed out before it is used', () =>
  inCall(async ({ world, call, alice, bob, carol, others: [dave] }) => {
    for (const client of world.clients) client.running = (promise) => settle(world, promise);
    await begun({ world, call, alice, bob, carol });
    await bob.running(agree(bob));
    await world.until(() => bob.call.exported.length > 0);
    call.missed('dave');
    dave.join(call.id);
    await world.until(() => dave.call?.recording && isAsked(dave));
    const frames = capture(world);
    await settled(world, call, [alice, bob, carol, dave]);
    const unasked = await talk(world, [dave, bob]);
    await dave.running(agree(dave));
    await settled(world, call, [alice, bob, carol, dave]);
    await world.until(() => dave.call.exported.length > 0);
    for (let epoch = 0; epoch < 3; epoch += 1) {
      call.rotate();
      await world.run(300);
      await settled(world, call, [alice, bob, carol, dave]);
      await talk(world, [bob, dave], 300);
      assert.deepEqual(bob.call.exported, ['audio'], 'in each epoch anew');
    }
    const texts = await opened(call, captured(call), frames, { reader: carol, starter: alice });
    assert.deepEqual(speakersOf(texts), ['bob/d', 'dave/d']);
    assert.deepEqual(texts.filter((text) => unasked.includes(text) && text.startsWith('dave')), []);
    const later = frames.filter(({ said }) => said.startsWith('dave') && !unasked.includes(said));
    assert.deepEqual(later.map(({ said }) => said).filter((said) => !texts.includes(said)), [], 'no frame is sent under a key that was not handed out');
  }, ['dave']));

test('a participant who declines, or has not answered, hands out nothing for as long as the recording runs', () =>
  recordedCall(async ({ world, call, alice, bob, carol }) => {
    const requests = [requestsOf(bob), requestsOf(carol)];
    await carol.running(agree(carol, []));
    for (let epoch = 0; epoch < 3; epoch += 1) {
      call.rotate();
      await world.run(1_000);
      await settled(world, call, [alice, bob, carol]);
    }
    assert.deepEqual(requests.flat().filter(({ path }) => path === 'record/keys'), []);
  }));

test('its end comes with the starter’s stop or leave: no word, no key', async () => {
  await recordedCall(async ({ world, call, alice, bob, carol }) => {
    await bob.running(agree(bob));
    await world.until(() => bob.call.exported.length > 0 && call.epoch === call.newest.epoch);
    const ended = [];
    bob.call.addEventListener('notice', ({ detail }) => ended.push(detail));
    await alice.running(alice.call.stopRecording());
    await world.until(() => !bob.call.recording && !alice.call.recording);
    assert.deepEqual(ended, [{ kind: 'recording-ended', by: { user: 'alice', device: 'd' }, reason: 'stopped' }]);
    await settled(world, call, [alice, bob, carol]);
    await world.until(() => bob.call.exported.length === 0);
    assert.equal(bob.call.stop, undefined);
  });
  await recordedCall(async ({ world, call, alice, bob, carol }) => {
    await bob.running(agree(bob));
    await world.until(() => bob.call.exported.length > 0 && call.epoch === call.newest.epoch);
    alice.call.leave();
    await world.until(() => !bob.call.recording);
    await settled(world, call, [bob, carol]);
    await world.until(() => bob.call.exported.length === 0);
  });
});

test('a device that rejoins, and one whose server was started again, agree again by themselves for the same statement', () =>
  recordedCall(async ({ world, call, alice, bob, carol }) => {
    await bob.running(agree(bob));
    await world.until(() => bob.call.exported.length > 0);
    void bob.call.rejoin();
    await world.run(2_000);
    await settled(world, call, [alice, bob, carol]);
    assert.ok(await world.until(() => bob.call.exported.length > 0), 'after a rejoin');
    // The server forgets its consents.
    call.recording.consents.clear();
    bob.disconnect();
    await world.run(100);
    bob.reconnect();
    await world.until(() => call.recording.consents.size > 0);
    assert.deepEqual([...call.recording.consents.values()][0].media, ['audio']);
  }));

test('only the media to which the person agreed are handed out', () =>
  inCall(async ({ world, call, alice, bob, carol }) => {
    for (const client of world.clients) client.running = (promise) => settle(world, promise);
    await alice.running(alice.call.record({ readers: ['bob'] }));
    await world.until(() => isAsked(bob));
    assert.deepEqual(bob.call.recording.media, ['audio', 'video', 'screen']);
    await bob.running(agree(bob, ['video', 'screen']));
    await settled(world, call, [alice, bob, carol]);
    await world.run(1_000);
    assert.deepEqual(bob.call.exported, [], 'there is only a microphone');
    await bob.running(agree(bob, ['audio', 'video']));
    assert.ok(await world.until(() => bob.call.exported.length > 0));
    assert.deepEqual(bob.call.exported, ['audio']);
  }));
