// The participants and joinIds with which the devices of a ring's list have joined: under epoch 1 known only from the server (protocol section 5, "Sender
// keys").

/** `user/device` of each participant of `members`, with `{participant, joinId}`. */
export function seatsOf(members) {
  const seats = new Map();
  for (const { user, participants } of members) {
    for (const { device, participant, joinId } of participants) seats.set(`${user}/${device}`, { participant, joinId });
  }
  return seats;
}

/** Seats by `user/device`. A number or joinId that another device has, or this one, counts for nobody else. */
export class Seats extends Map {
  #own;
  #taken = new Map(); // number or joinId -> `user/device`

  /** `own`: `{user, device, participant, joinId}`. */
  constructor(own) {
    super();
    this.#own = own;
  }

  /** Notes `seats`, a map of the same kind; returns the refused participants. */
  add(seats) {
    const refused = [];
    for (const [name, { participant, joinId }] of seats) {
      if (!joinId || name === `${this.#own.user}/${this.#own.device}`) continue;
      const isTaken = (fact) => (this.#taken.get(fact) ?? name) !== name;
      if (participant === this.#own.participant || joinId === this.#own.joinId || isTaken(participant) || isTaken(joinId)) {
        refused.push(participant);
        continue;
      }
      this.#taken.set(participant, name).set(joinId, name);
      this.set(name, { participant, joinId });
    }
    return refused;
  }

  /** `{user, device}` of a number that counts for a device. */
  ownerOf(participant) {
    const name = this.#taken.get(participant);
    if (name === undefined) return undefined;
    const [user, device] = name.split('/');
    return { user, device };
  }

  /** The numbers of a list are taken. */
  takeFrom(list) {
    for (const { user, device, participant, joinId } of list) {
      if (participant > 0) this.#taken.set(participant, `${user}/${device}`).set(joinId, `${user}/${device}`);
    }
  }
}
