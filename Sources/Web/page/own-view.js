// The view in which a person records for others: the choices, then what is recorded, what has left the device, and what came of each person. While another view is shown, a
// bar says that it records on.

import { avatar, busy, byID, element, setText } from './dom.js';
import { replaceRows } from './dialogs.js';
import { labelFor, nameFor } from './names.js';
import { notice, wordsForError } from './notices.js';
import { wordsForClock, wordsForContact, wordsForNetwork, wordsForOwnPlace, wordsForOwnProblem, wordsForProgress } from './own-words.js';
import { PeopleField, checkNames, chosenIDs } from './people.js';
import { isDenied, showSteps } from './permissions.js';
import { shortTime } from './recordings-words.js';
import { saveRecordChoice, savedRecordChoice } from './session.js';
import { t } from './texts.js';
import { show } from './views.js';
import { keepAwake } from './wake-lock.js';

const MOST = 32; // people
const SWITCHES = { alerts: 'record-alert', tellsPlace: 'record-place', keepsNothing: 'record-away', calls: 'record-call' };
const VIBRATION = [80, 80, 80];
const LEADS = { preparing: 'message.preparing', recording: 'message.recording', stopping: 'message.recording', uploading: 'record.uploading' };
/** The buttons of each state. */
const BUTTONS = { preparing: ['cancel'], recording: ['stop'], stopping: [], uploading: ['leave'], failed: ['retry', 'how', 'cancel'] };
const ALL = ['stop', 'leave', 'retry', 'how', 'cancel'];

export class OwnView {
  #recording;
  #choice; // of the last start
  #make; // begins it, once more after a problem
  #actions;
  #place;
  #state;
  #isLasting = true;
  #people = new PeopleField(byID('record-people'), (names) => checkNames(this.#people, names, byID('record-error'), this.#actions.options()));

  /**
   * `begin(choice)` and `resume(left, choice)` return an `OwnRecording` that has begun; `call(users, tracks)` rings; `options()` is the argument of `chosenIDs`; `over()` is
   * called when there is nothing more to do here; `place` is a `Place`.
   */
  constructor({ place, ...actions }) {
    [this.#actions, this.#place] = [actions, place];
    const on = (name, action) => byID(`record-${name}`).addEventListener('click', busy(byID(`record-${name}`), async () => action(this.#recording)));
    byID('record-form').addEventListener('submit', (event) => {
      event.preventDefault();
      submit();
    });
    const submit = busy(byID('record-start'), () => this.#submit());
    byID('record-place').addEventListener('change', () => byID('record-place').checked && this.#askForPlace());
    on('back', () => this.#leave());
    on('stop', (recording) => void recording.stop());
    on('leave', (recording) => void recording.leave());
    on('cancel', (recording) => void recording.leave());
    on('retry', () => this.#retry());
    on('how', () => showSteps(() => this.#retry()));
    on('bar-show', () => this.#show());
    on('bar-stop', (recording) => void recording.stop());
    document.addEventListener('view', () => this.#viewChanged());
  }

  get isShown() {
    return !byID('record').hidden;
  }

  /** Whether the recording with this id is being made or uploaded here. */
  has(id) {
    return this.#recording !== undefined && this.#recording.id === id;
  }

  /** Shows the choices as they were made last, or what is recorded now. `isLasting`: this browser keeps a recording until it has left. */
  open({ isLasting }) {
    this.#isLasting = isLasting;
    if (this.#recording) return this.#show();
    const saved = savedRecordChoice(this.#actions.options().own);
    byID(saved.hasPicture === false ? 'record-sound' : 'record-picture').checked = true;
    for (const [name, id] of Object.entries(SWITCHES)) byID(id).checked = saved[name] ?? name === 'alerts';
    this.#people.clear();
    for (const name of saved.people ?? []) this.#people.add(name);
    setText(byID('record-error'), '');
    byID('record-place').disabled = !this.#place.isPossible;
    return this.#show();
  }

  /** Records on what a closed tab has left. */
  resume(left, { isLasting }) {
    if (this.#recording) return this.#show();
    this.#isLasting = isLasting;
    this.#choice = { ...savedRecordChoice(this.#actions.options().own), calls: false };
    return this.#follow(() => this.#actions.resume(left, this.#choice));
  }

  async #submit() {
    const chosen = this.#chosen();
    if (!chosen) return;
    const { users, ...choice } = chosen;
    saveRecordChoice(this.#actions.options().own, choice);
    this.#choice = { ...choice, users, keepsCopy: !choice.keepsNothing };
    navigator.vibrate?.(VIBRATION);
    this.#follow(() => this.#actions.begin(this.#choice));
  }

  /** The choices in the form; undefined if something is wrong with them, which it then says. */
  #chosen() {
    const problem = byID('record-error');
    const people = this.#people.names;
    /** @type {any} */
    const choice = Object.fromEntries(Object.entries(SWITCHES).map(([name, id]) => [name, byID(id).checked]));
    const users = people.length > 0 ? chosenIDs(this.#people, problem, this.#actions.options()) : [];
    if (!users) return undefined;
    if (users.length > MOST) return this.#refuse(t('record.too-many', { most: MOST }));
    if (users.length === 0 && choice.keepsNothing) return this.#refuse(t('record.needs-people'));
    setText(problem, '');
    return { ...choice, people, users, hasPicture: byID('record-picture').checked };
  }

  #refuse(words) {
    setText(byID('record-error'), words);
    this.#people.focus();
    return undefined;
  }

  async #askForPlace() {
    if (await this.#place.ask()) return;
    byID('record-place').checked = false;
    setText(byID('record-error'), t('place.denied'));
  }

  #retry() {
    const before = this.#recording;
    this.#recording = undefined;
    before.leave();
    this.#follow(this.#make);
  }

  #follow(make) {
    this.#make = make;
    const recording = make();
    this.#recording = recording;
    this.#state = undefined;
    recording.addEventListener('change', () => recording === this.#recording && this.draw());
    recording.addEventListener('over', ({ detail }) => recording === this.#recording && this.#over(detail));
    this.#show();
  }

  #over({ isComplete }) {
    const { isShown } = this;
    this.#recording = undefined;
    keepAwake(!byID('call').hidden);
    byID('record-bar').hidden = true;
    byID('record-video').srcObject = null;
    if (isComplete) notice(t('record.complete'));
    if (isShown) this.#leave();
    else this.#actions.over({ wasShown: false });
  }

  #leave() {
    this.#actions.over({ wasShown: true });
  }

  #show() {
    show('record');
    this.draw();
  }

  #viewChanged() {
    if (!this.#recording) return;
    this.draw();
    if (this.#recording.isRecording) keepAwake(true); // a call that ends lets the screen sleep
  }

  draw() {
    const recording = this.#recording;
    byID('record-form').hidden = Boolean(recording);
    byID('record-live').hidden = !recording;
    setText(byID('record-title'), t(recording ? 'record.now' : 'record.title'));
    byID('record').dataset.state = recording?.state ?? 'choosing';
    setText(byID('record-lead'), recording ? t(LEADS[recording.state] ?? '') : t('record.lead'));
    if (!recording) return;
    const { state, length, progress, upload, place, contacts, clockAhead } = recording;
    const hasBegun = !['preparing', 'failed'].includes(state);
    setText(byID('record-time'), hasBegun ? shortTime(length) : '');
    setText(byID('record-gone'), hasBegun ? wordsForProgress(progress) : '');
    setText(byID('record-problem'), wordsForOwnProblem(recording));
    setText(byID('record-network'), hasBegun ? [wordsForNetwork(upload), this.#isLasting ? '' : t('record.in-memory')].filter(Boolean).join(' ') : '');
    setText(byID('record-clock'), wordsForClock(clockAhead));
    setText(byID('record-where'), hasBegun && state !== 'uploading' ? wordsForOwnPlace(place) : '');
    byID('record-contacts-part').hidden = contacts.length === 0;
    replaceRows(byID('record-contacts'), contacts.map((contact) => this.#row(contact, recording.alerts)), byID('record-title'));
    this.#picture(recording);
    this.#bar(recording);
    if (state !== this.#state) this.#enter(recording);
  }

  #row(contact, alerts) {
    const { user, state } = contact;
    const text = element('div', { className: 'row-text' });
    text.append(element('span', { textContent: labelFor(user) }), element('span', { className: 'row-sub', textContent: wordsForContact(contact, alerts) }));
    const made = element('li', {}, avatar(nameFor(user), user), text);
    Object.assign(made.dataset, { user, state });
    return made;
  }

  #picture({ tracks: { camera }, hasPicture, isMirrored, isRecording }) {
    const video = byID('record-video');
    if (video.srcObject?.getVideoTracks()[0] !== camera) video.srcObject = camera ? new MediaStream([camera]) : null;
    video.hidden = !camera;
    video.classList.toggle('mirrored', isMirrored);
    byID('record-stage').hidden = !isRecording;
    byID('record-off').hidden = hasPicture;
  }

  #bar({ state, length, progress, isRecording }) {
    byID('record-bar').hidden = this.isShown || state === 'failed';
    byID('record-bar').dataset.state = state;
    byID('record-bar-stop').hidden = !isRecording;
    setText(byID('record-bar-text'), `${t(LEADS[state] ?? 'record')} · ${shortTime(length)} · ${wordsForProgress(progress)}`);
  }

  #enter(recording) {
    const { state, problem, tracks } = recording;
    this.#state = state;
    const offers = { how: isDenied(problem?.error?.name), retry: problem?.code !== 'unsupported' };
    const shown = (BUTTONS[state] ?? []).filter((name) => offers[name] ?? true);
    for (const name of ALL) byID(`record-${name}`).hidden = !shown.includes(name);
    setText(byID('record-said'), state === 'recording' ? t('message.recording') : '');
    if (state === 'recording') {
      keepAwake(true);
      byID('record-stop').focus();
      if (this.#choice.calls && this.#choice.users?.length > 0) this.#actions.call(this.#choice.users, tracks).catch((error) => notice(wordsForError(error)));
    }
    if (state === 'uploading') {
      keepAwake(!byID('call').hidden);
      byID('record-title').focus();
    }
  }
}
