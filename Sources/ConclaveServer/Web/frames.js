// Which key seals and opens which frame: epochs, sender keys, counters, clear bytes. Runs in the worker.

import { concat, u32, utf8 } from './bytes.js';
import { ReplayWindow, SFrameError, TAG_BYTES, deriveKey, open, parseHeader, seal } from './sframe.js';

const MESSAGE = utf8('message'); // the metadata of a message (protocol section 6)

/** KID = participant × 65536 + n × 256 + epoch mod 256 (protocol section 5, "Sender keys"). */
export const kidOf = (participant, n, epoch) => participant * 65536 + n * 256 + (epoch % 256);

export function partsOf(kid) {
  return { participant: Math.floor(kid / 65536), n: Math.floor(kid / 256) % 256, epochByte: kid % 256 };
}

/**
 * How many bytes stay in front of the SFrame (protocol section 5, "Clear bytes"): what the packetizer of a browser reads.
 * VP8 says itself whether it is a key frame: the lowest bit of its first byte (RFC 7741 section 4.3).
 */
export function clearBytes(data, isVideo, mimeType) {
  if (!isVideo || (mimeType ?? 'video/VP8').toLowerCase() !== 'video/vp8') return 0;
  return (data[0] & 1) === 0 ? 10 : 3;
}

/** One epoch's secret and senders. `secret` is a CryptoKey that only derives. */
class Epoch {
  constructor({ epoch, call, listHash, secret, senders }) {
    this.number = epoch;
    this.call = utf8(call);
    this.listHash = listHash;
    this.secret = secret;
    this.senders = new Map();
    this.keys = new Map();
    this.admit(senders);
  }

  admit(senders) {
    this.senders = new Map(senders.map((sender) => [sender.participant, sender]));
  }

  /** The SFrame key of a KID; undefined when its participant is not on the list. */
  key(kid) {
    const sender = this.senders.get(partsOf(kid).participant);
    if (!sender) return undefined;
    if (!this.keys.has(kid)) this.keys.set(kid, this.#derive(kid, sender));
    return this.keys.get(kid);
  }

  async #derive(kid, { fingerprint, joinId }) {
    const info = concat(utf8('conclave-sender-v1'), u32(this.number), this.listHash, fingerprint, joinId);
    const parameters = { name: 'HKDF', hash: 'SHA-512', salt: this.call, info };
    const baseKey = new Uint8Array(await crypto.subtle.deriveBits(parameters, this.secret, 512));
    const key = await deriveKey(baseKey, BigInt(kid));
    baseKey.fill(0);
    return key;
  }
}

/** The epochs of a call, for sealing own frames and opening those of others. */
export class FrameKeys {
  participant = 0;
  #epochs = new Map();
  /** Nothing is sealed, whatever keys there are. */
  isSilent = false;
  #sending = 0;
  #counters = new Map();
  #windows = new Map();

  /** Takes an epoch, or the senders trusted since, of one that is here already. */
  install(message) {
    const known = this.#epochs.get(message.epoch);
    if (known) known.admit(message.senders);
    else this.#epochs.set(message.epoch, new Epoch(message));
  }

  get sendingEpoch() {
    return this.#sending;
  }

  /** From now on frames are sealed under `epoch`. */
  switchTo(epoch) {
    if (this.#epochs.has(epoch) && epoch > this.#sending) this.#sending = epoch;
  }

  /** Forgets all epochs below `epoch`: what came under them opens no more. */
  forgetBefore(epoch) {
    for (const number of this.#epochs.keys()) {
      if (number < epoch) this.#epochs.delete(number);
    }
    for (const kid of this.#windows.keys()) {
      if (!this.#epochFor(kid)) this.#windows.delete(kid);
    }
  }

  #epochFor(kid) {
    const { epochByte } = partsOf(kid);
    for (const epoch of [...this.#epochs.values()].reverse()) {
      if (epoch.number % 256 === epochByte) return epoch;
    }
    return undefined;
  }

  /** clear bytes ‖ SFrame of one encoded frame of track n; undefined when there is no key yet: then nothing is sent. */
  async seal(n, data, clear) {
    if (!n || data.length < clear) return undefined;
    const metadata = data.subarray(0, clear);
    const sframe = await this.#seal(n, metadata, data.subarray(clear));
    return sframe && concat(metadata, sframe);
  }

  /** The SFrame of a message; undefined when there is no key yet. */
  sealMessage(data) {
    return this.#seal(0, MESSAGE, data);
  }

  async #seal(n, metadata, plaintext) {
    const epoch = this.#epochs.get(this.#sending);
    if (!epoch || this.isSilent) return undefined;
    const kid = kidOf(this.participant, n, epoch.number);
    const pending = epoch.key(kid);
    if (!pending) return undefined;
    // Taken before anything is awaited, and kept for the worker's life: no counter is ever used twice under one key.
    const name = `${n}/${epoch.number}`;
    const counter = this.#counters.get(name) ?? 0;
    this.#counters.set(name, counter + 1);
    return seal(await pending, BigInt(counter), metadata, plaintext);
  }

  /** The KID of a sealed frame, and whether a key for it is here. Throws SFrameError for what is no SFrame. */
  inspect(data, clear) {
    if (data.length < clear + 1 + TAG_BYTES) throw new SFrameError('header');
    const header = parseHeader(data.subarray(clear, clear + 17));
    if (header.kid > 0xffffffffffffn || header.counter > BigInt(Number.MAX_SAFE_INTEGER)) throw new SFrameError('header');
    const kid = Number(header.kid);
    return { kid, header, isKnown: this.#epochFor(kid)?.senders.has(partsOf(kid).participant) ?? false };
  }

  /** clear bytes ‖ plaintext of a frame that `inspect` knew. Throws SFrameError. */
  async open(data, clear, found) {
    const metadata = data.subarray(0, clear);
    return concat(metadata, await this.#open(found, metadata, data.subarray(clear)));
  }

  /** `{participant, data}` of a sealed message. Throws SFrameError. */
  async openMessage(sframe) {
    const found = this.inspect(sframe, 0);
    const { participant, n } = partsOf(found.kid);
    if (n !== 0) throw new SFrameError('header');
    return { participant, data: await this.#open(found, MESSAGE, sframe) };
  }

  async #open({ kid, header }, metadata, sframe) {
    const pending = this.#epochFor(kid)?.key(kid);
    if (!pending) throw new SFrameError('unknown-key');
    if (!this.#windows.has(kid)) this.#windows.set(kid, new ReplayWindow());
    const seen = this.#windows.get(kid);
    const counter = Number(header.counter);
    if (!seen.accepts(counter)) throw new SFrameError('replay');
    const plaintext = await open(await pending, header, metadata, sframe);
    // Twice the same frame in two slots at once: the second finds the first one's mark here.
    if (!seen.accepts(counter)) throw new SFrameError('replay');
    seen.mark(counter);
    return plaintext;
  }
}
