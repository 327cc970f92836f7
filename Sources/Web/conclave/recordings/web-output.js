// A player's output in a browser: WebCodecs decodes, Web Audio plays. Each reel has a lane of it, with a decoder for each source.

import { PictureOutput } from './picture-output.js';
import { SoundOutput } from './sound-output.js';

/** Why this browser cannot play: `no-decoder`; undefined if it can. */
export const playingObstacle = ({ VideoDecoder, AudioDecoder, AudioContext } = /** @type {any} */ (globalThis)) =>
  [VideoDecoder, AudioDecoder, AudioContext].every((type) => typeof type === 'function') ? undefined : 'no-decoder';

/**
 * `draw(picture, {lane, source})` shows a `VideoFrame` of a source of a reel, or nothing if it is undefined. `failed(reason)` is called with `decoder` when a decoder cannot go
 * on.
 */
export class WebOutput {
  /** Called when there is another picture to show: set by a player. */
  decoded = () => {};
  #draw;
  #failed;
  #browser;
  #context;
  #gain;
  #lanes = new Map();

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

  /** A person has pressed a button: only then browsers let sound be heard. */
  unlock() {
    return this.#context.resume();
  }

  /** The part of it for one reel. */
  lane(index) {
    if (!this.#lanes.has(index)) {
      const [browser, context, gain] = [this.#browser, this.#context, this.#gain];
      const failed = () => this.#failed('decoder');
      const pictures = (source) => new PictureOutput({ browser, failed, decoded: () => this.decoded(), draw: (picture) => this.#draw(picture, { lane: index, source }) });
      this.#lanes.set(index, new LaneOutput({ pictures, sounds: () => new SoundOutput({ browser, context, gain, failed }) }));
    }
    return this.#lanes.get(index);
  }

  close() {
    for (const lane of this.#lanes.values()) lane.reset();
    this.#context.close();
  }
}

class LaneOutput {
  #make;
  #pictures = new Map(); // by source
  #sounds = new Map();

  /** `pictures(source)` and `sounds(source)` make what decodes a source. */
  constructor(make) {
    this.#make = make;
  }

  /** How many pictures of one source are decoded, or will be, and not shown yet. */
  get picturesAhead() {
    return Math.max(0, ...[...this.#pictures.values()].map(({ ahead }) => ahead));
  }

  picture(frame) {
    this.#of(this.#pictures, 'pictures', frame.stream.source).take(frame);
  }

  sound(frame, at, speed) {
    this.#of(this.#sounds, 'sounds', frame.stream.source).take(frame, at, speed);
  }

  /** From `time` on nothing is to be seen of `source`, or of all of them. */
  off(time, source = undefined) {
    for (const pictures of this.#ofSource(source)) pictures.off(time);
  }

  show(position) {
    for (const pictures of this.#pictures.values()) pictures.show(position);
  }

  blank(source = undefined) {
    for (const pictures of this.#ofSource(source)) pictures.blank();
  }

  silence() {
    for (const sounds of this.#sounds.values()) sounds.silence();
  }

  reset() {
    for (const pictures of this.#pictures.values()) pictures.reset();
    this.silence();
  }

  #ofSource(source) {
    return source === undefined ? [...this.#pictures.values()] : [this.#of(this.#pictures, 'pictures', source)];
  }

  #of(map, what, source) {
    if (!map.has(source)) map.set(source, this.#make[what](source));
    return map.get(source);
  }
}
