// Where frames pass the worker: a `FrameSender` for each sent track, a `FrameReceiver` for each slot.

import { Attribution } from './attribution.js';
import { envelopeOf, sealedIn } from './av1.js';
import { clearBytes } from './frames.js';
import { SFrameError } from './sframe.js';

const WAIT_MS = 1_000; // how long, and how many, frames wait for a key or for the news of what their slot shows
const WAIT_FRAMES = 64;
const KEY_FRAME_RETRY_MS = 1_000;

const isAV1 = (mimeType) => mimeType?.toLowerCase() === 'video/av1';

/**
 * One sent track. Video begins with a key frame: under each new key, and as a new track. So does each layer of it: layers have separate SSRCs, and share the
 * track's key and counter.
 */
export class FrameSender {
  n = 0;
  sealed = 0;
  /** Frames that were not sent because there was no key or no track, or because of silence. */
  withheld = 0;
  #keys;
  #begun = new Map(); // SSRC -> the epoch that it has begun
  #rids;
  #askedAt = -Infinity;
  #canAsk = true;

  constructor({ keys, name, transformer, isVideo, rids = [] }) {
    this.#keys = keys;
    this.#rids = rids;
    this.name = name;
    this.transformer = transformer;
    this.isVideo = isVideo;
  }

  async transform(frame, controller) {
    const data = new Uint8Array(frame.data);
    const { mimeType, synchronizationSource } = frame.getMetadata();
    if (this.isVideo && this.#begun.get(synchronizationSource) !== this.#keys.sendingEpoch) {
      if (frame.type !== 'key' && this.#canAsk) return this.requestKeyFrame();
      this.#begun.set(synchronizationSource, this.#keys.sendingEpoch);
    }
    const clear = clearBytes(data, this.isVideo, mimeType);
    const sealed = await this.#keys.seal(this.n, data, clear);
    if (!sealed) {
      this.withheld += 1;
      return undefined;
    }
    this.sealed += 1;
    frame.data = (isAV1(mimeType) ? envelopeOf(sealed, frame.type === 'key') : sealed).buffer;
    controller.enqueue(frame);
    return undefined;
  }

  begin(n) {
    if (n === this.n) return;
    this.n = n;
    this.#begun.clear();
    this.requestKeyFrame();
  }

  requestKeyFrame() {
    if (!this.isVideo || performance.now() - this.#askedAt < KEY_FRAME_RETRY_MS) return;
    this.#askedAt = performance.now();
    const refused = () => {
      this.#canAsk = false; // a browser without it: the receivers' own requests cause the key frame
    };
    if (!this.transformer.generateKeyFrame) return refused();
    this.transformer.generateKeyFrame().catch((error) => {
      if (error.name === 'NotSupportedError' || error.name === 'TypeError') refused();
    });
    // Without a rid the request is only for the first layer (WebRTC Encoded Transform, `generateKeyFrame`). A request for a layer that is not encoded now is
    // refused; such a layer begins with a key frame anyway.
    for (const rid of this.#rids.slice(1)) this.transformer.generateKeyFrame(rid).catch(() => {});
  }
}

/**
 * One slot. Frames whose key is not here yet, or whose track the server has not announced for it, wait; the last opened frame determines who is heard or seen.
 */
export class FrameReceiver {
  kid = null;
  opened = 0;
  failed = 0;
  /** Frames of another track than the slot's: a member that poses as another, or a slow server. */
  foreign = 0;
  /** Frames from before this device joined, whose key it never gets. */
  earlier = 0;
  #keys;
  #opened;
  #attribution = new Attribution();
  #waiting = [];
  #turn = Promise.resolve();

  /** `opened(name, kid)` is called when somebody else is heard or seen in the slot. */
  constructor({ keys, name, transformer, isVideo, opened }) {
    this.#keys = keys;
    this.name = name;
    this.transformer = transformer;
    this.isVideo = isVideo;
    this.#opened = opened;
  }

  /** Frames leave in the order in which they arrived: one at a time. */
  transform(frame, controller) {
    this.#turn = this.#turn.then(() => this.#take(frame, controller, performance.now()));
    return this.#turn;
  }

  /** The server says that the slot shows `track`, `{participant, n}`, or nothing. */
  show(track) {
    this.#attribution.show(track, performance.now());
    this.retryWaiting();
  }

  retryWaiting() {
    this.#turn = this.#turn.then(async () => {
      const waiting = this.#waiting;
      this.#waiting = [];
      for (const entry of waiting) {
        if (performance.now() - entry.since < WAIT_MS) await this.#take(entry.frame, entry.controller, entry.since);
        else this.#drop(entry);
      }
    });
  }

  async #take(frame, controller, since) {
    try {
      const { mimeType } = frame.getMetadata();
      const arrived = new Uint8Array(frame.data);
      const data = isAV1(mimeType) ? sealedIn(arrived) : arrived;
      const clear = clearBytes(data, this.isVideo, mimeType);
      const found = this.#keys.inspect(data, clear);
      // Before the key and the replay window are touched, because every member could make a frame under another's key.
      const reach = this.#attribution.reach(found, performance.now());
      if (reach === undefined || !found.isKnown) return this.#wait({ frame, controller, since, found, isForeign: reach === undefined });
      frame.data = (await this.#keys.open(data, clear, found, reach, this.isVideo)).buffer;
      this.#show(found.kid, frame);
      controller.enqueue(frame);
    } catch (error) {
      if (!(error instanceof SFrameError)) throw error;
      if (error.reason === 'own') this.foreign += 1;
      // The network also duplicates frames (probing by retransmission): a second one is dropped, but is not a failure.
      else if (error.reason !== 'replay') this.failed += 1;
    }
    return undefined;
  }

  #wait(entry) {
    const now = performance.now();
    this.#waiting.push(entry);
    const fresh = this.#waiting.filter(({ since }) => now - since < WAIT_MS).slice(-WAIT_FRAMES);
    for (const old of this.#waiting) if (!fresh.includes(old)) this.#drop(old);
    this.#waiting = fresh;
  }

  #drop({ isForeign, found }) {
    if (isForeign) this.foreign += 1;
    else if (this.#keys.isEarlier(found)) this.earlier += 1;
    else this.failed += 1;
  }

  #show(kid, frame) {
    this.opened += 1;
    if (kid === this.kid) return;
    this.kid = kid;
    this.#opened(this.name, kid);
    if (this.isVideo && frame.type !== 'key') this.transformer.sendKeyFrameRequest?.()?.catch?.(() => {});
  }
}
