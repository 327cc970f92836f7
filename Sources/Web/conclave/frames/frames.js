// Which key seals and opens which frame: epochs, sender keys, counters, clear bytes. Runs in the worker.

import { MAX_TRACK, TRACK_KEY_INFO, baseKeyOf, concat, hpkeSeal, isWhole, kidOf, partsOf, trackKeyContext, utf8 } from '../wire/index.js';
import { ReplayWindow, SFrameError, TAG_BYTES, deriveKey, keyBytesOf, open, parseHeader, seal } from './sframe.js';

/** The first byte of a message, and the SFrame metadata that goes with it (protocol section 6). */
export const MESSAGE_KINDS = new Map([[0, utf8('message')], [1, utf8('private')]]);
const EPOCHS_HELD = 3;
const TELLABLE = 64; // epochs whose order can be told by their last bytes
const SOUND_BEHIND = 64; // counters, 1.3 s of sound: in a wider window a server could reorder words
const MAX_KID = 0xffff_ffff_ffffn;
const MAX_COUNTER = 2 ** 48 - 1;

/**
 * How many bytes stay before the SFrame (protocol section 5, "Clear bytes"): those that a browser's packetizer reads. VP8 itself says whether it is a key
 * frame: the lowest bit of its first byte (RFC 7741 section 4.3).
 */
export function clearBytes(data, isVideo, mimeType) {
  if (!isVideo || (mimeType ?? 'video/VP8').toLowerCase() !== 'video/vp8') return 0;
  return (data[0] & 1) === 0 ? 10 : 3;
}

async function sframeKey(epoch, sender, kid, usages) {
  const baseKey = await baseKeyOf(epoch.secret, epoch, sender);
  const key = await deriveKey(baseKey, BigInt(kid), { usages });
  baseKey.fill(0);
  return key;
}

/** One epoch's secret, a CryptoKey that only derives, and the others whose frames it opens. */
class EpochKeys {
  senders = new Map(); // by participant
  #keys = new Map();

  constructor({ call, epoch, listHash, secret }) {
    Object.assign(this, { call, epoch, listHash, secret });
  }

  /** A key that was derived for a sender that has changed since no longer opens anything. */
  admit(senders, own) {
    this.senders = new Map(senders.filter(({ participant }) => participant !== own).map((sender) => [sender.participant, sender]));
    for (const [kid, { sender }] of this.#keys) {
      const now = this.senders.get(partsOf(kid).participant);
      if (!now || `${now.fingerprint}/${now.joinId}` !== `${sender.fingerprint}/${sender.joinId}`) this.#keys.delete(kid);
    }
  }

  /** The SFrame key of a KID; undefined if its participant is not on the list. */
  key(kid) {
    const sender = this.senders.get(partsOf(kid).participant);
    if (!sender) return undefined;
    let held = this.#keys.get(kid);
    if (!held) this.#keys.set(kid, (held = { sender, key: sframeKey(this, sender, kid, ['decrypt']) }));
    return held.key;
  }
}

/**
 * Seals this device's frames. Its keys come only from its own values, so the server cannot make them another device's keys. Opens nothing, and hands
 * out keys only sealed for a recording.
 */
class Sealer {
  sending = 0;
  #own; // {call, participant, fingerprint, joinId}
  #epochs = new Map();
  #keys = new Map();
  #counters = new Map();

  /** Only once: a stay in a call has one number and one joinId. */
  identify({ call, participant, fingerprint, joinId }) {
    if (this.#own) throw new Error('Sealer: identified twice');
    kidOf(participant, 0, 1);
    this.#own = { call, participant, fingerprint, joinId };
  }

  get own() {
    return this.#own;
  }

  /** The first secret of an epoch stays. */
  install({ epoch, listHash, secret }) {
    if (epoch >= this.sending && !this.#epochs.has(epoch)) this.#epochs.set(epoch, { call: this.#own.call, epoch, listHash, secret });
  }

  switchTo(epoch) {
    if (!this.#epochs.has(epoch) || epoch <= this.sending) return;
    this.sending = epoch;
    for (const number of this.#epochs.keys()) if (number < epoch) this.#epochs.delete(number);
    this.#keys.clear();
  }

  async seal(n, metadata, plaintext) {
    const epoch = this.#epochs.get(this.sending);
    if (!epoch) return undefined;
    const kid = kidOf(this.#own.participant, n, epoch.epoch);
    // Taken before anything is awaited, and kept for the worker's life: no counter is ever reused under one key.
    const name = `${n}/${epoch.epoch}`;
    const counter = this.#counters.get(name) ?? 0;
    if (counter > MAX_COUNTER) return undefined;
    this.#counters.set(name, counter + 1);
    if (!this.#keys.has(kid)) this.#keys.set(kid, sframeKey(epoch, this.#own, kid, ['encrypt']));
    return seal(await this.#keys.get(kid), BigInt(counter), metadata, plaintext);
  }

  /**
   * `{context, ciphertext}`: the keys of own tracks, by their numbers, in an epoch whose secret is here, sealed to the public key of a recording. The bytes exist only in
   * this method. Undefined without the secret.
   */
  async exported({ epoch, tracks, st, publicKey }) {
    const scope = this.#epochs.get(epoch);
    const areTracks = tracks.every((n, index) => isWhole(n, 1, MAX_TRACK) && (index === 0 || n > tracks[index - 1]));
    if (!scope || !areTracks) return undefined;
    const context = trackKeyContext({ st, epoch, listHash: scope.listHash, tracks, ...this.#own });
    const baseKey = await baseKeyOf(scope.secret, scope, this.#own);
    const keys = await Promise.all(tracks.map((n) => keyBytesOf(baseKey, kidOf(this.#own.participant, n, epoch))));
    const parts = keys.flatMap(({ key, salt }, index) => [Uint8Array.of(tracks[index]), key, salt]);
    const plaintext = concat(...parts);
    try {
      return { context, ciphertext: await hpkeSeal(publicKey, plaintext, { info: TRACK_KEY_INFO, aad: context }) };
    } finally {
      for (const bytes of [baseKey, plaintext, ...parts]) bytes.fill(0);
    }
  }
}

/** The epochs of a call, for sealing own frames and opening those of others. */
export class FrameKeys {
  /** Nothing is sealed, whatever keys there are. */
  isSilent = false;
  #sealer = new Sealer();
  #epochs = new Map();
  #windows = new Map();
  #first = 0; // the first epoch that arrived, and the newest
  #newest = 0;

  /** This join: `{call, participant, fingerprint, joinId}`. */
  identify(own) {
    this.#sealer.identify(own);
  }

  get participant() {
    return this.#sealer.own?.participant ?? 0;
  }

  /** The keys of own tracks for a recording to which the person agreed: see `Sealer`. */
  exported(wanted) {
    return this.#sealer.exported(wanted);
  }

  /** Accepts an epoch `{epoch, listHash, secret, senders}`, or the senders trusted since for an epoch that is already here. */
  install({ epoch, listHash, secret, senders }) {
    kidOf(1, 0, epoch);
    this.#first ||= epoch;
    this.#newest = Math.max(this.#newest, epoch);
    this.#sealer.install({ epoch, listHash, secret });
    if (!this.#epochs.has(epoch)) {
      for (const other of this.#epochs.keys()) if (other % 256 === epoch % 256) this.#epochs.delete(other);
      this.#epochs.set(epoch, new EpochKeys({ call: this.#sealer.own.call, epoch, listHash, secret }));
      const surplus = [...this.#epochs.keys()].sort((a, b) => a - b).slice(0, -EPOCHS_HELD);
      for (const number of surplus) this.#epochs.delete(number);
      this.#dropWindows();
    }
    this.#epochs.get(epoch)?.admit(senders, this.participant);
  }

  /** Sets the senders whose frames are opened in a known epoch. Frames of all others no longer open. */
  admit({ epoch, senders }) {
    this.#epochs.get(epoch)?.admit(senders, this.participant);
  }

  /** Whether a frame without a key was sealed before this device joined: under an epoch before its first, or while it has none. */
  isEarlier({ epochByte }) {
    if (this.#first === 0) return true;
    return this.#newest - this.#first < TELLABLE && ((epochByte - this.#first) & 255) >= 256 - TELLABLE;
  }

  get sendingEpoch() {
    return this.#sealer.sending;
  }

  /** From now on frames are sealed under `epoch`. */
  switchTo(epoch) {
    this.#sealer.switchTo(epoch);
  }

  /** Forgets all epochs below `epoch`: frames under them no longer open. */
  forgetBefore(epoch) {
    for (const number of this.#epochs.keys()) if (number < epoch) this.#epochs.delete(number);
    this.#dropWindows();
  }

  #dropWindows() {
    for (const kid of this.#windows.keys()) if (!this.#epochFor(kid)) this.#windows.delete(kid);
  }

  #epochFor(kid) {
    const { epochByte } = partsOf(kid);
    for (const epoch of this.#epochs.values()) if (epoch.epoch % 256 === epochByte) return epoch;
    return undefined;
  }

  /**
   * clear bytes ‖ SFrame of one encoded frame of track n; undefined if there is no key yet, and nothing is sent then. Also undefined if the frame was silenced
   * while being sealed, or its key is over by then.
   */
  async seal(n, data, clear) {
    if (!isWhole(n, 1, MAX_TRACK) || data.length < clear || this.isSilent) return undefined;
    const metadata = data.subarray(0, clear);
    const epoch = this.sendingEpoch;
    const sframe = await this.#sealer.seal(n, metadata, data.subarray(clear));
    return sframe && this.#isUsable(epoch) ? concat(metadata, sframe) : undefined;
  }

  #isUsable(epoch) {
    return !this.isSilent && epoch === this.sendingEpoch;
  }

  /** kind ‖ SFrame of a message; undefined if there is no key yet. With `epoch`, to whose list a private message is bound, only under that one. */
  async sealMessage(data, { kind = 0, epoch = undefined } = {}) {
    while (!this.isSilent && (epoch ?? this.sendingEpoch) === this.sendingEpoch) {
      const under = this.sendingEpoch;
      const sframe = await this.#sealer.seal(0, MESSAGE_KINDS.get(kind), data);
      if (!sframe) return undefined;
      if (this.#isUsable(under)) return concat(Uint8Array.of(kind), sframe);
    }
    return undefined;
  }

  /** The sender of a sealed frame, and whether its key is here. Throws SFrameError unless it is an SFrame of another participant. */
  inspect(data, clear) {
    if (data.length < clear + 1 + TAG_BYTES) throw new SFrameError('header');
    const header = parseHeader(data.subarray(clear, clear + 17));
    if (header.kid > MAX_KID || header.counter > BigInt(MAX_COUNTER)) throw new SFrameError('header');
    const kid = Number(header.kid);
    const parts = partsOf(kid);
    if (parts.participant === 0 || parts.participant === this.participant) throw new SFrameError('own');
    return { kid, ...parts, header, isKnown: this.#epochFor(kid)?.senders.has(parts.participant) ?? false };
  }

  /**
   * clear bytes ‖ plaintext of a frame that `inspect` recognized, and that counts as its sender's. `reach`: how far it may move that KID's replay window; a
   * sound frame may be 64 behind it. Throws SFrameError.
   * @param {Uint8Array} data
   * @param {number} clear
   * @param {any} found
   * @param {number} [reach]
   */
  async open(data, clear, found, reach, isVideo = false) {
    const metadata = data.subarray(0, clear);
    const limits = { reach, behind: isVideo ? undefined : SOUND_BEHIND };
    return concat(metadata, await this.#open(found, metadata, data.subarray(clear), limits));
  }

  /** `{participant, kind, epoch, data}` of a message that, according to the server, comes from participant `from`. Throws SFrameError. */
  async openMessage(body, from) {
    const metadata = MESSAGE_KINDS.get(body[0]);
    if (!metadata) throw new SFrameError('header');
    const found = this.inspect(body, 1);
    // Every member could make a message under another's key: it counts only if both agree.
    if (found.n !== 0 || found.participant !== from) throw new SFrameError('attribution');
    const { epoch } = this.#epochFor(found.kid) ?? {};
    const data = await this.#open(found, metadata, body.subarray(1));
    return { participant: found.participant, kind: body[0], epoch, data };
  }

  /**
   * @param {any} found
   * @param {Uint8Array} metadata
   * @param {Uint8Array} sframe
   * @param {{ reach?: number, behind?: number }} limits
   */
  async #open({ kid, header }, metadata, sframe, { reach, behind } = {}) {
    const pending = this.#epochFor(kid)?.key(kid);
    if (!pending) throw new SFrameError('unknown-key');
    if (!this.#windows.has(kid)) this.#windows.set(kid, new ReplayWindow());
    const seen = this.#windows.get(kid);
    const counter = Number(header.counter);
    if (!seen.accepts(counter, reach, behind)) throw new SFrameError('replay');
    const plaintext = await open(await pending, header, metadata, sframe);
    // The epoch may be over by now, or its sender may no longer be heard.
    if (this.#epochFor(kid)?.key(kid) !== pending) throw new SFrameError('unknown-key');
    // If the same frame arrives in two slots at once, the second finds the mark of the first here.
    if (!seen.accepts(counter, reach, behind)) throw new SFrameError('replay');
    seen.mark(counter);
    return plaintext;
  }
}
