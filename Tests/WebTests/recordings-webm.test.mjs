// WebM: what a browser's recorder writes is taken apart, however it is cut, and what is exported is read by the same rules.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { made } from '../RecordingToolTests/golden.mjs';
import { DELTA, KEY, SOUND, START, hexed, reelOf } from './reels.mjs';
import { load } from './web.mjs';

const { concat } = await load('wire/bytes.js');
const { DeviceRecorder, recordingObstacle, streamsFor } = await load('recordings/device-recorder.js');
const { PictureGate } = await load('recordings/picture-gate.js');
const { ReelSource } = await load('recordings/reel-source.js');
const { exportWebM } = await load('recordings/export.js');
const { Refusal } = await load('wire/checks.js');
const { WebMError, WebMReader } = await load('recordings/webm-reader.js');
const { WebMWriter, opusChannels, vp8Size } = await load('recordings/webm-writer.js');

/** An element with a size of 4 bytes, as Chromium writes them. */
const sized = (id, body) => concat(hexed(id), Uint8Array.of(0x10 | (body.length >> 24), body.length >> 16, body.length >> 8, body.length), body);
const open = (id) => concat(hexed(id), hexed('01 ff ff ff ff ff ff ff'));
const text = (value) => new TextEncoder().encode(value);
const track = (number, codec) => sized('ae', concat(sized('d7', Uint8Array.of(number)), sized('73c5', Uint8Array.of(9)), sized('86', text(codec)), sized('63a2', text('OpusHead'))));
const HEAD = concat(
  sized('1a45dfa3', sized('4282', text('webm'))),
  open('18538067'),
  sized('1549a966', concat(sized('2ad7b1', hexed('0f4240')), sized('4d80', text('Chrome')))),
  sized('1654ae6b', concat(track(1, 'A_OPUS'), track(2, 'V_VP8'))),
);
const cluster = (ms) => concat(open('1f43b675'), sized('e7', Uint8Array.of(ms >> 8, ms)));
const block = (number, ms, flags, data) => concat(Uint8Array.of(0x80 | number, (ms >> 8) & 255, ms & 255, flags), data);
const simple = (...parts) => sized('a3', block(...parts));

const RECORDED = concat(
  HEAD, cluster(0), simple(1, 0, 0x80, SOUND), simple(2, 3, 0x80, KEY), simple(1, 60, 0x80, SOUND),
  cluster(1_000), simple(2, -7, 0, DELTA), sized('a0', concat(sized('a1', block(2, 40, 0, DELTA)), sized('9b', Uint8Array.of(40)), sized('fb', Uint8Array.of(1)))), simple(1, 60, 0x80, SOUND),
);
const FRAMES = [
  ['opus', true, 0], ['vp8', true, 3_000], ['opus', true, 60_000], ['vp8', false, 993_000], ['vp8', false, 1_040_000], ['opus', true, 1_060_000],
];
const told = (frames) => frames.map(({ codec, isKey, time }) => [codec, isKey, time]);

test('a recorder’s frames are read whole, wherever its pieces are cut', () => {
  const whole = new WebMReader().read(RECORDED);
  assert.deepEqual(told(whole), FRAMES);
  assert.deepEqual(whole[1].data, KEY);
  for (const size of [1, 2, 7, 64]) {
    const reader = new WebMReader();
    const frames = [];
    for (let at = 0; at < RECORDED.length; at += size) frames.push(...reader.read(RECORDED.subarray(at, at + size)));
    assert.deepEqual(told(frames), FRAMES, `pieces of ${size}`);
  }
});

test('another scale of time is obeyed', () => {
  const head = Uint8Array.from(HEAD);
  const at = Buffer.from(head).indexOf(Buffer.from('0f4240', 'hex'));
  head.set(hexed('07a120'), at); // 500,000 ns
  assert.deepEqual(told(new WebMReader().read(concat(head, cluster(1_000), simple(1, 10, 0x80, SOUND)))), [['opus', true, 505_000]]);
});

test('anything unexpected is an error, and nothing is buffered without end', () => {
  const reads = (...parts) => new WebMReader().read(concat(...parts));
  assert.throws(() => reads(HEAD, cluster(0), simple(1, 0, 0x82, SOUND)), WebMError, 'lacing');
  assert.throws(() => reads(HEAD, cluster(0), simple(3, 0, 0x80, SOUND)), WebMError, 'a track that was not announced');
  assert.throws(() => reads(HEAD, cluster(0), sized('a3', Uint8Array.of(0x81, 0))), WebMError, 'a block that is cut short');
  assert.throws(() => reads(HEAD, cluster(0), hexed('a3 01 00 00 00 01 00 00 00')), WebMError, 'an element of 16 MiB');
  assert.throws(() => reads(HEAD, open('a3')), WebMError, 'a block without a size');
  assert.throws(() => reads(hexed('00 00')), WebMError, 'no number begins with 0');
  assert.throws(() => reads(sized('1654ae6b', track(1, 'V_VP9')), cluster(0), simple(1, 0, 0x80, KEY)), WebMError, 'another codec');
});

test('random changes of a recorder’s bytes are errors or frames, and never anything else', () => {
  let state = Number(process.env.CONCLAVE_SEED ?? 3);
  const random = (most) => ((state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) >>> 8) % most;
  for (let round = 0; round < 2_000; round += 1) {
    const bytes = Uint8Array.from(RECORDED);
    for (let flips = 1 + random(4); flips > 0; flips -= 1) bytes[random(bytes.length)] = random(256);
    try {
      for (const { data, time } of new WebMReader().read(bytes)) assert.ok(data.length < bytes.length && Number.isFinite(time));
    } catch (error) {
      assert.ok(error instanceof WebMError, `seed ${state}: ${error.stack}`);
    }
  }
});

test('sizes of pictures and channels of sound are in the frames', () => {
  assert.deepEqual(vp8Size(KEY), { width: 640, height: 360 });
  assert.equal(vp8Size(DELTA), undefined);
  assert.deepEqual([opusChannels(SOUND), opusChannels(Uint8Array.of(0x7c))], [1, 2]);
});

/** The elements in `bytes`, as a tree: `[id, size, start of the body, children or body]`. */
function tree(bytes, base = 0) {
  const masters = ['18538067', '114d9b74', '4dbb', '1549a966', '1654ae6b', 'ae', 'e0', 'e1', '1f43b675', '1c53bb6b', 'bb', 'b7', '1a45dfa3'];
  const elements = [];
  for (let at = 0; at < bytes.length; ) {
    const idLength = Math.clz32(bytes[at]) - 23;
    const id = Buffer.from(bytes.subarray(at, at + idLength)).toString('hex');
    assert.equal(bytes[at + idLength], 1, 'sizes have 8 bytes');
    const size = Number(new DataView(bytes.buffer, bytes.byteOffset + at + idLength, 8).getBigUint64(0) & 0xff_ffff_ffff_ffffn);
    const body = at + idLength + 8;
    const inside = bytes.subarray(body, body + size);
    assert.equal(inside.length, size, id);
    elements.push({ id, at: base + at, body: base + body, value: masters.includes(id) ? tree(inside, base + body) : inside });
    at = body + size;
  }
  return elements;
}
const numberOf = (bytes) => bytes.reduce((sum, byte) => sum * 256 + byte, 0);
const find = (elements, ...ids) => ids.reduce((list, id) => list.filter((each) => each.id === id).flatMap(({ value }) => value), elements);

const TRACKS = [{ number: 1, codec: 'opus', channels: 1, clockRate: 48_000 }, { number: 2, codec: 'vp8', width: 640, height: 360 }];

/** An export of 12 s of sound and pictures with a gap of 3 s, as one file. */
function exported(tracks = TRACKS) {
  const writer = new WebMWriter(tracks, START);
  const parts = [writer.head];
  for (let ms = 0; ms < 12_000; ms += 20) {
    if (ms >= 4_000 && ms < 7_000) continue;
    parts.push(writer.add({ number: 1, isKey: true, time: START + ms * 1_000, data: SOUND }));
    if (tracks.length > 1 && ms % 100 === 0) parts.push(writer.add({ number: 2, isKey: ms % 2_000 === 0 || ms === 7_000, time: START + ms * 1_000 - 5_000, data: ms % 2_000 === 0 ? KEY : DELTA }));
  }
  const { tail, head } = writer.finish(START + 12_000_000);
  assert.equal(head.length, parts[0].length);
  return concat(head, ...parts.slice(1), tail);
}

test('an export has its duration, its tracks, and every frame at its time: a gap stays a gap', () => {
  const file = exported();
  const elements = tree(file);
  assert.deepEqual(elements.map(({ id }) => id), ['1a45dfa3', '18538067']);
  const info = find(elements, '18538067', '1549a966');
  const [duration] = find(info, '4489');
  assert.equal(new DataView(duration.buffer, duration.byteOffset).getFloat64(0), 12_000);
  const frames = new WebMReader().read(file);
  assert.equal(frames.filter(({ codec }) => codec === 'opus').length, 450);
  assert.equal(frames.filter(({ codec }) => codec === 'vp8').length, 90);
  const sound = frames.filter(({ codec }) => codec === 'opus').map(({ time }) => time / 1_000);
  assert.deepEqual(sound.filter((ms, n) => n > 0 && ms - sound[n - 1] > 20), [7_000]);
  assert.ok(frames.every(({ time }, n) => n === 0 || time >= frames[n - 1].time));
  const video = frames.filter(({ codec }) => codec === 'vp8').map(({ time }) => time / 1_000);
  assert.deepEqual(video.slice(0, 3), [0, 95, 195]);
});

test('an export has true positions of its parts, and of the cluster of each cue', () => {
  const file = exported();
  const [, segment] = tree(file);
  const at = (position) => segment.value.find((each) => each.at === segment.body + position)?.id;
  const seeks = segment.value.find(({ id }) => id === '114d9b74').value.map(({ value }) => value.map(({ value: inner }) => inner));
  assert.deepEqual(seeks.map(([id, position]) => [Buffer.from(id).toString('hex'), at(numberOf(position))]), [['1549a966', '1549a966'], ['1654ae6b', '1654ae6b'], ['1c53bb6b', '1c53bb6b']]);
  const cues = segment.value.find(({ id }) => id === '1c53bb6b').value;
  const clusters = segment.value.filter(({ id }) => id === '1f43b675');
  assert.deepEqual(clusters.map(({ value }) => numberOf(value[0].value)), [0, 6_995]);
  assert.equal(cues.length, clusters.length);
  for (const [n, { value }] of cues.entries()) {
    const [time, { value: positions }] = value;
    assert.deepEqual([numberOf(positions[0].value), segment.body + numberOf(positions[1].value)], [2, clusters[n].at]);
    assert.ok(numberOf(time.value) >= numberOf(clusters[n].value[0].value));
  }
});

test('sound alone is exported with cues of the sound', () => {
  const [, segment] = tree(exported([TRACKS[0]]));
  const cues = segment.value.find(({ id }) => id === '1c53bb6b').value;
  assert.ok(cues.length >= 2);
  assert.ok(cues.every(({ value }) => numberOf(value[1].value[0].value) === 1));
});

/** A browser whose recorder writes the pieces that a test gives it. */
function browser({ types = ['video/webm; codecs="vp8,opus"', 'audio/webm; codecs=opus'] } = {}) {
  const recorders = [];
  class MediaRecorder extends EventTarget {
    static isTypeSupported = (type) => types.includes(type);
    state = 'inactive';
    log = [];

    constructor(stream, options) {
      super();
      Object.assign(this, { stream, options });
      recorders.push(this);
    }

    start(ms) {
      this.state = 'recording';
      this.log.push(`start ${ms}`);
    }

    pause() {
      this.log.push('pause');
    }

    resume() {
      this.log.push('resume');
    }

    stop() {
      this.state = 'inactive';
      this.log.push('stop');
      setImmediate(() => {
        if (this.last) this.piece(this.last);
        this.dispatchEvent(new Event('stop'));
      });
    }

    piece(bytes) {
      this.dispatchEvent(Object.assign(new Event('dataavailable'), { data: { arrayBuffer: async () => Uint8Array.from(bytes).buffer } }));
    }
  }
  class MediaStream {
    constructor(tracks) {
      this.tracks = tracks;
    }
  }
  return { MediaRecorder, MediaStream, recorders };
}

class NotedWriter extends EventTarget {
  log = [];
  frame({ index, isKey, timestamp, time }) {
    this.log.push(['frame', index, isKey, timestamp, time / 1_000 - 1_000_000]);
  }
  mark(what, time) {
    this.log.push([what, time / 1_000 - 1_000_000]);
  }
  async end(time) {
    this.log.push(['end', time / 1_000 - 1_000_000]);
  }
}

function recording({ kinds = ['audio', 'video'] } = {}) {
  const page = browser();
  const tracks = kinds.map((kind) => Object.assign(new EventTarget(), { kind }));
  const writer = new NotedWriter();
  const time = { now: 1_000_000 };
  const recorder = new DeviceRecorder({ tracks, writer, now: () => time.now, browser: page });
  const ended = [];
  recorder.addEventListener('ended', ({ detail }) => ended.push(detail.reason));
  recorder.start();
  return { recorder, writer, time, tracks, ended, browser: page.recorders[0] };
}

test('a browser says why it cannot record', () => {
  assert.equal(recordingObstacle(true, /** @type {any} */ ({})), 'no-recorder');
  assert.equal(recordingObstacle(true, /** @type {any} */ (browser())), undefined);
  const soundOnly = /** @type {any} */ (browser({ types: ['audio/webm; codecs=opus'] }));
  assert.deepEqual([recordingObstacle(true, soundOnly), recordingObstacle(false, soundOnly)], ['no-format', undefined]);
});

test('pieces of the recorder become frames with the device’s times, and the last piece comes before the end', async () => {
  const { recorder, writer, time, browser: media } = recording();
  assert.equal(media.options.videoKeyFrameIntervalDuration, 2_000);
  assert.deepEqual(streamsFor(true).map(({ source }) => source), ['microphone', 'camera']);
  media.piece(RECORDED.subarray(0, 300));
  media.last = RECORDED.subarray(300);
  time.now += 1_100;
  assert.equal(recorder.length, 1_100);
  await recorder.stop();
  await recorder.stop();
  time.now += 5_000;
  assert.equal(recorder.length, 1_100, 'it ends with the recording');
  assert.deepEqual(media.log, ['start 1000', 'stop']);
  assert.deepEqual(writer.log, [
    ['frame', 0, true, 0, 0], ['frame', 1, true, 270, 3], ['frame', 0, true, 2_880, 60], ['frame', 1, false, 89_370, 993], ['frame', 1, false, 93_600, 1_040], ['frame', 0, true, 50_880, 1_060], ['end', 1_100],
  ]);
});

test('a pause stands between the frames before and behind it, which come later by its length', async () => {
  const { recorder, writer, time, browser: media } = recording();
  time.now += 500;
  recorder.pause();
  recorder.pause();
  assert.equal(recorder.isPaused, true);
  time.now += 3_000;
  assert.equal(recorder.length, 500);
  recorder.resume();
  time.now += 600;
  media.last = RECORDED;
  await recorder.stop();
  assert.deepEqual(media.log, ['start 1000', 'pause', 'resume', 'stop']);
  assert.deepEqual(writer.log.slice(3), [['paused', 500], ['continued', 3_500], ['frame', 1, false, 89_370, 3_993], ['frame', 1, false, 93_600, 4_040], ['frame', 0, true, 50_880, 4_060], ['end', 4_100]]);
});

test('a recording that is stopped while it is paused ends with the pause', async () => {
  const { recorder, writer, time } = recording();
  time.now += 500;
  recorder.pause();
  time.now += 100;
  await recorder.stop();
  recorder.resume();
  assert.deepEqual(writer.log, [['paused', 500], ['end', 600]]);
});

test('a recorder that ends by itself, writes something else, or has no room ends the recording once, and says why', async () => {
  const endings = [
    [({ browser: media }) => media.dispatchEvent(new Event('error')), 'device'], [({ browser: media }) => media.stop(), 'device'], [({ tracks }) => tracks[1].dispatchEvent(new Event('ended')), 'device'],
    [({ browser: media }) => media.piece(hexed('00 00 00')), 'format'], [({ writer }) => writer.dispatchEvent(new CustomEvent('trouble', { detail: { reason: 'no-room' } })), 'no-room'],
  ];
  for (const [end, reason] of endings) {
    const made = recording();
    end(made);
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(made.ended, [reason]);
    assert.deepEqual(made.writer.log.filter(([what]) => what === 'end').length, 1);
  }
});

test('sound alone is recorded as sound', () => {
  const { browser: media } = recording({ kinds: ['audio'] });
  assert.equal(media.options.mimeType, 'audio/webm; codecs=opus');
});

test('a source opens segments when they are wanted, keeps eight, and has holes as gaps', async () => {
  const { source, fetched, lacked } = reelOf(12, { holes: [2], lost: [3], gaps: { 1: [{ from: 500, to: 1_500, why: 'disk' }] } });
  assert.deepEqual([source.start, source.end, source.length], [START, START + 44_000_000, 12]);
  assert.deepEqual([-5, 0, 3.9, 4, 43, 44, 99].map((seconds) => source.indexAt(START + seconds * 1e6)), [0, 0, 0, 1, 10, 11, 11]);
  const first = await source.segment(1);
  assert.ok(first.frames.every(({ time }, n) => n === 0 || time >= first.frames[n - 1].time), 'in the order of time');
  assert.deepEqual(first.gaps, [{ from: START + 4_500_000, to: START + 5_500_000, why: 'disk' }]);
  assert.deepEqual([(await source.segment(2)).gaps, (await source.segment(3)).gaps], [[{ from: START + 8e6, to: START + 12e6, why: 'refused' }], [{ from: START + 12e6, to: START + 16e6, why: 'missing' }]]);
  assert.deepEqual(lacked, [3]);
  for (let n = 4; n < 10; n += 1) await source.segment(n);
  await source.segment(2);
  await source.segment(1);
  assert.deepEqual(fetched, [1, 2, 3, 4, 5, 6, 7, 8, 9, 1], 'the one that was not used for longest was forgotten');
  await source.segment(11);
  assert.equal(source.end, START + 48_000_000);
});

test('a segment that cannot be fetched now is fetched again, and only a refusal is a hole', async () => {
  let isOnline = false;
  const reel = { length: 1, segments: [{ start: START }], lack() {}, open: async () => ({ start: START, frames: [], records: [], end: undefined }) };
  const source = new ReelSource(reel, async () => {
    if (!isOnline) throw new TypeError('Failed to fetch');
    return new Uint8Array(1);
  });
  await assert.rejects(source.segment(0), TypeError);
  isOnline = true;
  assert.deepEqual((await source.segment(0)).frames, []);
  const broken = new ReelSource({ ...reel, open: async () => Promise.reject(new RangeError('a bug')) }, async () => new Uint8Array(1));
  await assert.rejects(broken.segment(0), RangeError);
});

test('a picture behind a gap waits for a key frame, also if the gap was a whole segment', () => {
  const gate = new PictureGate();
  const takes = (...pictures) => pictures.map(([time, isKey]) => gate.takes({ time, isKey }));
  assert.deepEqual(takes([0, false], [1, true], [2, false]), [false, true, true]);
  gate.note([{ from: 3, to: 5 }, { from: 20, to: 30 }]);
  assert.deepEqual(takes([3, false], [5, false], [6, true], [7, false], [20, false], [31, false], [32, true]), [true, false, true, true, true, false, true]);
});

test('a recording is exported from the first frame to its end, without pictures that cannot be decoded', async () => {
  const { source } = reelOf(6, { holes: [3], gaps: { 1: [{ from: 500, to: 1_450, why: 'disk' }] } });
  const file = [];
  const shares = [];
  await exportWebM(source, (bytes, position) => Promise.resolve(bytes.forEach((byte, n) => (file[position + n] = byte))), (share) => shares.push(Math.round(share * 6)));
  const bytes = Uint8Array.from(file);
  const frames = new WebMReader().read(bytes);
  const times = (codec) => frames.filter((frame) => frame.codec === codec).map(({ time }) => time / 1_000);
  assert.deepEqual(shares, [1, 2, 3, 4, 5, 6]);
  const pictures = times('vp8');
  const jumps = pictures.filter((ms, n) => n > 0 && ms - pictures[n - 1] > 100);
  assert.deepEqual(jumps, [6_000, 16_000], 'from the next key frame on');
  const sound = times('opus');
  assert.deepEqual(sound.filter((ms, n) => n > 0 && ms - sound[n - 1] > 20), [5_460, 16_000]);
  const [duration] = find(tree(bytes), '18538067', '1549a966', '4489');
  assert.equal(new DataView(duration.buffer, duration.byteOffset).getFloat64(0), 24_000);
});

test('a codec that is not exported is left out, and a recording of nothing else is refused', async () => {
  const file = [];
  const write = (bytes, position) => Promise.resolve(bytes.forEach((byte, n) => (file[position + n] = byte)));
  await exportWebM(reelOf(2, { codec: 'av1' }).source, write);
  assert.deepEqual(new Set(new WebMReader().read(Uint8Array.from(file)).map(({ codec }) => codec)), new Set(['opus']));
  await assert.rejects(exportWebM(reelOf(1, { holes: [0] }).source, write), Refusal);
});

test('the program conclave-recording is tested against the file that is made here', () => {
  assert.deepEqual(Buffer.from(made()), readFileSync(new URL('../RecordingToolTests/Golden/export.webm', import.meta.url)));
  const frames = new WebMReader().read(Uint8Array.from(made()));
  assert.equal(frames.length, 90);
});
