// One device in a call, for tests of the keys: what it sends, and what its worker is told, goes into arrays.

import { hex, load } from './web.mjs';

const { Admissions } = await load('trust/admissions.js');
const { fromBase64, toBase64 } = await load('wire/bytes.js');
const { Directory } = await load('trust/directory.js');
const { FrameKeys } = await load('frames/frames.js');
const { Identity } = await load('trust/identity.js');
const { JoinKeys } = await load('keys/join-keys.js');
const { KeyAgreement } = await load('keys/keys.js');
const { MemoryStore } = await load('devices/store.js');
const { NO_LIST, byUserThenDevice, listHashOf, rosterHashOf } = await load('wire/transcript.js');

export const CALL = '7d1f0d6c-5a3e-4c0b-9b0e-2f64c1a8e3d5';

/** The devices of `world`, as the server lists them. */
export const directoryFor = (owner, store, world) =>
  new Directory({ store, owner, fetchDevices: async () => ({ devices: world.map((other) => other.asDevice()), revokes: [] }) });

/** The lists that an honest server announces, chained. */
export class Announcer {
  #hashes = new Map([[0, NO_LIST]]);

  constructor(call = CALL) {
    this.call = call;
  }

  hash(epoch) {
    return this.#hashes.get(epoch);
  }

  /** `keys.rotate` with the whole list of `people` (persons or entries); `rest` overrides members. */
  async rotation(epoch, mode, people, rest = {}) {
    const list = people.map((person) => person.entry?.() ?? person).sort(byUserThenDevice);
    const previous = rest.previous ? fromBase64(rest.previous) : (this.#hashes.get(epoch - 1) ?? NO_LIST);
    const listHash = await listHashOf({ call: this.call, epoch, previous, roster: await rosterHashOf(list) });
    if (!rest.isAside) this.#hashes.set(epoch, listHash);
    delete rest.isAside;
    return { epoch, mode, leader: 1, list, previous: toBase64(previous), listHash: toBase64(listHash), ...rest };
  }
}

/** A person in a call, with everything that its device sent to the server and to its worker. */
export class Person {
  static async make(user, participant, world, { store = new MemoryStore(), join, call = CALL, device = 'd', directory, members } = {}) {
    const person = new Person();
    person.identity = await Identity.open(store, user, device);
    person.join = join ?? (await JoinKeys.make(person.identity, call));
    person.requests = [];
    person.posted = [];
    person.warnings = [];
    person.events = [];
    person.frames = new FrameKeys();
    person.directory = directory ?? directoryFor(user, store, world);
    person.participant = participant;
    person.admissions = new Admissions(person);
    person.keys = new KeyAgreement({
      call,
      identity: person.identity,
      directory: person.directory,
      admissions: person.admissions,
      join: person.join,
      participant,
      members,
      request: async (path, body) => {
        person.requests.push({ path, body });
        return person.answer?.(path, body) ?? {};
      },
      post: (message) => person.#worker(message),
    });
    person.keys.addEventListener('warning', ({ detail }) => person.warnings.push(detail));
    const { rotate } = person.keys;
    // Tests wait for a leader.
    person.keys.rotate = async (event) => {
      await rotate.call(person.keys, event);
      await person.keys.leading;
    };
    for (const name of ['broken', 'unlisted']) person.keys.addEventListener(name, () => person.events.push(name));
    world.push(person);
    return person;
  }

  /** Handles the messages of the page as `FrameWorker` does. */
  #worker(message) {
    this.posted.push(message);
    if (message.type === 'self') this.frames.identify(message);
    if (message.type === 'epoch') this.frames.install(message);
    if (message.type === 'senders') this.frames.admit(message);
    if (message.type === 'switch') this.frames.switchTo(message.epoch);
    if ('isSilent' in message) this.frames.isSilent = message.isSilent;
  }

  get problems() {
    return this.warnings.map(({ problem }) => problem);
  }

  asDevice() {
    const { user, device, keys, fingerprint } = this.identity;
    return { user, device, keys, fingerprint: toBase64(fingerprint) };
  }

  entry() {
    const { user, device, fingerprint } = this.identity;
    return { user, device, participant: this.participant, fingerprint: toBase64(fingerprint), ...this.join.wire };
  }

  withKeys() {
    return { ...this.entry(), keys: this.identity.keys };
  }

  /** A fingerprint of the epoch's secret and list on this device: equal on two devices only if both are equal. */
  async derived(epoch) {
    const message = this.posted.find(({ type, epoch: other }) => type === 'epoch' && other === epoch);
    if (!message) return undefined;
    const parameters = { name: 'HKDF', hash: 'SHA-512', salt: message.listHash, info: new Uint8Array(0) };
    return hex(new Uint8Array(await crypto.subtle.deriveBits(parameters, message.secret, 256)));
  }

  /** The envelopes of the last answer to the server, as forwarded by it. */
  sent() {
    const { body } = this.requests.filter(({ path }) => path === 'keys').at(-1);
    const { user, device } = this.identity;
    return body.envelopes.map((envelope) => ({ ...envelope, from: { user, device } }));
  }

  /** Whether this device opens a frame of another's. */
  async hears(frame) {
    try {
      const found = this.frames.inspect(frame, 0);
      await this.frames.open(frame, 0, found);
      return true;
    } catch {
      return false;
    }
  }

  close() {
    this.keys.close();
  }
}
