// The members of a call with their participants and tracks, as reported by the server; by user.

/** Whether this member is in the call, and the media of all its devices was up and is gone: it may return. */
export function isLost({ state, participants }) {
  const isGone = ({ connected, wasConnected }) => !connected && (state === 'disconnected' || wasConnected);
  return participants.length > 0 && participants.every(isGone);
}

export class Members extends Map {
  constructor(members) {
    super(members.map((member) => [member.user, member]));
  }

  /** The member and participant of a number; neither if it is gone. */
  find(participant) {
    for (const member of this.values()) {
      const found = member.participants.find((other) => other.participant === participant);
      if (found) return { member, found };
    }
    return {};
  }

  setTrack({ track, source, kind, muted, participant }) {
    const { member, found } = this.find(participant);
    if (!found) return { member, isNew: false };
    const isNew = !found.tracks.some((other) => other.track === track);
    found.tracks = [...found.tracks.filter((other) => other.track !== track), { track, source, kind, muted }];
    return { member, isNew };
  }

  /** Returns the removed track, if it was there, and its member. */
  removeTrack({ track, participant }) {
    const { member, found } = this.find(participant);
    const removed = found?.tracks.find((other) => other.track === track);
    if (removed) found.tracks = found.tracks.filter((other) => other !== removed);
    return { member, removed };
  }

  tracksOfOthers(user) {
    const others = [...this.values()].filter((member) => member.user !== user);
    return others.flatMap(({ participants }) => participants.flatMap(({ tracks }) => tracks));
  }
}
