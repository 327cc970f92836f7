// When a call on this device joins again, as another participant, and how often it tries (protocol section 4, rule 16).

const RETRY_MS = 1_000;
const REFUSALS = 5; // in a row, before the call is abandoned; a server that is down does not count

const OVER = ['call.not-found', 'call.ended', 'auth.forbidden'];
const CLOSED = ['refused', 'replaced', 'removed', 'closed'];
const AWAY = ['connection-lost', 'timeout', 'server.busy', 'rate.limited', 'internal'];

/**
 * `leave()` abandons the previous join, `join()` joins again and sends what was sent before; `over(detail)` ends the call here; `changed()` follows each change
 * of `isJoining`.
 */
export class Recovery {
  #call;
  #connection;
  #leave;
  #join;
  #over;
  #changed;
  #joining;
  #joinedOn = 0; // the number of the connection
  #hasRejoinedForKeys = false;

  constructor({ call, connection, leave, join, over, changed }) {
    this.#call = call;
    this.#connection = connection;
    this.#leave = leave;
    this.#join = join;
    this.#over = over;
    this.#changed = changed;
  }

  get isJoining() {
    return this.#joining !== undefined;
  }

  /** The call was joined on this connection. */
  joined() {
    this.#joinedOn = this.#connection.connectionNumber;
  }

  /** Returns as a new participant, with what this device sent before. */
  rejoin() {
    this.#joining ??= this.#rejoin().finally(() => {
      this.#joining = undefined;
      this.#changed();
    });
    this.#changed();
    return this.#joining;
  }

  /** Only once per call automatically: if a server breaks the history again and again, the person has to decide. */
  rejoinForKeys() {
    if (this.#hasRejoinedForKeys) return this.#changed();
    this.#hasRejoinedForKeys = true;
    return void this.rejoin();
  }

  /** The call's state was received. Absent or not connected after the connection was lost means joining again. */
  stateTold() {
    const { participant, facts } = this.#call;
    if (!participant || this.#joining || this.#joinedOn === this.#connection.connectionNumber) return;
    this.joined();
    if (facts.elsewhere) this.#over({ reason: 'elsewhere' });
    else if (!facts.participant(participant)?.connected) this.rejoin();
    else this.#insist();
  }

  /** This user's other device has taken the call, or this one was removed. A loss is different, and means returning. */
  ownMemberTold({ cause }) {
    const { participant, facts } = this.#call;
    if (!participant || this.#joining) return undefined;
    if (facts.participant(participant)) return this.#insist();
    if (cause === 'disconnected' || cause === 'failed') return void this.rejoin();
    return this.#over({ reason: facts.elsewhere ? 'elsewhere' : 'removed' });
  }

  async #rejoin() {
    this.#leave();
    for (let refused = 0; refused < REFUSALS && !this.#call.hasEnded; ) {
      try {
        await this.#join();
        return this.#insist();
      } catch (error) {
        if (OVER.includes(error.code)) break;
        if (error.code === 'call.answered-elsewhere') return this.#over({ reason: 'elsewhere' });
        if (CLOSED.includes(this.#connection.status)) break;
        if (!AWAY.includes(error.code)) refused += 1;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
    return this.#over({ reason: 'lost' });
  }

  /** When a call comes back on hold, the server puts the active call on hold. The user did not ask for that. */
  #insist() {
    const { participant, facts, isHeld, hasEnded } = this.#call;
    if (facts.participant(participant)?.held && !isHeld && !hasEnded) this.#call.request('hold', { held: false }).catch(() => {});
  }
}
