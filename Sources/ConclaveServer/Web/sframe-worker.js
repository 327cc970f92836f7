// The worker between the encoders and the network: every frame that leaves is sealed here, every one that comes is opened.

import { FrameKeys, clearBytes } from './frames.js';
import { SFrameError } from './sframe.js';

const OVERLAP_MS = 10_000; // protocol 5, epoch rule 5: how long the epoch before opens frames
const WAIT_MS = 1_000; // and how long, and how many, frames wait for a key
const WAIT_FRAMES = 64;
const KEY_FRAME_RETRY_MS = 1_000;
const REPORT_MS = 1_000;

const keys = new FrameKeys();
const tracks = new Map();
const senders = new Map();
const receivers = new Map();

/** One sending track. Video begins with a key frame: under each new key, and as a new track. */
class Sender {
  n = 0;
  #epoch = 0;
  #askedAt = -Infinity;
  #canAsk = true;

  constructor(transformer, isVideo) {
    this.transformer = transformer;
    this.isVideo = isVideo;
  }

  async transform(frame, controller) {
    const data = new Uint8Array(frame.data);
    if (this.isVideo && this.#epoch !== keys.sendingEpoch) {
      if (frame.type !== 'key' && this.#canAsk) return this.requestKeyFrame();
      this.#epoch = keys.sendingEpoch;
    }
    const clear = clearBytes(data, this.isVideo, frame.getMetadata().mimeType);
    const sealed = await keys.seal(this.n, data, clear);
    if (!sealed) return undefined;
    frame.data = sealed.buffer;
    controller.enqueue(frame);
    return undefined;
  }

  begin(n) {
    if (n === this.n) return;
    this.n = n;
    this.#epoch = 0;
    this.requestKeyFrame();
  }

  requestKeyFrame() {
    if (!this.isVideo || performance.now() - this.#askedAt < KEY_FRAME_RETRY_MS) return;
    this.#askedAt = performance.now();
    const refused = () => {
      this.#canAsk = false; // a browser without it: the receivers' own requests bring the key frame
    };
    if (!this.transformer.generateKeyFrame) return refused();
    this.transformer.generateKeyFrame().catch((error) => {
      if (error.name === 'NotSupportedError' || error.name === 'TypeError') refused();
    });
  }
}

/** One slot. Frames of a key that is not here yet wait; whose frame opened last is who is heard or seen. */
class Receiver {
  kid = null;
  opened = 0;
  failed = 0;
  #waiting = [];
  #turn = Promise.resolve();

  constructor(name, transformer, isVideo) {
    this.name = name;
    this.transformer = transformer;
    this.isVideo = isVideo;
  }

  /** Frames leave in the order in which they came: one at a time. */
  transform(frame, controller) {
    this.#turn = this.#turn.then(() => this.#take(frame, controller, performance.now()));
    return this.#turn;
  }

  retryWaiting() {
    this.#turn = this.#turn.then(async () => {
      const waiting = this.#waiting;
      this.#waiting = [];
      for (const { frame, controller, since } of waiting) {
        if (performance.now() - since < WAIT_MS) await this.#take(frame, controller, since);
        else this.failed += 1;
      }
    });
  }

  async #take(frame, controller, since) {
    try {
      const data = new Uint8Array(frame.data);
      const clear = clearBytes(data, this.isVideo, frame.getMetadata().mimeType);
      const found = keys.inspect(data, clear);
      if (!found.isKnown) return this.#wait({ frame, controller, since });
      frame.data = (await keys.open(data, clear, found)).buffer;
      this.#show(found.kid, frame);
      controller.enqueue(frame);
    } catch (error) {
      if (!(error instanceof SFrameError)) throw error;
      // The network doubles frames too (probing by retransmission): a second one is dropped, and no failure.
      if (error.reason !== 'replay') this.failed += 1;
    }
    return undefined;
  }

  #wait(entry) {
    const now = performance.now();
    this.#waiting.push(entry);
    const fresh = this.#waiting.filter(({ since }) => now - since < WAIT_MS).slice(-WAIT_FRAMES);
    this.failed += this.#waiting.length - fresh.length;
    this.#waiting = fresh;
  }

  #show(kid, frame) {
    this.opened += 1;
    if (kid === this.kid) return;
    this.kid = kid;
    postMessage({ type: 'opened', name: this.name, kid });
    if (this.isVideo && frame.type !== 'key') this.transformer.sendKeyFrameRequest?.()?.catch?.(() => {});
  }
}

addEventListener('rtctransform', ({ transformer }) => {
  const { operation, name, isVideo } = transformer.options;
  const end = operation === 'seal' ? new Sender(transformer, isVideo) : new Receiver(name, transformer, isVideo);
  (operation === 'seal' ? senders : receivers).set(name, end);
  if (tracks.has(name)) end.begin(tracks.get(name));
  transformer.readable
    .pipeThrough(new TransformStream({ transform: (frame, controller) => end.transform(frame, controller) }))
    .pipeTo(transformer.writable)
    .catch(() => {}); // the track is gone
});

const handlers = {
  self({ participant }) {
    keys.participant = participant;
  },
  epoch(message) {
    keys.install(message);
    for (const receiver of receivers.values()) receiver.retryWaiting();
  },
  switch({ epoch, isSilent }) {
    keys.isSilent = isSilent;
    keys.switchTo(epoch);
    for (const sender of senders.values()) sender.requestKeyFrame();
    setTimeout(() => keys.forgetBefore(epoch), OVERLAP_MS);
  },
  track({ name, n }) {
    tracks.set(name, n);
    senders.get(name)?.begin(n);
  },
  'key-frame'({ name }) {
    senders.get(name)?.requestKeyFrame();
  },
  silence({ isSilent }) {
    keys.isSilent = isSilent;
    if (!isSilent) for (const sender of senders.values()) sender.requestKeyFrame();
  },
  'seal-message'({ id, data }) {
    answer(id, keys.sealMessage(data));
  },
  'open-message'({ id, data }) {
    answer(id, keys.openMessage(data));
  },
};

/** The page gets `result`, or nothing where there is no key or the message is not what it should be. */
function answer(id, result) {
  const post = (value) => postMessage({ type: 'answer', id, result: value });
  result.then(post, () => post(undefined));
}

addEventListener('message', ({ data }) => handlers[data.type]?.(data));

setInterval(() => {
  const slots = [...receivers.values()].map(({ name, kid, opened, failed }) => ({ name, kid, opened, failed }));
  if (slots.length > 0) postMessage({ type: 'report', slots });
}, REPORT_MS);

postMessage({ type: 'ready' });
