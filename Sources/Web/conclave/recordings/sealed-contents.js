// The contents of a reel that a device wrote: each segment is sealed as a whole, under a key of its own.

import { Refusal } from '../wire/index.js';
import { timedFrames } from './clocks.js';
import { parseRecords } from './records.js';
import { openSegment } from './segment.js';

const KEPT_EVERY = 32; // of how many chain keys one is kept, for going back

export class SealedContents {
  #keys;

  /** `chainKey` is that of segment 0. */
  constructor(chainKey) {
    this.reel = chainKey.reel;
    this.#keys = new Map([[0, chainKey]]);
  }

  /** `{records, frames, end, isDamaged}` of a file whose parsed header is `header`. Throws `Refusal` if it was changed. */
  async open(file, header) {
    if (!header.isSealed) throw new Refusal('a segment that is not sealed');
    const parsed = parseRecords(await openSegment(file, header, await this.#keyOf(header.n)));
    return { ...parsed, frames: timedFrames(parsed.records, header.start) };
  }

  /** The seal of a segment covers all of it, and witnesses say where the reel ends. */
  get state() {
    return undefined;
  }

  async #keyOf(n) {
    let from = n;
    while (!this.#keys.has(from)) from -= 1;
    let key = this.#keys.get(from);
    while (key.n < n) {
      key = await key.next();
      if (key.n % KEPT_EVERY === 0 || key.n === n) this.#keys.set(key.n, key);
    }
    return key;
  }
}
