// One device in a call, for tests of the keys: what it would send goes into arrays.

import { hex, load } from './web.mjs';

const { toBase64, utf8 } = await load('bytes.js');
const { Directory } = await load('directory.js');
const { Identity } = await load('identity.js');
const { KeyAgreement } = await load('keys.js');
const { MemoryStore } = await load('store.js');

/** The devices of `world`, as the server lists them. */
export const directoryFor = (owner, store, world) =>
  new Directory({ store, owner, fetchDevices: async () => ({ devices: world.map((other) => other.asDevice()) }) });

/** Somebody in a call, with everything that it sent to the server and to its worker. */
export class Person {
  static async make(user, participant, world, { store = new MemoryStore(), join, call = 'c', device = 'd' } = {}) {
    const person = new Person();
    person.identity = await Identity.open(store, user, device);
    person.join = join ?? (await person.identity.makeJoin());
    person.requests = [];
    person.posted = [];
    person.warnings = [];
    person.directory = directoryFor(user, store, world);
    person.keys = new KeyAgreement({
      call,
      identity: person.identity,
      directory: person.directory,
      join: person.join,
      request: async (path, body) => {
        person.requests.push({ path, body });
        return person.answer?.(path, body) ?? {};
      },
      post: (message) => person.posted.push(message),
    });
    person.keys.addEventListener('warning', ({ detail }) => person.warnings.push(detail));
    person.keys.setParticipant(participant);
    person.participant = participant;
    world.push(person);
    return person;
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

  /** The bytes that this person's worker would derive for itself: the same on two sides only with the same secret and list. */
  async derived(epoch) {
    const message = this.posted.find(({ type, epoch: other }) => type === 'epoch' && other === epoch);
    if (!message) return undefined;
    const parameters = { name: 'HKDF', hash: 'SHA-512', salt: message.listHash, info: utf8('') };
    return hex(new Uint8Array(await crypto.subtle.deriveBits(parameters, message.secret, 256)));
  }

  /** The envelopes of the last answer to the server, as it passes them on. */
  sent() {
    const { body } = this.requests.filter(({ path }) => path === 'keys').at(-1);
    const { user, device } = this.identity;
    return body.envelopes.map((envelope) => ({ ...envelope, from: { user, device } }));
  }
}
