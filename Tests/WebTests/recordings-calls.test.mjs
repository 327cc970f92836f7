// Reading the recording of a call: several reels, each under its own device's keys, and what a server or a participant may do to them.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { RecordedCall, SEGMENT_MS } from './recorded-call.mjs';
import { NOW, holder, person } from './recorded.mjs';
import { reelOf, START } from './reels.mjs';
import { aside, fakeTimers, load } from './web.mjs';

const { Player } = await load('recordings/player.js');
const { PictureOutput } = await load('recordings/picture-output.js');
const { Recordings } = await load('recordings/recordings.js');
const { RecordingReader } = await load('recordings/recording-reader.js');
const { manifestIn } = await load('recordings/manifest.js');
const { Refusal } = await load('wire/checks.js');
const { random, toBase64 } = await load('wire/bytes.js');

let alice, bob, carol, reader, mallory, honest;
before(async () => {
  [alice, bob, carol, reader, mallory] = await Promise.all([person('alice', 'phone'), person('bob', 'laptop'), person('carol', 'd'), person('reader', 'd'), person('mallory', 'd')]);
  honest = await RecordedCall.make(alice, [alice, bob, carol], { readers: [alice, reader], segments: [3, 2, 1] });
});

const trusted = async ({ user, device }) => {
  const found = [alice, bob, carol, mallory].find((each) => each.user === user && each.device === device);
  return found && { keys: found.keys, level: 'known' };
};

/** The reader's view of each reel: `{user, state, frames}`, the numbers `[n, index, i]` of the frames that count. */
async function read(world, { remembered = undefined } = {}) {
  const opened = await RecordingReader.open(manifestIn(world.manifest), { trusted, own: holder(reader), now: NOW, remembered: new Map(remembered) });
  const found = {};
  for (const [number, reel] of opened.reels) {
    const frames = [];
    for (let n = 0; n < reel.length; n += 1) {
      const file = world.files.get(number)[n];
      if (!file) reel.lack(n);
      else await reel.open(n, file).then((segment) => frames.push(...segment.frames.map(({ data }) => [...data.slice(-4)].join())), (error) => assert.ok(error instanceof Refusal, error.stack));
    }
    found[number] = { user: opened.people.get(number).user, state: reel.state, frames };
  }
  return found;
}

const ALL = 6; // frames in a segment

test('each reel opens with the keys of its own device, and in its own length', async () => {
  const found = await read(honest.copy());
  assert.deepEqual(Object.values(found).map(({ user, state, frames }) => [user, state, frames.length]), [['alice', 'complete', 3 * ALL], ['bob', 'complete', 2 * ALL], ['carol', 'complete', ALL]]);
  assert.deepEqual(found[2].frames.slice(0, 4), ['2,0,0,0', '2,0,1,0', '2,0,0,1', '2,0,1,1']);
});

/** `tell` changes what the server has; `sees` are parts of what the reader gets of reels 1 to 3. */
const LIES = [
  ['13', 'track keys of Bob that Carol has signed', async (world) => {
    world.manifest.trackKeys = world.manifest.trackKeys.filter(({ participant }) => participant !== 2);
    world.manifest.trackKeys.push(await world.export(world.stays[1], 6, { by: carol }));
  }, { 2: { state: 'no-key', count: 0 }, 1: { state: 'complete', count: 18 } }],
  ['13', 'a reel of Bob shown as Carol’s', (world) => {
    const [bobs, carols] = [world.manifest.people[1], world.manifest.people[2]];
    Object.assign(bobs, { user: carols.user, device: carols.device, fingerprint: carols.fingerprint, keys: carols.keys });
  }, { 2: { user: 'carol', state: 'no-key', count: 0 } }],
  ['13', 'a reel of a device that is not trusted here', (world) => Object.assign(world.manifest.people[1], { user: 'stranger' }), { 2: undefined, 1: { count: 18 } }],
  ['14', 'a participant hands out a key that is none', async (world) => {
    const { FrameKeys } = await load('frames/frames.js');
    const { importSecret } = await load('wire/transcript.js');
    const [, stay] = world.stays;
    const other = Object.assign(Object.create(Object.getPrototypeOf(stay)), stay, { keys: new FrameKeys() });
    other.keys.identify({ call: world.statement.call, participant: 2, fingerprint: bob.fingerprint, joinId: stay.joinId });
    for (const [epoch, { listHash }] of world.secrets) other.keys.install({ epoch, listHash, secret: await importSecret(random(32)), senders: [] });
    world.manifest.trackKeys = world.manifest.trackKeys.filter(({ participant }) => participant !== 2);
    for (const epoch of [5, 6]) world.manifest.trackKeys.push(await world.export(other, epoch));
  }, { 2: { state: 'no-key', count: 0 }, 1: { state: 'complete', count: 18 } }],
  ['21', 'track keys for another recording', async (world) => {
    world.manifest.trackKeys = [];
    world.manifest.trackKeys.push(await world.export(world.stays[1], 6, { st: random(32) }));
  }, { 2: { state: 'no-key', count: 0 } }],
  ['9', 'track keys under another list’s hash', (world) => {
    for (const keys of world.manifest.trackKeys) keys.listHash = toBase64(random(32));
  }, { 1: { state: 'no-key', count: 0 } }],
  ['15', 'frames of Alice in Bob’s reel', async (world) => {
    world.records.get(2)[1].splice(4, 1, world.records.get(1)[1][4]);
    await world.rewrite(2);
  }, { 2: { state: 'changed', count: 11 } }],
  ['33', 'a picture among the sound', async (world) => {
    const [, records] = world.records.get(1);
    const [sound, picture] = [records.findIndex(({ type, index }) => type === 'frame' && index === 0), records.findIndex(({ type, index }) => type === 'frame' && index === 1)];
    records[sound] = { ...records[picture], index: 0 };
    await world.rewrite(1);
  }, { 1: { state: 'changed', count: 17 } }],
  ['33', 'frames under the number of another epoch', async (world) => {
    for (const record of world.records.get(1)[1]) if (record.type === 'stream') record.epoch = 5;
    await world.rewrite(1);
  }, { 1: { state: 'changed', count: 12 } }],
  ['32', 'a frame twice', async (world) => {
    const [records] = world.records.get(1);
    records.push(records.at(-1));
    await world.rewrite(1);
  }, { 1: { state: 'changed', count: 18 } }],
  ['32', 'a frame of an earlier segment again', async (world) => {
    const [, second, third] = world.records.get(1);
    third.push({ ...second.at(-1) });
    await world.rewrite(1);
  }, { 1: { state: 'changed', count: 18 } }],
  ['32', 'two segments exchanged in place and number', async (world) => {
    const all = world.records.get(1);
    [all[1], all[2]] = [all[2], all[1]];
    await world.rewrite(1);
  }, { 1: { state: 'changed', count: 12 } }],
  ['31', 'one bit of a frame', async (world) => {
    const [records] = world.records.get(1);
    records.at(-1).data[20] ^= 1;
    await world.rewrite(1);
  }, { 1: { state: 'changed', count: 17 } }],
  ['31', 'one bit of a file', (world) => (world.files.get(1)[1][200] ^= 1), { 1: { state: 'changed', count: 12 } }],
  ['34', 'a frame whose time is far from its segment', async (world) => {
    const [records] = world.records.get(1);
    records.at(-2).timestamp = 48_000 * 60;
    await world.rewrite(1);
  }, { 1: { state: 'changed', count: 17 } }],
  ['39', 'a segment begins before the one before it', async (world) => {
    await world.rewrite(1, { starts: [undefined, (NOW - 60_000) * 1_000] });
  }, { 1: { state: 'changed' } }],
  ['28', 'a segment is missing', (world) => (world.files.get(1)[1] = undefined), { 1: { state: 'complete', count: 12 } }],
  ['29', 'the end is cut off', (world) => {
    world.files.get(1).pop();
    world.manifest.reels[0].segments.pop();
  }, { 1: { state: 'not-finished', count: 12 } }],
  ['40', 'records without end, of a length beyond the file', async (world) => {
    const [file] = world.files.get(3);
    file.set([2, 255, 255, 255], 96 + 17);
    world.manifest.reels[2].segments = await world.listed(3);
  }, { 3: { state: 'not-finished', count: 0 } }],
  ['40', 'a segment that claims to be sealed', async (world) => {
    world.files.get(3)[0][5] = 1;
    world.manifest.reels[2].segments = await world.listed(3);
  }, { 3: { state: 'changed', count: 0 } }],
];

for (const [row, lie, tell, sees] of LIES) {
  test(`row ${row}: ${lie}`, async () => {
    const world = honest.copy();
    await tell(world);
    const found = await read(world);
    for (const [number, wanted] of Object.entries(sees)) {
      const { frames, ...reel } = found[number] ?? {};
      const seen = wanted && Object.fromEntries(Object.keys(wanted).map((name) => [name, name === 'count' ? frames?.length : reel[name]]));
      assert.deepEqual(seen ?? found[number], wanted, `reel ${number}: ${JSON.stringify({ ...reel, frames: frames?.length })}`);
    }
  });
}

test('row 36: an older state of a reel is shown after it was played', async () => {
  const world = honest.copy();
  const segments = manifestIn(world.manifest).reels[0].segments;
  const remembered = [[1, { segments: 3, head: segments[2].hash }]];
  world.files.get(1).pop();
  world.manifest.reels[0].segments.pop();
  assert.equal((await read(world, { remembered }))[1].state, 'cut-off');
});

test('every cut of a segment, and every flipped byte of its header and records, is bounded', async () => {
  const world = honest.copy();
  const file = world.files.get(3)[0];
  const source = Uint8Array.from(file);
  for (let at = 96; at < source.length; at += 7) {
    const changed = Uint8Array.from(source);
    changed[at] ^= 0x81;
    world.files.set(3, [changed]);
    world.manifest.reels[2].segments = await world.listed(3);
    const { frames } = (await read(world))[3];
    assert.ok(frames.length <= ALL && frames.every((frame) => frame.startsWith('3,0,')), `byte ${at}`);
  }
  for (let length = 96 + 17; length < source.length; length += 11) {
    world.files.set(3, [source.slice(0, length)]);
    world.manifest.reels[2].segments = await world.listed(3);
    assert.ok((await read(world))[3].frames.length <= ALL);
  }
});

// Pages

/** `Recordings` of the reader against a server that gives `page` segments at once. */
function recordingsOf(world, { page = 1_000, reply = (_body, manifest) => manifest, asked = [] } = {}) {
  const store = { async get() {}, async put() {}, async all() { return []; } };
  const request = async (path, body) => {
    asked.push([path, body]);
    if (path !== 'recordings/get') return {};
    const from = body.from ?? 0;
    const reels = world.manifest.reels.map((reel) => ({ ...reel, from, segments: reel.segments.slice(from, from + page) }));
    return reply(body, { ...world.manifest, reels, ...(from > 0 ? { trackKeys: undefined } : {}) });
  };
  const examine = async (entries) => Promise.all(entries.map(async (entry) => ({ entry, ...(await trusted(entry)) })));
  const connection = { identity: reader, request, directory: { examine, devicesOf: examine } };
  const fetch = async (url) => {
    const [reel, n] = url.split('/').slice(-2).map(Number);
    const file = world.files.get(reel)[n];
    return { status: file ? 200 : 404, headers: new Map(), arrayBuffer: async () => file.buffer.slice(file.byteOffset, file.byteOffset + file.length) };
  };
  return new Recordings({ connection, store, base: 'https://host/recordings', token: async () => 'token', fetch, now: () => NOW });
}

const listOf = (count) => Array.from({ length: count }, (_, n) => [200, toBase64(random(32)), (NOW + n * SEGMENT_MS) * 1_000]);

test('reels of different lengths are listed page by page', async () => {
  const world = honest.copy();
  const counts = [2_500, 1_000, 3];
  counts.forEach((count, index) => (world.manifest.reels[index].segments = listOf(count)));
  const asked = [];
  const { reels } = await recordingsOf(world, { asked }).open(world.id);
  assert.deepEqual(reels.map(({ reel }) => reel.length), counts);
  assert.deepEqual(asked.map(([, body]) => body.from), [undefined, 1_000, 2_000]);
  assert.deepEqual(reels.map(({ user, name, level }) => [user, name, level]), [['alice', 'alice', 'known'], ['bob', 'bob', 'known'], ['carol', 'carol', 'known']]);
});

test('a page that leaves out segments, or has some of a reel that was shorter before, is refused', async () => {
  const world = honest.copy();
  world.manifest.reels[0].segments = listOf(1_500);
  const shifted = recordingsOf(world, { reply: (body, manifest) => (body.from ? { ...manifest, reels: [{ ...manifest.reels[0], from: body.from + 1 }] } : manifest) });
  await assert.rejects(shifted.open(world.id), Refusal);
  const grown = recordingsOf(world, { reply: (body, manifest) => (body.from ? { ...manifest, reels: [...manifest.reels.slice(0, 1), { ...manifest.reels[1], segments: listOf(1) }] } : manifest) });
  await assert.rejects(grown.open(world.id), Refusal);
});

test('a description has the signer, the recorded people and the length; one’s own part is erased by a request', async () => {
  const world = honest.copy();
  const asked = [];
  const recordings = recordingsOf(world, { asked });
  assert.deepEqual(await recordings.describe(world.id), { by: { user: 'alice', device: 'phone' }, name: 'alice', readers: ['alice', 'reader'], users: ['alice', 'bob', 'carol'], length: 8_000 });
  const { reels } = await recordings.open(world.id);
  assert.equal((await reels[2].source.segment(0)).frames.length, ALL);
  await recordings.erase(world.id);
  assert.deepEqual(asked.at(-1), ['recordings/erase', { id: world.id }]);
  world.manifest.reels = [];
  assert.deepEqual((await recordings.open(world.id)).reels, [], 'nobody agreed');
});

test('marks and gaps of one source concern that source', async () => {
  const world = honest.copy();
  const [records] = world.records.get(3);
  records.push({ type: 'gap', index: 0, why: 'network', from: 100, to: 200, missing: 2 }, { type: 'mark', index: 1, what: 'muted', at: 3_000 }, { type: 'mark', index: 255, what: 'held', at: 3_500 });
  await world.rewrite(3);
  const { reels } = await recordingsOf(world).open(world.id);
  const { gaps, offs } = await reels[2].source.segment(0);
  const at = (ms) => (NOW + ms) * 1_000;
  assert.deepEqual(gaps, [{ source: 'microphone', from: at(100), to: at(200), why: 'network' }]);
  assert.deepEqual(offs, [{ source: 'camera', time: at(3_000) }, { time: at(3_500) }]);
});

test('a segment of which nothing opens is a gap that says so', async () => {
  const world = honest.copy();
  world.manifest.trackKeys = [];
  const { reels } = await recordingsOf(world).open(world.id);
  const { frames, gaps } = await reels[0].source.segment(0);
  assert.deepEqual([frames, gaps.map(({ why }) => why)], [[], ['no-key']]);
});

// Playing several reels

class NotedOutput {
  now = 100;
  lanes = [];

  lane(index) {
    const lane = { sounds: [], pictures: [], shown: [], offs: [], blanks: [], ahead: [] };
    this.lanes[index] = Object.assign(lane, {
      get picturesAhead() {
        return lane.ahead.length;
      },
      sound: ({ time }, at) => lane.sounds.push([(time - START) / 1_000, Math.round((at - 100) * 1_000)]),
      picture: ({ time }) => lane.ahead.push(time),
      off: (time, source) => lane.offs.push([time, source]),
      show(position) {
        while (lane.ahead[0] <= position) lane.shown.push((lane.ahead.shift() - START) / 1_000);
      },
      blank: (source) => lane.blanks.push(source),
      silence() {},
      reset: () => (lane.ahead = []),
    });
    return lane;
  }

  close() {}
}

/** The same reel, `ms` later. */
function later({ source }, ms) {
  const shift = (time) => time + ms * 1_000;
  const segment = async (n) => {
    const { start, end, frames, gaps, ...rest } = await source.segment(n);
    return { ...rest, start: shift(start), end: shift(end), frames: frames.map((frame) => ({ ...frame, time: shift(frame.time) })), gaps: gaps.map((gap) => ({ ...gap, from: shift(gap.from), to: shift(gap.to) })) };
  };
  return { get length() { return source.length; }, get start() { return shift(source.start); }, get end() { return shift(source.end); }, startOf: (n) => shift(source.startOf(n)), indexAt: (time) => source.indexAt(time - ms * 1_000), segment };
}

async function playing(t, sources) {
  fakeTimers(t);
  const output = new NotedOutput();
  const player = new Player(sources, output);
  await aside(8);
  const pass = async (ms) => {
    for (let done = 0; done < ms; done += 20) {
      output.now += 0.02;
      player.tick();
      await aside(1);
    }
  };
  return { player, output, pass, at: () => Math.round((player.position - START) / 1_000) };
}

test('all reels are played by one clock, each in its own time', async (t) => {
  const { player, output, pass, at } = await playing(t, [reelOf(2).source, later(reelOf(2), 3_000)]);
  assert.equal(player.length, 11_000);
  player.play();
  await pass(5_000);
  assert.equal(at(), 5_000);
  for (const lane of output.lanes) assert.ok(lane.sounds.every(([ms, due]) => Math.abs(ms - due) < 2), 'sound is due when it was said');
  assert.deepEqual(output.lanes.map(({ sounds }) => sounds[0][0]), [0, 3_000]);
  assert.deepEqual([output.lanes[0].shown.at(-1), output.lanes[1].shown.at(-1)], [5_000, 5_000]);
  await pass(4_000);
  assert.ok(output.lanes[0].blanks.length > 0, 'who is no longer recorded is no longer seen');
  assert.equal(player.state, 'playing');
  await pass(2_200);
  assert.deepEqual([player.state, at()], ['ended', 11_000]);
});

test('a gap of one reel is told with its number, and the others play on', async (t) => {
  const { player, output, pass } = await playing(t, [reelOf(2).source, reelOf(2, { gaps: { 0: [{ from: 1_000, to: 2_000, why: 'network' }] } }).source]);
  const gaps = [];
  player.addEventListener('change', () => gaps.at(-1)?.why !== player.gap?.why && gaps.push(player.gap));
  player.play();
  await pass(3_000);
  assert.deepEqual(gaps.filter(Boolean).map(({ why, lane }) => [why, lane]), [['network', 1]]);
  assert.deepEqual(player.gaps.map(({ lane, from }) => [lane, (from - START) / 1_000]), [[1, 1_000]]);
  assert.equal(output.lanes[0].sounds.filter(([ms]) => ms >= 1_000 && ms < 2_000).length, 50);
  assert.equal(output.lanes[1].sounds.filter(([ms]) => ms >= 1_000 && ms < 2_000).length, 0);
});

test('a seek goes to the same time in all reels, also before and behind some of them', async (t) => {
  const { player, output, pass, at } = await playing(t, [reelOf(4).source, later(reelOf(1), 8_000)]);
  await player.seek(START + 9_500_000);
  await aside(5);
  for (const lane of output.lanes) assert.equal(lane.shown.at(-1), 9_500);
  await player.seek(START + 2_000_000);
  await aside(5);
  assert.deepEqual([at(), output.lanes[0].shown.at(-1)], [2_000, 2_000]);
  await player.seek(START + 14_000_000);
  player.play();
  await pass(1_000);
  assert.equal(output.lanes[1].sounds.filter(([, due]) => due > 0).length, 0, 'nothing of a reel that is over');
});

test('a reel that does not arrive makes all of them wait, so that they stay together', async (t) => {
  const slow = reelOf(3);
  const { segment } = slow.source;
  let isOnline = false;
  slow.source.segment = (n) => (n === 0 || isOnline ? segment.call(slow.source, n) : Promise.reject(new TypeError('Failed to fetch')));
  const { player, pass, at } = await playing(t, [reelOf(3).source, slow.source]);
  player.play();
  await pass(6_000);
  assert.equal(player.state, 'waiting');
  assert.ok(at() <= 4_000);
  isOnline = true;
  await pass(2_000);
  assert.equal(player.state, 'playing');
});

test('a camera that was switched off is not seen any more, whenever its last picture is decoded', () => {
  const drawn = [];
  let decoder;
  class VideoDecoder {
    state = 'configured';
    decodeQueueSize = 0;
    constructor(options) {
      decoder = Object.assign(this, options);
    }
    configure() {}
    decode() {}
    close() {}
  }
  const output = new PictureOutput({ browser: { VideoDecoder, EncodedVideoChunk: class {} }, draw: (picture) => drawn.push(picture?.timestamp), decoded() {}, failed() {} });
  output.take({ stream: { codec: 'vp8' }, isKey: true, time: 0, data: new Uint8Array(1) });
  output.off(2_000);
  decoder.output({ timestamp: 1_000, close() {} });
  output.show(1_500);
  output.show(2_500);
  decoder.output({ timestamp: 3_000, close() {} });
  output.show(3_500);
  assert.deepEqual(drawn, [1_000, undefined, 3_000]);
});
