// Several real clients, a server that may lie, and the invariants that must hold nevertheless.

import assert from 'node:assert/strict';
import { load } from '../web.mjs';
import { Client, browser } from './client.mjs';
import { Server } from './server.mjs';
import { VirtualTime } from './time.mjs';

const { toBase64 } = await load('wire/bytes.js');
const { deriveKey, open, parseHeader } = await load('frames/sframe.js');
const { baseKeyOf } = await load('wire/transcript.js');

const none = new Uint8Array(0);
const FORMER_MS = 1_000; // a frame counts for the track that its slot shows, or showed at most this long ago (protocol section 5.9)

export class World {
  clients = [];
  #spoken = []; // {speaker, said, sealed, scope, own, list}
  #tried = new Set();
  #forged = new Map(); // text: the participant that it claims to be from

  constructor(seed = 1) {
    this.time = new VirtualTime(seed).install();
    browser();
    this.server = new Server(this.time);
  }

  static async with(seed, ...users) {
    const world = new World(seed);
    for (const user of users) await world.add(user);
    return world;
  }

  async add(user, options) {
    const client = await Client.make(this, user, options);
    this.clients.push(client);
    return client;
  }

  get inCall() {
    return this.clients.filter(({ call }) => call);
  }

  run(ms) {
    return this.time.run(ms);
  }

  /** Runs until `condition` holds, for at most `ms`. */
  async until(condition, ms = 20_000) {
    for (let passed = 0; passed < ms; passed += 100) {
      if (condition()) return true;
      await this.time.run(100);
    }
    return condition();
  }

  /** The first of `clients` starts a call, and the others accept its ring. Returns the server's call once all have the same epoch. */
  async call(...clients) {
    const [initiator, ...callees] = clients;
    initiator.start(callees.map(({ user }) => user));
    assert.ok(await this.until(() => callees.every(({ rung }) => rung.length > 0)), 'it rings');
    for (const callee of callees) {
      callee.accept();
      await this.run(20);
    }
    const [call] = this.server.calls.values();
    await this.until(() => this.#agree(call, clients));
    return call;
  }

  #agree(call, clients) {
    return clients.every((client) => client.call?.confirmation.state === 'confirmed') && call.newest.list.length === clients.length;
  }

  /** A client sent a frame: records who may receive it. */
  spoke(speaker, said, sealed) {
    const { posted } = speaker.worker;
    const own = posted.find(({ type }) => type === 'self');
    const { epoch } = posted.findLast(({ type }) => type === 'switch');
    const scope = posted.find((message) => message.type === 'epoch' && message.epoch === epoch);
    const list = speaker.call.devices.map(({ fingerprint }) => fingerprint);
    this.#spoken.push({ speaker, said, sealed, own, scope: { call: own.call, epoch, listHash: scope.listHash }, list });
  }

  /** The text for a frame that a member makes and that claims to be from `participant`. */
  forges(participant) {
    const said = `forged ${this.#forged.size}`;
    this.#forged.set(said, participant);
    return said;
  }

  /** Everybody says something; returns who heard whom, as `speaker>hearer`. */
  async round(clients = this.inCall) {
    const said = [];
    for (const client of clients) said.push([client, await client.say()]);
    await this.run(200);
    const heard = new Set();
    for (const [speaker, text] of said) {
      for (const hearer of clients) if (text && hearer !== speaker && hearer.hasHeard(text)) heard.add(`${speaker.user}>${hearer.user}`);
    }
    return heard;
  }

  /** Asserts that everybody hears everybody. */
  async assertAllHear(clients = this.inCall, what = '') {
    const heard = await this.round(clients);
    const count = clients.length * (clients.length - 1);
    const stands = clients.map((client) => `${client.user}: epoch ${client.call?.epoch}, ${client.call?.stop?.cause ?? 'sends'}, listed ${client.call?.devices.map(({ user, participant }) => user + participant)}; ${client.problems}`);
    assert.equal(heard.size, count, `${what}: ${[...heard].join(' ')}\n${stands.join('\n')}`);
  }

  /** Asserts what must hold whatever the server or a member did. */
  async assertInvariants() {
    const spokenBy = new Map(this.#spoken.map((spoken) => [spoken.said, spoken]));
    assert.deepEqual(this.time.audit.repeated, [], 'a (key, nonce) came twice');
    for (const hearer of this.clients) {
      for (const { slot, said, from, at } of hearer.heard) {
        if (this.#forged.has(said)) {
          assert.ok(hasShown(hearer, slot, this.#forged.get(said), at), `${hearer.name} heard ${said} in ${slot}, which did not show the one it claims to be from`);
          continue;
        }
        const spoken = spokenBy.get(said);
        assert.ok(spoken, `${hearer.name} heard what nobody said: ${said}`);
        assert.ok(spoken.list.includes(hearer.fingerprint), `${hearer.name} heard ${said}, which was not for it`);
        if (from) assert.equal(from, spoken.speaker.name, `${said} was shown as of ${from}`);
      }
      for (const { participant, text } of hearer.messages) {
        const from = hearer.call?.devices.find((device) => device.participant === participant);
        if (from && text.includes(' writes ')) assert.ok(text.startsWith(`${from.user}/${from.device} `), `${text} was shown as of ${from.user}`);
      }
    }
    await this.#assertNoOutsiderOpens();
  }

  /** No frame for a list opens with the secrets of devices that are not on the list and everything that the server knows. */
  async #assertNoOutsiderOpens() {
    for (const { speaker, said, sealed, own, scope, list } of this.#spoken) {
      const name = `${speaker.name}/${scope.epoch}/${own.participant}`;
      if (this.#tried.has(name)) continue;
      this.#tried.add(name);
      for (const outsider of this.clients.filter(({ fingerprint }) => !list.includes(fingerprint))) {
        for (const { secret } of outsider.secrets) {
          const key = await deriveKey(await baseKeyOf(secret, scope, own), parseHeader(sealed).kid);
          await assert.rejects(open(key, parseHeader(sealed), none, sealed), undefined, `${outsider.name} opens “${said}” of epoch ${scope.epoch}`);
        }
      }
    }
  }

  close() {
    for (const client of this.clients) client.close();
    this.time.remove();
  }
}

/** Whether the slot showed the participant at `at`, or up to a second before. If so, a frame in it counts as the participant's, whoever made it. */
const hasShown = (hearer, name, participant, at) =>
  hearer.workers.some(({ shown }) =>
    shown.some(({ at: begin, slots }, i) => {
      const isShown = slots.some((slot) => slot.name === name && slot.participant === participant);
      return isShown && begin <= at && at - (shown[i + 1]?.at ?? Infinity) <= FORMER_MS;
    }),
  );

/** Runs `action(world)` with clients of these users, checks what must hold, and ends the world. */
export async function inWorld(users, action, seed = 1) {
  const world = await World.with(seed, ...users);
  try {
    const result = await action(world, ...world.clients);
    await world.assertInvariants();
    return result;
  } finally {
    world.close();
  }
}

export const base64 = toBase64;
