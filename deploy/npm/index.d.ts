// The types of conclave-client: every public member and every event. `protocol.d.ts` beside this file is made of the protocol's declarations in docs/clients.md.

import type { Bytes, CallId, Device, Id, Media, Policy, Requests, Results, Source, Time, TrackId, Participant } from './protocol.js';

export type { Bytes, CallId, Device, Events, Id, Media, Participant, Policy, Requests, Results, Source, Time, TrackId } from './protocol.js';
export {};

/** Whether this browser can take part in calls. */
export function isSupported(): boolean;
/** Whether the browser can blur what is behind the person on this camera's track. */
export function canBlur(track: MediaStreamTrack | undefined): boolean;
/** Whether a user came by a link, without an account: mark the name wherever it is shown. */
export function isGuest(user: unknown): boolean;
/** Whether a member is in the call, and the media of all its devices was up and is gone: it may come back. */
export function isLost(member: Member): boolean;
/** A fingerprint in base64 as people read it: 8 groups of 8 hexadecimal digits. */
export function readable(fingerprint: Bytes): string;

/** A request that was refused, or got no answer: `connection-lost`. */
export class RequestError extends Error {
  constructor(error: { code: string; message: string; field?: string; retryAfterMs?: number; call?: CallId });
  /** A code of the protocol's section "Errors". */
  readonly code: string;
  readonly details: { field?: string; retryAfterMs?: number; call?: CallId };
}

/** Events by name, each with its `detail`. */
declare abstract class Emitter<Details> extends EventTarget {
  addEventListener<Name extends keyof Details & string>(
    type: Name, listener: (event: CustomEvent<Details[Name]>) => void, options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(type: string, listener: EventListenerOrEventListenerObject | null, options?: boolean | AddEventListenerOptions): void;
}

export type Status = 'connecting' | 'ready' | 'reconnecting' | 'refused' | 'replaced' | 'removed' | 'closed';

export interface Options {
  /** The server's WebSocket, `wss://host/stomp`. */
  url: string;
  /** This browser's id among the user's devices; keep it, for a new id is a new device to everybody. `guest` for a guest. */
  device: Id;
  /** The device's name for people, up to 256 bytes in UTF-8. */
  name?: string;
  /** The token and its user, at each connect; `wasRefused` says that the last token was not taken. An error with `isFinal` ends the connecting. */
  credentials(wasRefused: boolean): Promise<{ token: string; user: Id }>;
  /** Where the app serves `sframe-worker.js`, if not beside the bundle. */
  workerURL?: string;
}

/** The sources of a device that joins: `true` opens the device's own, a track of the app's is sent as a copy, `false` leaves it off. */
export interface Sources {
  camera?: boolean | MediaStreamTrack;
  microphone?: boolean | MediaStreamTrack;
}

export interface CallOptions extends Sources {
  /** `video` by default, or `audio` without a camera. */
  media?: Media;
  policy?: Policy;
  /** For those who are rung, up to 2 KiB before base64. The server can read it. */
  metadata?: Bytes;
}

export interface Ring {
  call: CallId;
  from: Id;
  media: Media;
  members: Member[];
  /** Whether this device is in another call. */
  waiting?: boolean;
  at?: Time;
  expiresAt: Time;
  metadata?: Bytes;
}

export type RingEnd = 'answered' | 'answered-elsewhere' | 'declined-elsewhere' | 'cancelled' | 'missed' | 'ended';

export interface Track { track: TrackId; source: Source; kind: Media; muted: boolean }
export interface InCall { participant: Participant; device: Id; joinId: Bytes; connected: boolean; held: boolean; tracks: Track[] }
export interface Member {
  user: Id;
  name?: string;
  /** Came by a link. */
  link?: boolean;
  state: 'ringing' | 'joined' | 'left' | 'declined' | 'missed' | 'cancelled' | 'disconnected';
  participants: InCall[];
}

/** A call that this device is not in. */
export interface CallFacts {
  readonly id: CallId;
  readonly state: string;
  readonly media: Media;
  readonly initiator: Id;
  readonly startedAt: Time;
  readonly members: ReadonlyMap<Id, Member>;
  /** The user's other device that is in the call. */
  readonly elsewhere: Id | undefined;
  readonly mayInvite: boolean;
  readonly wasIn: boolean;
}

export interface PastCall {
  id: CallId;
  direction: 'incoming' | 'outgoing';
  outcome: 'answered' | 'missed' | 'declined' | 'cancelled';
  media: Media;
  members: { user: Id; name?: string }[];
  startedAt: Time;
  seconds: number;
  rejoinable: boolean;
}

export interface NamedDevice extends Device { fingerprint: Bytes }

/** News about somebody's device or keys, or an act of the server's that was refused. */
export interface Warning { problem: string; user?: Id; device?: Id; fingerprint?: Bytes }

export interface ConclaveEvents {
  /** `status` is another. */
  connection: undefined;
  /** After each connect. */
  ready: undefined;
  ring: Ring;
  'ring-over': { ring: Ring; reason: RingEnd; by?: Id };
  /** A call came, went or is held. */
  calls: undefined;
  /** Any call that is over for all. */
  'call-over': CallId;
  presence: undefined;
  /** About a device that is in no call here. */
  warning: Warning;
  /** `identity` and `ownDevices` are others. */
  identity: undefined;
}

/** One device of one user: its connection to a Conclave server, rings and calls. */
export class Conclave extends Emitter<ConclaveEvents> {
  constructor(options: Options);
  readonly status: Status;
  /** Why the status is `refused`: `token-refused`, `wrong-identity`, or the message of a final error of `credentials`. */
  readonly reason: string;
  /** Why no connection comes about although the server answers; `connection` tells of it. */
  readonly obstacle: 'origin' | 'websocket' | (string & {}) | undefined;
  readonly workerURL: string;
  readonly identity: { readonly user: Id; readonly device: Id; readonly fingerprint: Uint8Array } | undefined;
  readonly ownDevices: OwnDevices | undefined;
  readonly presence: Presence;
  readonly capture: Capture;
  readonly push: Push;
  readonly user: Id | undefined;
  /** Whether this device's keys, and what it knows of others, outlive the page. */
  readonly keepsKeys: boolean;
  /** The call that is talked in, if any. */
  readonly current: Call | undefined;
  /** Calls of this device that are on hold. */
  readonly held: Call[];
  /** Calls on another device of this user. */
  readonly elsewhere: CallFacts[];
  /** With it, devices that this user has not verified get no keys, and nothing is sent while one of them is in the call. */
  verifiedOnly: boolean;

  connect(): void;
  close(): void;
  /** Checks a connection that may be dead, and connects at once if there is none. */
  hurry(): void;
  /** The device is in another network: calls restart ICE at once. */
  networkChanged(): void;
  /** Any request of the protocol, without `/app/`. */
  request<Path extends string>(
    path: Path, body?: `/app/${Path}` extends keyof Requests ? Requests[`/app/${Path}`][0] : object,
  ): Promise<`/app/${Path}` extends keyof Requests ? Requests[`/app/${Path}`][1] : any>;

  /** Rings `callees`; `results` of the call says what became of each. If they call this user at the same moment, it is their call. */
  call(callees: Id[], options?: CallOptions): Promise<Call>;
  /** Answers a ring, or the one by which its caller has replaced it. A call that runs here is held. */
  accept(ring: Ring, options?: Sources): Promise<Call>;
  decline(ring: Ring): Promise<void>;
  /** The calls that can be joined or rejoined now. */
  joinable(): Promise<CallFacts[]>;
  /** `root` is `Call.root` from before a reload: without it a server could name another. */
  enter(facts: CallFacts, options?: Sources & { root?: Id }): Promise<Call>;
  /** The call moves here from the user's other device. */
  transfer(facts: CallFacts, options?: Sources & { root?: Id }): Promise<Call>;
  /** Both parts of a link that `makeLink` made. */
  joinByLink(id: CallId, link: { link: string; secret: string }, options?: Sources): Promise<Call>;
  /** The user who rang this device for a call last. */
  callerOf(id: CallId): Id | undefined;
  /** Talks in a held call again; the one before is held. */
  resume(call: Call): Promise<void>;
  /** The users of `users` that a call can reach. */
  reachable(users: Id[]): Promise<Set<Id>>;

  /** The person takes a device's changed key, the one with this fingerprint. Answers whether that is the key it still has. */
  trust(user: Id, device: Id, fingerprint: Bytes): Promise<boolean>;
  /** The person has verified these devices, as they were shown. Brings those that are now. */
  verify(devices: NamedDevice[]): Promise<NamedDevice[]>;
  /** Forgets this device's keys, and with `all` everything that this browser knows of its user's people. */
  forget(options?: { all?: boolean }): Promise<void>;
  /** The name of somebody's device, in the server's words. */
  deviceName(user: Id, device: Id): string | undefined;
  /** Gives this device another name. */
  rename(name: string): Promise<void>;

  /** Newest first. */
  history(options?: { before?: Time; limit?: number }): Promise<PastCall[]>;
  /** Deletes these calls, or all, from this user's own history. */
  deleteHistory(calls?: CallId[]): Promise<void>;
  totals(user: Id): Promise<{ calls: number; seconds: number }>;
}

/** The one who let a person in: by starting the call, as a member, or by a link. */
export interface Admission { how: 'start' | 'member' | 'link'; by: Id }

/** A device of the list in use. */
export interface ListedDevice extends NamedDevice {
  participant: Participant;
  joinId?: Bytes;
  level: 'verified' | 'vouched' | 'known' | 'new' | 'revoked';
  isVerified: boolean;
  /** Why this device gives it no key. */
  problem?: string;
  isNew?: boolean;
  /** It has proven that it shares the key. */
  isConfirmed: boolean;
  /** It does not trust this device. */
  isWaiting: boolean;
  admission?: Admission;
  /** The person was let in by nobody: say so. */
  isUninvited?: boolean;
}

/** Everybody who can decrypt or is in the call. */
export type RosterEntry =
  | (ListedDevice & { state: 'member' | 'stranger' | 'gone' })
  | (Device & { participant: Participant; state: 'unlisted' });

/** Why nothing is sent. */
export interface Stop {
  cause: 'stranger' | 'uninvited' | 'gone' | 'epoch-1' | 'not-shown' | 'revoked' | 'changed-key' | 'broken-history' | 'no-key' | 'unverified' | (string & {});
  /** The devices that it is about: `sendAnyway` wants them as they were shown. */
  devices: (NamedDevice & { joinId?: Bytes; isSelfRevoked?: boolean })[];
  /** The person may end it, with `sendAnyway` or `rejoin`; otherwise it ends by itself. */
  needsPerson: boolean;
}

export type Doubt =
  'no-key' | 'unlisted' | 'stranger' | 'gone' | 'returning' | 'rung' | 'uninvited' | 'untrusted' | 'untrusted-hears' | 'distrusting' | 'not-confirmed';

/** Something to draw: a device, a shared screen, somebody who is rung, or a device that can hear and is not in the call. */
export interface Tile {
  /** Stays while the tile does. */
  key: string;
  source: 'camera' | 'screen' | 'ringing' | 'listener';
  member: Member | { user: Id };
  device?: Id;
  participant?: Participant;
  isOwn?: boolean;
  isConnected?: boolean;
  /** It was connected before. */
  isLost?: boolean;
  isHeld?: boolean;
  isMuted?: boolean;
  video?: MediaStreamTrack;
  picture?: 'shown' | 'lower' | 'paused' | 'awaited' | 'unsent' | 'unsupported';
  track?: TrackId;
  doubt?: Doubt;
  admission?: Admission;
  /** The user's other devices on a ring's list. */
  rung?: Id[];
}

export type Notice =
  | { kind: 'member'; cause: string; member: Member }
  | { kind: 'screen' | 'screen-stopped'; member: Member }
  | { kind: 'screen-replaced' | 'weak-uplink' | 'weak-picture' | 'uplink-recovered' }
  | { kind: 'lost-device'; source: 'microphone' | 'camera' }
  | { kind: 'no-device'; source: 'microphone' | 'camera'; error: string }
  | { kind: 'media-failed'; error: string };

/** Words that the speaker's own browser has recognised: a line gets more revisions until one is final, then the next line begins. */
export interface Caption {
  caption: string;
  line: number;
  revision: number;
  final: boolean;
  /** BCP 47; '' if the speaker has not said it. */
  lang: string;
}

export type Message = { text: string } | { reaction: string } | { hand: boolean } | { removed: Id } | Caption;

export interface CallEvents {
  /** Anything of the call, for a page that draws all of it at once; the next seven each tell of the property of their name. */
  change: undefined;
  path: undefined;
  code: undefined;
  quality: undefined;
  hasKey: undefined;
  stop: undefined;
  /** Somebody came or went, or sends other tracks. */
  members: undefined;
  /** This device sends something else. */
  local: undefined;
  speaking: undefined;
  /** Frames that did not open. */
  failures: { count: number };
  notice: Notice;
  warning: Warning;
  message: { participant: Participant; isPrivate: boolean } & Message;
  /** The call is over here, perhaps not for others. */
  ended: { reason: string; by?: Id };
}

/** A call on this device. */
export class Call extends Emitter<CallEvents> {
  private constructor();
  readonly id: CallId;
  readonly user: Id;
  readonly device: Id;
  /** This device's number in the call; 0 until it has joined. */
  readonly participant: Participant;
  readonly state: 'joining' | 'ringing' | 'active' | 'ended' | (string & {});
  readonly hasEnded: boolean;
  /** The path of the media. */
  readonly path: 'connecting' | 'connected' | 'reconnecting' | 'held';
  readonly startedAt: Time | undefined;
  /** When the first other person joined. */
  readonly answeredAt: Time | undefined;
  readonly members: ReadonlyMap<Id, Member>;
  /** The result of each ring, in a call that this device started. */
  readonly results: Results | undefined;
  readonly isInitiator: boolean;
  readonly mayInvite: boolean;
  readonly isHeld: boolean;
  /** Whether the camera is to be on, when it can be. */
  readonly wantsCamera: boolean;
  /** The digits to compare by voice, '' before the first key. */
  readonly code: string;
  readonly epoch: number;
  readonly hasKey: boolean;
  readonly isKeyOld: boolean;
  readonly hasUnverified: boolean;
  readonly devices: ListedDevice[];
  readonly roster: RosterEntry[];
  readonly stop: Stop | undefined;
  readonly confirmation: { state: 'confirming' | 'confirmed' | 'not-confirmed' | (string & {}); missing: ListedDevice[]; confirmed: Set<Bytes> };
  /** Play all of them. */
  readonly audioTracks: MediaStreamTrack[];
  /** The participants that are loud now. */
  readonly speaking: Set<Participant>;
  /** How this device receives, as the server sees it. */
  readonly quality: 0 | 1 | 2 | 3 | 4 | (number & {}) | undefined;

  /** This device's own source. */
  local(source: Source): { isOn: boolean; track: MediaStreamTrack | undefined };
  tiles(): Tile[];
  ownerOf(participant: Participant): Member | { user: Id } | undefined;
  /** The device of a participant's number by the lists of keys. */
  numberOwner(participant: Participant): Device | undefined;
  /** The one who let this person in. */
  admissionOf(entry: { user: Id; fingerprint?: Bytes }): Admission | undefined;
  /** No member's device has signed this person's own invitation: the app's service let it in. */
  /** The user who started the call, once that is certain; keep it for `enter` after a reload. */
  readonly root: Id | undefined;
  readonly isByService: boolean;

  setMicrophone(isOn: boolean): Promise<void>;
  setCamera(isOn: boolean): Promise<void>;
  /** Sends a copy of the app's own track in place of the device; with none the device again. */
  publish(source: 'microphone' | 'camera', track: MediaStreamTrack | undefined): Promise<void>;
  /** Shares a screen, which the person chooses, or a stream of the app's own. Throws `screen.busy` when there is one already and `replace` is not set. */
  shareScreen(options?: { replace?: boolean; stream?: MediaStream }): Promise<void>;
  stopScreen(): Promise<void>;
  hold(isHeld: boolean): Promise<void>;
  rejoin(): Promise<void>;
  /** Removes a guest, and voids all links made so far. Members are never removed. */
  removeGuest(user: Id): Promise<void>;
  leave(): Promise<void>;
  endForAll(): Promise<void>;

  /** To all, or only to the participants `to`; encrypted. */
  send(message: Message, options?: { to?: Participant[] }): Promise<void>;
  invite(callees: Id[], options?: { metadata?: Bytes }): Promise<Results>;
  cancel(user: Id): Promise<unknown>;
  /** Give people both parts; the secret is never sent to a server. */
  makeLink(expiresIn?: number): Promise<{ link: string; secret: string; expiresAt: Time }>;
  revokeLinks(): Promise<unknown>;
  report(user: Id, text: string): Promise<unknown>;
  /** Any request about this call: the rest of its path behind `calls/ID/`. */
  request(rest: string, body?: object): Promise<any>;

  /** The server sends only these videos: heights in pixels by track. The highest priorities, of those that are not 0, have the bandwidth first. */
  watch(heights: Map<TrackId, number>, priorities?: Map<TrackId, number>): Promise<void>;
  /** This device does not hear the participant, or does again. */
  silence(participant: Participant, isMuted?: boolean): Promise<void>;
  isSilenced(participant: Participant): boolean;

  /** Sends although the shown `devices` of `stop` may hear. */
  sendAnyway(shown: Stop['devices']): void;
  /** Whether the page could draw the tiles: while it cannot, nothing is sent. */
  setShown(isShown: boolean): void;
  /** The warnings and notices from before, `[name, detail]` each; from now on they are events only. */
  attend(): ['warning' | 'notice', Warning | Notice][];
  /** The call is not shown any longer: its warnings are kept until `attend`. */
  unattend(): void;
}

export interface Choice {
  camera: string;
  microphone: string;
  speaker: string;
  facing: 'user' | 'environment';
  hasBlur: boolean;
  /** For people who sign: frames before pixels, and the camera stays on where the path is poor. */
  isVideoFirst: boolean;
}

/** Which camera, microphone and speaker this device uses. */
export class Capture extends Emitter<{ change: { source: 'camera' | 'microphone' | 'speaker' }; inputs: undefined }> {
  private constructor();
  /** Ids of the chosen devices, '' for the browser's own choice. */
  readonly choice: Readonly<Choice>;
  inputs(): Promise<{ source: 'camera' | 'microphone' | 'speaker'; id: string; label: string }[]>;
  /** Uses other devices from now on, in the running call, too. */
  choose(choice: Partial<Choice>): void;
  /** The camera on the other side of a phone. */
  flip(): void;
  /** For a preview; rejects as getUserMedia does. */
  open(source: 'camera' | 'microphone'): Promise<MediaStreamTrack>;
}

/** The users that were asked about, and their states. */
export class Presence extends Emitter<{ change: undefined }> {
  private constructor();
  of(user: Id): 'available' | 'ringing' | 'in-call' | 'unavailable' | 'offline' | (string & {}) | undefined;
  /** This user's own setting. */
  readonly own: 'available' | 'unavailable' | (string & {});
  watch(users: Id[]): Promise<void>;
  set(state: 'available' | 'unavailable'): Promise<void>;
}

/** Web Push: rings reach this device while it is not connected. */
export class Push {
  private constructor();
  /** For `PushManager.subscribe`; none where the server sends none. */
  readonly key: Uint8Array | undefined;
  /** `null` ends it. */
  subscribe(subscription: PushSubscription | null): Promise<unknown>;
}

export interface OwnDevice {
  device: Id;
  name?: string;
  fingerprint: Bytes;
  registeredAt?: Time;
  seenDay?: Time;
  level: ListedDevice['level'];
  problem?: string;
  isThis: boolean;
}

/** This user's devices. */
export class OwnDevices extends Emitter<{ change: undefined; asked: Id }> {
  private constructor();
  /** The pairing that runs; `code` are the six digits, while this device shows them. */
  readonly pairing: {
    readonly state: string;
    readonly reason: string | undefined;
    readonly peer: Id | undefined;
    readonly code: string | undefined;
    readonly isRunning: boolean;
    readonly endsAt: Time;
  };
  readonly self: NamedDevice;
  /** The text that this device shows, to be scanned or copied. */
  readonly text: string;
  /** This device first. */
  list(): Promise<OwnDevice[]>;
  /** Removes a device for good: `self` or one of `list()`. */
  remove(device: NamedDevice | OwnDevice): Promise<void>;
  removeOthers(): Promise<void>;
  /** This device shows the digits, and `device` is to type them. */
  show(device: Id): Promise<void>;
  /** The digits of another device are to be typed here. */
  type(): Promise<void>;
  /** The person typed the digits. Answers whether the other device is confirmed now. */
  enter(digits: string): Promise<boolean>;
  confirm(): Promise<boolean>;
  /** Answers the device that is confirmed now, if any. */
  confirmText(text: string): Promise<OwnDevice | undefined>;
  cancel(): Promise<void>;
  renew(): void;
  /** Ends a session that has lasted too long: call it each second while one runs. */
  tick(): void;
}
