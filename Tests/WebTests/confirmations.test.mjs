import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { aside, fakeTimers, load, until } from './web.mjs';

const { fromBase64 } = await load('wire/bytes.js');
const { bucketsIn } = await load('wire/checks.js');
const { Confirmations } = await load('keys/confirmations.js');
const { confirmationKeyOf } = await load('wire/transcript.js');

const { confirmation: vector } = JSON.parse(readFileSync(new URL('../Vectors/keys.json', import.meta.url), 'utf8'));

/** The first of the vector's 65 devices, with the vector's epoch in use. */
async function first(t, { tags = vector.tags, newest = vector.epoch } = {}) {
  const tick = fakeTimers(t);
  const { performance } = globalThis;
  let now = 0;
  const real = performance.now;
  performance.now = () => now;
  t.after(() => (performance.now = real));
  const [requests, warnings] = [[], []];
  const request = async (path, body) => {
    requests.push({ path, body });
    return path === 'confirmations' ? { tags: tags.filter(({ participant }) => Math.floor((participant - 1) / 64) === body.bucket) } : {};
  };
  const join = { refresh: async () => undefined, markPublished() {} };
  const told = { warn: (problem, { participant }) => warnings.push([problem, participant]) };
  const made = new Confirmations({ join, request, lists: { newest: { epoch: newest } }, epochs: { current: vector.epoch }, warnings: told });
  t.after(() => made.close());
  const { list, epoch, call, secret } = vector;
  const record = { epoch, mode: 'fresh', list, others: list.slice(1), own: list[0] };
  record.confirmationKey = await confirmationKeyOf(fromBase64(secret), { call, epoch, listHash: fromBase64(vector.listHash) });
  made.began(record);
  const pass = (ms) => {
    now += ms;
    tick(ms);
  };
  return { made, requests, warnings, pass, record, hear: (buckets) => made.received(epoch, bucketsIn(buckets)) };
}

test('a device confirms once, at a random moment, with its own tag', async (t) => {
  const { requests, pass } = await first(t);
  pass(700);
  await until(() => requests.length > 0);
  assert.deepEqual(requests, [{ path: 'confirm', body: { epoch: vector.epoch, tag: vector.tags[0].tag } }]);
});

test('an epoch that ends before its confirmation is due is not confirmed', async (t) => {
  const { requests, pass } = await first(t, { newest: vector.epoch + 1 });
  pass(2_000);
  await aside(1);
  assert.deepEqual(requests, []);
});

test('two right buckets confirm all 65', async (t) => {
  const { made, hear, warnings } = await first(t);
  assert.equal(made.state.state, 'confirming');
  hear(vector.buckets);
  await until(() => made.state.state === 'confirmed');
  assert.deepEqual([made.state.missing, warnings], [[], []]);
});

test('a bucket with a wrong tag is fetched once, which identifies the device', async (t) => {
  const { poisoned } = vector;
  const tags = [...poisoned.tags, ...vector.tags.filter(({ participant }) => participant > 64)];
  const { made, hear, requests, warnings } = await first(t, { tags });
  hear([poisoned.bucket, vector.buckets[1]]);
  await until(() => warnings.length > 1);
  assert.deepEqual(warnings, [['wrong-confirmation', poisoned.participant], ['unconfirmed', undefined]]);
  await until(() => made.state.missing.length === 0);
  assert.deepEqual([made.state.state, made.state.wrong], ['not-confirmed', [poisoned.participant]]);
  hear([poisoned.bucket]);
  await aside(100);
  assert.equal(requests.filter(({ path }) => path === 'confirmations').length, 1, 'the bucket now confirms its other devices without another fetch');
});

for (const [name, bucket] of [['a bit beyond the list', vector.flipped.beyondTheList], ['a bucket beyond the list', vector.flipped.beyondTheBuckets], ['a false tag', vector.flipped.buckets[0]]]) {
  test(`${name} confirms nobody, and warns`, async (t) => {
    const { made, hear, warnings } = await first(t);
    hear([bucket]);
    await until(() => warnings.some(([problem]) => problem === 'false-confirmation'));
    assert.ok(warnings.some(([problem]) => problem === 'false-confirmation'));
    if (name === 'a false tag') await until(() => made.isConfirmed(2)); // the single tags are right
    else assert.equal(made.isConfirmed(2), false);
  });
}

test('withdrawn bits are refused, and stay confirmed', async (t) => {
  const { made, hear, warnings } = await first(t);
  hear(vector.buckets);
  await until(() => made.state.state === 'confirmed');
  hear(vector.some.buckets);
  await until(() => warnings.length > 0);
  assert.deepEqual([warnings[0], made.state.state], [['false-confirmation', undefined], 'confirmed']);
});

test('confirmations that arrive before one’s own key count once it is here; those of other epochs are ignored', async (t) => {
  const { made, record } = await first(t);
  made.received(vector.epoch + 1, bucketsIn(vector.buckets));
  made.received(vector.epoch - 1, bucketsIn(vector.buckets));
  assert.equal(made.state.missing.length, 64);
  made.ended();
  made.received(vector.epoch, bucketsIn(vector.buckets));
  made.began({ ...record });
  await until(() => made.state.state === 'confirmed');
  assert.equal(made.state.state, 'confirmed');
});

test('a device that does not confirm in time is named; with many devices and short epochs, the state stays “confirming”', async (t) => {
  const { made, hear, pass, warnings, record } = await first(t);
  hear(vector.some.buckets);
  await until(() => made.isConfirmed(vector.some.participants[1]));
  pass(10_000);
  assert.equal(made.state.state, 'confirming');
  pass(1_000);
  assert.deepEqual([made.state.state, made.state.missing.length, warnings], ['not-confirmed', 61, [['unconfirmed', undefined]]]);
  for (let epoch = 10; epoch < 80; epoch += 1) {
    made.began({ ...record, epoch });
    pass(3_000);
    assert.equal(made.state.state, 'confirming');
  }
  const few = { ...record, epoch: 100, list: record.list.slice(0, 5), others: record.others.slice(0, 4) };
  made.began(few);
  assert.equal(made.state.state, 'not-confirmed', 'with few devices it is said after two minutes');
});
