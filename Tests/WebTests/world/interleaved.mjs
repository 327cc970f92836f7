// A small call that runs only key code: three devices, and a server that announces, repeats, asks, switches, ends stays, and answers late or never, while
// ciphers end in an order that the seed chooses (`InterleavedTime`). Oracles then look for things that an honest device never does.

import assert from 'node:assert/strict';
import { Announcer, CALL, Person } from '../person.mjs';
import { hex, load } from '../web.mjs';
import { InterleavedTime, randomOf } from './time.mjs';

const { fromBase64, toBase64, utf8 } = await load('wire/bytes.js');
const { rosterOf } = await load('keys/call-trust.js');
const { envelopeIn } = await load('wire/checks.js');
const { Directory } = await load('trust/directory.js');
const { openEnvelope } = await load('keys/envelopes.js');
const { Identity } = await load('trust/identity.js');
const { JoinKeys } = await load('keys/join-keys.js');
const { KeyAgreement } = await load('keys/keys.js');
const { RosterWatch } = await load('keys/roster-watch.js');
const { deriveKey, open, parseHeader } = await load('frames/sframe.js');
const { MemoryStore } = await load('devices/store.js');
const { baseKeyOf, importSecret } = await load('wire/transcript.js');

const STEPS = 10;
const USERS = ['alice', 'bob', 'carol'];
const LATE_MS = 4_000;
const ZEROS = new Uint8Array(32);
const none = new Uint8Array(0);

const identities = new Map();
for (const user of USERS) {
  const store = new MemoryStore();
  await Identity.open(store, user, 'd');
  identities.set(user, await store.get('identities', `${user}/d`));
}

/** The world of one seed. */
export class Interleaved {
  found = { envelopes: 0, frames: 0, heard: 0, ended: 0 };
  #world = [];
  #stays = []; // all stays so far
  #present = [];
  #lists = new Announcer();
  #newest = 1;
  #event;
  #next = 1;
  #spoken = [];
  #hashes = new Map();

  constructor(seed) {
    this.time = new InterleavedTime(seed).install();
    this.random = randomOf(seed * 7_919);
  }

  async run() {
    try {
      const { hold } = this.time.audit;
      this.time.audit.hold = undefined;
      for (const user of USERS) await this.#join(user);
      this.#hashes.set(1, (await this.#lists.rotation(1, 'fresh', [this.#present[0]])).listHash);
      this.time.audit.hold = hold;
      void this.#present[0].keys.start();
      for (let step = 0; step < STEPS; step += 1) {
        this.#pick(this.#present.length > 1 ? this.#lies : [() => this.#join(this.#pick(USERS))])();
        for (const person of this.#present) this.#speak(person, step);
        await this.time.run(this.random() * 700);
        this.#look();
      }
      await this.time.drain();
      await this.time.run(LATE_MS);
      await this.time.drain();
      this.time.audit.hold = undefined;
      await this.#judge();
      return this.found;
    } finally {
      for (const person of this.#stays) person.close();
      this.time.remove();
    }
  }

  #pick(list) {
    return list[Math.floor(this.random() * list.length)];
  }

  /** A stay of `user`, which may have had earlier stays. */
  async #join(user) {
    if (this.#present.some(({ identity }) => identity.user === user)) return;
    const store = new MemoryStore();
    await store.put('identities', `${user}/d`, identities.get(user));
    const late = (value) => new Promise((resolve, reject) => this.time.after(this.random() * LATE_MS, () => (this.random() < 0.15 ? reject(Object.assign(new Error(), { code: 'internal' })) : resolve(value()))));
    const fetchDevices = () => late(() => ({ devices: this.#world.map((each) => each.asDevice()), revokes: [] }));
    const directory = new Directory({ store, owner: user, fetchDevices });
    const person = await Person.make(user, this.#next++, this.#world, { store, directory });
    person.secrets = new Map(); // epoch -> hex
    person.late = [];
    person.watch = new RosterWatch();
    const { push } = person.posted;
    person.posted.push = (message) => {
      if (person.isOver) person.late.push(message.type);
      if (message.type === 'epoch' && person.keys.record(message.epoch)?.secret) person.secrets.set(message.epoch, hex(person.keys.record(message.epoch).secret));
      return push.call(person.posted, message);
    };
    person.answer = (path, body) => {
      if (person.isOver || (path === 'keys' && body.epoch < person.keys.epoch)) person.late.push(path);
      if (path === 'keys') this.#deliver(person, body.envelopes);
      const answer = late(() => ({}));
      if (path === 'keys') answer.then(() => (body.isTaken = true), () => {});
      return answer;
    };
    this.#stays.push(person);
    this.#present.push(person);
  }

  /** Delivers events like a connection: rejections are left to the client. */
  #tell(person, name, body) {
    this.time.after(this.random() * 300, () => !person.isOver && KeyAgreement.prototype[name].call(person.keys, body)?.catch(() => {}));
  }

  #deliver(signer, envelopes) {
    for (const envelope of envelopes) {
      const to = this.#present.find(({ identity }) => identity.user === envelope.to.user);
      if (to && this.random() < 0.8) this.#tell(to, 'envelope', { ...envelope, from: { user: signer.identity.user, device: 'd' } });
    }
  }

  #deliverTo(leader) {
    return this.#present.filter((other) => other !== leader && this.random() < 0.8).map((other) => other.withKeys());
  }

  #lies = [
    () => this.#announce(),
    () => this.#announce(),
    () => this.#announce(),
    // Another leader, or the same again.
    () => this.#event && this.#leads(this.#pick(this.#present), this.#event),
    () => this.#event && this.#leads(this.#pick(this.#present), this.#event),
    () => this.#asks(this.#pick(this.#present)),
    () => {
      const person = this.#pick(this.#present);
      this.#asks(person);
      this.time.after(this.random() * 300, () => this.#end(person));
    },
    () => this.#switches(),
    () => this.#switches(),
    () => this.#switches(),
    () => void this.#join(this.#pick(USERS)),
  ];

  #leads(leader, event) {
    this.#tell(leader, 'rotate', { ...event, deliver: this.#deliverTo(leader) });
  }

  #asks(person) {
    this.#tell(person, 'requested', { epoch: this.#newest, to: this.#pick(this.#present.filter((other) => other !== person)).withKeys() });
  }

  #switches() {
    for (const person of this.#present) if (this.random() < 0.7) this.#tell(person, 'switchTo', { epoch: this.#newest });
  }

  async #announce() {
    const number = (this.#newest += 1);
    const present = [...this.#present];
    const leader = this.#pick(present);
    const before = this.#event?.list ?? [];
    const isJoin = before.length > 0 && before.every(({ joinId }) => present.some(({ join }) => join.wire.joinId === joinId)) && present.length > before.length;
    const event = await this.#lists.rotation(number, isJoin ? 'ratchet' : 'fresh', present);
    this.#event = event;
    this.#hashes.set(number, event.listHash);
    for (const person of present) {
      if (person === leader) this.#leads(person, event);
      else if (this.random() < 0.95) this.#tell(person, 'rotate', event);
    }
  }

  #end(person) {
    if (person.isOver || this.#present.length < 2) return;
    person.keys.close();
    person.isOver = true;
    person.before = [person.requests.length, person.posted.length];
    this.#present = this.#present.filter((other) => other !== person);
    this.found.ended += 1;
  }

  #speak(person, step) {
    const said = `${person.identity.user} ${step}`;
    const list = person.keys.list.map(({ fingerprint }) => fingerprint);
    const epoch = person.frames.sendingEpoch;
    void person.frames.seal(1, utf8(said), 0).then((sealed) => sealed && this.#spoken.push({ person, said, sealed, list, epoch }));
  }

  /** The page has to draw each device on the current list. */
  #look() {
    for (const person of this.#present) {
      const { list, devices, epoch } = person.keys;
      const members = this.#present.map(({ identity: { user }, participant, join }) => ({ user, state: 'joined', participants: [{ device: 'd', participant, joinId: join.wire.joinId }] }));
      person.watch.update(performance.now(), { isConnected: true, isAsking: false, participant: person.participant, epoch, list, members, rotateMinutes: 10 });
      const roster = rosterOf(person.watch.people, devices);
      for (const entry of list) {
        assert.ok(roster.some(({ user, participant, fingerprint }) => user === entry.user && participant === entry.participant && fingerprint === entry.fingerprint), `${entry.user} hears ${person.identity.user}, and is not drawn`);
      }
    }
  }

  // Oracles

  async #judge() {
    assert.deepEqual(this.time.audit.repeated, [], 'a (key, nonce) came twice');
    for (const person of this.#stays) {
      await this.#judgeEnvelopes(person);
      const name = person.identity.user;
      assert.deepEqual(person.late, [], `${name} sends for an epoch or a stay that is over`);
      if (person.isOver) assert.deepEqual([person.requests.length, person.posted.length], person.before, `${name} goes on after its stay`);
    }
    for (const spoken of this.#spoken) await this.#judgeFrame(spoken);
  }

  /** An envelope has the secret that its signer uses; one that the server did not accept may be the signer's only proposal. */
  async #judgeEnvelopes(person) {
    const given = new Map(); // epoch -> Set of secrets
    for (const { body } of person.requests.filter(({ path }) => path === 'keys')) {
      for (const sent of body.envelopes) {
        const to = this.#stays.find(({ join }) => join.holder(fromBase64(sent.key)));
        if (!to) continue; // to a join key that was replaced
        const envelope = envelopeIn({ ...sent, from: { user: person.identity.user, device: 'd' } });
        const listHash = fromBase64(this.#hashes.get(envelope.epoch));
        const options = { identity: to.identity, call: CALL, listHash, pair: to.join.holder(envelope.key).pair, keys: person.identity.keys };
        const secret = hex(await openEnvelope(envelope, options));
        this.found.envelopes += 1;
        const used = person.secrets.get(envelope.epoch);
        if (body.isTaken && used) assert.equal(secret, used, `${person.identity.user} hands out another secret of epoch ${envelope.epoch} than it uses`);
        given.set(envelope.epoch, (given.get(envelope.epoch) ?? new Set()).add(secret));
      }
    }
    for (const [epoch, secrets] of given) {
      secrets.delete(person.secrets.get(epoch));
      assert.ok(secrets.size <= 1, `${person.identity.user} proposes ${secrets.size} secrets of epoch ${epoch}`);
    }
  }

  /** A frame does not open with a secret of zeros, or with any secret that somebody who is not on the list ever had. */
  async #judgeFrame({ person, said, sealed, list, epoch }) {
    this.found.frames += 1;
    const scope = { call: CALL, epoch, listHash: fromBase64(this.#hashes.get(epoch)) };
    const own = { participant: person.participant, fingerprint: person.identity.fingerprint, joinId: person.join.joinId };
    const opens = async (secret) => {
      const key = await deriveKey(await baseKeyOf(secret, scope, own), parseHeader(sealed).kid);
      return open(key, parseHeader(sealed), none, sealed).then(() => true, () => false);
    };
    assert.equal(await opens(await importSecret(ZEROS)), false, `${said} is sealed under zeros`);
    const outsiders = this.#stays.filter(({ identity }) => !list.includes(toBase64(identity.fingerprint)));
    for (const outsider of outsiders) {
      for (const message of outsider.posted.filter(({ type, epoch: other }) => type === 'epoch' && other === epoch)) {
        assert.equal(await opens(message.secret), false, `${outsider.identity.user} hears ${said}, which was not for it`);
      }
    }
    const members = this.#stays.filter((other) => other !== person && other.secrets.get(epoch) === person.secrets.get(epoch));
    if (members.length > 0) this.found.heard += 1;
  }
}
