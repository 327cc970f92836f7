// The admissions to one call (protocol section 5.13): follows signed words from this client's own invitation to the device that started the call. Outlives the stays of this device in the call.

import { isGuest } from '../guests.js';
import { Refusal, toBase64 } from '../wire/index.js';
import { fingerprintOf } from './identity.js';
import { LinkSecret, admitWord, isGuestAdmitted, isOfGuest, isWordSigned, makeLinkWord, makeWord, nameOf, nameOfLink, wordsIn } from './words.js';

const MOST_WORDS = 8_256; // words that wait to be found valid
const WORDS_EACH = 4; // words for one user or link: the latest
const MOST_DEVICES = 16_384;
const OPEN_MS = 5_000; // a look-up that takes longer is no reason to wait any more
const COARSE_MS = 200; // a browser may round its clock by this much, and a timer may be early by as much

/**
 * `identity` and `directory` are this device's. Events: `change`, when somebody was let in, or it turned out who lets this device in.
 *
 * A client that has a root, the user who started the call, considers everybody uninvited whom no chain of words from the root lets in. A client whose own
 * invitation leads to no root was let in by the app's service, and considers nobody uninvited; by a lasting link the service lets nobody in, and until there is a
 * root everybody else is uninvited.
 */
export class Admissions extends EventTarget {
  #call;
  #identity;
  #directory;
  #root; // a user
  #inviters; // the users of whom one must have let in this device's user; undefined: any
  /** @type {LinkSecret | undefined} */
  #secret = undefined;
  #secretLink; // the name of its link
  #isLasting = false; // the link was made without a call, and the server has named the call
  #isStarter = false;
  #words = new Map(); // name -> Map(id -> word), of those that have not been let in yet
  #count = 0;
  #devices = new Map(); // fingerprint -> {user, device, keys}: the hash was recomputed
  #listed = new Set(); // fingerprints that were on a list
  #listedUsers = new Set();
  /** @type {Map<string, {how: string, by?: string, waits?: boolean}>} */
  #letIn = new Map(); // by name
  #checked = new Map(); // id of a word -> whether its signature is good
  /** @type {() => Set<string>} */
  #awaited = () => new Set(); // fingerprints of the devices whose look-up is under way
  #openSince;
  #listSince; // when the first list came
  #told = '';
  #isStale = false;
  #judging;

  constructor({ identity, directory }) {
    super();
    this.#identity = identity;
    this.#directory = directory;
    const { user, device, keys, fingerprint } = identity;
    this.#devices.set(toBase64(fingerprint), { user, device, keys });
  }

  // This device's own words

  /** This device starts `call`: its own user is the root. */
  started(call) {
    this.#call = call;
    this.#isStarter = true;
    this.#beginAt(this.#identity.user);
  }

  #beginAt(root) {
    this.#root = root;
    this.#letIn.set(nameOf({ user: root, fingerprint: '' }), { how: 'start' });
  }

  /**
   * This device joins `call`. `inviters` are the user of the ring that it answers, or the people whom this one has just called; `secret` is that of the link by
   * which it joins; `root` is the root that it had before a reload. When it comes back, its first way in counts. The call of a lasting link (`isLasting`) is the
   * server's choice: the device that made the link must have started it.
   * @param {string} call
   * @param {{ inviters?: string[], secret?: LinkSecret, isLasting?: boolean, root?: string }} way
   */
  async joins(call, { inviters = undefined, secret = undefined, isLasting = false, root = undefined } = {}) {
    if (this.#call === call) return;
    this.#call = call;
    this.#inviters = inviters;
    if (root) this.#beginAt(root);
    if (!secret) return;
    this.#secret = secret;
    this.#isLasting = isLasting;
    this.#secretLink = nameOfLink(toBase64(await secret.link(call)));
  }

  /** A word for each of `users`. */
  words(users) {
    return Promise.all([...new Set(users)].map((user) => makeWord(this.#identity, this.#call, user)));
  }

  /** The word with which this device joins by its link; undefined without a link. */
  async comingWord() {
    if (!this.#secret) return undefined;
    const word = await this.#secret.join(this.#identity, this.#call);
    this.take({ admissions: [word] });
    return word;
  }

  /** A new link: its word, and its secret in the form for people. If it `waits`, guests wait until a member admits them. */
  async link({ waits = false } = {}) {
    return this.#linkOf(LinkSecret.make(this.#identity), waits);
  }

  /** The same for a lasting link of this device, with its secret `text`: only in a call that this device has started. */
  async lastingLink(text, { waits = false } = {}) {
    if (!this.#isStarter) throw new Refusal('a lasting link is for calls that this device has started');
    return this.#linkOf(LinkSecret.from(text), waits);
  }

  async #linkOf(secret, waits) {
    return { admission: await makeLinkWord(this.#identity, this.#call, await secret.link(this.#call), { waits }), secret: secret.text };
  }

  /** The word of a guest who waits, as this device admits it. */
  admit(word) {
    return admitWord(this.#identity, this.#call, word);
  }

  /**
   * The word with which `user`, a guest, knocks: the first one in `body` that the key of its link has signed; undefined if there is none. Takes the words of the
   * link that come with it.
   */
  async knock(user, body) {
    const { words } = wordsIn(body);
    const word = isGuest(user) ? words.find((each) => each.user === user && each.by && !each.admittedBy) : undefined;
    if (!word || !(await isWordSigned(word, this.#call, []))) return undefined;
    await this.take(body);
    await this.judge();
    return word;
  }

  /** Whether guests who come by `link` wait, and it is a link of this call. A client that the app's service let in judges by the link's word alone. */
  async isWaiting(link) {
    const name = nameOfLink(link);
    if (this.#root) return Boolean(this.#letIn.get(name)?.waits);
    if (!this.isByService) return false;
    for (const word of this.#words.get(name)?.values() ?? []) if (word.waits && (await this.#isGood(word, new Map()))) return true;
    return false;
  }

  // The words of others

  /**
   * Takes the `admissions` and `signers` of a body. `isList`: they came with an accepted list.
   * @param {{ admissions?: any, signers?: any }} body
   */
  take(body, { isList = false } = {}) {
    if (isList) this.#began();
    const { words, signers } = wordsIn(body);
    for (const word of words) this.#keep(word);
    this.#isStale = true;
    return Promise.all(signers.map((signer) => this.#takeSigner(signer)));
  }

  /** A list was accepted. `awaited()` returns the fingerprints of its devices that have not been looked up yet. */
  listed(list, awaited) {
    for (const { user, fingerprint } of list.filter(({ participant }) => participant > 0)) {
      keepNewest(this.#listed, fingerprint, MOST_DEVICES);
      keepNewest(this.#listedUsers, user, MOST_DEVICES);
    }
    this.#awaited = awaited;
    this.#isStale = true;
  }

  /** Devices `{user, device, fingerprint, keys}` whose keys were looked up: their words may count from now on. */
  learn(devices) {
    for (const { user, device, fingerprint, keys } of devices) if (!this.#devices.has(fingerprint)) this.#addDevice(fingerprint, { user, device, keys });
    if (this.#count > 0) this.#isStale = true;
  }

  /** Somebody may be judged differently now. Resolves when all words that are here have been followed. Sends nothing to the server. */
  judge() {
    this.#judging ??= this.#judgeWhileStale().finally(() => {
      this.#judging = undefined;
      this.#tell();
    });
    return this.#judging;
  }

  /** The person's decisions about devices have changed. */
  reconsider() {
    this.#isStale = true;
    return this.judge();
  }

  // Findings

  /** Whether nobody let in the device of `entry`: `yes`, or `open` while that may still change. */
  uninvited(entry) {
    if (!(this.#root || this.#isLasting) || entry.participant === 0 || this.of(entry)) return undefined;
    if (entry.fingerprint === this.#own.fingerprint) return undefined;
    return this.#judging || this.#isStale || this.#isOpen ? 'open' : 'yes';
  }

  /** The user who let in the device of `entry`: `{how, by}`; `how` is `start`, `member` or `link`, `by` the user who did, or who made the link. */
  of(entry) {
    return this.#letIn.get(nameOf(entry));
  }

  /** The user who started the call, once that is certain. */
  get root() {
    return this.#root;
  }

  /** Whether this device was let in by the app's service. */
  get isByService() {
    if (this.#root || this.#isLasting || this.#listSince === undefined) return false;
    const isLate = performance.now() - this.#listSince >= OPEN_MS;
    return isLate || !(this.#judging || this.#isStale || this.#isOpen);
  }

  get #own() {
    return { user: this.#identity.user, fingerprint: toBase64(this.#identity.fingerprint) };
  }

  /** Whether a word waits for a look-up, and not for too long. */
  get #isOpen() {
    return this.#openSince !== undefined && performance.now() - this.#openSince < OPEN_MS;
  }

  #keep(word) {
    if (this.#letIn.has(word.name) || this.#checked.get(word.id) === false) return;
    const words = this.#words.get(word.name) ?? new Map();
    if (words.has(word.id)) return;
    this.#words.delete(word.name);
    this.#words.set(word.name, words.set(word.id, word));
    this.#count += 1;
    if (words.size > WORDS_EACH) this.#forget(words, words.keys().next().value);
    while (this.#count > MOST_WORDS) this.#forgetAll(this.#words.keys().next().value);
  }

  #forget(words, id) {
    words.delete(id);
    this.#count -= 1;
  }

  #forgetAll(name) {
    this.#count -= this.#words.get(name)?.size ?? 0;
    this.#words.delete(name);
  }

  async #takeSigner({ user, device, fingerprint, keys }) {
    if (this.#devices.has(fingerprint)) return;
    try {
      if (toBase64(await fingerprintOf(user, device, keys)) !== fingerprint) return;
    } catch {
      return; // not the keys of a device
    }
    this.#addDevice(fingerprint, { user, device, keys });
    this.#isStale = true;
  }

  #addDevice(fingerprint, device) {
    this.#devices.set(fingerprint, device);
    if (this.#devices.size <= MOST_DEVICES) return;
    const [own, oldest] = this.#devices.keys();
    this.#devices.delete(oldest ?? own);
  }

  async #judgeWhileStale() {
    while (this.#isStale) {
      this.#isStale = false;
      const signers = new Map(); // fingerprint -> promise of whether its words count
      const root = this.#root ?? (await this.#rootAbove(this.#ownName, signers, new Set()));
      if (root) await this.#follow(root, signers);
    }
    this.#openSince = this.#waits ? (this.#openSince ?? performance.now()) : undefined;
  }

  /** A client that never finds its root says so after a while, whatever the server withholds. */
  #began() {
    if (this.#listSince !== undefined) return;
    this.#listSince = performance.now();
    if (!this.#root) setTimeout(() => this.#tell(), OPEN_MS + COARSE_MS);
  }

  #tell() {
    const state = `${this.#root} ${this.#letIn.size} ${this.isByService}`;
    if (state === this.#told) return;
    this.#told = state;
    this.dispatchEvent(new Event('change'));
  }

  /** Whether a word's signer is being looked up. */
  get #waits() {
    const awaited = this.#awaited();
    const isAwaited = ({ by, fingerprint, admittedBy }) => (by ? admittedBy && awaited.has(admittedBy.fingerprint) : awaited.has(fingerprint));
    return [...this.#words.values()].some((words) => [...words.values()].some(isAwaited));
  }

  get #ownName() {
    return nameOf(this.#own);
  }

  /** The user with a root at the end of the chain of good words for `name`. */
  async #rootAbove(name, signers, seen) {
    if (seen.has(name)) return undefined;
    seen.add(name);
    for (const word of [...(this.#words.get(name)?.values() ?? [])]) {
      if (!this.#countsForOwn(word) || !(await this.#isGood(word, signers))) continue;
      const parent = this.#parentOf(word);
      if (!word.by && parent === word.name) {
        if (this.#mayBeRoot(word.user)) return word.user;
        continue;
      }
      const root = await this.#rootAbove(parent, signers, seen);
      if (root) return root;
    }
    return undefined;
  }

  /** An accomplice who lets in the one who made a lasting link does not become the one who started the call. */
  #mayBeRoot(user) {
    return !this.#isLasting || this.#devices.get(this.#secret?.maker)?.user === user;
  }

  /** Until the root is known, only the inviters, or the link and the device that made it, can say where this client's own chain begins. */
  #countsForOwn(word) {
    if (this.#secret) {
      if (word.name === this.#secretLink) return word.fingerprint === this.#secret.maker;
      return word.name !== this.#ownName || (word.by === this.#secretLink && word.fingerprint === this.#own.fingerprint);
    }
    return !this.#inviters || word.name !== this.#ownName || (!word.by && this.#inviters.includes(this.#devices.get(word.fingerprint)?.user));
  }

  /** Lets in the users and links for which a user who is let in has a word: all at once, so that nobody looks uninvited in between. */
  async #follow(root, signers) {
    const letIn = new Map(this.#root ? this.#letIn : [[nameOf({ user: root, fingerprint: '' }), { how: 'start' }]]);
    const children = new Map();
    for (const words of this.#words.values()) {
      for (const word of words.values()) {
        for (const parent of [this.#parentOf(word), this.#admitterOf(word)]) {
          if (!children.has(parent)) children.set(parent, []);
          children.get(parent).push(word);
        }
      }
    }
    const names = [...letIn.keys()].filter((name) => children.has(name));
    for (let name = names.pop(); name !== undefined; name = names.pop()) {
      for (const word of children.get(name) ?? []) {
        // The word of a guest may need two: its link, and the member who has admitted the guest.
        if (letIn.has(word.name) || !letIn.has(this.#parentOf(word)) || !(await this.#isGood(word, signers))) continue;
        if (needsAdmission(word, letIn) && !(letIn.has(this.#admitterOf(word)) && (await this.#isAdmitted(word, signers)))) continue;
        letIn.set(word.name, this.#wayOf(word, letIn));
        names.push(word.name);
      }
    }
    this.#root ??= root;
    this.#letIn = letIn;
    for (const name of [...this.#words.keys()]) if (letIn.has(name)) this.#forgetAll(name);
  }

  #wayOf(word, letIn) {
    if (needsAdmission(word, letIn)) return { how: 'member', by: this.#devices.get(word.admittedBy.fingerprint).user };
    if (word.by) return { how: 'link', by: letIn.get(word.by).by };
    return { how: 'member', by: this.#devices.get(word.fingerprint).user, ...(word.waits ? { waits: true } : {}) };
  }

  /** The name of the user whose device has admitted the guest of the word. */
  #admitterOf({ admittedBy }) {
    const device = admittedBy && this.#devices.get(admittedBy.fingerprint);
    return device && nameOf({ ...device, fingerprint: admittedBy.fingerprint });
  }

  /** Whether the member's signature that admits the guest counts, and is valid. */
  async #isAdmitted(word, signers) {
    const { fingerprint } = word.admittedBy;
    const device = this.#devices.get(fingerprint);
    if (!device || !(await this.#counts(fingerprint, device, signers))) return false;
    const id = `admitted ${word.id}`;
    if (!this.#checked.has(id)) keepNewest(this.#checked, id, MOST_WORDS, await isGuestAdmitted(word, this.#call, device.keys));
    return this.#checked.get(id);
  }

  /** The name of the word's signer: the link that it is under, or the user of the device. */
  #parentOf({ by, fingerprint }) {
    const device = this.#devices.get(fingerprint);
    return by ?? (device && nameOf({ ...device, fingerprint }));
  }

  /** Whether the word counts: its signer does, and the signature, which is checked once, is valid. */
  async #isGood(word, signers) {
    const device = word.by ? undefined : this.#devices.get(word.fingerprint);
    if (!word.by && !(device && (await this.#counts(word.fingerprint, device, signers)))) return false;
    if (!this.#checked.has(word.id)) keepNewest(this.#checked, word.id, MOST_WORDS, await isWordSigned(word, this.#call, device?.keys ?? []));
    return this.#checked.get(word.id);
  }

  #counts(fingerprint, device, signers) {
    if (isGuest(device.user)) return false; // guests let nobody in
    if (fingerprint === this.#own.fingerprint) return true;
    const facts = { isListed: this.#listed.has(fingerprint), isUserListed: this.#listedUsers.has(device.user) };
    if (!signers.has(fingerprint)) signers.set(fingerprint, this.#directory.maySign({ ...device, fingerprint }, facts));
    return signers.get(fingerprint);
  }
}

/** Whether it is the word of a guest whose link is among those let in, and waits. */
const needsAdmission = (word, letIn) => isOfGuest(word) && Boolean(letIn.get(word.by)?.waits);

/** Adds to a set or map that keeps only the newest `most`. */
function keepNewest(kept, name, most, value = true) {
  if (kept instanceof Map) kept.set(name, value);
  else kept.add(name);
  if (kept.size > most) kept.delete(kept.keys().next().value);
}
