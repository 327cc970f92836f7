// The lobby: the field for people to call, the running calls, an opened link, the recent calls; and incoming rings.

import { busy, byID, setText } from './dom.js';
import { Faces } from './faces.js';
import { Favourites } from './favourites.js';
import { HistoryView } from './history-view.js';
import { linkIn } from './link.js';
import { onStop, showLinkWait } from './link-wait.js';
import { LinksView } from './links-view.js';
import { Messages } from './messages.js';
import { labelFor, learnNames } from './names.js';
import { notice, tellResults, wordsForError } from './notices.js';
import { hasLink, openWithLink, useLastingLink } from './people-dialog.js';
import { PeopleField, canRing, checkNames, chosenIDs, suggestPeople } from './people.js';
import { preview } from './preview.js';
import { RingNotifications } from './ring-notifications.js';
import { Ringing } from './ringing.js';
import { showBeside, showRunning } from './running-view.js';
import * as session from './session.js';
import { lastingLinkID } from '../conclave/index.js';
import { t } from './texts.js';
import { UnansweredView, isUnanswered, outcomesOf, ringsNobody } from './unanswered-view.js';
import { show } from './views.js';

const RING_ENDS = ['answered-elsewhere', 'declined-elsewhere', 'cancelled', 'missed', 'ended']; // those that are announced

export class Lobby {
  #conclave;
  #isDemo;
  #entered;
  #open = [];
  #callees = new PeopleField(byID('people'), (names) => checkNames(this.#callees, names, byID('call-error'), this.fieldOptions), () => this.#faces.show());
  #favourites = new Favourites(() => this.#history.show());
  #history = new HistoryView({
    favourites: this.#favourites,
    callBack: (users, camera) => this.#start(users, camera),
    enter: (id) => this.#rejoin(id),
    shown: () => this.#faces.show(),
  });
  #faces;
  #links;
  #messages;
  #unanswered = new UnansweredView({
    callAgain: (users, camera) => this.#start(users, camera),
    record: (users, call) => this.#record(users, call),
    canRecord: () => this.#messages.isHere,
    closed: () => this.refresh(),
  });
  /** The link that is open is joined without a question, which was answered before the sign-in. */
  usesLink = false;
  #isReply = false; // the message that is recorded answers a ring
  #givenUp = new WeakSet(); // calls that the page left because nobody answered
  #actions = {
    resume: (call) => this.#conclave.resume(call),
    leave: (call) => call.leave(),
    transfer: (facts) => this.#enter(() => this.#conclave.transfer(facts)),
    join: (facts) => this.#enter(() => this.#conclave.enter(facts)),
  };

  /** `entered(camera)` is called when a call is joined, `rings` when the ringing changes; `token(wasRefused)` resolves with this user's token. */
  constructor({ conclave, isDemo, token, entered, ringsChanged }) {
    this.#conclave = conclave;
    this.#isDemo = isDemo;
    this.#entered = entered;
    const started = (call, link) => {
      useLastingLink(call, link);
      entered(call);
    };
    this.#links = new LinksView(conclave, { started, join: (id) => this.#rejoin(id) });
    this.#faces = new Faces({ favourites: this.#favourites, history: this.#history, presence: conclave.presence, field: this.#callees, call: (users, camera) => this.#start(users, camera) });
    this.#messages = new Messages({
      conclave,
      token,
      base: new URL('recordings', location.href).href,
      callBack: (user) => this.#start([user], true),
      options: () => this.fieldOptions,
      found: () => {
        this.#unanswered.offer();
        byID('record-own').hidden = false;
      },
      callBeside: (users, tracks) => this.#callBeside(users, tracks),
      closed: () => this.#showLobby(),
      over: ({ wasSent }) => (wasSent || this.#isReply ? this.#showLobby() : this.#unanswered.return()),
    });
    this.rings = new Ringing({
      accept: (ring, wants) => this.#enter(() => conclave.accept(ring, wants)),
      end: (ring) => this.#endAndAccept(ring),
      decline: (ring) => this.#decline(ring),
      reply: (ring) => {
        this.#decline(ring);
        return this.#record([ring.from], ring.call, { isReply: true });
      },
      canReply: () => this.#messages.isHere && ['message', 'record', 'record-bar'].every((id) => byID(id).hidden), // the camera is free
      isInCall: () => Boolean(conclave.current),
      own: () => conclave.user,
    });
    this.notifications = new RingNotifications({
      answer: (call) => this.rings.answer(call),
      decline: (call) => this.rings.decline(call),
      own: () => conclave.user,
      push: conclave.push,
    });
    conclave.addEventListener('ring', ({ detail }) => {
      learnNames(detail.members);
      this.#unanswered.close();
      this.#messages.interrupt();
      this.rings.add(detail);
      this.notifications.add(detail);
      ringsChanged();
    });
    conclave.addEventListener('ring-over', ({ detail }) => {
      this.rings.remove(detail.ring);
      this.notifications.remove(detail.ring);
      if (!this.#goesOn(detail)) tellRingOver(detail);
      ringsChanged();
      if (detail.reason !== 'answered') this.#refreshShown();
    });
    conclave.addEventListener('calls', () => {
      this.rings.callChanged();
      this.showLink();
      this.#showRunning();
    });
    conclave.addEventListener('call-over', ({ detail }) => {
      this.#open = this.#open.filter(({ id }) => id !== detail);
      this.#showRunning();
      this.#refreshShown();
    });
    conclave.addEventListener('presence', () => this.#history.show());
    this.#listen();
  }

  get fieldOptions() {
    return { isDemo: this.#isDemo, own: this.#conclave.user, reachable: (users) => this.#conclave.reachable(users) };
  }

  focus() {
    this.showLink();
    if (byID('invited').hidden) this.#callees.focus();
    else byID('invited-title').focus();
  }

  /** Asks the server which calls can be joined, and for the history. */
  async refresh() {
    this.showLink();
    this.#favourites.begin(this.#conclave.user);
    this.#open = await this.#conclave.joinable().catch(() => []);
    this.#showRunning();
    await Promise.all([this.#history.load(this.#conclave), this.#links.refresh()]);
    suggestPeople();
    // Not waited for: the first time its modules are loaded.
    this.#messages.refresh();
  }

  #showLobby() {
    show('lobby');
    return this.refresh();
  }

  /** Deletes this user's recordings from this browser. */
  forgetRecordings() {
    return this.#messages.forgetAll();
  }

  /** A call was added, removed or is over: updates what is visible. */
  #refreshShown() {
    if (!byID('lobby').hidden && this.#conclave.status === 'ready') this.refresh();
  }

  /** A caller has stopped ringing who is ringing again, or is in the call here: that is not news. */
  #goesOn({ ring: { from }, reason }) {
    if (!['cancelled', 'ended'].includes(reason)) return false;
    return this.rings.isFrom(from) || Boolean(this.#conclave.current?.members.get(from)?.participants.length);
  }

  /** After a reload or a restart of the browser: back into the call that this device was in. */
  async comeBack() {
    const { device } = this.#conclave.identity;
    const saved = session.savedCall(device);
    if (!saved || this.#conclave.current) return;
    const facts = this.#open.find(({ id }) => id === saved.id);
    if (facts) await this.#enter(() => this.#conclave.enter(facts, { camera: saved.camera, root: saved.root }));
    else session.forgetCall(device);
  }

  showLink() {
    const link = linkIn(location.hash);
    if (link) setText(byID('invited-title'), link.name ? t('invited.named', { name: link.name }) : t('invited.title'));
    const isShown = Boolean(link) && !this.usesLink && !this.#conclave.current && !byID('lobby').hidden;
    if (isShown === !byID('invited').hidden) return;
    byID('invited').hidden = !isShown;
    if (isShown) preview.show(byID('invited-preview'), { switches: ['microphone', 'camera'] });
    else preview.leave(byID('invited-preview'));
  }

  /** `wants` are the devices, `{camera, microphone}`. */
  async joinByLink(wants) {
    const invitation = linkIn(location.hash);
    if (!invitation) return;
    const { id, link, secret, isLasting } = invitation;
    history.replaceState(null, '', location.pathname);
    this.usesLink = false;
    this.showLink();
    if (isLasting) return this.#joinByLasting(secret, wants);
    return this.#enter(() => this.#conclave.joinByLink(id, { link, secret }, wants));
  }

  /** Waits until the call of the link has started. The person's own link is in the list below. */
  async #joinByLasting(secret, wants) {
    if (this.#links.has(await lastingLinkID(secret))) {
      notice(t('links.own'));
      return this.#links.focus();
    }
    const enough = new AbortController();
    const off = onStop(() => enough.abort());
    try {
      const { call, link } = await this.#conclave.lastingLinks.wait(secret, { waiting: ({ name }) => showLinkWait(name), signal: enough.signal });
      return await this.#enter(() => this.#conclave.joinByLink(call, { link, secret, isLasting: true }, wants));
    } catch (error) {
      if (!enough.signal.aborted) notice(wordsForError(error));
    } finally {
      off();
      if (!byID('waiting').hidden) show('lobby');
    }
    return undefined;
  }

  #record(users, call, { isReply = false } = {}) {
    this.#isReply = isReply;
    return this.#messages.record(users, call);
  }

  async #decline(ring) {
    await this.#conclave.decline(ring).catch((error) => notice(wordsForError(error)));
    this.#refreshShown();
  }

  /** The previous call continues, held, until the other one has been joined: a ring that is already over costs nothing. */
  async #endAndAccept(ring) {
    const before = this.#conclave.current;
    await this.#enter(() => this.#conclave.accept(ring, { camera: ring.media === 'video' }));
    if (this.#conclave.current !== before) await before?.leave();
  }

  async #start(users, camera) {
    const call = await this.#conclave.call(users, { camera });
    if (ringsNobody(call.results)) {
      const left = call.leave(); // there is nobody to wait for
      this.#showOutcomes(call);
      return left;
    }
    if (!call.hasEnded) this.#entered(call);
    if (!this.#unanswered.isShown) tellResults(call.results);
    if (call.hasEnded) this.#refreshShown();
    return undefined;
  }

  /** Rings `users` with the open `tracks` of a recording, which goes on beside the call. */
  async #callBeside(users, { microphone, camera }) {
    const call = await this.#conclave.call(users, { microphone: microphone.clone(), camera: camera ? camera.clone() : false });
    if (ringsNobody(call.results)) return call.leave();
    if (!call.hasEnded) this.#entered(call);
    return undefined;
  }

  /** Everybody who was called has declined or did not answer. The server would keep the call of several people for others to join (protocol section 6). */
  leaveUnanswered(call) {
    if (call.hasEnded || !isUnanswered(call.facts) || call.facts.policy.aloneSeconds !== undefined) return;
    if (hasLink(call) || byID('people-dialog').open) return; // somebody else may come
    this.#givenUp.add(call);
    call.leave();
  }

  /** Shows why `call`, which is over, did not come about. Returns whether there was something to show. */
  showUnanswered(call, { reason }) {
    if (!this.#givenUp.has(call) && !(['declined', 'no-answer'].includes(reason) && isUnanswered(call.facts))) return false;
    return this.#showOutcomes(call);
  }

  #showOutcomes(call) {
    const { media, startedAt, others } = call.facts;
    return this.#unanswered.show(outcomesOf(call.results, others), { withCamera: media === 'video', at: startedAt, call: call.id });
  }

  async #startWithLink() {
    const call = await this.#conclave.call([], { camera: true });
    if (call.hasEnded) return;
    this.#entered(call);
    await openWithLink(call, this.fieldOptions);
  }

  async #rejoin(id) {
    await this.refresh();
    const facts = this.#open.find((open) => open.id === id);
    if (facts) await this.#enter(() => this.#conclave.enter(facts));
    else notice(t('error.call.ended'));
  }

  async #enter(join) {
    try {
      const call = await join();
      if (!call.hasEnded) this.#entered(call);
    } catch (error) {
      notice(wordsForError(error));
      if (!this.#conclave.current) this.refresh();
    }
  }

  #showRunning() {
    const { held, elsewhere, current: call } = this.#conclave;
    const isOpen = ({ id }) => id !== call?.id && !held.some((other) => other.id === id);
    const open = this.#open.filter(isOpen);
    showRunning({ held, elsewhere, open }, this.#actions);
    this.#history.without([...held, ...elsewhere, ...open].map(({ id }) => id));
    showBeside({ held, elsewhere }, this.#actions);
  }

  #listen() {
    const submit = async (camera) => {
      const ids = chosenIDs(this.#callees, byID('call-error'), this.fieldOptions);
      if (!ids || !(await canRing(this.#callees, byID('call-error'), this.fieldOptions))) return;
      try {
        await this.#start(ids, camera);
        this.#callees.clear();
      } catch (error) {
        setText(byID('call-error'), wordsForError(error));
      }
    };
    const startVideo = busy(byID('call-video'), () => submit(true));
    byID('call-form').addEventListener('submit', (event) => {
      event.preventDefault();
      startVideo();
    });
    byID('call-audio').addEventListener('click', busy(byID('call-audio'), () => submit(false)));
    const startWithLink = () => this.#startWithLink().catch((error) => setText(byID('call-error'), wordsForError(error)));
    byID('call-link').addEventListener('click', busy(byID('call-link'), startWithLink));
    byID('record-own').addEventListener('click', busy(byID('record-own'), () => this.#messages.recordOwn()));
    byID('invited-join').addEventListener('click', busy(byID('invited-join'), () => this.joinByLink({ ...preview.wants })));
    window.addEventListener('hashchange', () => this.showLink());
    document.addEventListener('view', () => this.showLink());
  }
}

function tellRingOver({ ring, reason, by }) {
  const name = labelFor(reason === 'cancelled' && by ? by : ring.from);
  if (RING_ENDS.includes(reason)) notice(t(`ring.${reason}`, { name }));
}
