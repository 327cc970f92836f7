// The player: one clock for sound and pictures, gaps as gaps, seeking, waiting and speed. Time is the test's.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DELTA, KEY, SOUND, START, reelOf } from './reels.mjs';
import { aside, fakeTimers, load } from './web.mjs';

const { FrameCursor } = await load('recordings/frame-cursor.js');
const { PlayClock } = await load('recordings/play-clock.js');
const { Player } = await load('recordings/player.js');
const { Stretch } = await load('recordings/stretch.js');
const { WebOutput, playingObstacle } = await load('recordings/web-output.js');

/** Notes what a player decodes and shows. A picture is decoded at once. */
class NotedOutput {
  now = 100;
  sounds = []; // [time in ms, due in s]
  pictures = []; // times in ms, of all that were decoded
  shown = []; // times in ms
  #ahead = [];

  get picturesAhead() {
    return this.#ahead.length;
  }

  lane() {
    return this;
  }

  off() {}

  sound({ time }, at) {
    this.sounds.push([(time - START) / 1_000, Math.round((at - 100) * 1_000) / 1_000]);
  }

  picture({ time }) {
    this.pictures.push((time - START) / 1_000);
    this.#ahead.push(time);
  }

  show(position) {
    let shown;
    while (this.#ahead[0] <= position) shown = this.#ahead.shift();
    if (shown !== undefined) this.shown.push((shown - START) / 1_000);
  }

  blank() {
    this.shown.push('blank');
  }

  silence() {
    this.sounds.push('silence');
  }

  reset() {
    this.#ahead = [];
  }

  close() {
    this.isClosed = true;
  }
}

/** A player of `reel`, and `pass(ms)`, which lets time go by in steps of 20 ms. */
async function playing(t, reel) {
  fakeTimers(t);
  const output = new NotedOutput();
  const player = new Player([reel.source], output);
  await aside(5);
  const pass = async (ms) => {
    for (let done = 0; done < ms; done += 20) {
      output.now += 0.02;
      player.tick();
      await aside(1);
    }
  };
  const at = () => Math.round((player.position - START) / 1_000);
  const states = [];
  player.addEventListener('change', () => states.at(-1) !== player.state && states.push(player.state));
  return { player, output, pass, at, states };
}

test('the clock maps the time of the sound to that of the recording, at each speed', () => {
  let now = 10;
  const clock = new PlayClock(() => now);
  clock.seek(5e6);
  now = 12;
  assert.equal(clock.position, 5e6);
  clock.run();
  now = 13;
  assert.equal(clock.position, 6e6);
  clock.speed = 2;
  now = 14;
  assert.equal(clock.position, 8e6);
  assert.equal(clock.dueAt(10e6), 15);
  clock.stop();
  now = 20;
  assert.deepEqual([clock.position, clock.isRunning], [8e6, false]);
});

test('sound and pictures are due at their times, one second ahead at the most', async (t) => {
  const { player, output, pass, at, states } = await playing(t, reelOf(3));
  assert.deepEqual([player.state, output.sounds.length], ['paused', 0]);
  assert.ok(output.shown.includes(0), 'the first picture is shown before it plays');
  player.play();
  await pass(2_000);
  assert.equal(at(), 2_000);
  assert.deepEqual(states, ['waiting', 'playing']);
  const sounds = output.sounds.filter(Array.isArray);
  assert.ok(sounds.every(([ms, due]) => Math.abs(due * 1_000 - ms) < 1), 'as long after the start as in the recording');
  assert.deepEqual([sounds[0][0], sounds.at(-1)[0]], [0, 3_000]);
  assert.deepEqual(output.shown.filter((ms) => ms !== 'blank'), Array.from({ length: 21 }, (_, n) => n * 100));
  assert.ok(output.pictures.at(-1) <= 2_900, 'eight pictures ahead');
  assert.equal(player.length, 12_000);
});

test('it ends with the recording, and begins again', async (t) => {
  const { player, output, pass, at, states } = await playing(t, reelOf(2));
  player.play();
  await pass(8_100);
  assert.deepEqual([player.state, at(), player.length], ['ended', 8_000, 8_000]);
  assert.equal(output.shown.at(-1), 7_900);
  assert.equal(output.sounds.at(-1), 'silence');
  player.play();
  await aside(5);
  await pass(500);
  assert.deepEqual([at(), states.at(-1)], [500, 'playing']);
});

test('a recording without a segment is over at once', async (t) => {
  const { player, pass, states } = await playing(t, reelOf(0));
  player.play();
  await pass(40);
  assert.deepEqual([states.at(-1), player.length, player.gap], ['ended', 0, undefined]);
});

test('a pause silences what is due, and sound goes on where it was', async (t) => {
  const { player, output, pass, at } = await playing(t, reelOf(3));
  player.play();
  await pass(1_000);
  player.pause();
  await pass(700);
  assert.deepEqual([at(), player.state], [1_000, 'paused']);
  assert.equal(output.sounds.at(-1), 'silence');
  player.play();
  await pass(20);
  const again = output.sounds.slice(output.sounds.lastIndexOf('silence') + 1);
  assert.deepEqual(again[0], [920, 1.62], 'with what Opus needs before');
});

test('seeking decodes from the key frame before, shows what is there, and goes on playing', async (t) => {
  const { player, output, pass, at } = await playing(t, reelOf(6));
  player.play();
  await pass(500);
  output.pictures.length = 0;
  output.shown.length = 0;
  output.sounds.length = 0;
  await player.seek(START + 13_650_000);
  const [[first, due]] = output.sounds.filter(Array.isArray);
  assert.deepEqual([first, Math.round((due - (output.now - 100)) * 1_000)], [13_580, -70], 'a little sound from before, which Opus needs and nobody hears');
  assert.deepEqual(output.pictures.slice(0, 8), [13_000, 13_100, 13_200, 13_300, 13_400, 13_500, 13_600, 13_700]);
  assert.deepEqual(output.shown, [13_600]);
  await pass(300);
  assert.deepEqual([at(), player.state], [13_950, 'playing']);
  player.pause();
  await player.seek(START + 1_000);
  assert.deepEqual([at(), player.state, output.shown.at(-1)], [1, 'paused', 0]);
  await player.seek(START - 1e9);
  assert.equal(at(), 0);
  await player.seek(START + 1e9);
  assert.equal(at(), 24_000);
});

test('a picture that is decoded only after the seek is shown, although the player is paused', async (t) => {
  fakeTimers(t);
  class LateOutput extends NotedOutput {
    late = [];
    isEarly = super.picture;
    picture(frame) {
      this.late.push(frame);
    }
    give() {
      for (const frame of this.late.splice(0)) this.isEarly(frame);
      this.decoded();
    }
  }
  const output = new LateOutput();
  const player = new Player([reelOf(3).source], output);
  await aside(5);
  assert.deepEqual(output.shown, []);
  output.give();
  assert.deepEqual(output.shown, [0]);
  await player.seek(START + 5_300_000);
  await aside(5);
  output.give();
  assert.deepEqual([output.shown.at(-1), player.state], [5_300, 'paused']);
  player.close();
  output.give();
  assert.equal(output.shown.length, 2);
});

test('the newest of several seeks counts, also if a former one has to wait longer', async (t) => {
  const reel = reelOf(6);
  const { segment } = reel.source;
  let release;
  const slow = new Promise((resolve) => (release = resolve));
  reel.source.segment = async (n) => (n === 1 && (await slow), segment.call(reel.source, n));
  const { player, at, output } = await playing(t, reel);
  const former = player.seek(START + 5_000_000);
  await player.seek(START + 17_050_000);
  output.pictures.length = 0;
  release();
  await former;
  await aside(10);
  assert.deepEqual([at(), output.shown.at(-1), output.pictures.filter((ms) => ms < 17_000)], [17_050, 17_000, []]);
});

test('a segment that was wanted before a seek and comes after it is not taken for another', async () => {
  const waiting = new Map();
  const source = { length: 3, startOf: (n) => n, segment: (n) => new Promise((resolve) => waiting.set(n, () => resolve({ n, frames: [{ time: n }], gaps: [] }))) };
  const cursor = new FrameCursor(source, { wants: () => true, changed() {} });
  cursor.seek(1, 0);
  const late = waiting.get(1);
  cursor.seek(2, 0);
  late();
  await aside(2);
  assert.equal(cursor.next, undefined);
  waiting.get(2)();
  await aside(2);
  assert.equal(cursor.next.time, 2);
  cursor.take();
  assert.deepEqual([cursor.next, cursor.isAtEnd, cursor.lacks(9)], [undefined, true, false]);
});

test('a gap is silence and no picture for as long as it was, and pictures go on with a key frame', async (t) => {
  const { player, output, pass, at } = await playing(t, reelOf(4, { gaps: { 0: [{ from: 1_000, to: 2_450, why: 'disk' }] } }));
  const gaps = [];
  player.addEventListener('change', () => gaps.at(-1) !== player.gap?.why && gaps.push(player.gap?.why));
  player.play();
  await pass(4_000);
  assert.equal(at(), 4_000, 'it is not closed up');
  assert.deepEqual(gaps, ['disk', undefined]);
  assert.deepEqual(player.gaps, [{ from: START + 1_000_000, to: START + 2_450_000, why: 'disk', lane: 0 }], 'for a time line');
  const blank = output.shown.indexOf('blank');
  assert.deepEqual([output.shown[blank - 1], output.shown[blank + 1]], [900, 3_000]);
  const sounds = output.sounds.filter(Array.isArray).map(([ms]) => ms);
  assert.deepEqual(sounds.filter((ms, n) => n > 0 && ms - sounds[n - 1] > 20), [2_460]);
  assert.ok(output.sounds.filter(Array.isArray).every(([ms, due]) => Math.abs(due * 1_000 - ms) < 1));
});

test('a segment that is refused or missing is a gap, and what is behind it plays', async (t) => {
  const { player, output, pass } = await playing(t, reelOf(4, { holes: [1], lost: [2] }));
  const gaps = [];
  player.addEventListener('change', () => player.gap && gaps.at(-1) !== player.gap.why && gaps.push(player.gap.why));
  player.play();
  await pass(13_000);
  assert.deepEqual(gaps, ['refused', 'missing']);
  assert.deepEqual(player.gaps.map(({ why, from, to }) => [why, (from - START) / 1e6, (to - START) / 1e6]), [['refused', 4, 8], ['missing', 8, 12]]);
  assert.ok(output.shown.includes(12_000));
});

test('without a segment that is due it waits, its clock stands, and it goes on when the network is back', async (t) => {
  const reel = reelOf(4);
  const asked = [];
  let isOnline = false;
  const { segment } = reel.source;
  reel.source.segment = (n) => (asked.push(n), isOnline || n === 0 ? segment.call(reel.source, n) : Promise.reject(new TypeError('Failed to fetch')));
  const { player, output, pass, at, states } = await playing(t, reel);
  player.play();
  await pass(5_000);
  assert.equal(player.state, 'waiting');
  const stood = at();
  assert.ok(stood >= 3_880 && stood <= 4_000, `${stood}`);
  assert.ok(asked.length < 16, `${asked.length} attempts in five seconds`);
  isOnline = true;
  await pass(2_000);
  assert.equal(player.state, 'playing');
  assert.deepEqual(states, ['waiting', 'playing', 'waiting', 'playing']);
  assert.ok(at() > stood + 800);
  const last = output.sounds.slice(output.sounds.lastIndexOf('silence') + 1);
  assert.ok(last.every(([ms, due], n) => n === 0 || Math.abs(due - last[n - 1][1] - (ms - last[n - 1][0]) / 1_000) < 0.001));
});

test('at twice the speed everything is due in half the time', async (t) => {
  const { player, output, pass, at } = await playing(t, reelOf(4));
  player.speed = 2;
  await aside(5);
  player.play();
  await pass(3_000);
  assert.deepEqual([at(), player.speed], [6_000, 2]);
  const sounds = output.sounds.filter(Array.isArray);
  assert.ok(sounds.every(([ms, due]) => Math.abs(due * 2_000 - ms) < 2));
  assert.ok(sounds.at(-1)[0] > 7_500, 'a second ahead');
});

test('a player that is closed does nothing more', async (t) => {
  const { player, output, pass } = await playing(t, reelOf(2));
  player.play();
  player.close();
  const counts = [output.sounds.length, output.pictures.length];
  output.reset();
  await pass(200);
  assert.deepEqual([output.isClosed, output.sounds.length, output.pictures.length], [true, ...counts]);
});

test('sound that is stretched is shorter and keeps its pitch', () => {
  const rate = 48_000;
  const tone = Float32Array.from({ length: rate * 2 }, (_, n) => Math.sin((2 * Math.PI * 220 * n) / rate));
  const crossings = (samples) => samples.reduce((count, sample, n) => count + (n > 0 && samples[n - 1] < 0 && sample >= 0 ? 1 : 0), 0);
  for (const speed of [1.5, 2]) {
    const stretch = new Stretch(rate, speed, 1);
    const out = [];
    for (let at = 0; at < tone.length; at += 960) out.push(...stretch.push([tone.subarray(at, at + 960)])[0]);
    assert.ok(Math.abs(out.length / rate - 2 / speed) < 0.08, `${out.length / rate} s at ${speed}`);
    assert.ok(Math.abs(crossings(out) / (out.length / rate) - 220) < 8, `${crossings(out) / (out.length / rate)} Hz at ${speed}`);
    const jump = out.reduce((most, sample, n) => (n > 0 ? Math.max(most, Math.abs(sample - out[n - 1])) : most), 0);
    assert.ok(jump < 0.1, `a click of ${jump}`);
  }
  const same = [Float32Array.of(1, 2)];
  assert.equal(new Stretch(rate, 1, 1).push(same), same);
});

/** A browser whose decoders are asked to give their outputs by the test. */
function browser() {
  const made = { videos: [], audios: [], sources: [], configs: [] };
  class Decoder {
    state = 'unconfigured';
    chunks = [];
    constructor({ output, error }) {
      Object.assign(this, { output, error });
    }
    get decodeQueueSize() {
      return this.chunks.length;
    }
    configure(config) {
      this.state = 'configured';
      made.configs.push(config);
    }
    decode(chunk) {
      this.chunks.push(chunk);
    }
    close() {
      this.state = 'closed';
    }
  }
  class VideoDecoder extends Decoder {
    constructor(options) {
      super(options);
      made.videos.push(this);
    }
    /** Decodes all that came. */
    give() {
      for (const { timestamp } of this.chunks.splice(0)) this.output({ timestamp, close: () => (made.closed = (made.closed ?? 0) + 1) });
    }
  }
  class AudioDecoder extends Decoder {
    constructor(options) {
      super(options);
      made.audios.push(this);
    }
    give(frames = 960) {
      for (const _ of this.chunks.splice(0)) this.output({ numberOfChannels: 1, numberOfFrames: frames, sampleRate: 48_000, copyTo: (plane) => plane.fill(0.5), close() {} });
    }
  }
  class AudioContext {
    currentTime = 50;
    destination = {};
    createGain = () => (made.gain = { gain: { value: 1 }, connect: (to) => (made.heard = to) });
    createBuffer = (_channels, length) => ({ length, copyToChannel() {} });
    createBufferSource() {
      const source = { connect: (to) => (source.to = to), start: (at) => (source.at = at), stop: () => (source.isStopped = true) };
      made.sources.push(source);
      return source;
    }
    resume() {}
    close() {}
  }
  const chunk = class {
    constructor(options) {
      Object.assign(this, options);
    }
  };
  return { VideoDecoder, AudioDecoder, AudioContext, EncodedVideoChunk: chunk, EncodedAudioChunk: chunk, made };
}

const picture = (ms, isKey = false) => ({ stream: { codec: 'vp8', source: 'camera' }, isKey, time: START + ms * 1_000, data: isKey ? KEY : DELTA });
const packet = { stream: { codec: 'opus', source: 'microphone', clockRate: 48_000 }, data: SOUND };

test('a browser without decoders says so', () => {
  assert.equal(playingObstacle(/** @type {any} */ ({ AudioContext: class {} })), 'no-decoder');
  assert.equal(playingObstacle(/** @type {any} */ (browser())), undefined);
});

test('the newest decoded picture that is due is drawn, once, and all others are closed', () => {
  const page = browser();
  const drawn = [];
  const output = new WebOutput({ draw: (frame) => drawn.push(frame && (frame.timestamp - START) / 1_000), browser: page });
  const lane = output.lane(0);
  let told = 0;
  output.decoded = () => (told += 1);
  for (const ms of [0, 100, 200, 300]) lane.picture(picture(ms, ms === 0));
  assert.deepEqual(page.made.videos[0].chunks.map(({ type }) => type), ['key', 'delta', 'delta', 'delta']);
  assert.equal(lane.picturesAhead, 4);
  page.made.videos[0].give();
  lane.show(START - 1);
  lane.show(START + 50_000);
  lane.show(START + 60_000);
  lane.show(START + 250_000);
  assert.deepEqual([drawn, page.made.closed, told], [[0, 200], 2, 4]);
  lane.blank();
  lane.show(START + 260_000);
  assert.deepEqual(drawn, [0, 200, undefined], 'a gap stays blank');
  lane.picture(picture(400));
  lane.reset();
  assert.equal(page.made.closed, 4);
  page.made.videos[0].give();
  assert.equal(page.made.closed, 5, 'what a closed decoder still gives is closed');
  assert.equal(page.made.videos[0].state, 'closed');
});

test('the n-th sound belongs to the n-th packet: sounds that follow each other are joined, and a jump is a jump', () => {
  const page = browser();
  const output = new WebOutput({ draw() {}, browser: page });
  const lane = output.lane(0);
  for (const at of [51, 51.021, 51.039, 53, 49]) lane.sound(packet, at, 1);
  page.made.audios[0].give();
  const starts = page.made.sources.map(({ at }) => Math.round(at * 1_000));
  assert.deepEqual(starts, [51_000, 51_020, 51_040, 53_000], 'what is too late is left out');
  assert.deepEqual(page.made.configs, [{ codec: 'opus', sampleRate: 48_000, numberOfChannels: 1 }]);
  lane.silence();
  assert.ok(page.made.sources.every(({ isStopped }) => isStopped));
  lane.sound(packet, 60, 1);
  assert.equal(page.made.audios.length, 2, 'a new decoder');
});

test('everything is heard at the volume that the person has chosen', () => {
  const page = browser();
  const output = new WebOutput({ draw() {}, browser: page });
  const lane = output.lane(0);
  assert.equal(output.volume, 1);
  output.volume = 0.25;
  lane.sound(packet, 51, 1);
  page.made.audios[0].give();
  assert.equal(page.made.sources[0].to, page.made.gain);
  assert.deepEqual([page.made.gain.gain.value, page.made.heard !== undefined], [0.25, true]);
});

test('at another speed less is to be heard', () => {
  const page = browser();
  const output = new WebOutput({ draw() {}, browser: page });
  const lane = output.lane(0);
  for (let n = 0; n < 50; n += 1) lane.sound(packet, 51 + n * 0.01, 2);
  page.made.audios[0].give();
  const first = page.made.sources[0].at;
  assert.ok(Math.abs(first - 51) < 0.05 && page.made.sources.at(-1).at < 51.5, `${first}`);
});

test('a decoder that fails is reported once it is in use, and not after it was closed', () => {
  const page = browser();
  const failures = [];
  const output = new WebOutput({ draw() {}, failed: (reason) => failures.push(reason), browser: page });
  const lane = output.lane(0);
  lane.picture(picture(0, true));
  lane.sound(packet, 51, 1);
  page.made.videos[0].error(new Error());
  page.made.audios[0].error(new Error());
  output.close();
  page.made.videos[0].error(new Error());
  assert.deepEqual(failures, ['decoder', 'decoder']);
});
