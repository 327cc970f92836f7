// The worker's side of the messages between page and worker. `post(message)` answers the page.

import { FrameReceiver, FrameSender } from './frame-ends.js';
import { FrameKeys } from './frames.js';

const OVERLAP_MS = 10_000; // protocol 5, epoch rule 5: how long the previous epoch opens frames

export class FrameWorker {
  #post;
  #keys = new FrameKeys();
  #tracks = new Map();
  #slots = new Map();
  #senders = new Map();
  #receivers = new Map();

  constructor(post) {
    this.#post = post;
  }

  /**
   * Attaches the transformer of a track or slot, with `{operation, name, isVideo, rids}` as its options; `rids` are the layers of a sent track. Returns the
   * transform for its frames.
   */
  attach(transformer) {
    const { operation, name, isVideo, rids } = transformer.options;
    const keys = this.#keys;
    if (operation === 'seal') {
      const sender = new FrameSender({ keys, name, transformer, isVideo, rids });
      this.#senders.set(name, sender);
      if (this.#tracks.has(name)) sender.begin(this.#tracks.get(name));
      return sender;
    }
    const opened = (slot, kid) => this.#post({ type: 'opened', name: slot, kid });
    const receiver = new FrameReceiver({ keys, name, transformer, isVideo, opened });
    this.#receivers.set(name, receiver);
    receiver.show(this.#slots.get(name));
    return receiver;
  }

  take(message) {
    this.#handlers[message.type]?.(message);
  }

  /**
   * How many frames of each slot were opened, failed, belonged to another or were from before this device joined, and how many of each track were sealed or
   * withheld.
   */
  report() {
    const slots = [...this.#receivers.values()].map(({ name, kid, opened, failed, foreign, earlier }) => ({ name, kid, opened, failed, foreign, earlier }));
    const tracks = [...this.#senders.values()].map(({ name, sealed, withheld }) => ({ name, sealed, withheld }));
    if (slots.length + tracks.length > 0) this.#post({ type: 'report', slots, tracks });
  }

  #handlers = {
    self: (own) => this.#keys.identify(own),
    epoch: (message) => {
      this.#keys.install(message);
      for (const receiver of this.#receivers.values()) receiver.retryWaiting();
    },
    senders: (message) => this.#keys.admit(message),
    switch: ({ epoch, isSilent }) => {
      this.#keys.isSilent = isSilent;
      this.#keys.switchTo(epoch);
      for (const sender of this.#senders.values()) sender.requestKeyFrame();
      setTimeout(() => this.#keys.forgetBefore(epoch), OVERLAP_MS);
    },
    track: ({ name, n }) => {
      this.#tracks.set(name, n);
      this.#senders.get(name)?.begin(n);
    },
    // The whole map: `{name, participant, n}` of each slot that shows something.
    slots: ({ slots }) => {
      this.#slots = new Map(slots.map(({ name, participant, n }) => [name, { participant, n }]));
      for (const [name, receiver] of this.#receivers) receiver.show(this.#slots.get(name));
    },
    'key-frame': ({ name }) => this.#senders.get(name)?.requestKeyFrame(),
    silence: ({ isSilent }) => {
      this.#keys.isSilent = isSilent;
      if (!isSilent) for (const sender of this.#senders.values()) sender.requestKeyFrame();
    },
    'export-keys': ({ id, sources, ...wanted }) => this.#answer(id, this.#exported(sources, wanted)),
    'seal-message': ({ id, data, kind, epoch }) => this.#answer(id, this.#keys.sealMessage(data, { kind, epoch })),
    'open-message': ({ id, data, from }) => this.#answer(id, this.#keys.openMessage(data, from)),
  };

  /** `{tracks, context, ciphertext}`: the keys of what is sent now as one of `sources`, and of nothing else. */
  async #exported(sources, wanted) {
    const sent = [...this.#tracks].filter(([name, n]) => n > 0 && sources.includes(name));
    const tracks = sent.map(([, n]) => n).sort((a, b) => a - b);
    const exported = await this.#keys.exported({ ...wanted, tracks });
    return exported && { sources: sent.map(([name]) => name), tracks, ...exported };
  }

  /** The page gets `result`, or nothing if there is no key or the message is invalid. */
  #answer(id, result) {
    const post = (value) => this.#post({ type: 'answer', id, result: value });
    result.then(post, () => post(undefined));
  }
}
