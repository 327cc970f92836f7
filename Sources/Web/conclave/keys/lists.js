// The lists of a call that this join has accepted, and the consequences of a refused one. `ListHistory` has the rules.

import { Refusal } from '../wire/index.js';
import { BrokenHistory, ListHistory } from './list-history.js';
import { ringKeys } from './ring-keys.js';
import { NotListed } from './roster.js';

/** `own` as for `ListHistory`. Events: `broken`: the history does not fit, and only a new join helps; `unlisted`: a list without this join arrived. */
export class Lists extends EventTarget {
  isBroken = false;
  #call;
  #own;
  #history;
  #warnings;

  constructor({ call, own, warnings }) {
    super();
    this.#call = call;
    this.#own = own;
    this.#history = new ListHistory({ call, own });
    this.#warnings = warnings;
  }

  /** The newest accepted list; undefined before the first. */
  get newest() {
    return this.#history.newest;
  }

  /** Epoch 1 as made by this device. */
  begin(list) {
    return this.#history.begin(list);
  }

  /** `{accepted, secret}` of epoch 1 as brought by a ring. Throws and changes nothing if the ring must not be used. */
  async beginRung(ring, options) {
    const history = new ListHistory({ call: this.#call, own: this.#own });
    const found = await ringKeys(ring, { ...options, history, call: this.#call });
    this.#history = history;
    return found;
  }

  /** Whether an announcement, or the reply of `keys/list`, is for an earlier stay of this device. */
  isEarlier(announcement) {
    return !this.newest && !this.#history.isFirst(announcement);
  }

  /** Whether lists between the newest one and that of `epoch` are missing. */
  isAhead(epoch) {
    return this.newest !== undefined && epoch > this.newest.epoch + 1;
  }

  /** Accepts the next announcement; undefined if it is not new. Throws if it must be refused. */
  next(announcement) {
    const place = this.#history.place(announcement);
    if (place === 'gap') throw new Refusal('an epoch that the server’s own list does not know');
    return place === 'next' ? this.#history.next(announcement) : undefined;
  }

  /** Accepts the reply of `keys/list`; undefined if it brings nothing new. */
  catchUp(reply) {
    return this.#history.catchUp(reply);
  }

  refuse(error) {
    this.#warnings.refuse(error);
    if (error instanceof BrokenHistory) {
      this.isBroken = true;
      this.#warnings.warn('broken-history');
      this.dispatchEvent(new Event('broken'));
      return;
    }
    if (error instanceof NotListed) this.dispatchEvent(new Event('unlisted'));
    if (error instanceof Refusal) this.#warnings.warn('refused-list', { epoch: this.newest?.epoch ?? 0 });
  }
}
