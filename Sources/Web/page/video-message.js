// A video message from the camera to the callee, step by step. It knows no page.

import { Countdown } from './countdown.js';
import { ENDS, Undeliverable, deliver, problemOf } from './delivery.js';

const COUNTDOWN_MS = 5_000;
const TICK_MS = 100;
const LONGEST_S = 180; // unless the server says another number
const EARLY_MS = 2_000; // in the background a timer fires once a second, and the server takes no segment that begins too late

/**
 * `recordings` is the library's `Recordings`, `capture` opens `microphone` and `camera`, `library` has `recordingObstacle`, `streamsFor` and `DeviceRecorder`.
 * `now()` is in ms and never goes back.
 *
 * Events: `change`; `over` when there is nothing more to do: with `{devices, onlyOwn}` if it was sent or kept, with `{problem}` if that failed after the person
 * had gone on to something else, and else with `{}`.
 */
export class VideoMessage extends EventTarget {
  /**
   * `preparing` (the devices are opened), `counting`, `recording`, `stopping`, `recorded`, `sending`, `failed`, or `over`.
   */
  state = 'preparing';
  /** The problem, as `wordsForProblem` takes it; `source` is the device that did not open. @type {{code?: string, error?: any, users?: string[], source?: string} | undefined} */
  problem;
  /** The upload while it is sent: `{state, stored, sealed}`. */
  delivery;
  /** Whether it was stopped because it is as long as it may be. */
  isLongest = false;
  hasPicture = true;
  /** The open tracks by their source. @type {Record<string, any>} */
  tracks = {};
  users;
  #call;
  #recordings;
  #capture;
  #library;
  #now;
  #turn = 0;
  #draft; // {writer, upload}
  #recorder;
  #countdown;
  #timer;
  #trouble; // of the writer
  #sending;
  #isLeft = false; // while it is sent
  #isInterrupted = false; // while the devices are opened

  constructor({ users, call, recordings, capture, library, now = () => performance.now() }) {
    super();
    this.users = users;
    this.#call = call;
    this.#recordings = recordings;
    this.#capture = capture;
    this.#library = library;
    this.#now = now;
  }

  /** The id of the recording; undefined while there is none. */
  get id() {
    return this.#draft?.writer.row.id;
  }

  /** ms until it records, while it counts. */
  get untilStart() {
    return this.#countdown?.leftAt(this.#now()) ?? 0;
  }

  get isPaused() {
    return this.state === 'counting' && this.#countdown.isPaused;
  }

  /** How long it is so far, in ms. */
  get length() {
    return this.#recorder?.length ?? 0;
  }

  /** How much longer it may be, in ms. */
  get left() {
    return Math.max(0, this.#longest - this.length);
  }

  get #longest() {
    return (this.#draft?.upload.longest ?? LONGEST_S) * 1_000 - EARLY_MS;
  }

  /** Whether the camera faces the person, who then sees it as in a mirror. */
  get isMirrored() {
    return this.#capture.choice.facing === 'user';
  }

  /** The state of the upload: `waiting` without a network. */
  get upload() {
    return this.#draft?.upload.state;
  }

  // Before

  /** Opens the devices, and counts down. */
  async prepare({ hasPicture = true } = {}) {
    const turn = (this.#turn += 1);
    const isCurrent = () => turn === this.#turn;
    Object.assign(this, { hasPicture, isLongest: false, problem: undefined });
    this.#isInterrupted = false;
    this.#set('preparing');
    if (this.#library.recordingObstacle(hasPicture)) return this.#fail({ code: 'unsupported' });
    const unreachable = await this.#unreachable();
    if (isCurrent() && unreachable.length === this.users.length) return this.#fail({ code: 'no-keys', users: unreachable });
    /** @type {string | undefined} */
    let opening;
    try {
      for (const source of hasPicture ? ['microphone', 'camera'] : ['microphone']) {
        if (!isCurrent()) return undefined;
        opening = source;
        const track = await this.#capture.open(source);
        if (!isCurrent()) return track.stop();
        this.tracks[source] = track;
        this.#changed();
      }
      opening = undefined;
      await this.#begin(isCurrent);
    } catch (error) {
      if (isCurrent()) this.#fail({ error, source: opening });
    }
    return undefined;
  }

  /** Without a network nobody is known to be unreachable. */
  async #unreachable() {
    const devices = await this.#recordings.reachable(this.users).catch(() => undefined);
    return devices ? this.users.filter((user) => !devices[user]) : [];
  }

  /** It is registered while it counts, so that a server without room says so before somebody has spoken for minutes. */
  async #begin(isCurrent) {
    const { hasPicture } = this;
    const begun = await this.#recordings.begin({ kind: 'message', call: this.#call, readers: this.users, hasPicture, streams: this.#library.streamsFor(hasPicture) });
    if (!isCurrent()) {
      this.#delete(begun);
      return;
    }
    this.#draft = begun;
    begun.upload.addEventListener('change', () => this.#draft === begun && this.#uploadChanged());
    this.#countdown = new Countdown(COUNTDOWN_MS, this.#now());
    if (this.#isInterrupted) this.#countdown.pause(this.#now());
    this.#timer = setInterval(() => this.tick(), TICK_MS);
    this.#set('counting');
    this.#uploadChanged();
  }

  #uploadChanged() {
    const { state } = this.#draft.upload;
    if (this.state === 'counting' && (state === 'full' || ENDS.includes(state))) {
      const draft = this.#take();
      this.#delete(draft);
      this.#fail(problemOf(draft.upload));
    } else this.#changed();
  }

  pause() {
    if (this.state === 'counting') this.#countdown.pause(this.#now());
    this.#changed();
  }

  resume() {
    if (this.state === 'counting') this.#countdown.resume(this.#now());
    this.#changed();
  }

  // Recording

  /** Runs by itself while it counts and records. */
  tick() {
    if (this.state === 'counting' && this.untilStart === 0) this.start();
    else if (this.state === 'recording' && this.left === 0) this.stop({ isLongest: true });
    else this.#changed();
  }

  /** Records now. */
  start() {
    if (this.state !== 'counting') return;
    try {
      const recorder = new this.#library.DeviceRecorder({ tracks: Object.values(this.tracks), writer: this.#draft.writer });
      this.#trouble = undefined;
      const { writer } = this.#draft;
      writer.addEventListener('trouble', ({ detail }) => this.#draft?.writer === writer && (this.#trouble = detail.reason));
      recorder.addEventListener('ended', ({ detail }) => this.#recorder === recorder && this.#ended(detail.reason));
      recorder.start();
      this.#recorder = recorder;
      this.#set('recording');
    } catch {
      this.#delete(this.#take());
      this.#fail({ code: 'unsupported' });
    }
  }

  async stop({ isLongest = false } = {}) {
    if (this.state !== 'recording') return;
    this.isLongest = isLongest;
    const { writer } = this.#draft;
    this.#set('stopping');
    await this.#recorder.stop();
    if (this.#draft?.writer === writer) this.#ended(this.#trouble);
  }

  /** It was stopped, or has ended by itself for `reason`: the part before is kept. */
  #ended(reason) {
    if (this.state !== 'recording' && this.state !== 'stopping') return;
    const problem = reason && { code: reason };
    if (problem && this.#draft.upload.progress.sealed === 0) {
      this.#delete(this.#take());
      this.#fail(problem);
      return;
    }
    this.#release();
    this.problem = problem;
    this.#set('recorded');
  }

  // Afterwards

  /** `{source}` of what was recorded, for a player: it needs neither the server nor a key of it. */
  play() {
    return this.#recordings.openDraft(this.id);
  }

  /** The former one is deleted. */
  async retake(options) {
    this.#release();
    const former = this.#take();
    const turn = this.#turn;
    this.#set('preparing');
    await this.#delete(former);
    return turn === this.#turn && this.prepare({ hasPicture: this.hasPicture, ...options });
  }

  /** Sends it, or with `onlyOwn` keeps it for this user. */
  async send({ onlyOwn = false } = {}) {
    if (this.state !== 'recorded') return;
    const { id } = this;
    const sending = (this.#sending = new AbortController());
    this.problem = undefined;
    this.#set('sending');
    const told = (state, { stored, sealed }) => {
      this.delivery = { state, stored, sealed };
      this.#changed();
    };
    try {
      const devices = await deliver(this.#recordings, id, { onlyOwn, told, signal: sending.signal });
      this.#draft = undefined;
      this.#over({ devices, onlyOwn });
    } catch (error) {
      if (sending !== this.#sending) return;
      const problem = error instanceof Undeliverable ? error.problem : { error };
      if (this.#isLeft) {
        this.#take();
        this.#over({ problem });
        return;
      }
      this.problem = problem;
      this.#set('recorded');
    }
  }

  /** Back to the choice, if it is not sent yet. */
  stay() {
    if (this.state !== 'sending') return;
    this.#sending.abort();
    this.#sending = undefined;
    this.#set('recorded');
  }

  /** Deletes what there is. */
  async discard() {
    this.#release();
    const draft = this.#take();
    this.#over({});
    await this.#delete(draft);
  }

  /** Somebody rings: nothing is recorded by accident, and nothing is lost. */
  interrupt() {
    if (this.state === 'recording') return this.stop();
    this.#isInterrupted = this.state === 'preparing';
    return this.pause();
  }

  /** The person has gone on to something else. A recording is kept as a draft, and one that is being sent is sent. */
  async leave() {
    if (this.state === 'over') return undefined;
    if (this.state === 'sending') return void (this.#isLeft = true);
    if (this.state === 'recording') await this.stop();
    if (this.state !== 'recorded' && this.state !== 'stopping') return this.discard();
    this.#take();
    return this.#over({});
  }

  #fail(problem) {
    this.#release();
    this.problem = problem;
    this.#set('failed');
  }

  /** Nothing more is captured. */
  #release() {
    this.#turn += 1;
    clearInterval(this.#timer);
    for (const track of Object.values(this.tracks)) track.stop();
    this.tracks = {};
  }

  /** The draft, which is not this message's any more. */
  #take() {
    const draft = this.#draft;
    this.#draft = undefined;
    this.#recorder = undefined;
    return draft;
  }

  /** A draft that cannot be deleted now stays in the list. */
  async #delete(draft) {
    if (draft) await this.#recordings.delete([draft.writer.row.id]).catch(() => {});
  }

  #over(detail) {
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
