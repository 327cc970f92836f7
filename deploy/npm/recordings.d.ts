// The types of conclave-client/recordings: recording, sending and playing on a server that stores recordings (protocol section 13).

import type { Conclave } from './index.js';
import type { CallId, Device, Id, RecordingId, RecordingKind, RecordingState, Time } from './protocol.js';

export type { RecordingId, RecordingKind, RecordingState } from './protocol.js';
export {};

/** The store of this browser's recordings: IndexedDB, or memory where there is none. */
export interface RecordingStore {
  /** Whether a recording outlives the page. */
  readonly isLasting: boolean;
}
export function openRecordings(): Promise<RecordingStore>;

/** Why this browser cannot record; undefined if it can. */
export function recordingObstacle(hasPicture: boolean): 'no-recorder' | 'no-format' | undefined;
/** Why this browser cannot play; undefined if it can. A recording can be exported all the same. */
export function playingObstacle(): 'no-decoder' | undefined;

declare const streams: unique symbol;
/** The streams of a recording, for `begin`. */
export type Streams = { readonly [streams]: true };
export function streamsFor(hasPicture: boolean): Streams;

/** Takes frames, and seals segments of some seconds into the store. Events: `sealed`; `trouble` with `{reason}`: nothing more is recorded. */
export interface RecordingWriter extends EventTarget {
  readonly row: { readonly id: RecordingId };
  readonly isOver: boolean;
}

/** Sends segments while they are recorded, and later. Event: `change`. */
export interface SegmentUploader extends EventTarget {
  /** `stored`: everything is at the server. `waiting` for a network, and `full` for room: it goes on by itself. The last three are final. */
  readonly state: 'uploading' | 'waiting' | 'full' | 'stored' | 'lost' | 'ended' | 'refused' | undefined;
  /** Numbers of segments. */
  readonly progress: { sealed: number; stored: number; confirmed: number };
  /** How many seconds the server takes, once it has said so. */
  readonly longest: number | undefined;
  /** Why it is refused, if the server said so when the recording was registered. */
  readonly error: unknown;
  /** The network is back, or is another one. */
  hurry(): Promise<void> | undefined;
}

export interface Unfinished {
  id: RecordingId;
  kind: RecordingKind;
  call?: CallId;
  readers: Id[];
  startedAt: Time;
  /** ms; 0 if nothing was recorded. */
  length: number;
  /** It was begun by `beginLive`. */
  isLive: boolean;
  hasPicture: boolean;
}

/** A reader of a live recording. The server says all of it. */
export interface Contact {
  user: Id;
  /** `unavailable`: the server passes nothing on. `no-keys`: no device can play it. `reached`: a device has acknowledged the alert. */
  state: 'waiting' | 'unavailable' | 'no-keys' | 'told' | 'reached' | 'seen';
  at?: Time;
}

/** Tells the readers of a recording while it is made: at once, or as soon as there is a network. Event: `change`. */
export interface Telling extends EventTarget {
  readonly contacts: {
    readonly all: Contact[];
    readonly alerts: boolean;
    /** Whether the server has answered for everybody. */
    readonly isAnswered: boolean;
  };
  /** ms by which this device's clock is ahead of the server's, once that is known. */
  readonly clockAhead: number | undefined;
  /** A sealed note, such as `{ kind: 'place', lat, lon, accuracy, at }`. Resolves with whether there was a number left: there are 1,000. */
  note(content: Record<string, unknown>): Promise<boolean>;
}

export interface Listed {
  id: RecordingId;
  kind: RecordingKind;
  role: 'owner' | 'reader';
  /** As the server says: `describe` and `open` know who has signed it. */
  by: Device;
  call?: CallId;
  startedAt: Time;
  bytes: number;
  state: RecordingState;
  expiresAt: Time;
  /** Somebody else's that was never opened in this browser. */
  isNew: boolean;
}

/** The input of `Player` and `exportWebM`. */
export interface Source {
  readonly length: number;
  /** Microseconds since 1970. */
  readonly start: number;
  readonly end: number;
}

export interface Reel {
  readonly number: number;
  readonly user: Id;
  readonly device: Id;
  /** As the server says. */
  readonly name?: string;
  readonly level: string;
  /** `state` says what the server has done to it, as far as it was read. */
  readonly reel: { readonly state: 'changed' | 'cut-off' | 'complete' | 'no-key' | 'not-finished'; readonly holes: number[] };
  readonly source: Source;
}

export interface Opened {
  reader: { readonly statement: { readonly kind: RecordingKind; readonly by: Device; readonly readers: Id[]; readonly at: Time } };
  /** One; of a call, one for each stay of a participant. */
  reels: Reel[];
  /** The contents of the notes, by number. */
  notes: Map<number, Record<string, unknown>>;
  /** While its device records it; not of a call. */
  live?: LiveRecording;
}

/** A recording that grows. Event: `change`; then call `grown()` of its player. */
export interface LiveRecording extends EventTarget {
  /** As the server says; `gone`: it was deleted. */
  readonly state: RecordingState | 'gone';
  readonly isRunning: boolean;
  readonly notes: Map<number, Record<string, unknown>>;
  /** Ends following it. */
  close(): void;
}

/** This device's recordings, and those that it may read. An error of `open` and `describe` with `code` `not-signed`, `no-key` or `too-early` (a clock is wrong) is about the recording. */
export class Recordings {
  /** `connection` is ready; `base` is the address of `/recordings`. Make another one when `connection.identity` changes. */
  constructor(options: { connection: Conclave; store: RecordingStore; base: string; token(wasRefused: boolean): string | Promise<string> });
  begin(options: { kind: 'message' | 'own'; call?: CallId; readers?: Id[]; hasPicture: boolean; streams: Streams }): Promise<{ writer: RecordingWriter; upload: SegmentUploader }>;
  /** One of one's own, which `readers` can play while it is made. Without `keepsCopy` nothing of it stays on this device. */
  beginLive(options: { readers: Id[]; hasPicture: boolean; streams: Streams; alerts?: boolean; keepsCopy?: boolean }): Promise<{ id: RecordingId; writer: RecordingWriter; upload: SegmentUploader; telling: Telling }>;
  /** Ends one of `beginLive`, once all of it is stored. */
  finish(id: RecordingId): Promise<void>;
  telling(id: RecordingId): Promise<Telling>;
  /** The recordings of this device that were neither sent nor deleted. */
  unfinished(): Promise<Unfinished[]>;
  /** One of them, without the server. */
  openDraft(id: RecordingId): Promise<{ reels: Pick<Reel, 'number' | 'reel' | 'source'>[] }>;
  /** Goes on with its upload. */
  upload(id: RecordingId): Promise<SegmentUploader>;
  /** Records on, after a closed tab. */
  resume(id: RecordingId): Promise<{ writer: RecordingWriter; upload: SegmentUploader; telling?: Telling }>;
  /** Once all of it is stored. Resolves with how many devices of each user can open it. */
  send(id: RecordingId, options?: { onlyOwn?: boolean }): Promise<Record<Id, number>>;
  reachable(users: Id[]): Promise<Record<Id, number>>;
  delete(ids: RecordingId[]): Promise<void>;
  /** Forgets what this browser keeps of one, or of all that were made for this user here. */
  forget(id: RecordingId): Promise<void>;
  forgetAll(): Promise<void>;
  hurry(): void;
  /** Ends all uploads of this visit. */
  close(): void;
  list(options?: { before?: Time }): Promise<Listed[]>;
  describe(id: RecordingId): Promise<{ by: Device; name?: string; readers: Id[]; users: Id[]; length?: number }>;
  /** Deletes what is recorded of this user in a call's recording, for everybody. */
  erase(id: RecordingId): Promise<void>;
  share(id: RecordingId, users: Id[]): Promise<Record<Id, number>>;
  open(id: RecordingId): Promise<Opened>;
  /** The facts that its device has signed, before somebody is alarmed; `name` and `state` are the server's. */
  announced(id: RecordingId): Promise<{ by: Device; name?: string; at: Time; level: string; isAlert: boolean; state?: RecordingState }>;
  /** Whether it was opened, or put aside, on this device. */
  isKnown(id: RecordingId): Promise<boolean>;
  putAside(id: RecordingId): Promise<void>;
  /** Tells the owner that the person has seen it. */
  tellSeen(id: RecordingId): Promise<void>;
}

/** Records a microphone, and perhaps a camera, into a writer. Event: `ended` with `{reason}`, if it ends by itself. */
export class DeviceRecorder extends EventTarget {
  constructor(options: { tracks: MediaStreamTrack[]; writer: RecordingWriter });
  start(): void;
  /** ms, without pauses. */
  readonly length: number;
  readonly isPaused: boolean;
  pause(): void;
  resume(): void;
  /** Resolves when everything is in the store. */
  stop(): Promise<void>;
}

export interface Gap {
  /** Microseconds since 1970. */
  from: number;
  to: number;
  why: 'network' | 'server' | 'disk' | 'restart' | 'no-key' | 'away' | 'unknown' | 'missing' | 'refused' | number;
  /** The source of the player that it belongs to. */
  lane: number;
}

/** A `VideoFrame`. */
export type Picture = CanvasImageSource & { readonly displayWidth: number; readonly displayHeight: number };

/** Decodes by WebCodecs and plays by Web Audio. */
export class WebOutput {
  constructor(options: { draw(picture: Picture | undefined, place: { lane: number; source: string }): void; failed?(reason: 'decoder'): void });
  /** 0 to 1. */
  volume: number;
  /** To be called by a press. */
  unlock(): Promise<void>;
}

export const SPEEDS: number[];

/** Event: `change` of all but the position. Times are microseconds since 1970. */
export class Player extends EventTarget {
  /** `sources` are those of the recording's reels; a reel's place among them is its `lane`. */
  constructor(sources: Source[], output: WebOutput);
  readonly state: 'paused' | 'playing' | 'waiting' | 'ended';
  /** When the first reel begins. */
  readonly start: number;
  /** Where nothing of a reel is to be seen and heard now. */
  readonly gap: (Gap & { lane: number }) | undefined;
  readonly gaps: (Gap & { lane: number })[];
  readonly position: number;
  /** ms */
  readonly length: number;
  /** One of `SPEEDS`. */
  speed: number;
  play(): void;
  pause(): void;
  seek(time: number): Promise<void>;
  /** µs by which it is behind the newest that there is. */
  readonly behind: number;
  /** Close to the end of a recording that is being made. */
  seekNewest(): Promise<void>;
  /** There is more of it, or nothing more will come. */
  grown(): void;
  close(): void;
}

/** Writes WebM by `write(bytes, position)`; at the end the first piece once more. */
export function exportWebM(source: Source, write: (bytes: Uint8Array, position: number) => unknown, told?: (share: number) => void): Promise<void>;
