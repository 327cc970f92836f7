// A recording of one's own, from the press to the last segment at the server. It knows no page.

import { ENDS, Undeliverable, deliver, problemOf } from './delivery.js';

const TICK_MS = 200;
const DEVICES = ['microphone', 'camera'];

/**
 * `recordings` is the library's `Recordings`, `capture` opens `microphone` and `camera`, `library` has `recordingObstacle`, `streamsFor` and `DeviceRecorder`; `place` is a
 * `Place`.
 *
 * Events: `change`; `over`, with `{isComplete}`: there is nothing more to do, or it goes on without the person.
 */
export class OwnRecording extends EventTarget {
  /** `preparing` (the devices are opened), `recording`, `stopping`, `uploading` (what has not left yet), `failed`, or `over`. */
  state = 'preparing';
  /** The problem, as `wordsForProblem` takes it; `source` is the device that did not open. @type {any} */
  problem;
  hasPicture = true;
  /** Whether the camera was wanted and did not open. */
  lacksCamera = false;
  /** The open tracks by their source. @type {Record<string, any>} */
  tracks = {};
  place;
  #recordings;
  #capture;
  #library;
  #made; // {writer, upload, telling}
  #recorder;
  #timer;
  #before = 0; // ms that were recorded on earlier visits
  #sealed = 0; // ms
  #begunAt; // µs
  #ending = new AbortController();
  #isResumed = false;

  constructor({ recordings, capture, library, place }) {
    super();
    [this.#recordings, this.#capture, this.#library, this.place] = [recordings, capture, library, place];
    place.addEventListener('change', () => this.#changed());
  }

  get id() {
    return this.#made?.writer.row.id;
  }

  /** Whether the camera or the microphone is open, or about to be. */
  get isRecording() {
    return ['preparing', 'recording', 'stopping'].includes(this.state);
  }

  /** ms */
  get length() {
    return this.#before + (this.#recorder?.length ?? 0);
  }

  /** How many ms of it the server has, and how many wait on this device. */
  get progress() {
    const { sealed = 0, stored = 0 } = this.#made?.upload.progress ?? {};
    const left = sealed > 0 ? ((this.#before + this.#sealed) * stored) / sealed : 0;
    return { left, waits: Math.max(0, this.length - left), isAll: stored > 0 && stored === sealed && !this.isRecording };
  }

  /** The state of the upload: `waiting` without a network. */
  get upload() {
    return this.#made?.upload.state;
  }

  /** The contacts and their states, see `Contacts.all`. */
  get contacts() {
    return this.#made?.telling.contacts.all ?? [];
  }

  /** Whether they are alerted. */
  get alerts() {
    return this.#made?.telling.contacts.alerts ?? false;
  }

  /** ms, see `Telling`. */
  get clockAhead() {
    return this.#made?.telling.clockAhead ?? 0;
  }

  /** Whether the camera faces the person, who then sees it as in a mirror. */
  get isMirrored() {
    return this.#capture.choice.facing === 'user';
  }

  /** Opens the devices, and records for `users`, who are told at once. */
  async start({ users, hasPicture, alerts, keepsCopy, tellsPlace }) {
    const make = () => this.#recordings.beginLive({ readers: users, hasPicture: this.hasPicture, streams: this.#library.streamsFor(this.hasPicture), alerts, keepsCopy });
    await this.#record({ hasPicture, tellsPlace }, make);
  }

  /** Records on what a closed tab has left, `{id, hasPicture, length}`: with the devices that it had. */
  async resume({ id, hasPicture, length }, { tellsPlace }) {
    [this.#before, this.#isResumed] = [length, true];
    await this.#record({ hasPicture, tellsPlace }, () => this.#recordings.resume(id));
  }

  async #record({ hasPicture, tellsPlace }, make) {
    this.hasPicture = hasPicture;
    if (this.#library.recordingObstacle(hasPicture)) return this.#fail({ code: 'unsupported' });
    let opening;
    try {
      for (opening of hasPicture ? DEVICES : DEVICES.slice(0, 1)) await this.#open(opening);
      opening = undefined;
      if (this.state !== 'preparing') return undefined;
      const made = await make();
      if (this.state !== 'preparing') return this.#discard(made);
      this.#follow(made);
      if (tellsPlace) this.place.start((content) => made.telling.note(content).catch(() => {})); // a store that fails ends the recording
      this.#begin();
    } catch (error) {
      if (this.state === 'preparing') this.#fail({ error, source: opening });
    }
    return undefined;
  }

  /** Without a camera there is still sound, and a person in need has no time for settings. */
  async #open(source) {
    try {
      const track = await this.#capture.open(source);
      if (this.state !== 'preparing') return track.stop();
      this.tracks[source] = track;
      this.#changed();
    } catch (error) {
      if (source !== 'camera') throw error;
      [this.hasPicture, this.lacksCamera] = [false, true];
    }
    return undefined;
  }

  #follow(made) {
    this.#made = made;
    const { writer, upload, telling } = made;
    for (const each of [upload, telling]) each.addEventListener('change', () => this.#changed());
    writer.addEventListener('sealed', ({ detail: { end } }) => (this.#sealed = (end - this.#begunAt) / 1_000));
  }

  #begin() {
    const recorder = new this.#library.DeviceRecorder({ tracks: Object.values(this.tracks), writer: this.#made.writer });
    recorder.addEventListener('ended', ({ detail }) => this.#ended({ code: detail.reason }));
    recorder.start();
    this.#begunAt = (performance.timeOrigin + performance.now()) * 1_000;
    this.#recorder = recorder;
    this.#timer = setInterval(() => this.#changed(), TICK_MS);
    this.#set('recording');
  }

  async stop() {
    if (this.state !== 'recording') return;
    this.#set('stopping');
    await this.#recorder.stop();
    this.#ended(undefined);
  }

  /** It was stopped, or has ended by itself for a `problem`: what was recorded before leaves all the same. */
  #ended(problem) {
    if (this.state !== 'recording' && this.state !== 'stopping') return;
    this.#release();
    this.problem = problem;
    this.#set('uploading');
    this.#finish();
  }

  async #finish() {
    const { signal } = this.#ending;
    try {
      await this.#told(signal);
      await deliver(this.#recordings, this.id, { send: () => this.#recordings.finish(this.id), told: () => this.#changed(), signal });
      this.#over({ isComplete: true });
    } catch (error) {
      if (signal.aborted) return;
      this.problem = error instanceof Undeliverable ? error.problem : { error };
      this.#changed();
    }
  }

  /** Resolves once the server has said of each contact whether it was told: later it tells nobody of a recording that is over. */
  #told(signal) {
    const { telling, upload } = this.#made;
    return new Promise((resolve, reject) => {
      const look = () => {
        if (telling.contacts.isAnswered) resolve(undefined);
        else if (ENDS.includes(upload.state)) reject(new Undeliverable(upload));
      };
      for (const each of [telling, upload]) each.addEventListener('change', look, { signal });
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      look();
    });
  }

  /** The person goes on to something else. It is uploaded as long as the page is open, and on the next visit. */
  async leave() {
    if (this.state === 'preparing' || this.state === 'failed') return this.#discard(this.#made);
    if (this.state === 'recording') await this.stop();
    if (this.state === 'uploading') this.#over({ isComplete: false });
    return undefined;
  }

  /** Nothing was recorded on this visit. */
  async #discard(made) {
    this.#release();
    this.#over({ isComplete: false });
    if (made && !this.#isResumed) await this.#recordings.delete([made.writer.row.id]).catch(() => {}); // without a network it stays in the list
  }

  #fail(problem) {
    this.#release();
    this.problem = problem;
    this.#set('failed');
  }

  /** Nothing more is captured. */
  #release() {
    clearInterval(this.#timer);
    this.place.stop();
    for (const track of Object.values(this.tracks)) track.stop();
    this.tracks = {};
  }

  #over(detail) {
    if (this.state === 'over') return;
    this.#ending.abort();
    this.#set('over');
    this.dispatchEvent(new CustomEvent('over', { detail }));
  }

  #set(state) {
    this.state = state;
    this.#changed();
  }

  #changed() {
    this.dispatchEvent(new Event('change'));
  }
}

/** The upload of a recording that a closed tab has left is over for good, and why; undefined if it goes on. */
export const endOf = (upload) => (ENDS.includes(upload.state) ? problemOf(upload) : undefined);
