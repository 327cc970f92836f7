// Private messages: sealed to the join keys of their recipients, with the sender proven only to them (protocol section 6, "Messages").

import { HPKE, MAX_NUMBER, Refusal, concat, equal, fromBase64, hpkeOpen, hpkeSeal, lp, random, sha256, toHex, u32, utf8 } from '../wire/index.js';

export const MAX_RECIPIENTS = 64;
const WRAP_BYTES = 113; // enc, 32 bytes, tag
const ENC_BYTES = 65;
const REMEMBERED = 10_000; // private messages of one epoch; above it none are opened
const EPOCHS_REMEMBERED = 4; // older ones no longer have keys
const NONCE = new Uint8Array(12); // each key seals once

const infoOf = ({ call, listHash }, from, to) => concat(utf8('conclave-message-v2'), lp(call), listHash, u32(from), u32(to));

/** Binds each wrap to all recipients and to the text. */
const aadOf = async (numbers, ct) => concat(await sha256(concat(...numbers.map(u32))), await sha256(ct));

/** The wraps that a stay has opened: HPKE proves who sealed one, but not when. The first bytes of a wrap, `enc`, identify it. A stay has one list per epoch. */
export class OpenedWraps {
  #epochs = new Map(); // epoch -> Set of `enc`
  static #stays = new WeakMap(); // key pair -> OpenedWraps

  static of(pair) {
    if (!this.#stays.has(pair)) this.#stays.set(pair, new OpenedWraps());
    return this.#stays.get(pair);
  }

  /** Throws for a wrap that was opened before, and for one too many. */
  check(epoch, wrap) {
    const opened = this.#epochs.get(epoch);
    if (opened?.has(toHex(wrap.subarray(0, ENC_BYTES)))) throw new Refusal('a private message that came before');
    if (opened?.size >= REMEMBERED) throw new Refusal('more private messages than are remembered');
  }

  /** The lowest epochs are forgotten, in whatever order their messages arrived. */
  add(epoch, wrap) {
    if (!this.#epochs.has(epoch)) this.#epochs.set(epoch, new Set());
    this.#epochs.get(epoch).add(toHex(wrap.subarray(0, ENC_BYTES)));
    if (this.#epochs.size > EPOCHS_REMEMBERED) this.#epochs.delete(Math.min(...this.#epochs.keys()));
  }
}

const gcm = (raw, usage) => crypto.subtle.importKey('raw', raw, 'AES-GCM', false, [usage]);

/**
 * The content of the SFrame of a private message. `scope`: `{call, listHash}` of the epoch under which it is sealed; `from`: `{participant, pair}`, this
 * device's number and first join key; `recipients`: entries of the list whose join signatures were checked.
 */
export async function sealPrivate(plaintext, { scope, from, recipients }) {
  const isSealable = recipients.length > 0 && recipients.length <= MAX_RECIPIENTS && recipients.every(({ joinKey }) => joinKey?.alg === HPKE);
  if (!isSealable) throw new Refusal('a private message to somebody who can’t open one');
  const key = random(32);
  const ct = new Uint8Array(await crypto.subtle.encrypt({ name: 'AES-GCM', iv: NONCE }, await gcm(key, 'encrypt'), plaintext));
  const numbers = recipients.map(({ participant }) => participant);
  const aad = await aadOf(numbers, ct);
  const wraps = recipients.map(async ({ participant, joinKey }) => {
    const info = infoOf(scope, from.participant, participant);
    return concat(u32(participant), await hpkeSeal(fromBase64(joinKey.publicKey), key, { info, aad, sender: from.pair }));
  });
  const rows = await Promise.all(wraps);
  key.fill(0);
  return concat(Uint8Array.of(recipients.length), ...rows, ct);
}

/**
 * The plaintext of what `sealPrivate` made for `own`, `{participant, pair}`, in the epoch of `scope`, `{call, epoch, listHash}`; throws if it was not made for
 * it, was opened before, or is not from the owner of `sender`, the entry of the participant that the SFrame names.
 */
export async function openPrivate(content, { scope, own, sender }) {
  const count = content[0];
  const rowBytes = 4 + WRAP_BYTES;
  if (!(count >= 1 && count <= MAX_RECIPIENTS) || content.length < 1 + count * rowBytes + 16) throw new Refusal('a private message of another form');
  const rows = Array.from({ length: count }, (_, i) => content.slice(1 + i * rowBytes, 1 + (i + 1) * rowBytes));
  const numbers = rows.map((row) => new DataView(row.buffer).getUint32(0));
  if (numbers.some((number) => number < 1 || number > MAX_NUMBER) || new Set(numbers).size < count) throw new Refusal('a private message to nobody');
  const row = rows.find((other) => equal(other.subarray(0, 4), u32(own.participant)));
  if (!row) throw new Refusal('a private message for somebody else');
  const ct = content.slice(1 + count * rowBytes);
  const info = infoOf(scope, sender.participant, own.participant);
  const aad = await aadOf(numbers, ct);
  const wrap = row.slice(4);
  const opened = OpenedWraps.of(own.pair);
  opened.check(scope.epoch, wrap);
  const key = await hpkeOpen(own.pair, wrap, { info, aad, sender: fromBase64(sender.joinKey.publicKey) });
  opened.check(scope.epoch, wrap); // the same one twice at once: the second finds the mark of the first
  opened.add(scope.epoch, wrap);
  return new Uint8Array(await crypto.subtle.decrypt({ name: 'AES-GCM', iv: NONCE }, await gcm(key, 'decrypt'), ct));
}
