// Random lies: messages of a server are dropped, doubled, delayed, replayed, or have numbers, bytes, entries or their order changed.

import { load } from '../web.mjs';
import { announcement, entryOf, forge, ghostEntry, slotOf } from './lying.mjs';

const { fromBase64, toBase64, utf8 } = await load('wire/bytes.js');

const NUMBERS = [0, -1, 1.5, '2', 2 ** 32, 2 ** 32 + 2, 2 ** 53, null];
const NOISE_MS = 400;
const RECORDED = 200;

/** One mix of lies, drawn from `random`; `lie` is a value for `Server.lie`. */
export class MixedLies {
  #recorded = [];

  constructor({ world, call, random, ghost }) {
    Object.assign(this, { world, call, random, ghost });
    this.victims = world.clients.filter(() => random() < 0.6);
    this.rate = 0.1 + random() * 0.5;
    this.kinds = new Set(Object.keys(this.#events).filter(() => random() < 0.35));
    this.replies = new Set(Object.keys(this.#replies).filter(() => random() < 0.25));
    this.frames = new Set(Object.keys(this.#frames).filter(() => random() < 0.3));
  }

  toString() {
    return `to ${this.victims.map(({ user }) => user)}: ${[...this.kinds, ...this.replies, ...this.frames]}`;
  }

  get lie() {
    return {
      event: (to, name, body) => this.#event(to, name, body),
      reply: (to, path, body, reply, error) => this.#reply(to, path, reply, error),
      forward: (to, frame) => this.#forward(to, frame),
    };
  }

  #pick(list) {
    return list[Math.floor(this.random() * list.length)];
  }

  #strikes(to) {
    return this.victims.includes(to) && this.random() < this.rate;
  }

  // Events

  async #event(to, name, body) {
    this.#recorded.push({ name, body });
    if (this.#recorded.length > RECORDED) this.#recorded.shift();
    if (this.kinds.size === 0 || !this.#strikes(to)) return body;
    return this.#events[this.#pick([...this.kinds])](body, name, to);
  }

  #later(ms, to, name, body) {
    this.world.time.after(ms, () => to.queue({ name, body: { at: Date.now(), ...body } }));
  }

  #events = {
    drop: () => undefined,
    double: (body, name, to) => {
      this.#later(this.random() * NOISE_MS, to, name, body);
      return body;
    },
    delay: (body, name, to) => void this.#later(this.random() * 4_000, to, name, body),
    replay: (body, name, to) => {
      const { name: old, body: said } = this.#pick(this.#recorded);
      this.#later(this.random() * NOISE_MS, to, old, said);
      return body;
    },
    number: (body) => this.#changed(body, (value) => typeof value === 'number', (value) => this.#pick([...NUMBERS, value + 1, value - 1, 1, 2, 3])),
    bytes: (body) => this.#changed(body, (value) => typeof value === 'string' && value.length > 15 && /^[A-Za-z0-9+/]+=*$/.test(value), (value) => this.#flipped(value)),
    list: (body, name) => (name === 'keys.rotate' ? this.#otherList(body) : body),
    previous: (body, name) => (name === 'keys.rotate' ? announcement(this.call, { ...body, entries: this.call.newest.list, previous: this.#flipped(body.previous) }) : body),
    mode: (body, name) => (name === 'keys.rotate' ? { ...body, mode: body.mode === 'fresh' ? 'ratchet' : 'fresh' } : body),
    noise: (body, name, to) => {
      const epoch = this.#pick([...NUMBERS, this.call.epoch, this.call.epoch - 1, this.call.epoch + 1, this.call.epoch + 7]);
      const entry = this.#pick(this.call.newest.list);
      const said = this.#pick([
        ['keys.switch', { epoch }],
        ['keys.request', { epoch, to: { ...entry, keys: [] } }],
        ['keys.waiting', { epoch, participant: entry.participant, reason: 'trust' }],
        ['keys.confirmed', { epoch, buckets: [{ index: 0, who: toBase64(new Uint8Array(8).fill(255)), tag: toBase64(new Uint8Array(16)) }] }],
        ['media.need', { audio: epoch, video: epoch }],
        ['media.wanted', { track: `${entry.participant}.1`, layers: [{ rid: 'q', active: false }, { rid: 'h', active: false }] }],
        ['call.state', { ...this.call.state(), epoch }],
        ['keys.devices-changed', { user: entry.user }],
      ]);
      this.#later(this.random() * NOISE_MS, to, said[0], { call: this.call.id, ...said[1] });
      return body;
    },
    seats: (body, name) => {
      if (name !== 'call.member' || !body.participants[0]) return body;
      const { participant } = this.#pick(this.call.newest.list);
      return { ...body, participants: [{ ...body.participants[0], participant, tracks: [] }] };
    },
    left: (body, name) => (name === 'call.member' ? { ...body, state: 'left', participants: [] } : body),
    slots: (body, name) => {
      if (name !== 'media.slots' || body.receive.length === 0) return body;
      const mids = body.receive.map(({ mid }) => mid);
      return { ...body, receive: body.receive.map((slot, i) => ({ ...slot, mid: mids[(i + 1) % mids.length] })) };
    },
    sender: (body, name) => (name === 'message' ? { ...body, from: this.#pick(this.call.newest.list).participant } : body),
    envelope: (body, name) => (name === 'keys.envelope' ? { ...(this.#recorded.findLast((other) => other.name === name)?.body ?? body), epoch: body.epoch } : body),
  };

  #flipped(text) {
    try {
      const bytes = fromBase64(text);
      bytes[Math.floor(this.random() * bytes.length)] ^= 1 << Math.floor(this.random() * 8);
      return toBase64(bytes);
    } catch {
      return text;
    }
  }

  /** `body` with one of its values, somewhere, changed. */
  #changed(body, matches, change) {
    const places = [];
    const visit = (node) => {
      for (const [key, value] of Object.entries(node)) {
        if (key === 'at') continue;
        if (matches(value)) places.push([node, key]);
        else if (value && typeof value === 'object') visit(value);
      }
    };
    const copy = structuredClone(body);
    visit(copy);
    if (places.length === 0) return copy;
    const [node, key] = this.#pick(places);
    node[key] = change(node[key]);
    return copy;
  }

  /** Another list, with its correct hash. */
  async #otherList(body) {
    const { list } = this.call.newest;
    const [a, b] = [this.#pick(list), this.#pick(list)];
    const ghost = (await ghostEntry(this.ghost, this.call, 90 + Math.floor(this.random() * 9))).entry;
    const entries = this.#pick([
      () => list.filter((entry) => entry !== a),
      () => [...list, ghost],
      () => list.map((entry) => (entry === a ? { ...entry, participant: b.participant } : entry)),
      () => list.map((entry) => (entry === a ? { ...a, participant: b.participant } : entry === b ? { ...b, participant: a.participant } : entry)),
      () => list.map((entry) => (entry === a ? { ...entry, joinKey: b.joinKey } : entry)),
      () => list.map((entry) => (entry === a ? { ...ghost, user: a.user, device: a.device, participant: a.participant } : entry)),
    ])();
    const made = await announcement(this.call, { epoch: body.epoch, mode: body.mode, previous: body.previous, entries });
    return { ...made, ...(body.deliver ? { deliver: [...body.deliver, ...(this.random() < 0.5 ? [{ ...ghost, keys: this.ghost.identity.keys }] : [])] } : {}) };
  }

  // Replies

  #reply(to, path, reply, error) {
    if (error || !this.#strikes(to)) return undefined;
    for (const kind of this.replies) {
      const made = this.#replies[kind](path, reply);
      if (made !== undefined) return made;
    }
    return undefined;
  }

  #replies = {
    'lost reply': (path) => (/keys|devices/.test(path) ? Promise.reject(Object.assign(new Error('internal'), { code: 'internal' })) : undefined),
    'other number': (path, reply) => (/rejoin|join|accept/.test(path) ? { ...reply, participant: this.#pick([1, 2, 3, 4, 0, '1', 2 ** 32 + 1]) } : undefined),
    'other track': (path, reply) => (path.endsWith('/media') ? { ...reply, tracks: reply.tracks.map((each) => ({ ...each, track: this.#pick(['1.257', '2.-255', '01.1', '2.1', '1.1', '3.1']) })) } : undefined),
    'other list': (path, reply) => (path.endsWith('keys/list') ? this.#changed(reply, (value) => typeof value === 'number', (value) => this.#pick([...NUMBERS, value + 1])) : undefined),
    'other state': (path, reply) => (path.endsWith('/state') ? { ...reply, members: reply.members.filter(() => this.random() < 0.7) } : undefined),
    'no devices': (path) => (path === 'devices/list' ? { devices: [] } : undefined),
  };

  // Frames

  #forward(to, frame) {
    if (this.frames.size === 0 || !this.#strikes(to)) return frame;
    return this.#frames[this.#pick([...this.frames])](frame, to);
  }

  #frames = {
    'frame dropped': () => undefined,
    'frame twice': (frame) => [frame, frame],
    'frame elsewhere': (frame, to) => {
      const slots = this.call.stayOf(to)?.receive ?? [];
      return slots.map(({ mid }) => ({ ...frame, mid }));
    },
    'frame changed': (frame) => ({ ...frame, data: frame.data.map((byte, i) => (i === Math.floor(this.random() * frame.data.length) ? byte ^ 4 : byte)) }),
    'frame back': (frame) => {
      for (const other of this.world.inCall) for (const { mid } of this.call.stayOf(other)?.receive ?? []) other.receive(mid, frame.data);
      return frame;
    },
  };

  /** A member makes a frame under another's key and puts it into its own slot. */
  async forge() {
    const { clients } = this.world;
    const [member, victim, hearer] = [this.#pick(clients), this.#pick(clients), this.#pick(clients)];
    const { epoch } = this.call;
    if (new Set([member, victim, hearer]).size < 3 || !member.secrets.some((known) => known.epoch === epoch)) return;
    if (![member, victim, hearer].every((client) => entryOf(this.call, client) && client.call) || !this.call.stayOf(hearer)?.receive) return;
    const mid = slotOf(this.call, hearer, member);
    if (!mid) return;
    const plain = utf8(this.world.forges(entryOf(this.call, victim).participant));
    hearer.receive(mid, await forge(member, victim, { call: this.call, epoch, counter: BigInt(Math.floor(this.random() * 2 ** 40)), plain }));
  }
}
