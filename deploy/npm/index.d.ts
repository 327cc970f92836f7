// The types of conclave-client: every public member and every event. `protocol.d.ts` beside this file is generated from the protocol's declarations in
// docs/clients.md.

import type { Bytes, CallId, Device, Id, Media, Policy, RecordingId, RecordingKind, Requests, Results, Source, Time, TrackId, Participant } from './protocol.js';

export type { Bytes, CallId, Device, Events, Id, Media, Participant, Policy, RecordingId, RecordingKind, Requests, Results, Source, Time, TrackId } from './protocol.js';
export {};

/** Whether this browser can take part in calls. */
export function isSupported(): boolean;
/** Whether the browser can blur the background of this camera's track. */
export function canBlur(track: MediaStreamTrack | undefined): boolean;
/** Whether a user joined by a link, without an account. Mark the name wherever you show it. */
export function isGuest(user: unknown): boolean;
/** Whether a member is in the call, but the media of all its devices has been lost. It may come back. */
export function isLost(member: Member): boolean;
/** The id of the lasting link with this secret: all that a server gets of it. */
export function lastingLinkID(secret: string): Promise<string>;
/** The readable form of a base64 fingerprint: 8 groups of 8 hexadecimal digits. */
export function readable(fingerprint: Bytes): string;

/** A request that was refused, or got no answer (`connection-lost`). */
export class RequestError extends Error {
  constructor(error: { code: string; message: string; field?: string; retryAfterMs?: number; call?: CallId });
  /** A code from the section "Errors" of the protocol. */
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
  /** This browser's id among the user's devices; store it, since a new id is a new device to everybody. `guest` for a guest. */
  device: Id;
  /** The device's name to show to people, up to 256 bytes in UTF-8. */
  name?: string;
  /** Returns the token and its user, for each connection. `wasRefused` is true if the server refused the last token. An error with `isFinal` stops further attempts. */
  credentials(wasRefused: boolean): Promise<{ token: string; user: Id }>;
  /** Where the app serves `sframe-worker.js`, if not beside the bundle. */
  workerURL?: string;
}

/** The sources of a device that joins: `true` opens the device's own, `false` leaves it off. A track of the app is sent as a copy. */
export interface Sources {
  camera?: boolean | MediaStreamTrack;
  microphone?: boolean | MediaStreamTrack;
}

export interface CallOptions extends Sources {
  /** `video` by default, or `audio` without a camera. */
  media?: Media;
  policy?: Policy;
  /** For the people who are rung, up to 2 KiB before base64. The server can read it. */
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
  /** Joined by a link. */
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

/** A problem with somebody's device or keys, or an action of the server that was refused. */
export interface Warning { problem: string; user?: Id; device?: Id; fingerprint?: Bytes }

export interface ConclaveEvents {
  /** `status` has changed. */
  connection: undefined;
  /** A connection is ready, also after each reconnect. */
  ready: undefined;
  ring: Ring;
  'ring-over': { ring: Ring; reason: RingEnd; by?: Id };
  /** A call started, ended or was held. */
  calls: undefined;
  /** A call is over for everybody. */
  'call-over': CallId;
  /** The id of a lasting link of this user at which somebody waits. */
  'link-waiting': string;
  presence: undefined;
  /** Somebody has granted a recording to this device, or alerts this user of it, as the server says. */
  recording: { recording: RecordingId; kind: RecordingKind; by: Device; isAlert: boolean; hasGrant: boolean };
  /** A recording has changed, was seen by a reader, has reached an alerted person, or was removed. `conclave-client/recordings` hears it by itself. */
  'recording-news': { news: 'changed' | 'seen' | 'reached' | 'removed'; recording: RecordingId; by?: Device; at?: Time };
  /** About a device that is not in a call on this device. */
  warning: Warning;
  /** `identity` and `ownDevices` have changed. */
  identity: undefined;
}

/** One device of one user: its connection to a Conclave server, rings and calls. */
export class Conclave extends Emitter<ConclaveEvents> {
  constructor(options: Options);
  readonly status: Status;
  /** Why the status is `refused`: `token-refused`, `wrong-identity`, or the message of a final error of `credentials`. */
  readonly reason: string;
  /** Why no connection can be made although the server answers; changes are reported by `connection`. */
  readonly obstacle: 'origin' | 'websocket' | (string & {}) | undefined;
  readonly workerURL: string;
  readonly identity: { readonly user: Id; readonly device: Id; readonly fingerprint: Uint8Array } | undefined;
  readonly ownDevices: OwnDevices | undefined;
  readonly lastingLinks: LastingLinks | undefined;
  readonly presence: Presence;
  readonly capture: Capture;
  readonly push: Push;
  readonly user: Id | undefined;
  /** Whether this device's keys, and what it knows about other devices, outlive the page. */
  readonly keepsKeys: boolean;
  /** The active call, if any: the one that is not on hold. */
  readonly current: Call | undefined;
  /** Calls of this device that are on hold. */
  readonly held: Call[];
  /** Calls on another device of this user. */
  readonly elsewhere: CallFacts[];
  /** If true, devices that this user has not verified get no keys, and nothing is sent while one of them is in the call. */
  verifiedOnly: boolean;

  connect(): void;
  close(): void;
  /** Checks a connection that may be dead; without one, connects at once. */
  hurry(): void;
  /** Tells the library that the device's network has changed: calls restart ICE at once. */
  networkChanged(): void;
  /** Sends any request of the protocol; `path` is without `/app/`. */
  request<Path extends string>(
    path: Path, body?: `/app/${Path}` extends keyof Requests ? Requests[`/app/${Path}`][0] : object,
  ): Promise<`/app/${Path}` extends keyof Requests ? Requests[`/app/${Path}`][1] : any>;

  /** Rings `callees`; `Call.results` has the outcome for each. If one of them calls this user at the same moment, the returned call is theirs. */
  call(callees: Id[], options?: CallOptions): Promise<Call>;
  /** Answers a ring, or the ring with which its caller has replaced it. The active call is put on hold. */
  accept(ring: Ring, options?: Sources): Promise<Call>;
  decline(ring: Ring): Promise<void>;
  /** The calls that can be joined or rejoined now. */
  joinable(): Promise<CallFacts[]>;
  /** Joins a call. `root` is `Call.root` from before a reload; without it a server could name another one. */
  enter(facts: CallFacts, options?: Sources & { root?: Id }): Promise<Call>;
  /** Moves a call from the user's other device to this one. */
  transfer(facts: CallFacts, options?: Sources & { root?: Id }): Promise<Call>;
  /** Joins by both parts of a link from `makeLink`, or, with `isLasting`, by those that `lastingLinks.wait` resolved with and the lasting link's secret. */
  joinByLink(id: CallId, link: { link: string; secret: string; isLasting?: boolean }, options?: Sources): Promise<Call>;
  /** Starts a call of a lasting link that this device has made: everybody who has the link may join. */
  startLasting(id: string, options?: Sources): Promise<Call>;
  /** The last user who rang this device for a call. */
  callerOf(id: CallId): Id | undefined;
  /** Resumes a held call; the active call is put on hold. */
  resume(call: Call): Promise<void>;
  /** Returns those of `users` whom a call can reach. */
  reachable(users: Id[]): Promise<Set<Id>>;

  /** The person accepts a device's changed key, the one with this fingerprint. Returns whether the device still has this key. */
  trust(user: Id, device: Id, fingerprint: Bytes): Promise<boolean>;
  /** The person has verified these devices, as they were shown. Returns those that are verified now. */
  verify(devices: NamedDevice[]): Promise<NamedDevice[]>;
  /** Forgets this device's keys; with `all`, also everything that this browser knows about the user's contacts. */
  forget(options?: { all?: boolean }): Promise<void>;
  /** The name of somebody's device, as reported by the server. */
  deviceName(user: Id, device: Id): string | undefined;
  /** Renames this device. */
  rename(name: string): Promise<void>;

  /** Newest first. */
  history(options?: { before?: Time; limit?: number }): Promise<PastCall[]>;
  /** Deletes these calls from this user's own history; without an argument, all calls. */
  deleteHistory(calls?: CallId[]): Promise<void>;
  totals(user: Id): Promise<{ calls: number; seconds: number }>;
}

/** How a person was let in, and by whom: `start` is the initiator, `member` an invitation, `link` a link. */
export interface Admission { how: 'start' | 'member' | 'link'; by: Id }

/** A device of the current list. */
export interface ListedDevice extends NamedDevice {
  participant: Participant;
  joinId?: Bytes;
  level: 'verified' | 'vouched' | 'known' | 'new' | 'revoked';
  isVerified: boolean;
  /** Why this device does not give it the key. */
  problem?: string;
  isNew?: boolean;
  /** It has proven that it has the same key. */
  isConfirmed: boolean;
  /** It does not trust this device. */
  isWaiting: boolean;
  admission?: Admission;
  /** No member let this person in: show that. */
  isUninvited?: boolean;
}

/** Each device that can decrypt or is in the call. */
export type RosterEntry =
  | (ListedDevice & { state: 'member' | 'stranger' | 'gone' })
  | (Device & { participant: Participant; state: 'unlisted' });

/** Why nothing is sent. */
export interface Stop {
  cause: 'stranger' | 'uninvited' | 'gone' | 'epoch-1' | 'not-shown' | 'revoked' | 'changed-key' | 'broken-history' | 'no-key' | 'unverified' | 'withdrawn' | (string & {});
  /** The devices concerned; pass them to `sendAnyway` as they were shown. */
  devices: (NamedDevice & { joinId?: Bytes; isSelfRevoked?: boolean })[];
  /** Only the person can end it, by `sendAnyway` or `rejoin`; otherwise it ends by itself. */
  needsPerson: boolean;
}

export type Doubt =
  'no-key' | 'unlisted' | 'stranger' | 'gone' | 'returning' | 'rung' | 'uninvited' | 'untrusted' | 'untrusted-hears' | 'distrusting' | 'not-confirmed';

/** Something to draw: a device, a shared screen, a person who is rung, or a device that can hear but is not in the call. */
export interface Tile {
  /** The same for as long as the tile exists. */
  key: string;
  source: 'camera' | 'screen' | 'ringing' | 'listener';
  member: Member | { user: Id };
  device?: Id;
  participant?: Participant;
  isOwn?: boolean;
  isConnected?: boolean;
  /** It was connected, and is not any longer. */
  isLost?: boolean;
  isHeld?: boolean;
  isMuted?: boolean;
  video?: MediaStreamTrack;
  picture?: 'shown' | 'lower' | 'paused' | 'awaited' | 'unsent' | 'unsupported';
  track?: TrackId;
  doubt?: Doubt;
  admission?: Admission;
  /** The user's other devices that are rung. */
  rung?: Id[];
  recorded?: Recorded;
}

export type Medium = 'audio' | 'video' | 'screen';

/** Known from the keys that this device has handed out, from the starter's signature, or, for others, from the server. */
export type Recorded = 'exported' | 'signed' | 'told';

/** A recording of a call that runs. All but `since` is signed by its starter's device. */
export interface CallRecording {
  readonly id: RecordingId;
  readonly by: Device;
  readonly level: string;
  readonly isOwn: boolean;
  readonly readers: Id[];
  readonly media: Medium[];
  readonly since: Time;
  /** The media to which this person agreed; undefined before the answer. */
  readonly answer: Medium[] | undefined;
  /** Why nothing is recorded yet although the person agreed. */
  readonly lack: 'no-epoch' | 'no-word' | undefined;
}

export type Notice =
  | { kind: 'member'; cause: string; member: Member }
  | { kind: 'screen' | 'screen-stopped'; member: Member }
  | { kind: 'screen-replaced' | 'weak-uplink' | 'weak-picture' | 'uplink-recovered' }
  | { kind: 'recording-ended'; by: Device; reason: string }
  | { kind: 'lost-device'; source: 'microphone' | 'camera' }
  | { kind: 'no-device'; source: 'microphone' | 'camera'; error: string }
  | { kind: 'media-failed'; error: string };

/** Speech that the speaker's own browser has recognised. A line gets revisions until one is final; then the next line begins. */
export interface Caption {
  caption: string;
  line: number;
  revision: number;
  final: boolean;
  /** A BCP 47 tag; '' if unknown. */
  lang: string;
}

export type Message = { text: string } | { reaction: string } | { hand: boolean } | { removed: Id } | Caption;

export interface CallEvents {
  /** Anything has changed, for a page that draws everything at once. Each of the next seven reports a change of the property of its name. */
  change: undefined;
  path: undefined;
  code: undefined;
  quality: undefined;
  hasKey: undefined;
  stop: undefined;
  /** Somebody joined or left, or sends other tracks. */
  members: undefined;
  /** The media that this device sends has changed. */
  local: undefined;
  speaking: undefined;
  /** Frames that could not be decrypted. */
  failures: { count: number };
  notice: Notice;
  warning: Warning;
  /** `waitingGuests` has changed. */
  door: undefined;
  /** `isWaiting` has changed. */
  waiting: undefined;
  message: { participant: Participant; isPrivate: boolean } & Message;
  /** The call has ended on this device, but perhaps not for others. */
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
  /** The state of the media connection. */
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
  /** Whether the camera should be on whenever possible. */
  readonly wantsCamera: boolean;
  /** The digits to compare by voice; '' before the first key. */
  readonly code: string;
  readonly epoch: number;
  readonly hasKey: boolean;
  readonly isKeyOld: boolean;
  readonly hasUnverified: boolean;
  readonly devices: ListedDevice[];
  readonly roster: RosterEntry[];
  readonly stop: Stop | undefined;
  readonly confirmation: { state: 'confirming' | 'confirmed' | 'not-confirmed' | (string & {}); missing: ListedDevice[]; confirmed: Set<Bytes> };
  /** The tracks of the other participants; play all of them. */
  readonly audioTracks: MediaStreamTrack[];
  /** The participants that are speaking now. */
  readonly speaking: Set<Participant>;
  /** The quality of this device's reception, as measured by the server. */
  readonly quality: 0 | 1 | 2 | 3 | 4 | (number & {}) | undefined;

  /** The state of this device's own source. */
  local(source: Source): { isOn: boolean; track: MediaStreamTrack | undefined };
  tiles(): Tile[];
  ownerOf(participant: Participant): Member | { user: Id } | undefined;
  /** The device with a participant's number, according to the key lists. */
  numberOwner(participant: Participant): Device | undefined;
  /** How this person was let in, and by whom. */
  admissionOf(entry: { user: Id; fingerprint?: Bytes }): Admission | undefined;
  /** The user who started the call, once that is certain; keep it for `enter` after a reload. */
  readonly root: Id | undefined;
  /** Whether the app's service let this user in: no member's device has signed the invitation. */
  readonly isByService: boolean;

  setMicrophone(isOn: boolean): Promise<void>;
  setCamera(isOn: boolean): Promise<void>;
  /** Sends a copy of the app's own track instead of the device; `undefined` goes back to the device. */
  publish(source: 'microphone' | 'camera', track: MediaStreamTrack | undefined): Promise<void>;
  /** Shares a screen that the person chooses, or a stream of the app. Throws `screen.busy` if somebody shares already and `replace` is not set. */
  shareScreen(options?: { replace?: boolean; stream?: MediaStream }): Promise<void>;
  stopScreen(): Promise<void>;
  hold(isHeld: boolean): Promise<void>;
  rejoin(): Promise<void>;
  /** Whether this guest waits until a member admits it. The event `waiting` reports changes. */
  readonly isWaiting: boolean;
  /** The guests who wait until a member admits them. Their names are not checked. The event `door` reports changes. */
  readonly waitingGuests: { user: Id; name: string; expiresAt: Time }[];
  /** Resolves with false if somebody has answered before. */
  admitGuest(user: Id): Promise<boolean>;
  refuseGuest(user: Id): Promise<boolean>;
  /** Removes a guest and revokes all links made so far. Members cannot be removed. */
  removeGuest(user: Id): Promise<void>;
  /** The recording of this call that runs. */
  readonly recording: CallRecording | undefined;
  /** The media of this device that a recording's readers can open now. */
  readonly exported: Medium[];
  recordedOf(participant: Participant): Recorded | undefined;
  /** Asks everybody, and agrees for this device. Resolves with how many devices of each reader can open the recording. */
  record(options?: { media?: Medium[]; readers?: Id[] }): Promise<Record<Id, number>>;
  /** Agrees to these media and no others; without any, declines or withdraws. */
  answerRecording(id: RecordingId, media: Medium[], options?: { isErased?: boolean }): Promise<void>;
  stopRecording(): Promise<void>;
  leave(): Promise<void>;
  endForAll(): Promise<void>;

  /** Sends an encrypted message to everybody, or only to the participants `to`. */
  send(message: Message, options?: { to?: Participant[] }): Promise<void>;
  invite(callees: Id[], options?: { metadata?: Bytes }): Promise<Results>;
  cancel(user: Id): Promise<unknown>;
  /** Makes a link. Give people both parts; the secret is never sent to a server. */
  makeLink(expiresIn?: number, options?: { guestsWait?: boolean }): Promise<{ link: string; secret: string; expiresAt: Time }>;
  revokeLinks(): Promise<unknown>;
  report(user: Id, text: string): Promise<unknown>;
  /** Sends any request about this call; `rest` is the path after `calls/ID/`. */
  request(rest: string, body?: object): Promise<any>;

  /** Limits the videos that the server sends to these: heights in pixels by track. Videos with a higher priority other than 0 get bandwidth first. */
  watch(heights: Map<TrackId, number>, priorities?: Map<TrackId, number>): Promise<void>;
  /** Mutes the participant on this device only, or unmutes it. */
  silence(participant: Participant, isMuted?: boolean): Promise<void>;
  isSilenced(participant: Participant): boolean;

  /** Sends although the shown `devices` of `stop` may be able to hear. */
  sendAnyway(shown: Stop['devices']): void;
  /** Tells whether the page shows the tiles: while it does not, nothing is sent. */
  setShown(isShown: boolean): void;
  /** Returns the warnings and notices so far, as `[name, detail]`; later ones are only dispatched as events. */
  attend(): ['warning' | 'notice', Warning | Notice][];
  /** The page no longer shows the call: its warnings are kept until `attend`. */
  unattend(): void;
}

export interface Choice {
  camera: string;
  microphone: string;
  speaker: string;
  facing: 'user' | 'environment';
  hasBlur: boolean;
  /** For people who sign: frame rate before resolution, and the camera stays on when the network is poor. */
  isVideoFirst: boolean;
}

/** Which camera, microphone and speaker this device uses. */
export class Capture extends Emitter<{ change: { source: 'camera' | 'microphone' | 'speaker' }; inputs: undefined }> {
  private constructor();
  /** Ids of the chosen devices; '' for the browser's default. */
  readonly choice: Readonly<Choice>;
  inputs(): Promise<{ source: 'camera' | 'microphone' | 'speaker'; id: string; label: string }[]>;
  /** Switches to other devices, also in the current call. */
  choose(choice: Partial<Choice>): void;
  /** Switches to the camera on the other side of a phone. */
  flip(): void;
  /** Opens a source for a preview; rejects like getUserMedia. */
  open(source: 'camera' | 'microphone'): Promise<MediaStreamTrack>;
}

/** The presence of the watched users. */
/** A link that was made without a call. If this device has made it, it has `secret`, `name` and `guestsWait`, and can be started. */
export interface LastingLink { id: string; device: Id; expiresAt: Time; call?: CallId; secret?: string; name?: string; guestsWait?: boolean }

/** The lasting links of this user. Their secrets and names are stored on the device that made them, and sent to no server. */
export class LastingLinks extends Emitter<{ change: undefined; waiting: string }> {
  private constructor();
  /** Makes a link that lasts `expiresIn` seconds. Give people its secret. */
  make(options: { expiresIn: number; name?: string; guestsWait?: boolean }): Promise<LastingLink>;
  list(): Promise<{ links: LastingLink[]; days: number }>;
  rename(id: string, name: string): Promise<void>;
  delete(id: string): Promise<void>;
  /** Waits at somebody's link until a call of it runs. `waiting` is called while nobody has started it; `name` is its owner, as the server says. */
  wait(secret: string, options?: { waiting?: (link: { name?: string; expiresAt: Time }) => void; signal?: AbortSignal }): Promise<{ call: CallId; link: string; name?: string; expiresAt: Time }>;
}

export class Presence extends Emitter<{ change: undefined }> {
  private constructor();
  of(user: Id): 'available' | 'ringing' | 'in-call' | 'unavailable' | 'offline' | (string & {}) | undefined;
  /** This user's own setting. */
  readonly own: 'available' | 'unavailable' | (string & {});
  watch(users: Id[]): Promise<void>;
  set(state: 'available' | 'unavailable'): Promise<void>;
}

/** Web Push, by which rings reach this device while it is not connected. */
export class Push {
  private constructor();
  /** The key for `PushManager.subscribe`; undefined if the server does not send pushes. */
  readonly key: Uint8Array | undefined;
  /** `null` unsubscribes. */
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
  /** The current pairing. `code` has the six digits while this device shows them. */
  readonly pairing: {
    readonly state: string;
    readonly reason: string | undefined;
    readonly peer: Id | undefined;
    readonly code: string | undefined;
    readonly isRunning: boolean;
    readonly endsAt: Time;
  };
  readonly self: NamedDevice;
  /** The text that this device shows, for scanning or copying. */
  readonly text: string;
  /** This user's devices, this one first. */
  list(): Promise<OwnDevice[]>;
  /** Removes a device permanently: `self` or one of `list()`. */
  remove(device: NamedDevice | OwnDevice): Promise<void>;
  removeOthers(): Promise<void>;
  /** Shows the digits on this device; the person types them on `device`. */
  show(device: Id): Promise<void>;
  /** Expects the person to type the digits of another device here. */
  type(): Promise<void>;
  /** The person typed the digits. Returns whether the other device is now confirmed. */
  enter(digits: string): Promise<boolean>;
  confirm(): Promise<boolean>;
  /** Returns the device that is now confirmed, if any. */
  confirmText(text: string): Promise<OwnDevice | undefined>;
  cancel(): Promise<void>;
  renew(): void;
  /** Ends a pairing that has taken too long: call it each second while one runs. */
  tick(): void;
}
