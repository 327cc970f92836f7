// Messages to the others in a call: text, reactions, raised hands, captions and removals of guests, sealed in the worker with the keys that seal frames (protocol section 6).

import { isGuest } from '../guests.js';
import { Refusal, bytesIn, concat, participantIn, toBase64, utf8 } from '../wire/index.js';
import { CaptionOrder, captionIn } from './captions.js';
import { openPrivate, sealPrivate } from './private-messages.js';

const MAX_BYTES = 12_000; // its base64 stays below the protocol's 16 KiB
const MAX_PRIVATE_BYTES = 4_000; // in addition to 64 wraps
const MAX_BODY_BYTES = 16_384;
const PRIVATE = 1;
const BLOCK = 64; // a length that the server sees reveals no more than this (protocol section 5.10)
const MARK = 0x80; // where the text ends; zeros follow

const pad = (text) => concat(text, Uint8Array.of(MARK), new Uint8Array(BLOCK - 1 - (text.length % BLOCK)));

/** Throws for any padding but the shortest: the same text has only one form. */
function unpad(bytes) {
  const end = bytes.findLastIndex((byte) => byte !== 0);
  if (bytes.length % BLOCK !== 0 || bytes[end] !== MARK || bytes.length - end > BLOCK) throw new Refusal('a message without its padding');
  return bytes.subarray(0, end);
}

/** `{text}`, `{reaction}`, `{hand}`, `{removed}` or a caption as padded bytes; undefined if it is too long. */
export function encodeMessage(message, most = MAX_BYTES) {
  const bytes = utf8(JSON.stringify(message));
  return bytes.length <= most ? pad(bytes) : undefined;
}

/** Undefined unless the bytes are a message: another client may send anything. */
export function decodeMessage(bytes) {
  try {
    const message = JSON.parse(new TextDecoder().decode(unpad(bytes)));
    const { text, reaction, hand } = message;
    if (typeof text === 'string') return { text };
    if (typeof reaction === 'string' && reaction.length <= 16) return { reaction };
    if (typeof hand === 'boolean') return { hand };
    if (isGuest(message.removed)) return { removed: message.removed };
    return captionIn(message);
  } catch {
    // not JSON, or not padded
  }
  return undefined;
}

/** The worker's part of sealing and opening, as promises; private messages are wrapped and unwrapped here. `keys` is the `KeyAgreement`. */
export class MessageSealer {
  /** Invalid messages: not from their sender, not for this device, or changed. */
  dropped = 0;
  #ask;
  #keys;
  #captions = new CaptionOrder();

  /** `ask` is that of `WorkerAnswers`. */
  constructor(ask, keys) {
    this.#ask = ask;
    this.#keys = keys;
  }

  /** Base64 of the sealed message; undefined if there is no key with which to seal. With `to`, participants, only for them: throws if one cannot get it. */
  async seal(message, to) {
    const sealed = to ? await this.#sealPrivate(message, to) : await this.#sealForAll(message);
    return sealed && toBase64(sealed);
  }

  async #sealForAll(message) {
    const data = encodeMessage(message);
    return data && this.#ask({ type: 'seal-message', data, kind: 0 });
  }

  async #sealPrivate(message, to) {
    const text = encodeMessage(message, MAX_PRIVATE_BYTES);
    const record = this.#keys.canSend ? this.#keys.record(this.#keys.epoch) : undefined;
    if (!text || !record) return undefined;
    const recipients = to.map((participant) => record.trustedEntry(participant));
    const from = { participant: this.#keys.participant, pair: this.#keys.joinPair };
    const data = await sealPrivate(text, { scope: { call: this.#keys.call, listHash: record.listHash }, from, recipients });
    return this.#ask({ type: 'seal-message', data, kind: PRIVATE, epoch: record.epoch });
  }

  /**
   * `{participant, isPrivate}` with `text`, `reaction`, `hand`, `removed` or the members of a caption, from the event's body; undefined if it is not by `from`, not for
   * this device, or did not open, and for a caption that is late or one too many.
   */
  async open({ from, body }) {
    try {
      const data = bytesIn(body, 1, MAX_BODY_BYTES, 'a message');
      const opened = await this.#ask({ type: 'open-message', data, from: participantIn(from) });
      const isPrivate = opened?.kind === PRIVATE;
      const message = opened && decodeMessage(isPrivate ? await this.#openPrivate(opened) : opened.data);
      const isShown = message && (message.caption === undefined || this.#captions.admits(opened.participant, message, performance.now()));
      if (isShown) return { participant: opened.participant, isPrivate, ...message };
    } catch {
      // Another's fault: counted below.
    }
    this.dropped += 1;
    return undefined;
  }

  #openPrivate({ participant, epoch, data }) {
    const record = this.#keys.record(epoch);
    const own = { participant: this.#keys.participant, pair: this.#keys.joinPair };
    return openPrivate(data, { scope: { call: this.#keys.call, epoch, listHash: record.listHash }, own, sender: record.trustedEntry(participant) });
  }
}
