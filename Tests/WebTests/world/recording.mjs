// An honest server's part in the recording of one call (protocol section 13.7): it asks, passes on, and keeps what devices hand out and what they send.

import { load } from '../web.mjs';

const { RequestError } = await load('connection/stomp.js');

const SOURCES = { audio: ['microphone'], video: ['camera'], screen: ['screen', 'screen-audio'] };
const fail = (code) => {
  throw new RequestError({ code, message: code });
};

export class ServerRecording {
  statement;
  since = 0;
  grants = [];
  consents = new Map(); // participant -> {media, epochs: Map(medium -> the newest epoch then)}
  word; // the starter's newest
  keys = []; // all that was ever handed out: {participant, listHash, …}
  ended = new Set();
  #call;

  constructor(call) {
    this.#call = call;
  }

  get state() {
    if (!this.statement) return undefined;
    const consents = [...this.consents].map(([participant, { media }]) => ({ participant, media }));
    return { statement: this.statement, since: this.since, consents, ...(this.word ? { running: this.word } : {}) };
  }

  answer(stay, what, body) {
    return { start: () => this.#start(stay, body), consent: () => this.#consent(stay, body), keys: () => this.#take(stay, body), stop: () => this.#stop(stay, body) }[what]();
  }

  #start(stay, { statement, grants }) {
    if (this.statement && this.statement.id !== statement.id) fail('recording.busy');
    if (this.ended.has(statement.id)) fail('recording.ended');
    if (this.statement) return {};
    Object.assign(this, { statement, grants, since: Date.now() });
    this.#call.tellRecording('recording.started', { statement, since: this.since });
    return {};
  }

  #running(id) {
    if (id !== this.statement?.id) fail(this.ended.has(id) ? 'recording.ended' : 'recording.not-found');
  }

  #consent(stay, { recording, media }) {
    this.#running(recording);
    const { participant } = stay.entry;
    const before = this.consents.get(participant) ?? { media: [], epochs: new Map() };
    const { epoch } = this.#call.newest;
    this.consents.set(participant, { media, epochs: new Map(media.map((medium) => [medium, before.epochs.get(medium) ?? epoch])) });
    if (media.join() !== before.media.join()) {
      this.#call.tellRecording('recording.consent', { recording, participant, media });
      this.#call.rotate();
    }
    return { epoch };
  }

  #take(stay, { recording, epoch, ...keys }) {
    this.#running(recording);
    const { participant, user, device } = stay.entry;
    if (epoch !== this.#call.newest.epoch && epoch !== this.#call.epoch) fail('keys.epoch-stale');
    const { epochs = new Map() } = this.consents.get(participant) ?? {};
    for (const n of keys.tracks) {
      const source = this.#call.sourceOf(stay, n);
      const medium = Object.keys(SOURCES).find((name) => SOURCES[name].includes(source));
      if (!(epoch > (epochs.get(medium) ?? Infinity))) fail('recording.not-allowed');
    }
    const isStarter = user === this.statement.by.user && device === this.statement.by.device;
    this.keys.push({ participant, epoch, listHash: this.#call.hashes.get(epoch), ...keys });
    if (isStarter && this.word?.epoch !== epoch) {
      this.word = { recording, epoch, participant, ...keys };
      this.#call.tellRecording('recording.running', this.word, (other) => this.consents.get(other.entry.participant)?.media.length > 0 && other !== stay);
    }
    return {};
  }

  #stop(stay, { recording }) {
    this.#running(recording);
    this.end('stopped');
    return {};
  }

  end(reason) {
    if (!this.statement) return;
    const { id } = this.statement;
    this.ended.add(id);
    const wasAgreed = [...this.consents.values()].some(({ media }) => media.length > 0);
    Object.assign(this, { statement: undefined, word: undefined, consents: new Map() });
    this.#call.tellRecording('recording.stopped', { recording: id, reason });
    if (wasAgreed) this.#call.rotate();
  }

  /** A stay is over; `isGone` unless the same device comes back at once. */
  left({ participant, user, device }, isGone) {
    this.consents.delete(participant);
    const by = this.statement?.by;
    if (isGone && by?.user === user && by.device === device) this.end('starter-left');
  }
}
