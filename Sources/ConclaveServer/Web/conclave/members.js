// The members of a call with their participants and tracks, as the server tells of them; by user.

export class Members extends Map {
  constructor(members) {
    super(members.map((member) => [member.user, member]));
  }

  /** The member and participant that a number stands for; neither when it is gone. */
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

  removeTrack({ track, participant }) {
    const { found } = this.find(participant);
    if (found) found.tracks = found.tracks.filter((other) => other.track !== track);
  }

  tracksOfOthers(user) {
    const others = [...this.values()].filter((member) => member.user !== user);
    return others.flatMap(({ participants }) => participants.flatMap(({ tracks }) => tracks));
  }
}
