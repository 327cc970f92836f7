// All of the page that records and plays. It is loaded by `messages.js`.

import {
  DeviceRecorder, Player, Recordings, SPEEDS, WebOutput, exportWebM, openRecordings, playingObstacle, recordingObstacle, streamsFor,
} from '../conclave/recordings.js';
import { AlertView } from './alert-view.js';
import { keptFile } from './kept-file.js';
import { LeftView } from './left-view.js';
import { MessageView } from './message-view.js';
import { notice, wordsForError } from './notices.js';
import { OwnRecording } from './own-recording.js';
import { OwnView } from './own-view.js';
import { Place } from './place.js';
import { PlayerView } from './player-view.js';
import { RecordingsView } from './recordings-view.js';
import { ShareDialog } from './share-dialog.js';
import { t } from './texts.js';
import { VideoMessage } from './video-message.js';

const TYPE = 'video/webm';
const LIBRARY = { recordingObstacle, streamsFor, DeviceRecorder };

/** "conclave-2026-11-30-14-05.webm": the local time at which it was recorded, ms since 1970. */
export function fileNameOf(startedAt) {
  const date = new Date(startedAt);
  const parts = [date.getFullYear(), date.getMonth() + 1, date.getDate(), date.getHours(), date.getMinutes()];
  return `conclave-${parts.map((part) => String(part).padStart(2, '0')).join('-')}.webm`;
}

export class RecordingsPage {
  #conclave;
  #token;
  #base;
  #store;
  #recordings;
  #identity;
  #begun;
  #player = new PlayerView({ Player, WebOutput, SPEEDS, playingObstacle });
  #list;
  #share;
  #message;
  #own;
  #left;
  #alerts;
  #callBack;

  /**
   * `token(wasRefused)` resolves with this user's token, `base` is the address of the recordings. `callBack(user)` rings, `callBeside(users, tracks)` does with open tracks of
   * the devices; `options()` is the argument of `chosenIDs`; `over({wasSent})` is called when the view of a message is closed, `closed()` when that of an own recording is.
   */
  constructor({ conclave, token, base, callBack, callBeside, options, over, closed }) {
    this.#conclave = conclave;
    this.#token = token;
    this.#base = base;
    this.#callBack = callBack;
    this.#list = new RecordingsView({
      play: (row) => this.#play(row),
      callBack,
      share: (id) => this.#share.open(id),
      download: (row) => this.#download(row),
      isBusy: (id) => this.#message.has(id),
      deleted: () => this.#left.refresh(),
    });
    this.#own = new OwnView({
      place: new Place(),
      begin: (choice) => this.#ownBegun((own) => own.start(choice)),
      resume: (left, choice) => this.#ownBegun((own) => own.resume(left, choice)),
      call: callBeside,
      options,
      over: ({ wasShown }) => {
        if (wasShown) closed();
        this.refresh().catch(() => {});
      },
    });
    this.#left = new LeftView({
      resume: (left) => this.#own.resume(left, { isLasting: this.#store.isLasting }),
      ask: ({ id }) => this.#list.ask({ id, isOwn: true }),
      isBusy: (id) => this.#own.has(id),
      changed: () => this.refresh(),
    });
    this.#alerts = new AlertView({ watch: (id, name) => this.#play({ id, name, isAlert: true }), call: callBack });
    this.#share = new ShareDialog({ options, share: (id, users) => this.#recordings.share(id, users) });
    this.#message = new MessageView({
      play: (message) => this.#player.open({ name: '', title: t('player.own'), load: () => message.play(), download: () => this.#download({ id: message.id, isDraft: true }) }),
      over: ({ devices, wasShown }) => {
        if (wasShown) over({ wasSent: Boolean(devices) });
        this.refresh().catch(() => {});
      },
    });
    addEventListener('online', () => this.#recordings?.hurry());
    document.addEventListener('visibilitychange', () => this.#list.show());
  }

  /** Shows what the server has, and goes on with what was not sent. */
  async refresh() {
    await this.#begin();
    await Promise.all([this.#left.refresh(), this.#list.refresh()]);
  }

  /** Keys, and so recordings, belong to one device of one user. */
  #begin() {
    const { identity } = this.#conclave;
    if (identity !== this.#identity) this.#begun = this.#use(identity);
    return this.#begun;
  }

  async #use(identity) {
    this.#identity = identity;
    this.#recordings?.close();
    this.#store ??= await openRecordings();
    this.#recordings = new Recordings({ connection: this.#conclave, store: this.#store, base: this.#base, token: this.#token });
    this.#list.use(this.#recordings, identity.user);
    this.#left.use(this.#recordings);
    this.#alerts.use(this.#recordings);
    await this.#goOn();
  }

  /** Uploads the drafts that a closed tab left, and deletes those without a segment. */
  async #goOn() {
    for (const { id, length, isLive } of await this.#recordings.unfinished()) {
      if (isLive) continue; // contacts may know of it: `LeftView` has it
      if (length > 0) this.#recordings.upload(id).catch(() => {}); // the list says that it was not sent
      else await this.#recordings.delete([id]).catch(() => {});
    }
  }

  /** Records a message for `users`, whom `call` did not reach. */
  record({ users, call }) {
    const message = new VideoMessage({ users, call, recordings: this.#recordings, capture: this.#conclave.capture, library: LIBRARY });
    this.#message.show(message, { isLasting: this.#store.isLasting });
  }

  /** Records for people whom this user chooses. */
  recordOwn() {
    this.#own.open({ isLasting: this.#store.isLasting });
  }

  #ownBegun(begin) {
    const own = new OwnRecording({ recordings: this.#recordings, capture: this.#conclave.capture, library: LIBRARY, place: new Place() });
    begin(own); // not waited for: a browser may ask the person first
    return own;
  }

  /** Somebody rings. */
  interrupt() {
    this.#message.interrupt();
    this.#player.pause();
  }

  /** Somebody has granted a recording to this device, or alerts this user: see `Conclave`. */
  arrived(told) {
    if (told.kind !== 'own') return this.#list.arrived(told.recording);
    return Promise.all([this.#list.refresh(), this.#alerts.arrived(told)]);
  }

  /** Everything that this browser has of this user's recordings is deleted. */
  forgetAll() {
    return this.#recordings.forgetAll();
  }

  async #play(row) {
    const { id, isDraft, isOwn, name, title } = row;
    const load = () => (isDraft ? this.#recordings.openDraft(id) : this.#recordings.open(id));
    const isOpen = await this.#player.open({ name, title: isOwn ? title : undefined, load, download: () => this.#download(row), call: isOwn ? undefined : (user) => this.#callBack(user) });
    if (!isOpen) return;
    this.#list.opened(id);
    this.#alerts.opened(id);
    // The person who records sees who has opened it.
    if (!isOwn && this.#player.kind === 'own') this.#recordings.tellSeen(id).catch(() => {});
  }

  async #download({ id, isDraft, startedAt = Date.now() }) {
    let file;
    try {
      file = await keptFile(fileNameOf(startedAt), TYPE);
      if (!file) return;
      const { reels: [{ source }] } = isDraft ? await this.#recordings.openDraft(id) : await this.#recordings.open(id);
      await exportWebM(source, (bytes, position) => file.write(bytes, position));
      await file.close();
      if (!isDraft) this.#list.opened(id);
    } catch (error) {
      await file?.abort().catch(() => {}); // half a file would look like the message
      notice(wordsForError(error));
    }
  }
}
