// The view in which a video message is recorded: one's own picture, the countdown, stopping, and what becomes of it.

import { busy, byID, openDialog, setText } from './dom.js';
import { nameFor } from './names.js';
import { notice, wordsForError } from './notices.js';
import { isDenied, showSteps } from './permissions.js';
import { namesOf, shortTime, spokenTime, wordsForProblem } from './recordings-words.js';
import { locale, t } from './texts.js';
import { show } from './views.js';

/** The buttons of each state, the first one having the focus when it is entered by the keyboard. */
const BUTTONS = {
  preparing: ['cancel'],
  counting: ['now', 'pause', 'cancel'],
  recording: ['stop'],
  stopping: [],
  recorded: ['play', 'send', 'again', 'save', 'cancel'],
  sending: ['cancel'],
  failed: ['retry', 'how', 'sound', 'cancel'],
};
const ALL = ['now', 'pause', 'stop', 'play', 'send', 'again', 'save', 'retry', 'how', 'sound', 'cancel'];
const READ_OUT_S = 3; // the last seconds before it records
const ENDING_MS = 10_000; // before it is as long as it may be, this is said
const LEADS = { preparing: 'message.preparing', counting: 'message.ready', recording: 'message.recording', stopping: 'message.recording', sending: 'message.sending' };

export class MessageView {
  #message;
  #live = new Set(); // messages that are not over
  #state;
  #said = '';
  #play;
  #over;

  /** `play(message)` plays what was recorded; `over(detail)` is called when there is nothing more to do here, with the `detail` of the message's event. */
  constructor({ play, over }) {
    this.#play = play;
    this.#over = over;
    const on = (name, action) => byID(`message-${name}`).addEventListener('click', busy(byID(`message-${name}`), async () => action(this.#message)));
    on('now', (message) => message.start());
    on('pause', (message) => (message.isPaused ? message.resume() : message.pause()));
    on('stop', (message) => message.stop());
    on('play', (message) => this.#play(message).catch((error) => notice(wordsForError(error))));
    // Not waited for: another press stops the sending, and a server that does not answer must not hold the button.
    on('send', (message) => void message.send());
    on('save', (message) => void message.send({ onlyOwn: true }));
    on('again', (message) => void message.retake());
    on('retry', (message) => void message.retake());
    on('sound', (message) => void message.retake({ hasPicture: false }));
    on('how', (message) => showSteps(() => message.retake()));
    on('cancel', (message) => void (message.state === 'sending' ? message.stay() : message.discard()));
    document.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || event.defaultPrevented || !this.#message || !this.isShown || openDialog()) return;
      if (this.#message.state === 'recording') this.#message.stop();
      else if (['preparing', 'counting', 'failed'].includes(this.#message.state)) this.#message.discard();
    });
    document.addEventListener('view', () => byID('message').hidden && this.#message?.leave());
  }

  get isShown() {
    return !byID('message').hidden;
  }

  /** Shows `message`, a `VideoMessage`, and begins it. `isLasting` says that this browser keeps a recording until it is sent. */
  show(message, { isLasting }) {
    this.#message = message;
    this.#live.add(message);
    this.#state = undefined;
    this.#said = '';
    setText(byID('message-title'), t('message.title', { names: namesOf(message.users) }));
    setText(byID('message-memory'), isLasting ? '' : t('message.in-memory'));
    message.addEventListener('change', () => message === this.#message && this.draw());
    message.addEventListener('over', ({ detail }) => {
      this.#live.delete(message);
      this.#tell(message, detail);
      const wasShown = message === this.#message && this.isShown;
      if (message === this.#message) this.#message = undefined;
      if (wasShown) byID('message-video').srcObject = null;
      this.#over({ ...detail, wasShown });
    });
    show('message');
    message.prepare(); // not waited for: a browser may ask the person first
  }

  interrupt() {
    this.#message?.interrupt();
  }

  /** Whether the recording with this id is being made or sent here. */
  has(id) {
    return [...this.#live].some((message) => message.id === id);
  }

  #tell({ users }, { devices, onlyOwn, problem }) {
    if (problem) notice(wordsForProblem(problem));
    if (!devices) return;
    if (onlyOwn) {
      notice(t('message.saved'));
      return;
    }
    const reached = users.filter((user) => devices[user]);
    if (reached.length > 0) notice(t('message.sent', { names: namesOf(reached) }));
    for (const user of users) if (!devices[user]) notice(t('result.no-keys', { name: nameFor(user) }));
  }

  draw() {
    const message = this.#message;
    const { state } = message;
    byID('message').dataset.state = state;
    setText(byID('message-lead'), this.#lead(message));
    setText(byID('message-problem'), message.problem ? wordsForProblem(message.problem) : '');
    setText(byID('message-network'), this.#network(message));
    this.#picture(message);
    const seconds = Math.ceil(message.untilStart / 1_000);
    setText(byID('message-count'), state === 'counting' ? shortNumber(seconds) : '');
    setText(byID('message-time'), this.#time(message));
    this.#read(message, seconds);
    if (state !== this.#state) this.#enter(message);
    setText(byID('message-pause-text'), t(message.isPaused ? 'message.continue' : 'message.pause'));
  }

  #lead({ state, length, isLongest }) {
    if (state === 'recorded') return [isLongest && t('message.longest'), t('message.recorded', { length: shortTime(length) })].filter(Boolean).join(' ');
    return t(LEADS[state]);
  }

  /** The words that change all the time, and are not read out. */
  #time({ state, length, left, delivery }) {
    if (state === 'recording') return `${shortTime(length)} · ${t('message.left', { time: shortTime(left) })}`;
    return state === 'sending' ? percent.format(shareOf(delivery)) : '';
  }

  /** The network or the server holds it up; nothing of it is lost. */
  #network({ state, upload, delivery }) {
    if (['preparing', 'failed'].includes(state)) return '';
    const now = state === 'sending' ? delivery?.state : upload;
    if (now === 'full') return t('error.recording.full');
    return now === 'waiting' ? t('message.waiting') : '';
  }

  #picture({ tracks: { camera }, hasPicture, isMirrored, state }) {
    const video = byID('message-video');
    if (video.srcObject?.getVideoTracks()[0] !== camera) video.srcObject = camera ? new MediaStream([camera]) : null;
    video.hidden = !camera;
    video.classList.toggle('mirrored', isMirrored);
    byID('message-picture').hidden = ['recorded', 'sending', 'failed'].includes(state);
    byID('message-off').hidden = hasPicture;
  }

  /** 3, 2, 1, then that it records, and that the end is near. */
  #read(message, seconds) {
    const { state, left } = message;
    const isNear = state === 'recording' && left <= ENDING_MS && left > 0;
    const counted = state === 'counting' && seconds <= READ_OUT_S && seconds > 0 ? shortNumber(seconds) : '';
    const words = isNear ? t('message.left', { time: spokenTime(ENDING_MS) }) : state === 'recording' ? t('message.recording') : counted;
    if (words === this.#said) return;
    this.#said = words;
    setText(byID('message-said'), words);
  }

  #enter(message) {
    const { state } = message;
    const hadFocus = ALL.some((name) => document.activeElement === byID(`message-${name}`));
    const isFirst = this.#state === undefined;
    this.#state = state;
    const shown = (BUTTONS[state] ?? []).filter((name) => this.#offers(name, message));
    for (const name of ALL) byID(`message-${name}`).hidden = !shown.includes(name);
    if (isFirst || !(hadFocus || state === 'recording')) return;
    // A second press of the key that has stopped it must not send it.
    if (state === 'recording') byID('message-stop').focus();
    else byID('message-title').focus();
  }

  #offers(name, message) {
    const { problem } = message;
    if (name === 'how') return isDenied(problem?.error?.name);
    if (name === 'sound') return problem?.source === 'camera';
    if (name === 'retry') return problem?.code !== 'unsupported' && problem?.code !== 'no-keys';
    return true;
  }
}

const shortNumber = (number) => number.toLocaleString(locale);

const percent = new Intl.NumberFormat(locale, { style: 'percent' });

/** How much of it is stored. */
const shareOf = (delivery) => (delivery?.sealed > 0 ? delivery.stored / delivery.sealed : 0);
