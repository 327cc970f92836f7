// Opens a recording: whose it is, whether this device may read it, and its reels.

import { Untimely, openGrant, openStatement, openTrackKeys } from '../consent/index.js';
import { fingerprintOf, sameDevice } from '../trust/index.js';
import { Refusal } from '../wire/index.js';
import { CallContents } from './call-contents.js';
import { openReelKey } from './chain-key.js';
import { openNote } from './notes.js';
import { ReelReader } from './reel-reader.js';
import { SealedContents } from './sealed-contents.js';
import { isWitnessSigned } from './witnesses.js';

/**
 * A recording that cannot be read. `code` is `not-signed` (it is not from whom the server says), `no-key` (this device has no grant that counts) or `too-early` (its time
 * is to come: one of the two clocks is wrong).
 */
export class Unreadable extends Refusal {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/**
 * `statement` is what the starter's device signed, `pair` the recording's key pair, `scalar` its private half, for further grants: whoever does not grant wipes
 * it. `reels` is a map of `ReelReader` by number, `people` one of those whose reels they are: `{user, device, level}`. `level` is how far the starter's device is trusted.
 */
export class RecordingReader {
  statement;
  st;
  level;
  pair;
  scalar;
  /** The fingerprint of the starter’s device. */
  fingerprint;
  reels = new Map();
  people = new Map();
  #keys; // of the starter’s device

  /**
   * Opens `manifest` (see `manifestIn`). `trusted(device)` resolves with `{keys, level}` of a device, `{user, device, fingerprint?, keys?}`, as it is pinned
   * here, or with undefined. `own` is this device, see `openGrant`. `remembered` is a map of what was seen of each reel.
   * Throws `Unreadable`.
   */
  static async open(manifest, { trusted, own, now, remembered = new Map() }) {
    const reader = new RecordingReader();
    await reader.#identify(manifest, { trusted, now });
    await reader.#unlock(manifest, { trusted, own });
    const isOfCall = manifest.statement.kind === 'call';
    for (const reel of manifest.reels) await (isOfCall ? reader.#readStay(manifest, reel, { trusted, remembered: remembered.get(reel.reel) }) : reader.#readReel(manifest, reel, remembered.get(reel.reel)));
    return reader;
  }

  async #identify({ statement, people }, { trusted, now }) {
    const starter = people.find((person) => sameDevice(person, statement.by));
    const found = starter && (await trusted(starter));
    if (!found) throw new Unreadable('not-signed', 'a recording of a device that is not trusted');
    this.statement = statement;
    this.level = found.level;
    this.#keys = found.keys;
    this.fingerprint = await fingerprintOf(starter.user, starter.device, found.keys);
    this.st = await openStatement(statement, { keys: found.keys, fingerprint: this.fingerprint, now }).catch((error) => {
      throw new Unreadable(error instanceof Untimely ? 'too-early' : 'not-signed', error.message);
    });
  }

  /** The first grant that counts: the server may have added others. */
  async #unlock({ grants = [] }, { trusted, own }) {
    const { id, publicKey } = this.statement;
    let why = 'no grant for this device';
    for (const grant of grants) {
      const keys = sameDevice(grant.from, this.statement.by) ? this.#keys : (await trusted(grant.from))?.keys;
      if (!keys) continue;
      try {
        Object.assign(this, await openGrant(grant, { id, st: this.st, publicKey, own, keys }));
        return;
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        why = error.message;
      }
    }
    throw new Unreadable('no-key', why);
  }

  /** A reel without a key that counts is left out: the others play. */
  async #readReel({ people, reelKeys = [], witnesses = [] }, { reel, from, segments }, remembered) {
    const { statement, st, pair, fingerprint } = this;
    const writer = people.find(({ participant }) => participant === reel);
    const key = reelKeys.find((each) => each.reel === reel);
    if (from !== 0 || !key || !writer || !sameDevice(writer, statement.by)) return;
    const scope = { id: statement.id, st, reel, pair, keys: this.#keys, fingerprint };
    const chainKey = await openReelKey(key, scope).catch(() => undefined);
    if (!chainKey) return;
    const good = await this.witnesses(witnesses, reel);
    this.#add(writer, this.level, new ReelReader({ id: statement.id, contents: new SealedContents(chainKey), segments, witnesses: good, remembered }));
  }

  /** A participant's reel of a call: one whose device is not as it is pinned here is left out. Track keys that the device has not signed open nothing. */
  async #readStay({ people, trackKeys = [] }, { reel, from, segments }, { trusted, remembered }) {
    const { statement, st, pair } = this;
    const person = people.find(({ participant, joinId }) => participant === reel && joinId);
    const found = person && (sameDevice(person, statement.by) ? { keys: this.#keys, level: this.level } : await trusted(person));
    if (from !== 0 || !found) return;
    const stay = { participant: reel, joinId: person.joinId, keys: found.keys, fingerprint: await fingerprintOf(person.user, person.device, found.keys) };
    const keys = new Map();
    for (const exported of trackKeys.filter(({ participant }) => participant === reel)) {
      const opened = await openTrackKeys(exported, { st, pair, stay }).catch(() => new Map());
      for (const [n, key] of opened) keys.set(`${exported.epoch}/${n}`, key);
    }
    this.#add(person, found.level, new ReelReader({ id: statement.id, contents: new CallContents({ participant: reel, keys }), segments, witnesses: [], remembered }));
  }

  #add({ participant, user, device }, level, reel) {
    this.reels.set(participant, reel);
    this.people.set(participant, { user, device, level });
  }

  /** Those of `witnesses` that the starter's device has signed for `reel`. */
  async witnesses(witnesses, reel) {
    const signed = await Promise.all(witnesses.map((witness) => witness.reel === reel && isWitnessSigned(witness, { st: this.st, keys: this.#keys })));
    return witnesses.filter((_, index) => signed[index]);
  }

  /** `{notes, missing}`: the contents by number, as far as they are the starter's, and the numbers that the server has left out. */
  async notes(list) {
    const opened = new Map();
    for (const note of list) {
      const content = await openNote(note, { st: this.st, pair: this.pair, keys: this.#keys }).catch(() => undefined);
      if (content) opened.set(note.number, content);
    }
    const highest = Math.max(-1, ...opened.keys());
    const missing = Array.from({ length: highest + 1 }, (_, number) => number).filter((number) => !opened.has(number));
    return { notes: opened, missing };
  }
}
