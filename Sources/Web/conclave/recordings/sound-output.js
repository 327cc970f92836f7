// Decodes the sound of one source, and plays each packet at its time.

import { Stretch } from './stretch.js';
import { opusChannels } from './webm-writer.js';

const JOINS_S = 0.03; // pieces of sound that nearly follow each other follow each other
const LATEST_S = 0.05; // sound that is later than that is left out

/** `context` is an `AudioContext`, `gain` the node through which it is heard; `failed()` says that the decoder cannot go on. */
export class SoundOutput {
  #browser;
  #context;
  #gain;
  #failed;
  #decoder;
  #due = []; // {at, speed} of each packet that is being decoded: the n-th output belongs to the n-th input
  #sources = new Set();
  #nextAt = 0; // s
  #stretch;

  constructor({ browser, context, gain, failed }) {
    this.#browser = browser;
    this.#context = context;
    this.#gain = gain;
    this.#failed = failed;
  }

  /** A packet that is due at `at`, s of the context, at `speed`. */
  take({ data, stream: { clockRate } }, at, speed) {
    if (data.length === 0) return;
    this.#decoder ??= this.#open(opusChannels(data), clockRate);
    if (this.#decoder.state !== 'configured') return;
    this.#due.push({ at, speed });
    this.#decoder.decode(new this.#browser.EncodedAudioChunk({ type: 'key', timestamp: 0, data }));
  }

  /** Nothing more is heard of what was scheduled. */
  silence() {
    for (const source of this.#sources) source.stop();
    this.#sources.clear();
    if (this.#decoder && this.#decoder.state !== 'closed') this.#decoder.close();
    this.#decoder = undefined;
    this.#stretch = undefined;
    [this.#due, this.#nextAt] = [[], 0];
  }

  #open(numberOfChannels, sampleRate) {
    const decoder = new this.#browser.AudioDecoder({
      output: (sound) => {
        if (decoder === this.#decoder) this.#schedule(sound, this.#due.shift());
        sound.close();
      },
      error: () => decoder === this.#decoder && this.#failed(),
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
    if (pieces[0].length === 0 || start < this.#context.currentTime - LATEST_S) return;
    const buffer = this.#context.createBuffer(numberOfChannels, pieces[0].length, sampleRate);
    pieces.forEach((piece, channel) => buffer.copyToChannel(piece, channel));
    const source = this.#context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.#gain);
    source.onended = () => this.#sources.delete(source);
    source.start(Math.max(start, this.#context.currentTime));
    this.#sources.add(source);
  }
}
