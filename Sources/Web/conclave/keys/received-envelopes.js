// Received envelopes: which of them bring an epoch's secret, and the one that waits until its signer is trusted (protocol section 5, "Envelope").

import { sameDevice } from '../trust/index.js';
import { Refusal } from '../wire/index.js';
import { openEnvelope } from './envelopes.js';

/**
 * `accept(record, secret)` is called with the secret of a valid one; `warnings` is the call's `KeyWarnings`, `lists` has the newest epoch;
 * `request(path, body)` sends to `/app/calls/{id}/…`.
 */
export class ReceivedEnvelopes {
  #call;
  #identity;
  #join;
  #request;
  #accept;
  #lists;
  #warnings;
  #kept; // {envelope, record, settle}: the newest of a device that is not trusted
  #waited = new Set();

  constructor({ call, identity, join, request, accept, lists, warnings }) {
    this.#call = call;
    this.#identity = identity;
    this.#join = join;
    this.#request = request;
    this.#accept = accept;
    this.#lists = lists;
    this.#warnings = warnings;
  }

  /**
   * Handles an envelope (see `envelopeIn`) of the epoch of `record`. Returns true if it was opened, `{later}`, a promise of that, while its signer is not
   * trusted. Throws `Refusal` for one that proves nothing.
   */
  async take(envelope, record) {
    const signer = record.roster.find(envelope.from);
    if (!signer || sameDevice(signer, this.#identity)) throw new Refusal('an envelope from a device that is not on the list');
    const held = this.#join.holder(envelope.key);
    if (this.#join.isPast(envelope.key) || (record.epoch > 1 && held?.generation < record.leastGeneration)) {
      this.#warnings.warn('withheld-join-key', { epoch: record.epoch });
      throw new Refusal('an envelope that is sealed to an older key');
    }
    if (!held) throw new Refusal('an envelope that is sealed to another key');
    const keys = record.keysOfGiver(signer);
    if (!keys) return this.#wait(envelope, record);
    const { listHash } = record;
    const secret = await openEnvelope(envelope, { identity: this.#identity, call: this.#call, listHash, pair: held.pair, keys });
    try {
      await this.#accept(record, secret);
    } finally {
      secret.fill(0);
    }
    this.#join.opened(held.generation);
    return true;
  }

  /** An envelope did not open. Returns false, which reports that to the server. */
  refuse(error) {
    this.#warnings.refuse(error);
    if (error instanceof Refusal) this.#warnings.warn('refused-envelope', { epoch: this.#lists.newest?.epoch ?? 0 });
    return false;
  }

  /** More is known about the devices on the list of `record`: the kept envelope may open now. */
  async retry(record) {
    const { envelope, record: its, settle } = this.#kept ?? {};
    if (its !== record || !record.isWanting || !record.keysOfGiver(record.roster.find(envelope.from))) return;
    this.#kept = undefined;
    settle(await this.take(envelope, record).catch((error) => this.refuse(error)));
  }

  /** A newer epoch was announced: the kept envelope is of no use any longer. */
  forgetBefore(epoch) {
    if (this.#kept?.envelope.epoch < epoch) this.#keep(undefined);
  }

  /** The signer is not trusted: the person may come to trust it, and the server and the signer are notified. */
  #wait(envelope, record) {
    const later = new Promise((settle) => this.#keep({ envelope, record, settle }));
    if (!this.#waited.has(record.epoch)) {
      this.#waited.add(record.epoch);
      this.#request('keys/wait', { epoch: record.epoch, reason: 'trust' }).catch(() => {});
    }
    return { later };
  }

  #keep(kept) {
    this.#kept?.settle(true); // superseded, or over
    this.#kept = kept;
  }
}
