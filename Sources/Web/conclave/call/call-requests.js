// The part of a call that only reads its facts or sends requests to the server.

import { VideoWishes } from '../media/index.js';

/**
 * The part of `Conclave` that calls need.
 *
 * @typedef {object} CallConnection
 * @property {(path: string, body?: object) => Promise<any>} request Sends to `/app/…`. Rejects with a `RequestError`.
 * @property {() => void} hurry Checks a connection that may be dead.
 * @property {string} status As `Conclave.status`.
 * @property {number} connectionNumber Rises with each connect.
 * @property {string | undefined} user
 * @property {any} identity This device's `Identity`; undefined before the first connect, as are `directory` and `rings`.
 * @property {any} directory The `Directory`: keys of other devices.
 * @property {any} rings The `RingMemory`.
 * @property {any} capture The `Capture`: the person's choice of devices.
 * @property {string} workerURL
 * @property {(call: string) => string | undefined} callerOf The user who last rang this device for a call.
 * @property {(call: string) => Record<string, any> | undefined} takeRing Ends and returns the ring of a call, if there is one.
 */

export class CallRequests extends EventTarget {
  /** The state as reported by the server: a `CallState`. */
  facts;
  /** The `Admissions` of the call, once it is joined. */
  admissions;
  /** This device's number in the call; 0 until it has joined. */
  participant = 0;
  /** @type {CallConnection} */
  #connection;
  #wishes = new VideoWishes();
  #heights = new Map();
  #priorities = new Map();
  #muted = new Set();
  #telling;

  constructor(facts, connection) {
    super();
    this.facts = facts;
    this.#connection = connection;
  }

  get id() {
    return this.facts.id;
  }

  get members() {
    return this.facts.members;
  }

  get startedAt() {
    return this.facts.startedAt;
  }

  get answeredAt() {
    return this.facts.answeredAt;
  }

  /** 0 to 4: this device's reception as measured by the server; undefined until reported. */
  get quality() {
    return this.facts.quality;
  }

  get isInitiator() {
    return this.facts.isInitiator;
  }

  get mayInvite() {
    return this.facts.mayInvite;
  }

  request(rest, body) {
    return this.#connection.request(`calls/${this.id}/${rest}`, body);
  }

  /**
   * From now on the server sends only the videos in `heights`: a map of tracks, `participant.n` each, to the heights in pixels at which they are shown. Those with
   * the highest of the `priorities`, 0 if they are not in that map, have the bandwidth first. Changes are sent to the server, one request at a time; changes made
   * during a request go into the next one.
   * @param {Map<string, number>} heights
   * @param {Map<string, number>} [priorities]
   */
  watch(heights, priorities = new Map()) {
    this.#heights = heights;
    this.#priorities = priorities;
    return this.#tell();
  }

  /**
   * From now on this device does not hear the participant with this number, or hears it again: the server sends none of its sound, and tells nobody. This
   * applies to at most 64 participants, and until the participant joins again.
   */
  silence(participant, isMuted = true) {
    if (isMuted) this.#muted.add(participant);
    else this.#muted.delete(participant);
    return this.#tell();
  }

  /** Whether this device has chosen not to hear the participant. */
  isSilenced(participant) {
    return this.#muted.has(participant);
  }

  #tell() {
    this.#telling ??= this.#tellWishes().finally(() => (this.#telling = undefined));
    return this.#telling;
  }

  async #tellWishes() {
    for (;;) {
      const others = this.facts.tracksOfOthers.filter(({ kind }) => kind === 'video').map(({ track }) => track);
      const videos = this.#wishes.toTell(this.participant, others, this.#heights, this.#priorities);
      const muted = this.#wishes.mutedToTell(this.#muted);
      if (videos.length === 0 && !muted) return;
      try {
        await this.request('receive', { ...(videos.length > 0 && { videos }), ...(muted && { muted }) });
      } catch (error) {
        this.#wishes.untold(videos, muted);
        throw error;
      }
    }
  }

  /** Lets `callees` in and rings them; returns the result for each. `metadata` is as in `Conclave.call`. */
  async invite(callees, { metadata = '' } = {}) {
    const { user } = this.#connection.identity;
    // A word for its own user would be a root, which only a start makes.
    const others = callees.filter((callee) => callee !== user);
    const own = others.length < callees.length ? { [user]: 'already-joined' } : {};
    if (others.length === 0) return own;
    const body = { callees: others, admissions: await this.admissions.words(others), ...(metadata ? { metadata } : {}) };
    const { results } = await this.request('invite', body);
    return { ...results, ...own };
  }

  cancel(user) {
    return this.request('cancel', { callees: [user] });
  }

  /**
   * `{link, secret, expiresAt}`: the holder of the link and its secret may join for `expiresIn` seconds. If `guestsWait`, people without an account wait until a
   * member admits them. The secret is never sent to a server.
   */
  async makeLink(expiresIn = 3_600, { guestsWait = false } = {}) {
    const { admission, secret } = await this.admissions.link({ waits: guestsWait });
    return { ...(await this.request('link', { expiresIn, admission })), secret };
  }

  /** This call, which this device has started, is the call of its lasting link `id` from now on. `secret` and `guestsWait` are as in `LastingLinks.startable`. */
  async openLasting(id, { secret, guestsWait = false }) {
    const { admission } = await this.admissions.lastingLink(secret, { waits: guestsWait });
    await this.request('link', { lasting: id, admission });
  }

  /** Voids all links made so far. */
  revokeLinks() {
    return this.request('link', { revoke: true });
  }

  /** Reports abuse to the app's back end; `text` is what the user writes about it. */
  report(user, text) {
    return this.request('report', { user, text });
  }
}
