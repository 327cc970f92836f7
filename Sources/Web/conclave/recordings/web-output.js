// A player's output in a browser: WebCodecs decodes, Web Audio plays.

import { opusChannels } from './webm-writer.js';
import { Stretch } from './stretch.js';

const CODECS = { vp8: 'vp8', vp9: 'vp09.00.10.08' };
const JOINS_S = 0.03; // pieces of sound that nearly follow each other follow each other
const LATEST_S = 0.05; // sound that is later than that is left out

/** Why this browser cannot play: `no-decoder`; undefined if it can. */
export const playingObstacle = ({ VideoDecoder, AudioDecoder, AudioContext } = /** @type {any} */ (globalThis)) =>
  [VideoDecoder, AudioDecoder, AudioContext].every((type) => typeof type === 'function') ? undefined : 'no-decoder';

/** `draw(picture)` shows a `VideoFrame`, or nothing if it is undefined. `failed(reason)` is called with `decoder` when a decoder cannot go on. */
export class WebOutput {
  /** Called when there is another picture to show: set by a player. */
  decoded = () => {};
  #draw;
  #failed;
  #browser;
  #context;
  #gain;
  #videoDecoder;
  #audioDecoder;
  #pictures = []; // decoded, the first is shown or will be next
  #isDrawn = false; // the first of them
  #due = []; // {at, speed} of each packet that is being decoded: the n-th output belongs to the n-th input
  #sources = new Set();
  #nextAt = 0; // s
  #stretch;

  constructor({ draw, failed = (_reason) => {}, browser = /** @type {any} */ (globalThis) }) {
    this.#draw = draw;
    this.#failed = failed;
    this.#browser = browser;
    this.#context = new browser.AudioContext();
    this.#gain = this.#context.createGain();
    this.#gain.connect(this.#context.destination);
  }

  /** 0 to 1. */
  get volume() {
    return this.#gain.gain.value;
  }

  set volume(volume) {
    this.#gain.gain.value = volume;
  }

  /** s, of the sound. */
  get now() {
    return this.#context.currentTime;
  }

  /** How many pictures are decoded, or will be, and not shown yet. */
  get picturesAhead() {
    return this.#pictures.length + (this.#videoDecoder?.decodeQueueSize ?? 0);
  }

  /** A person has pressed a button: only then browsers let sound be heard. */
  unlock() {
    return this.#context.resume();
  }

  picture({ stream: { codec }, isKey, time, data }) {
    if (!Object.hasOwn(CODECS, codec)) return;
    this.#videoDecoder ??= this.#openVideo(CODECS[codec]);
    if (this.#videoDecoder.state !== 'configured') return;
    this.#videoDecoder.decode(new this.#browser.EncodedVideoChunk({ type: isKey ? 'key' : 'delta', timestamp: time, data }));
  }

  /** A packet that is due at `at`, s of `now`, at `speed`. */
  sound({ data, stream: { clockRate } }, at, speed) {
    if (data.length === 0) return;
    this.#audioDecoder ??= this.#openAudio(opusChannels(data), clockRate);
    if (this.#audioDecoder.state !== 'configured') return;
    this.#due.push({ at, speed });
    this.#audioDecoder.decode(new this.#browser.EncodedAudioChunk({ type: 'key', timestamp: 0, data }));
  }

  /** Draws the newest picture that is due at `position`, µs since 1970. */
  show(position) {
    while (this.#pictures.length > 1 && this.#pictures[1].timestamp <= position) {
      this.#pictures.shift().close();
      this.#isDrawn = false;
    }
    const [picture] = this.#pictures;
    if (!picture || this.#isDrawn || picture.timestamp > position) return;
    this.#draw(picture);
    this.#isDrawn = true;
  }

  blank() {
    this.#draw(undefined);
  }

  /** Nothing more is heard of what was scheduled. */
  silence() {
    for (const source of this.#sources) source.stop();
    this.#sources.clear();
    this.#close(this.#audioDecoder);
    this.#audioDecoder = undefined;
    this.#stretch = undefined;
    [this.#due, this.#nextAt] = [[], 0];
  }

  /** Forgets everything that was decoded. */
  reset() {
    this.silence();
    this.#close(this.#videoDecoder);
    this.#videoDecoder = undefined;
    for (const picture of this.#pictures) picture.close();
    [this.#pictures, this.#isDrawn] = [[], false];
  }

  close() {
    this.reset();
    this.#context.close();
  }

  #close(decoder) {
    if (decoder && decoder.state !== 'closed') decoder.close();
  }

  #openVideo(codec) {
    const decoder = new this.#browser.VideoDecoder({
      // A decoder that was closed gives nothing more, but its last outputs may be on their way.
      output: (picture) => {
        if (decoder !== this.#videoDecoder) return picture.close();
        this.#pictures.push(picture);
        return this.decoded();
      },
      error: () => decoder === this.#videoDecoder && this.#failed('decoder'),
    });
    decoder.configure({ codec, optimizeForLatency: true });
    return decoder;
  }

  #openAudio(numberOfChannels, sampleRate) {
    const decoder = new this.#browser.AudioDecoder({
      output: (sound) => {
        if (decoder === this.#audioDecoder) this.#schedule(sound, this.#due.shift());
        sound.close();
      },
      error: () => decoder === this.#audioDecoder && this.#failed('decoder'),
    });
    decoder.configure({ codec: 'opus', sampleRate, numberOfChannels });
    return decoder;
  }

  #schedule(sound, { at, speed }) {
    const { numberOfChannels, numberOfFrames, sampleRate } = sound;
    const samples = Array.from({ length: numberOfChannels }, (_, planeIndex) => {
      const plane = new Float32Array(numberOfFrames);
      sound.copyTo(plane, { planeIndex, format: 'f32-planar' });
      return plane;
    });
    // A jump: what is inside belongs to what was before.
    const isNext = Math.abs(at - this.#nextAt) < JOINS_S * (speed === 1 ? 1 : 4);
    if (!isNext) this.#stretch = undefined;
    this.#stretch ??= new Stretch(sampleRate, speed, numberOfChannels);
    const pieces = this.#stretch.push(samples);
    const start = isNext ? this.#nextAt : at;
    this.#nextAt = start + pieces[0].length / sampleRate;
    if (pieces[0].length === 0 || start < this.now - LATEST_S) return;
    const buffer = this.#context.createBuffer(numberOfChannels, pieces[0].length, sampleRate);
    pieces.forEach((piece, channel) => buffer.copyToChannel(piece, channel));
    const source = this.#context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.#gain);
    source.onended = () => this.#sources.delete(source);
    source.start(Math.max(start, this.now));
    this.#sources.add(source);
  }
}
