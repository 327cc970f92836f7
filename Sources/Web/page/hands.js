// Raised hands of one call, by participant.

export class Hands {
  #raised = new Set();

  /** Handles a message of the call; returns whether it is about a hand. */
  take({ participant, hand }) {
    if (hand === undefined) return false;
    if (hand) this.#raised.add(participant);
    else this.#raised.delete(participant);
    return true;
  }

  isRaised(participant) {
    return this.#raised.has(participant);
  }

  /** The hands of participants who have left are down. `participants` is the set of those who are there. */
  keep(participants) {
    for (const participant of this.#raised) if (!participants.has(participant)) this.#raised.delete(participant);
  }
}
