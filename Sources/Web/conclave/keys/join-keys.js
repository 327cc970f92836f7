// The wrap keys of one join: the first one, and those that replace it (protocol section 5, "Join"). They are deleted with the call.

import { isSignedBy, spkiOf } from '../trust/index.js';
import { HPKE, equal, fromBase64, joinBytes, random, sha256, toBase64 } from '../wire/index.js';

const REFRESH_MS = 4 * 60_000; // at most one generation in this time
const curve = { name: 'ECDH', namedCurve: 'P-256' };

/** This join: `joinId`, and `wire` as in `start`, `accept`, `join`, `rejoin` and `transfer`. Private keys never leave WebCrypto. */
export class JoinKeys {
  #identity;
  #call;
  #first;
  #held = []; // generations whose envelopes are opened, newest last
  #past = []; // hashes of the deleted ones
  #next; // made, but not yet known to be stored by the server
  #made = 0;
  #madeAt = -Infinity;
  #published = 0;
  joinId;
  /** The part of a join's request that has the join key. */
  wire;

  static async make(identity, call, at = Date.now()) {
    const join = new JoinKeys();
    join.#identity = identity;
    join.#call = call;
    join.joinId = random(16);
    join.#first = await join.#generate(0, at);
    join.#held = [join.#first];
    join.wire = { joinId: toBase64(join.joinId), joinKey: join.#first.wire };
    return join;
  }

  /** The pair of generation 0, with which private messages are sealed. */
  get pair() {
    return this.#first.pair;
  }

  /** The newest generation that the server certainly has: in epochs announced from now on lower ones are refused. */
  get published() {
    return this.#published;
  }

  /** The held generation whose public key has this hash: `{generation, pair}`. */
  holder(hash) {
    return this.#held.find((held) => equal(held.hash, hash));
  }

  /** Whether a key with this hash belonged to this device and was replaced. */
  isPast(hash) {
    return this.#past.some((past) => equal(past, hash));
  }

  /** The joinKey for the next confirmation, if one is due or was not accepted yet. `isDue`: the secret of a fresh epoch arrived or was made. */
  async refresh(now, isDue) {
    if (!this.#next && isDue && now - this.#madeAt >= REFRESH_MS) {
      this.#madeAt = now;
      this.#next = await this.#generate(this.#made + 1, Date.now());
      this.#made += 1;
      this.#held.push(this.#next);
    }
    return this.#next?.wire;
  }

  /** The server has stored it. */
  markPublished(wire) {
    if (this.#next?.wire !== wire) return;
    this.#published = this.#next.generation;
    this.#next = undefined;
  }

  /** An envelope for `generation` opened: earlier ones no longer open any. */
  opened(generation) {
    this.#past.push(...this.#held.filter((held) => held.generation < generation).map(({ hash }) => hash));
    this.#held = this.#held.filter((held) => held.generation >= generation);
  }

  async #generate(generation, at) {
    const pair = await crypto.subtle.generateKey(curve, false, ['deriveBits']);
    const spki = await spkiOf(pair);
    const facts = { call: this.#call, fingerprint: this.#identity.fingerprint, joinId: this.joinId, generation, at, alg: HPKE, spki };
    const { signature } = await this.#identity.sign(joinBytes(facts));
    const wire = { v: 2, alg: HPKE, publicKey: toBase64(spki), generation, at, signature: toBase64(signature) };
    return { generation, pair, wire, hash: await sha256(spki) };
  }
}

/** Whether the device with `keys` signed the join key for this stay in this call. */
export function isJoinKeySigned({ fingerprint, joinId }, { alg, publicKey, generation, at, signature }, call, keys) {
  const sign = keys.find((key) => key.use === 'sign');
  const facts = { call, fingerprint: fromBase64(fingerprint), joinId: fromBase64(joinId), generation, at, alg, spki: fromBase64(publicKey) };
  return isSignedBy(keys, sign?.alg, fromBase64(signature), joinBytes(facts));
}

/** The newest join key seen of each stay of others: nothing is sealed to an older one, or to a different one of the same generation. */
export class SeenJoinKeys {
  #newest = new Map(); // fingerprint/joinId -> {generation, publicKey}

  /** Whether `joinKey` is as new as the one seen of the stay; remembers it then. */
  accepts({ fingerprint, joinId }, { generation, publicKey }) {
    const stay = `${fingerprint}/${joinId}`;
    const known = this.#newest.get(stay);
    if (known && (generation < known.generation || (generation === known.generation && publicKey !== known.publicKey))) return false;
    this.#newest.set(stay, { generation, publicKey });
    return true;
  }

  /** Forgets the stays that are not on `list`. */
  keep(list) {
    const stays = new Set(list.map(({ fingerprint, joinId }) => `${fingerprint}/${joinId}`));
    for (const stay of this.#newest.keys()) if (!stays.has(stay)) this.#newest.delete(stay);
  }
}
