// Rules of when a call on this device joins again, as another participant, and how often it tries (protocol section 4, rule 16).

/** @typedef {import('./call-requests.js').CallConnection} CallConnection */

import { isGuest } from '../guests.js';

const RETRY_MS = 1_000;
const REFUSALS = 5; // in a row, before the call is abandoned; a server that is down does not count

const OVER = ['call.not-found', 'call.ended', 'auth.forbidden'];
const CLOSED = ['refused', 'replaced', 'removed', 'closed'];
const AWAY = ['connection-lost', 'timeout', 'server.busy', 'rate.limited', 'internal'];

/**
 * A verdict is `rejoin`; `stay`, in which case a hold that nobody asked for is taken back; `elsewhere`,
 * `removed` or `lost`: the call is over here; or undefined, if nothing follows.
 *
 * Events: `change` of `isJoining`.
 */
export class Recovery extends EventTarget {
  /** @type {CallConnection} */
  #connection;
  #joining;
  #joinedOn = 0; // the number of the connection
  #hasRejoinedForKeys = false;

  constructor(connection) {
    super();
    this.#connection = connection;
  }

  get isJoining() {
    return this.#joining !== undefined;
  }

  /** The call was joined on this connection. */
  joined() {
    this.#joinedOn = this.#connection.connectionNumber;
  }

  /** While `action` is under way the call is being joined again; an action that is under way is the result of another call. */
  during(action) {
    this.#joining ??= action().finally(() => {
      this.#joining = undefined;
      this.#changed();
    });
    this.#changed();
    return this.#joining;
  }

  /** Repeats `join()` until it succeeds or is in vain. Resolves with the verdict. */
  async repeat(join) {
    for (let refused = 0; refused < REFUSALS; ) {
      try {
        await join();
        return 'stay';
      } catch (error) {
        if (OVER.includes(error.code)) break;
        if (error.code === 'call.answered-elsewhere') return 'elsewhere';
        if (CLOSED.includes(this.#connection.status)) break;
        if (!AWAY.includes(error.code)) refused += 1;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
    return 'lost';
  }

  /** Whether to join again because of the keys. Only once per call automatically: if a server breaks the history again and again, the person has to decide. */
  takeTurnForKeys() {
    const isFirst = !this.#hasRejoinedForKeys;
    this.#hasRejoinedForKeys = true;
    return isFirst;
  }

  /** The call's state, `facts`, was received; `participant` is this device's number, if it has one. Absent or not connected after the connection was lost means joining again. */
  afterState(participant, facts) {
    if (!participant || this.#joining || this.#joinedOn === this.#connection.connectionNumber) return undefined;
    this.joined();
    if (facts.elsewhere) return 'elsewhere';
    return facts.participant(participant)?.connected ? 'stay' : 'rejoin';
  }

  /** This user's other device has taken the call, or this one was removed. A loss is different, and means returning. */
  afterOwnChange({ cause }, participant, facts) {
    if (!participant || this.#joining) return undefined;
    if (facts.participant(participant)) return 'stay';
    const isWrong = cause === 'removed' && !isGuest(this.#connection.identity.user); // members are never removed, whatever a server says
    if (cause === 'disconnected' || cause === 'failed' || isWrong) return 'rejoin';
    return facts.elsewhere ? 'elsewhere' : 'removed';
  }

  #changed() {
    this.dispatchEvent(new Event('change'));
  }
}
