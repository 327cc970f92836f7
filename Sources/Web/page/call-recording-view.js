// Recording a call: the dialog of the one who begins, the question to everybody else, and the line that stays while the call is recorded.

import { isGuest } from '../conclave/index.js';
import { busy, byID, rest, setText } from './dom.js';
import { labelFor } from './names.js';
import { notice, wordsForError } from './notices.js';
import { listNames, t } from './texts.js';

const BUTTONS = ['consent-decline', 'consent-voice', 'consent-agree'];

const nameIn = (call, user) => (user === call.user ? t('tile.you') : labelFor(user));

/** The words of the question: who asks, who will be able to play it, and what would be recorded. */
export function wordsOfRequest(call, { by, readers, media }) {
  const name = labelFor(by.user);
  const others = readers.filter((user) => user !== by.user);
  const names = listNames([by.user, ...others].map((user) => nameIn(call, user)));
  return {
    title: t('consent.title', { name }),
    readers: others.length > 0 ? t('consent.readers', { names }) : t('consent.only', { name }),
    media: t(media.some((medium) => medium !== 'audio') ? 'consent.all' : 'consent.voice-only'),
  };
}

/** The words of the line, and what its button does: `stop`, `withdraw` or `ask`. Undefined if there is nothing to say. */
export function lineOf({ recording, exported }) {
  if (!recording) return exported.length > 0 ? { words: t('recorded.yes') } : undefined;
  const { isOwn, by, answer, lack } = recording;
  const name = labelFor(by.user);
  const hasAgreed = answer?.length > 0;
  const state = exported.length > 0 ? 'yes' : hasAgreed ? (lack ?? 'soon') : 'no';
  const words = `${isOwn ? t('recorded.by-you') : t('recorded.by', { name })} ${t(`recorded.${state}`, { name })}`;
  return { words, deed: isOwn ? 'stop' : hasAgreed || exported.length > 0 ? 'withdraw' : 'ask' };
}

const DEEDS = { stop: 'call-record.stop', withdraw: 'recorded.stop-me', ask: 'recorded.agree' };

export class CallRecordingView {
  #call;
  #deed;
  #asked; // the id of the recording in the question
  #isAskedAgain = false; // the person has declined, and wants to answer again

  constructor() {
    const on = (id, action) => byID(id).addEventListener('click', busy(byID(id), () => action().catch((error) => notice(wordsForError(error)))));
    on('call-record', async () => {
      byID('more-dialog').close();
      await (this.#call.recording ? this.#call.stopRecording() : byID('call-record-dialog').showModal());
    });
    on('call-record-ask', () => this.#begin());
    on('consent-decline', () => this.#answer([]));
    on('consent-voice', () => this.#answer(['audio']));
    on('consent-agree', () => this.#answer(this.#call.recording.media));
    on('withdraw-stop', () => this.#withdraw({ isErased: false }));
    on('withdraw-erase', () => this.#withdraw({ isErased: true }));
    on('recorded-action', async () => {
      if (this.#deed === 'stop') await this.#call.stopRecording();
      else if (this.#deed === 'withdraw') byID('withdraw-dialog').showModal();
      else {
        this.#isAskedAgain = true;
        this.#ask();
      }
    });
    // Escape is no answer.
    byID('consent-dialog').addEventListener('cancel', (event) => event.preventDefault());
    byID('consent-dialog').addEventListener('close', () => this.#call && this.#ask());
  }

  /** Shows whether `call` is recorded, and asks the person once for each recording. */
  show(call) {
    if (call !== this.#call) this.#isAskedAgain = false;
    this.#call = call;
    const { recording } = call;
    const line = lineOf(call);
    byID('recorded-bar').hidden = !line;
    if (line) {
      setText(byID('recorded-text'), line.words);
      this.#deed = line.deed;
      byID('recorded-action').hidden = !line.deed;
      if (line.deed) setText(byID('recorded-action'), t(DEEDS[line.deed]));
    }
    byID('call-record').hidden = !this.#mayRecord(recording);
    setText(byID('call-record-label'), t(recording ? 'call-record.stop' : 'call-record.start'));
    byID('call-record').ariaHasPopup = recording ? null : 'dialog';
    if (!recording) byID('withdraw-dialog').close();
    this.#ask();
  }

  /** No call is shown. */
  hide() {
    this.#call = undefined;
    byID('recorded-bar').hidden = true;
    byID('consent-dialog').close();
  }

  /** Whether this user may begin a recording, or end the one that runs. */
  #mayRecord(recording) {
    const { isInitiator, facts, user } = this.#call;
    if (recording) return recording.by.user === user || isInitiator;
    const { record } = facts.policy;
    return !isGuest(user) && document.body.classList.contains('keeps-recordings') && record !== 'nobody' && (record !== 'initiator' || isInitiator);
  }

  async #begin() {
    const media = byID('call-record-what').value === 'voices' ? ['audio'] : ['audio', 'video', 'screen'];
    const present = this.#call.facts.others.filter(({ participants }) => participants.length > 0).map(({ user }) => user);
    await this.#call.record({ media, readers: byID('call-record-who').value === 'own' ? [] : present });
    byID('call-record-dialog').close();
  }

  /** Opens the question, or closes it when it is answered or over. */
  #ask() {
    const dialog = byID('consent-dialog');
    const { recording } = this.#call;
    const isOpen = recording && !recording.isOwn && (recording.answer === undefined || this.#isAskedAgain);
    if (!isOpen) {
      this.#isAskedAgain = false;
      if (dialog.open) dialog.close();
      return;
    }
    if (this.#asked !== recording.id || !dialog.open) {
      const { title, readers, media } = wordsOfRequest(this.#call, recording);
      setText(byID('consent-title'), title);
      setText(byID('consent-readers'), readers);
      setText(byID('consent-media'), media);
      byID('consent-voice').hidden = recording.media.every((medium) => medium === 'audio') || !recording.media.includes('audio');
      // A press that was meant for what was here before is no consent.
      for (const id of BUTTONS) rest(byID(id));
      this.#asked = recording.id;
    }
    if (!dialog.open) dialog.showModal();
  }

  async #answer(media) {
    this.#isAskedAgain = false;
    const answered = this.#call.answerRecording(this.#asked, media);
    byID('consent-dialog').close();
    await answered;
  }

  async #withdraw({ isErased }) {
    byID('withdraw-dialog').close();
    const { id } = this.#call.recording ?? {};
    if (id) await this.#call.answerRecording(id, [], { isErased });
  }
}
