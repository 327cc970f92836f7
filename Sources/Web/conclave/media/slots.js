// The receiving slots of a server's path: how many there are, which track each shows according to the server, and what opened in it (protocol section 6).

import { isWhole, listIn, partsOf, slotsIn } from '../wire/index.js';
import { Loudness } from './loudness.js';
import { preferCodecs, takeDescriptors } from './transceivers.js';

const MAX_AUDIO_SLOTS = 8; // protocol section 6: the first offer, and audio permanently
const MAX_VIDEO_SLOTS = 9;
const MOST_VIDEO_SLOTS = 25; // whatever the server requests
const MAX_SECTIONS = 64;
const MAX_UNSUPPORTED = 4_096;
const SEEN_MS = 2_500; // two reports of the worker
const LASTING = 3; // reports in a row: people need not hear about a key that is late on a slow path
const SPEAKING_HOLD_MS = 900;

/** `participant` is this device's number. The worker opens the frames of a slot, and reports what opened. */
export class Slots {
  #pc;
  #worker;
  #participant;
  #slots = [];
  #shown = { rev: -1, tracks: new Map(), unsupported: new Set() }; // what each slot shows according to the server, by mid, and which tracks no slot can show
  #wanted = { audio: 0, video: 0 };
  #loudness = new Loudness();
  #heard = new Map(); // participant -> when it was last loud

  constructor({ pc, worker, participant }) {
    this.#pc = pc;
    this.#worker = worker;
    this.#participant = participant;
  }

  get audioTracks() {
    return this.#slots.filter(({ kind }) => kind === 'audio').map(({ transceiver }) => transceiver.receiver.track);
  }

  /** As `MediaPath.videoOf`. */
  videoOf(participant, n) {
    const slot = this.#slots.find(
      (other) => other.kind === 'video' && other.participant === participant && other.n === n && isRecent(other.seenAt),
    );
    return slot?.transceiver.receiver.track;
  }

  /** As `MediaPath.pictureOf`. */
  pictureOf(participant, n) {
    const [mid, told] = [...this.#shown.tracks].find(([, track]) => track.participant === participant && track.n === n) ?? [];
    if (this.videoOf(participant, n)) return told?.picture === 'lower' ? 'lower' : 'shown';
    if (this.#shown.unsupported.has(`${participant}.${n}`) || this.#hasNoCodec) return 'unsupported';
    if (told?.picture === 'paused') return 'paused';
    const slot = this.#slots.find(({ transceiver }) => transceiver.mid === mid);
    return slot && isRecent(slot.failedAt) ? 'awaited' : 'unsent';
  }

  /** The server has refused the slots for video: none of the call's codecs is offered for them (protocol section 6, "Offer and answer"). */
  get #hasNoCodec() {
    return this.#slots.some(({ kind, transceiver }) => kind === 'video' && transceiver.currentDirection === 'stopped');
  }

  /** As `MediaPath.speaking`. */
  get speaking() {
    const now = performance.now();
    return new Set([...this.#heard].filter(([, at]) => now - at < SPEAKING_HOLD_MS).map(([participant]) => participant));
  }

  /** There have to be this many slots, as far as they are allowed. Returns whether some are missing. */
  want({ audio, video }) {
    if (!isWhole(audio, 0, Infinity) || !isWhole(video, 0, Infinity)) return false;
    this.#wanted.audio = Math.max(this.#wanted.audio, Math.min(audio, MAX_AUDIO_SLOTS));
    this.#wanted.video = Math.max(this.#wanted.video, Math.min(video, MOST_VIDEO_SLOTS));
    return this.#missing('audio') > 0 || this.#missing('video') > 0;
  }

  /** A slot for each track as far as the server need not request them, and one for a newcomer's first word, which arrives before an offer could be answered. */
  wantFor(tracks) {
    const count = (kind) => tracks.filter((track) => track.kind === kind).length;
    return this.want({ audio: count('audio') + 1, video: Math.min(count('video'), MAX_VIDEO_SLOTS) });
  }

  /** Adds the missing slots to the next offer. */
  fill() {
    for (const kind of ['audio', 'video']) {
      while (this.#missing(kind) > 0) this.#add(kind);
    }
  }

  /** As `MediaPath.showSlots`. Throws `Refusal`, and changes nothing, for a map of another form. */
  show({ rev, receive, unsupported }) {
    if (!isWhole(rev, this.#shown.rev + 1, Number.MAX_SAFE_INTEGER)) return;
    this.#shown = { rev, tracks: slotsIn(receive, MAX_SECTIONS), unsupported: new Set(listIn(unsupported ?? [], MAX_UNSUPPORTED, 'unsupported tracks')) };
    this.tell();
  }

  /** Tells the worker which track each slot shows: it accepts a frame only for that one. */
  tell() {
    const shown = this.#slots.map(({ name, transceiver }) => ({ name, ...this.#shown.tracks.get(transceiver.mid) }));
    const slots = shown.filter(({ participant }) => participant !== undefined && participant !== this.#participant);
    this.#worker.postMessage({ type: 'slots', slots });
  }

  /** The worker's message `opened`: the first frame of a sender opened in a slot. */
  opened({ name, kid }) {
    const slot = this.#slots.find((other) => other.name === name);
    if (slot) Object.assign(slot, partsOf(kid), { seenAt: performance.now() });
  }

  /** The worker's message `report`. Returns how many frames did not open in slots whose frames have not opened for some time. */
  reported({ slots }) {
    const now = performance.now();
    let failures = 0;
    for (const { name, opened, failed, earlier = 0 } of slots) {
      const slot = this.#slots.find((other) => other.name === name);
      if (!slot) continue;
      if (opened > slot.opened) slot.seenAt = now;
      if (failed > slot.failed || earlier > slot.earlier) slot.failedAt = now;
      slot.failing = failed > slot.failed ? slot.failing + 1 : 0;
      if (slot.failing >= LASTING) failures += failed - slot.failed;
      Object.assign(slot, { opened, failed, earlier });
    }
    return failures;
  }

  /** Notes who is loud according to the browser’s `reports`. Loudness is measured after decryption, so that only the speaker can fake it. */
  measure(reports) {
    const now = performance.now();
    for (const { type, trackIdentifier } of this.#loudness.loud(reports)) {
      if (type === 'media-source') this.#heard.set(0, now);
      if (type !== 'inbound-rtp') continue;
      const slot = this.#slots.find(({ transceiver }) => transceiver.receiver.track.id === trackIdentifier);
      if (slot?.participant && isRecent(slot.seenAt)) this.#heard.set(slot.participant, now);
    }
  }

  #missing(kind) {
    return this.#wanted[kind] - this.#slots.filter((slot) => slot.kind === kind).length;
  }

  #add(kind) {
    const transceiver = this.#pc.addTransceiver(kind, { direction: 'recvonly' });
    const name = `slot-${this.#slots.length}`;
    const options = { operation: 'open', name, isVideo: kind === 'video' };
    transceiver.receiver.transform = new RTCRtpScriptTransform(this.#worker, options);
    if (kind === 'video') {
      preferCodecs(transceiver);
      takeDescriptors(transceiver);
    }
    this.#slots.push({ name, kind, transceiver, opened: 0, failed: 0, failing: 0, earlier: 0, seenAt: -Infinity, failedAt: -Infinity });
  }
}

const isRecent = (time) => performance.now() - time < SEEN_MS;
