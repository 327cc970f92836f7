// The state of a call as reported by the server: its phase, its people, their tracks. No sockets and no media: facts, and the news in them.

import { isGuest } from '../guests.js';
import { Refusal, callIn, isWhole, memberIn, participantIn, trackIn } from '../wire/index.js';
import { Members } from './members.js';

const MAX_MEMBERS = 4_096;
const ROTATE_MINUTES = 10;
const MOST_ROTATE_MINUTES = 1_440;

/** The server always sends one. */
const isRevision = (value) => value === undefined || isWhole(value, 0, Number.MAX_SAFE_INTEGER);

export class CallState {
  id;
  /** The revision of the newest state or change. */
  rev = 0;
  state = 'joining';
  media = 'video';
  initiator;
  startedAt;
  /** When somebody other than the initiator joined first; undefined before. */
  answeredAt;
  epoch = 0;
  policy = {};
  members = new Members([]);
  quality;
  #wereConnected = new Set(); // numbers of participants whose media has been up
  /** Another device of this user has just joined, and no media flows there yet. */
  isArriving = false;
  #user;
  #device;

  constructor({ id, user, device }) {
    this.id = id;
    this.#user = user;
    this.#device = device;
  }

  get isInitiator() {
    return this.initiator === this.#user;
  }

  get mayInvite() {
    if (isGuest(this.#user)) return false;
    return this.policy?.invite !== 'initiator' || this.isInitiator;
  }

  get others() {
    return [...this.members.values()].filter(({ user }) => user !== this.#user);
  }

  /** This user's state in the call: `ringing`, `joined`, … */
  get phase() {
    return this.members.get(this.#user)?.state;
  }

  /** The participants of this user. */
  get own() {
    return this.members.get(this.#user)?.participants ?? [];
  }

  /** The device of this user that is in the call, if it is not this one. */
  get elsewhere() {
    return this.own.some(({ device }) => device === this.#device) ? undefined : this.own[0]?.device;
  }

  /** Whether the connection of that device is lost: the call can be resumed here, and runs on no other device of this user. */
  get isLost() {
    if (!this.elsewhere) return false;
    return this.phase === 'disconnected' || (!this.isArriving && this.own.every(({ connected }) => connected === false));
  }

  /** Whether this user was in the call, so that returning is a `rejoin`. */
  get wasIn() {
    return ['joined', 'left', 'disconnected'].includes(this.phase);
  }

  /** The number of minutes after which the server must provide another key. */
  get rotateMinutes() {
    const minutes = this.policy?.rotateMinutes;
    return isWhole(minutes, 1, MOST_ROTATE_MINUTES) ? minutes : ROTATE_MINUTES;
  }

  get tracksOfOthers() {
    return this.members.tracksOfOthers(this.#user);
  }

  participant(number) {
    return this.members.find(number).found;
  }

  /** Applies the whole state. Throws `Refusal`, and changes nothing, if it contains impossible numbers or ids. */
  take(told) {
    const { id, rev, state, media, initiator, startedAt, answeredAt, epoch, policy, members } = callIn(told);
    if (this.id && id !== this.id) throw new Refusal('a state of another call');
    Object.assign(this, { id, rev: rev ?? this.rev, state, media, initiator, startedAt, answeredAt, epoch, policy: policy ?? {} });
    this.members = new Members(members);
    for (const member of members) this.#look(member);
  }

  /** Notes for each participant whether its media has been up: one that is not connected may be joining, or lost. */
  #look({ participants }) {
    for (const each of participants) {
      if (each.connected) this.#wereConnected.add(each.participant);
      each.wasConnected = this.#wereConnected.has(each.participant);
    }
  }

  /** Applies an event that changes the state, and returns its result. The revision counts unless `apply` throws. Throws `Refusal` for an invalid revision. */
  change(rev, apply) {
    if (!isRevision(rev)) throw new Refusal('a revision of another form');
    const result = apply();
    this.rev = Math.max(this.rev, rev ?? 0);
    return result;
  }

  /** `call.member`, sent `at` that time by the server's clock. Returns the notice that it deserves, if any. */
  memberChanged(change, at) {
    const { cause, ...member } = memberIn(change);
    if (this.members.size >= MAX_MEMBERS && !this.members.has(member.user)) throw new Refusal('more members than a call can have');
    this.members.set(member.user, member);
    this.#look(member);
    if (cause === 'accepted' || cause === 'joined') this.state = 'active';
    if (member.state === 'joined' && member.user !== this.initiator) this.answeredAt ??= at;
    if (member.user === this.#user && cause === 'connected') this.isArriving = false;
    return member.user === this.#user ? undefined : { kind: 'member', cause, member };
  }

  /** `track.added` and `track.updated`: whether the track is new, and the notice if it is another's screen. */
  trackSet(track) {
    if (trackIn(track.track).participant !== participantIn(track.participant)) throw new Refusal('a track of another participant');
    const { member, isNew } = this.members.setTrack(track);
    const isNews = isNew && track.source === 'screen' && member.user !== this.#user;
    return { isNew, news: isNews ? { kind: 'screen', member } : undefined };
  }

  /** `track.removed`: the notice if it is another's screen. */
  trackRemoved(track) {
    const { member, removed } = this.members.removeTrack(track);
    return removed?.source === 'screen' && member.user !== this.#user ? { kind: 'screen-stopped', member } : undefined;
  }
}
