// Records a camera and a microphone with the browser's `MediaRecorder`, which all browsers have that encrypt frames: its WebM is taken apart into frames. It works
// without a network.

import { WebMReader } from './webm-reader.js';

const PIECE_MS = 1_000;
const KEY_FRAMES_MS = 2_000; // Chromium makes no key frames of its own accord, Firefox does as it likes
const VIDEO_BITS = 800_000;
const AUDIO_BITS = 32_000;
const WITH_PICTURE = 'video/webm; codecs="vp8,opus"';
const SOUND_ONLY = 'audio/webm; codecs=opus';
const MICROPHONE = { index: 0, n: 1, source: 'microphone', codec: 'opus', clockRate: 48_000 };
const CAMERA = { index: 1, n: 2, source: 'camera', codec: 'vp8', clockRate: 90_000 };

const typeFor = (hasPicture) => (hasPicture ? WITH_PICTURE : SOUND_ONLY);

/** Why this browser cannot record: `no-recorder`, or `no-format` if it records in none that is read here; undefined if it can. */
export function recordingObstacle(hasPicture, { MediaRecorder } = globalThis) {
  if (typeof MediaRecorder !== 'function') return 'no-recorder';
  return MediaRecorder.isTypeSupported(typeFor(hasPicture)) ? undefined : 'no-format';
}

/** The streams of a recording, with or without a picture, as `RecordingWriter.begin` takes them. */
export const streamsFor = (hasPicture) => (hasPicture ? [MICROPHONE, CAMERA] : [MICROPHONE]);

/**
 * `tracks` are a microphone's and perhaps a camera's, `writer` a `RecordingWriter` with `streamsFor` them. `now()` is in ms since 1970 and never goes back, unlike
 * the device's clock.
 *
 * Events: `ended` with `{reason}` if it has ended by itself: `device`, when a track or the browser's recorder did; `format`; or a reason of the writer's
 * `trouble`. The frames before stay.
 */
export class DeviceRecorder extends EventTarget {
  #recorder;
  #writer;
  #now;
  #reader = new WebMReader();
  #streams;
  #pieces = Promise.resolve();
  #startedAt; // ms since 1970
  #endedAt;
  #pauses = []; // {from, until, at}: ms since 1970, and µs of the recorder, whose time stands still meanwhile
  #marked = 0; // of the pauses
  #ending;

  constructor({ tracks, writer, now = () => performance.timeOrigin + performance.now(), browser = globalThis }) {
    super();
    const hasPicture = tracks.some(({ kind }) => kind === 'video');
    const options = { mimeType: typeFor(hasPicture), videoBitsPerSecond: VIDEO_BITS, audioBitsPerSecond: AUDIO_BITS, videoKeyFrameIntervalDuration: KEY_FRAMES_MS };
    this.#recorder = new browser.MediaRecorder(new browser.MediaStream(tracks), options);
    this.#streams = new Map(streamsFor(hasPicture).map((stream) => [stream.codec, stream]));
    this.#writer = writer;
    this.#now = now;
    this.#recorder.addEventListener('dataavailable', ({ data }) => this.#take(data));
    this.#recorder.addEventListener('error', () => this.#endedBy('device'));
    this.#recorder.addEventListener('stop', () => this.#endedBy('device'));
    writer.addEventListener('trouble', ({ detail }) => this.#endedBy(detail.reason));
    // One track may end while the recorder goes on with the other.
    for (const track of tracks) track.addEventListener('ended', () => this.#endedBy('device'));
  }

  start() {
    this.#startedAt = this.#now();
    this.#recorder.start(PIECE_MS);
  }

  /** How long it has recorded, in ms, without pauses. */
  get length() {
    return this.#startedAt === undefined ? 0 : this.#recordedAt(this.#endedAt ?? this.#now());
  }

  get isPaused() {
    return this.#pauses.length > 0 && this.#pauses.at(-1).until === undefined;
  }

  pause() {
    if (this.isPaused || this.#ending || this.#startedAt === undefined) return;
    const from = this.#now();
    this.#pauses.push({ from, until: undefined, at: this.#recordedAt(from) * 1_000 });
    this.#recorder.pause();
  }

  resume() {
    if (!this.isPaused || this.#ending) return;
    this.#pauses.at(-1).until = this.#now();
    this.#recorder.resume();
  }

  /** Ends the recording. Resolves when everything is in the store. */
  stop() {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end() {
    const until = (this.#endedAt = this.#now());
    if (this.#recorder.state !== 'inactive') {
      const stopped = new Promise((resolve) => this.#recorder.addEventListener('stop', resolve, { once: true }));
      this.#recorder.stop(); // the last piece comes before `stop`
      await stopped;
    }
    await this.#pieces;
    this.#markPauses(Infinity);
    await this.#writer.end(Math.round(until * 1_000));
  }

  async #endedBy(reason) {
    if (this.#ending) return;
    await this.stop();
    this.dispatchEvent(new CustomEvent('ended', { detail: { reason } }));
  }

  #take(blob) {
    const piece = blob.arrayBuffer();
    this.#pieces = this.#pieces.then(async () => this.#write(this.#reader.read(new Uint8Array(await piece)))).catch(() => void this.#endedBy('format'));
  }

  #write(frames) {
    for (const { codec, isKey, time, data } of frames) {
      const stream = this.#streams.get(codec);
      if (!stream) continue;
      this.#markPauses(time);
      const timestamp = Math.round((time * stream.clockRate) / 1_000_000);
      this.#writer.frame({ index: stream.index, isKey, timestamp, time: this.#timeOf(time), data });
    }
  }

  /** The pauses before `time` of the recorder stand in front of its frame. */
  #markPauses(time) {
    for (; this.#marked < this.#pauses.length && this.#pauses[this.#marked].at <= time; this.#marked += 1) {
      const { from, until } = this.#pauses[this.#marked];
      this.#writer.mark('paused', Math.round(from * 1_000));
      if (until !== undefined) this.#writer.mark('continued', Math.round(until * 1_000));
    }
  }

  /** µs since 1970 of a time of the recorder: the pauses that were before it are added. */
  #timeOf(time) {
    const paused = this.#pauses.filter(({ at, until }) => at <= time && until !== undefined).reduce((sum, { from, until }) => sum + until - from, 0);
    return Math.round((this.#startedAt + paused) * 1_000 + time);
  }

  /** ms that were recorded until `at`, ms since 1970. */
  #recordedAt(at) {
    const paused = this.#pauses.reduce((sum, { from, until = at }) => sum + until - from, 0);
    return at - this.#startedAt - paused;
  }
}
