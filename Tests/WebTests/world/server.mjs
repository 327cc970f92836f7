// A small honest server: one call's members, tracks and slots, and the sequencer of its epochs (protocol sections 4 to 6). It lies when told to.

import { load } from '../web.mjs';
import { ServerRecording } from './recording.mjs';

const { fromBase64, toBase64 } = await load('wire/bytes.js');
const { RequestError } = await load('connection/stomp.js');
const { makeWord } = await load('trust/words.js');
const { NO_LIST, byUserThenDevice, listHashOf, rosterHashOf } = await load('wire/transcript.js');

const LATENCY_MS = 20;
const BATCH_MS = 100;
const LEADER_MS = 3_000;
const GONE_MS = 15_000;
const ROTATE_MS = 600_000;

const fail = (code) => {
  throw new RequestError({ code, message: code });
};
const signerOf = (client) => {
  const { user, device, fingerprint, keys } = client.asDevice();
  return { user, device, fingerprint, keys };
};
const publicEntry = ({ keys, refresh, ...entry }) => entry;

/**
 * `lie.event(to, name, body)` returns the body to deliver instead, or undefined for none. `lie.reply(to, path, body, reply)` returns the reply to send instead,
 * or a promise of it. `lie.forward(to, frame)` says whether and how a frame arrives. `to` is a client.
 */
export class Server {
  lie = {};
  devices = new Map(); // user/device -> client
  calls = new Map();
  lasting = new Map(); // id -> {owner, expiresAt, opening?: {call, token}, waiting: Set of clients}
  delays = { event: LATENCY_MS, reply: LATENCY_MS };
  isUp = true;

  constructor(time) {
    this.time = time;
  }

  register(client) {
    this.devices.set(client.name, client);
  }

  client(user, device = 'd') {
    return this.devices.get(`${user}/${device}`);
  }

  /** Sends an event to one device; it waits while the device is away. A lie may be a promise: later events wait for it. */
  tell(client, name, body) {
    if (!client) return;
    const told = this.lie.event ? this.lie.event(client, name, structuredClone(body)) : structuredClone(body);
    const at = Date.now();
    client.telling = Promise.all([told, client.telling]).then(([each]) => each && client.queue({ name, body: { at, ...each } }));
  }

  async request(client, path, body = {}) {
    const sent = JSON.parse(JSON.stringify(body));
    await this.#pass(this.delays.reply / 2);
    let reply;
    let error;
    if (!this.isUp || !client.isConnected) fail('connection-lost');
    try {
      reply = await this.#answer(client, path, sent);
    } catch (failure) {
      if (!(failure instanceof RequestError)) throw failure;
      error = failure;
    }
    if (this.lie.reply) {
      const other = await this.lie.reply(client, path, sent, structuredClone(reply), error);
      if (other !== undefined) [reply, error] = [other, undefined];
    }
    await this.#pass(this.delays.reply / 2);
    if (error) throw error;
    return structuredClone(reply);
  }

  #pass(ms) {
    return new Promise((resolve) => this.time.after(ms, resolve));
  }

  async #answer(client, path, body) {
    const [area, id, ...rest] = path.split('/');
    if (path === 'devices/list') return { devices: [...this.devices.values()].filter(({ user }) => body.users.includes(user)).map((device) => device.asDevice()), revokes: [] };
    if (area === 'links') return this.#links(client, id, body);
    if (area !== 'calls') return {};
    if (id === 'start') {
      if (this.calls.has(body.id)) fail('call.exists');
      const call = new ServerCall(this, body.id, client);
      this.calls.set(body.id, call);
      return call.start(client, body);
    }
    return (this.calls.get(id) ?? fail('call.not-found')).answer(client, rest.join('/'), body);
  }

  // Lasting links

  #links(client, what, { link: id, expiresIn }) {
    const link = this.lasting.get(id);
    const shown = (each, { owner, expiresAt, opening }) => ({ link: each, device: owner.device, expiresAt, ...(opening ? { call: opening.call } : {}) });
    if (what === 'list') return { links: [...this.lasting].filter(([, { owner }]) => owner.user === client.user).map(([each, its]) => shown(each, its)), days: 30 };
    if (what === 'make') {
      this.lasting.set(id, { owner: client, expiresAt: Date.now() + 1_000 * expiresIn, waiting: new Set() });
      return shown(id, this.lasting.get(id));
    }
    if (!link) fail('call.link-invalid');
    if (what === 'delete') {
      if (link.owner.user !== client.user) fail('call.link-invalid');
      this.lasting.delete(id);
      this.#linkChanged(id, link);
      return {};
    }
    if (link.opening) return { name: link.owner.user, expiresAt: link.expiresAt, ...link.opening };
    link.waiting.add(client);
    this.tell(link.owner, 'link.waiting', { link: id });
    return { name: link.owner.user, expiresAt: link.expiresAt };
  }

  openLasting(id, call) {
    const link = this.lasting.get(id) ?? fail('call.link-invalid');
    link.opening = { call, token: 'token' };
    this.#linkChanged(id, link);
  }

  #linkChanged(id, { waiting }) {
    for (const client of waiting) this.tell(client, 'link.changed', { link: id });
    waiting.clear();
  }

  /** Loses everything in memory: connections and pending epochs. Calls, lists and stays are stored. */
  restart() {
    for (const call of this.calls.values()) call.restarted();
  }
}

class ServerCall {
  members = new Map();
  links = [];
  /** Guests who wait: user -> {client, word, admitted?: {word, signer}}. */
  door = new Map();
  newest; // {epoch, mode, list, previous, listHash}
  epoch = 1;
  rev = 0;
  #nextParticipant = 1;
  #stays = new Map(); // participant -> {client, entry, refresh}
  #pending; // the epoch that is not switched to yet
  #changes; // {hasLoss, hasJoin}
  #tags = new Map();
  #told = new Map();
  #confirmTimer;
  #requests = new Map();
  #rotateTimer;
  #waited = new Set();
  #givers = new Set(); // who may hand out the newest key: the leader that answered first, and those asked since
  #revs = new Map();
  #turn = Promise.resolve();
  words = new Map(); // of users and links: {word, signer}
  rotateMs = ROTATE_MS;
  recording = new ServerRecording(this);
  hashes = new Map(); // of all lists, by epoch

  constructor(server, id, initiator) {
    Object.assign(this, { server, id, initiator: initiator.user });
  }

  // Members

  async start(client, body) {
    for (const user of body.callees) this.members.set(user, { user, state: 'ringing', participants: [] });
    this.#takeWords(client, body.admissions);
    const stay = this.#join(client, body);
    const rung = (body.envelopes ?? []).map(({ to }) => {
      const { user, device, fingerprint } = this.server.client(to.user, to.device).asDevice();
      return { user, device, participant: 0, fingerprint };
    });
    await this.#announce('fresh', [publicEntry(stay.entry), ...rung]);
    for (const user of body.callees) {
      for (const callee of this.server.devices.values()) {
        if (callee.user !== user) continue;
        const envelope = body.envelopes?.find(({ to }) => to.user === user && to.device === callee.device);
        const members = [...this.members.values()];
        const ring = { call: this.id, from: client.user, media: 'audio', members, expiresAt: Date.now() + 30_000 };
        this.#ring(callee, { ...ring, ...(envelope ? { list: this.newest.list, envelope: { ...envelope, from: { user: client.user, device: client.device } } } : {}) });
      }
    }
    this.#rotateLater();
    return { call: this.state(), participant: 1, ice: { servers: [] }, results: {} };
  }

  /** A ring has the words that its callee needs. */
  #ring(callee, ring) {
    this.server.tell(callee, 'call.ring', { ...ring, ...this.wordsFor([callee.user], ring.list ?? []) });
  }

  // Words

  /** `client` lets users in, makes a link, or joins by one. */
  #takeWords(client, words = []) {
    for (const word of words) this.words.set(word.user ?? word.link, { word, signer: word.user && word.link ? undefined : signerOf(client) });
  }

  /** The words for `users` and for the signers of these words, up to the roots, and the signers that are not on `list`. */
  wordsFor(users, list, known = new Set()) {
    const admissions = [];
    const signers = new Map();
    const seen = new Set(known);
    for (const names = [...users]; names.length > 0; ) {
      const name = names.pop();
      const { word, signer } = this.words.get(name) ?? {};
      if (seen.has(name) || !word) continue;
      seen.add(name);
      admissions.push(word);
      if (signer) names.push(signer.user);
      if (word.user && word.link) names.push(word.link);
      if (signer && !list.some(({ fingerprint }) => fingerprint === signer.fingerprint)) signers.set(signer.fingerprint, signer);
    }
    return { ...(admissions.length > 0 ? { admissions } : {}), ...(signers.size > 0 ? { signers: [...signers.values()] } : {}) };
  }

  /** The words that `list` needs and the list `before` did not. */
  wordsOf(list, before = []) {
    const usersOf = (entries) => entries.filter(({ participant }) => participant > 0).map(({ user }) => user);
    const known = this.wordsFor(usersOf(before), []).admissions ?? [];
    return this.wordsFor(usersOf(list), list, new Set(known.map(({ user, link }) => user ?? link)));
  }

  /** Lets `user` join, like somebody who missed a ring. The initiator has let it in, unless `isUninvited`. */
  missed(user, { isUninvited = false } = {}) {
    if (!isUninvited) void this.letIn(user);
    this.members.set(user, { user, state: 'missed', participants: [] });
  }

  /** `client`, a member, lets `user` in without ringing. */
  async letIn(user, client = this.server.client(this.initiator)) {
    this.#takeWords(client, [await makeWord(client.identity, this.id, user)]);
  }

  async #invite(client, { callees, admissions }) {
    this.#takeWords(client, admissions);
    for (const user of callees) {
      this.members.set(user, { user, state: 'ringing', participants: [] });
      this.#tellMember(user, 'invited');
      for (const callee of this.server.devices.values()) {
        if (callee.user === user) this.#ring(callee, { call: this.id, from: client.user, media: 'audio', members: [...this.members.values()], expiresAt: Date.now() + 30_000 });
      }
    }
    return { results: {} };
  }

  /** Whether the guest has to wait, and has not been admitted. */
  #mustWait({ user }, admission) {
    return user.startsWith('guest~') && Boolean(this.words.get(admission?.link)?.word.waits) && !this.door.get(user)?.admitted;
  }

  #knock(client, { admission }) {
    if (!this.door.has(client.user)) {
      this.door.set(client.user, { client, word: admission });
      this.#tellDoor('guest.knock', this.knockOf(client.user));
    }
    return { expiresAt: Date.now() + 600_000 };
  }

  /** The body of `guest.knock`. */
  knockOf(user) {
    const { word } = this.door.get(user);
    const { admissions = [], signers } = this.wordsFor([word.link], []);
    return { user, name: user.slice(6), expiresAt: Date.now() + 600_000, admissions: [word, ...admissions], signers };
  }

  #admitGuest(client, { admission }) {
    const waiting = this.door.get(admission.user);
    if (!waiting || waiting.admitted) fail('user.not-found');
    waiting.admitted = { word: admission, signer: signerOf(client) };
    this.#knockOver(admission.user, 'admitted');
    return {};
  }

  #refuseGuest({ guest }) {
    if (!this.door.has(guest)) fail('user.not-found');
    this.#knockOver(guest, 'refused');
    this.door.delete(guest);
    return {};
  }

  #knockOver(user, outcome) {
    this.#tellDoor('guest.knock-over', { user, outcome });
    this.server.tell(this.door.get(user).client, 'guest.knock-over', { call: this.id, user, outcome });
  }

  #tellDoor(name, body) {
    for (const { client } of this.#stays.values()) if (!client.user.startsWith('guest~')) this.server.tell(client, name, { call: this.id, ...body });
  }

  #link(client, { admission, lasting }) {
    if (lasting) this.server.openLasting(lasting, this.id);
    this.#takeWords(client, [admission]);
    return { link: 'token', expiresAt: Date.now() + 3_600_000 };
  }

  #join(client, { joinId, joinKey }) {
    const participant = this.#nextParticipant++;
    const { user, device, fingerprint } = client.asDevice();
    const entry = { user, device, participant, fingerprint, joinId, joinKey, keys: client.identity.keys };
    const stay = { client, entry, joinId };
    this.#stays.set(participant, stay);
    const member = this.members.get(user) ?? { user, state: 'joined', participants: [] };
    member.state = 'joined';
    member.participants.push({ participant, device, joinId, connected: true, held: false, tracks: [] });
    this.members.set(user, member);
    return stay;
  }

  stayOf(client) {
    return [...this.#stays.values()].find((stay) => stay.client === client);
  }

  state() {
    return structuredClone({ id: this.id, rev: this.rev, state: 'active', media: 'audio', initiator: this.initiator, startedAt: 0, epoch: this.epoch, policy: { rotateMinutes: 10 }, members: [...this.members.values()], recording: this.recording.state });
  }

  #tellMembers(name, body, except) {
    for (const stay of this.#stays.values()) if (stay.client !== except) this.server.tell(stay.client, name, { call: this.id, ...body });
  }

  #tellMember(user, cause, except) {
    this.rev += 1;
    this.#tellMembers('call.member', { rev: this.rev, ...this.members.get(user), cause }, except);
  }

  /** This client's stay is over, and maybe also its signaling. */
  remove(client, cause = 'left') {
    const stay = this.stayOf(client);
    if (!stay) return;
    const member = this.members.get(client.user);
    this.#stays.delete(stay.entry.participant);
    this.recording.left(stay.entry, cause !== 'rejoined');
    member.participants = member.participants.filter(({ participant }) => participant !== stay.entry.participant);
    if (cause === 'rejoined') return;
    if (member.participants.length === 0) member.state = cause;
    this.#tellMember(client.user, cause);
    this.#change({ hasLoss: true });
    this.#fillSlots();
  }

  async answer(client, path, body) {
    const stay = this.stayOf(client);
    if (['accept', 'join', 'rejoin', 'transfer'].includes(path)) return this.#enter(client, path, body);
    if (path === 'state') return this.state();
    if (path === 'knock') return this.#knock(client, body);
    if (path === 'leave' && this.door.delete(client.user)) return {};
    if (!stay) fail('call.not-joined');
    if (path === 'leave') return this.remove(client) ?? {};
    if (path === 'invite') return this.#invite(client, body);
    if (path === 'link') return this.#link(client, body);
    if (path === 'admit-guest') return this.#admitGuest(client, body);
    if (path === 'refuse-guest') return this.#refuseGuest(body);
    if (path === 'media') return this.#media(stay, body);
    if (path.startsWith('record/')) return this.recording.answer(stay, path.slice(7), body);
    if (path === 'message') return this.#message(stay, body);
    if (path === 'keys/list') return this.#list(body);
    if (path === 'keys') return this.#keys(stay, body);
    if (path === 'keys/request') return this.#demand(stay, body);
    if (path === 'keys/wait') return this.#wait(stay, body);
    if (path === 'keys/confirm') return this.#confirm(stay, body);
    if (path === 'keys/confirmations') return this.#confirmations(body);
    return {};
  }

  #enter(client, kind, body) {
    const before = this.stayOf(client);
    if (before?.joinId === body.joinId) return { call: this.state(), participant: before.entry.participant, ice: {} };
    if (this.#mustWait(client, body.admission)) fail('call.not-admitted');
    if (before) this.remove(client, 'rejoined');
    const { admitted } = this.door.get(client.user) ?? {};
    this.door.delete(client.user);
    if (admitted) this.words.set(client.user, admitted);
    else if (body.admission) this.#takeWords(client, [body.admission]);
    const stay = this.#join(client, body);
    this.#tellMember(client.user, before ? 'rejoined' : kind === 'transfer' ? 'joined' : kind === 'accept' ? 'accepted' : 'joined', client);
    if (kind === 'transfer') {
      // Media flows here at once, so the other device is released.
      for (const other of [...this.#stays.values()]) if (other.client.user === client.user && other !== stay) this.remove(other.client, 'transferred');
    }
    this.#change({ hasJoin: true, hasLoss: Boolean(before) });
    return { call: this.state(), participant: stay.entry.participant, ice: { servers: [] } };
  }

  #message(stay, { to, body }) {
    for (const other of this.#stays.values()) {
      if (other === stay || (to && !to.includes(other.entry.participant))) continue;
      this.server.tell(other.client, 'message', { call: this.id, from: stay.entry.participant, body });
    }
    return {};
  }

  // Media

  #media(stay, { sdp, tracks }) {
    const { participant } = stay.entry;
    stay.slots = JSON.parse(sdp).filter(({ direction }) => direction === 'recvonly');
    const seat = this.members.get(stay.entry.user).participants.find((other) => other.participant === participant);
    const reply = tracks.map(({ mid, source }) => ({ mid, track: `${participant}.${Number(mid) + 1}`, source }));
    for (const { track, source } of reply) {
      if (seat.tracks.some((other) => other.track === track)) continue;
      seat.tracks.push({ track, source, kind: 'audio', muted: false });
      this.#tellMembers('track.added', { participant, track, source, kind: 'audio', muted: false }, stay.client);
    }
    this.#fillSlots();
    return { sdp: '', tracks: reply.map(({ mid, track }) => ({ mid, track })), receive: stay.receive, rev: this.#revs.get(stay) };
  }

  tracksFor(stay) {
    const others = [...this.members.values()].flatMap(({ participants }) => participants).filter(({ participant }) => participant !== stay.entry.participant);
    return others.flatMap(({ participant, tracks }) => tracks.map(({ track, source }) => ({ track, participant, source })));
  }

  #fillSlots() {
    for (const stay of this.#stays.values()) {
      if (!stay.slots) continue;
      const wanted = this.tracksFor(stay);
      const kept = (stay.receive ?? []).filter(({ track }) => wanted.some((other) => other.track === track));
      const free = stay.slots.filter(({ mid }) => !kept.some((slot) => slot.mid === mid));
      const missing = wanted.filter(({ track }) => !kept.some((slot) => slot.track === track));
      const receive = [...kept, ...missing.slice(0, free.length).map((track, i) => ({ mid: free[i].mid, ...track }))];
      if (stay.receive && JSON.stringify(receive) === JSON.stringify(stay.receive)) continue;
      stay.receive = receive;
      this.#revs.set(stay, (this.#revs.get(stay) ?? 0) + 1);
      this.server.tell(stay.client, 'media.slots', { call: this.id, rev: this.#revs.get(stay), receive, unsupported: [] });
    }
  }

  /** A frame of `client`'s track n, to everybody who has a slot for it. */
  forward(client, n, data) {
    const from = this.stayOf(client);
    if (!from) return;
    for (const stay of this.#stays.values()) {
      const slot = stay.receive?.find(({ track }) => track === `${from.entry.participant}.${n}`);
      if (slot) this.deliver(stay.client, slot.mid, data);
    }
  }

  deliver(client, mid, data) {
    const frames = this.server.lie.forward ? this.server.lie.forward(client, { mid, data }) : { mid, data };
    for (const frame of Array.isArray(frames) ? frames : [frames]) if (frame) this.server.time.after(LATENCY_MS, () => client.receive(frame.mid, frame.data));
  }

  // Recordings

  /** An event about the recording, to all participants, or to the stays that `isFor` accepts. */
  tellRecording(name, body, isFor = (_stay) => true) {
    this.rev += 1;
    for (const stay of this.#stays.values()) if (isFor(stay)) this.server.tell(stay.client, name, { call: this.id, rev: this.rev, ...body });
  }

  /** The source of track n of a stay. */
  sourceOf(stay, n) {
    const { participants } = this.members.get(stay.entry.user);
    return participants.find(({ participant }) => participant === stay.entry.participant).tracks.find(({ track }) => track.endsWith(`.${n}`))?.source;
  }

  // Epochs

  #list({ since }) {
    const { epoch, mode, previous, listHash, list } = this.newest;
    const links = since === undefined ? [] : this.links.filter((link) => link.epoch > since).slice(-1_000);
    return { epoch, mode, previous, listHash, list, links, confirmed: this.#buckets(), ...this.wordsOf(list) };
  }

  #change(change) {
    this.#changes = { hasLoss: this.#changes?.hasLoss || change.hasLoss, hasJoin: this.#changes?.hasJoin || change.hasJoin, isDue: this.#changes?.isDue ?? change.isDue };
    if (this.#batch) return;
    this.#batch = this.server.time.after(BATCH_MS, () => {
      this.#changes.isDue = true;
      this.#advance();
    });
  }

  #batch;

  /** Serialized, as on a control loop. */
  #advance() {
    this.#turn = this.#turn.then(() => this.#next());
  }

  async #next() {
    if (!this.server.isUp || this.#pending || !this.#changes?.isDue) return;
    const { hasLoss, hasJoin } = this.#changes;
    this.#changes = undefined;
    this.#batch = undefined;
    if (this.#stays.size === 0) return;
    const before = this.newest;
    const joined = new Set(before.list.map(({ joinId }) => joinId));
    const list = [...this.#stays.values()].map(({ entry }) => publicEntry(entry));
    const isKept = before.list.every(({ fingerprint }) => list.some((entry) => entry.fingerprint === fingerprint));
    const isRatchet = hasJoin && !hasLoss && isKept && this.epoch === before.epoch && before.list.every(({ participant }) => participant > 0) && this.#leader(joined, new Set()) !== undefined;
    await this.#announce(isRatchet ? 'ratchet' : 'fresh', list);
    this.#pending = { epoch: this.newest.epoch, asked: new Set(), acked: new Set(), waiting: new Set(), hasLoss, before };
    this.#lead(true);
  }

  async #announce(mode, list) {
    list.sort(byUserThenDevice);
    const epoch = (this.newest?.epoch ?? 0) + 1;
    const previous = this.newest ? fromBase64(this.newest.listHash) : NO_LIST;
    const roster = await rosterHashOf(list);
    const listHash = toBase64(await listHashOf({ call: this.id, epoch, previous, roster }));
    this.newest = { epoch, mode, list, previous: toBase64(previous), listHash };
    this.hashes.set(epoch, listHash);
    this.links.push({ epoch, roster: toBase64(roster) });
    this.#givers.clear();
    this.#tags.clear();
    this.#told.clear();
    this.#requests.clear();
    this.#waited.clear();
  }

  #leader(joined, asked) {
    const candidates = [...this.#stays.values()].filter((stay) => stay.client.isConnected && !asked.has(stay)).sort((a, b) => a.entry.participant - b.entry.participant);
    return candidates.find((stay) => joined.has(stay.joinId)) ?? (asked.size > 0 || joined.size === 0 ? candidates[0] : undefined);
  }

  #withKeys(entry) {
    const stay = this.#stays.get(entry.participant);
    return stay ? { ...entry, keys: stay.entry.keys, ...(stay.refresh ? { refresh: stay.refresh } : {}) } : entry;
  }

  #lead(isFirst) {
    const pending = this.#pending;
    const joined = new Set(pending.before.list.map(({ joinId }) => joinId));
    const leader = this.#leader(joined, pending.asked) ?? this.#leader(new Set(), pending.asked);
    const { epoch, mode, previous, listHash, list } = this.newest;
    if (!leader) {
      // All were asked in vain: the next change, or the next connection, tries again.
      this.#pending = undefined;
      this.#batch = undefined;
      this.#changes = { ...this.#changes, hasLoss: true, isDue: true };
      return;
    }
    pending.asked.add(leader);
    pending.leader = leader;
    const lacks = (entry) => (mode === 'fresh' ? entry.participant !== leader.entry.participant : !joined.has(entry.joinId));
    const deliver = list.filter((entry) => lacks(entry) && this.#stays.has(entry.participant)).map((entry) => this.#withKeys(entry));
    const body = { call: this.id, epoch, mode, leader: leader.entry.participant, previous, listHash };
    const changes = this.#changesSince(pending.before.list, list);
    for (const stay of isFirst ? this.#stays.values() : [leader]) {
      if (!list.some(({ participant }) => participant === stay.entry.participant)) continue;
      const how = joined.has(stay.joinId) ? { ...changes, ...this.wordsOf(list, pending.before.list) } : { list, ...this.wordsOf(list) };
      this.server.tell(stay.client, 'keys.rotate', { ...body, ...how, ...(stay === leader ? { deliver } : {}) });
    }
    this.server.time.after(LEADER_MS, () => this.#pending === pending && !pending.isAnswered && pending.leader === leader && this.#lead(false));
  }

  #changesSince(before, list) {
    const joined = new Set(before.map(({ joinId }) => joinId));
    const stays = new Set(list.map(({ joinId }) => joinId));
    return {
      added: list.filter(({ joinId }) => !joined.has(joinId)),
      removed: before.filter(({ participant, joinId }) => participant > 0 && !stays.has(joinId)).map(({ participant }) => participant),
    };
  }

  #keys(stay, { epoch, envelopes }) {
    if (epoch !== this.newest.epoch) fail('keys.epoch-stale');
    const pending = this.#pending;
    const entries = envelopes.map(({ to }) => this.newest.list.find(({ user, device }) => user === to.user && device === to.device) ?? fail('keys.not-allowed'));
    if (pending && !pending.isAnswered) {
      if (!pending.asked.has(stay)) fail('keys.not-allowed');
      pending.isAnswered = true;
      this.#givers = new Set([stay]);
      pending.acked.add(stay);
      const missing = this.newest.list.filter((entry) => this.newest.mode === 'fresh' && entry.participant !== stay.entry.participant && !entries.includes(entry));
      for (const entry of missing) this.#askMembers(entry, stay);
      pending.missing = new Set(missing.map(({ participant }) => participant));
      this.server.time.after(pending.hasLoss ? 1_000 : 2_000, () => this.#pending === pending && this.#switch());
    }
    if (!this.#givers.has(stay)) fail('keys.epoch-stale'); // another leader's answer was accepted
    const from = { user: stay.client.user, device: stay.client.device };
    envelopes.forEach((envelope, index) => this.server.tell(this.#stays.get(entries[index].participant)?.client, 'keys.envelope', { call: this.id, ...envelope, from }));
    this.#switchWhenAcked();
    return { delivered: envelopes.length, missing: [] };
  }

  #askMembers(entry, leader) {
    const others = [...this.#stays.values()].filter((stay) => stay !== leader && stay.entry.participant !== entry.participant);
    for (const stay of others.slice(0, 3)) this.#askToGive(stay, entry);
  }

  #askToGive(stay, entry) {
    this.#givers.add(stay);
    this.server.tell(stay.client, 'keys.request', { call: this.id, epoch: this.newest.epoch, to: this.#withKeys(entry) });
  }

  /** The client has acknowledged an envelope, or reported that it does not open. */
  acknowledged(client, { epoch }, isOpened) {
    const stay = this.stayOf(client);
    if (!stay || epoch !== this.newest.epoch) return;
    if (!isOpened) {
      try {
        this.#demand(stay, { epoch });
      } catch {
        // The limit of requests is reached.
      }
    } else if (this.#pending) {
      this.#pending.acked.add(stay);
      this.#switchWhenAcked();
    }
  }

  #switchWhenAcked() {
    const pending = this.#pending;
    if (!pending?.isAnswered) return;
    const awaited = [...this.#stays.values()].filter((stay) => stay.client.isConnected && this.newest.list.some(({ participant }) => participant === stay.entry.participant));
    const joined = new Set(pending.before.list.map(({ joinId }) => joinId));
    const isDone = (stay) => pending.acked.has(stay) || pending.waiting.has(stay) || pending.missing?.has(stay.entry.participant) || (this.newest.mode === 'ratchet' && joined.has(stay.joinId));
    if (awaited.every(isDone)) this.#switch();
  }

  #switch() {
    this.#pending = undefined;
    this.epoch = this.newest.epoch;
    this.#tellMembers('keys.switch', { epoch: this.epoch });
    if (this.newest.mode === 'fresh') this.#rotateLater();
    if (this.#changes?.isDue) this.#advance();
  }

  #rotateLater() {
    clearTimeout(this.#rotateTimer);
    this.#rotateTimer = this.server.time.after(this.rotateMs, () => this.#change({}));
  }

  #demand(stay, { epoch }) {
    if (epoch !== undefined && epoch !== this.newest.epoch) fail('keys.epoch-stale');
    const count = (this.#requests.get(stay) ?? 0) + 1;
    if (count > 3) fail('rate.limited');
    this.#requests.set(stay, count);
    const entry = this.newest.list.find(({ participant }) => participant === stay.entry.participant);
    if (!entry) fail('keys.not-allowed');
    const joined = [...this.#stays.values()].filter((other) => other !== stay && other.client.isConnected);
    const leader = this.#pending?.leader !== stay ? this.#pending?.leader : undefined;
    const asked = leader ?? joined[(count - 1) % Math.max(1, joined.length)];
    if (asked) this.#askToGive(asked, entry);
    return {};
  }

  #wait(stay, { epoch, reason }) {
    if (epoch !== this.newest.epoch) fail('keys.epoch-stale');
    const leader = this.#pending?.leader ?? [...this.#stays.values()][0];
    if (!this.#waited.has(stay)) this.server.tell(leader.client, 'keys.waiting', { call: this.id, epoch, participant: stay.entry.participant, reason });
    this.#waited.add(stay);
    this.#pending?.waiting.add(stay);
    this.#switchWhenAcked();
    return {};
  }

  #confirm(stay, { epoch, tag, joinKey }) {
    if (epoch !== this.newest.epoch) fail('keys.epoch-stale');
    if (joinKey && joinKey.generation === (stay.refresh?.generation ?? 0) + 1) stay.refresh = joinKey;
    const { participant } = stay.entry;
    if (!this.#tags.has(participant)) this.#tags.set(participant, tag);
    if (this.#tags.size >= this.newest.list.length) this.#tellConfirmed();
    else this.#confirmTimer ??= this.server.time.after(Math.max(1_000, this.newest.list.length * 5), () => this.#tellConfirmed());
    return {};
  }

  #tellConfirmed() {
    clearTimeout(this.#confirmTimer);
    this.#confirmTimer = undefined;
    const buckets = this.#buckets().filter(({ index, who }) => this.#told.get(index) !== who);
    for (const { index, who } of buckets) this.#told.set(index, who);
    if (buckets.length > 0) this.#tellMembers('keys.confirmed', { epoch: this.newest.epoch, buckets });
  }

  #buckets() {
    const buckets = [];
    for (let index = 0; index * 64 < this.newest.list.length; index += 1) {
      let who = 0n;
      const tag = new Uint8Array(16);
      this.newest.list.slice(index * 64, index * 64 + 64).forEach(({ participant }, at) => {
        const sent = this.#tags.get(participant);
        if (!sent) return;
        who |= 1n << BigInt(63 - at);
        fromBase64(sent).forEach((byte, i) => (tag[i] ^= byte));
      });
      const bits = new Uint8Array(8);
      new DataView(bits.buffer).setBigUint64(0, who);
      if (who > 0n) buckets.push({ index, who: toBase64(bits), tag: toBase64(tag) });
    }
    return buckets;
  }

  #confirmations({ epoch, bucket }) {
    if (epoch !== this.newest.epoch) fail('keys.epoch-stale');
    const entries = this.newest.list.slice(bucket * 64, bucket * 64 + 64).filter(({ participant }) => this.#tags.has(participant));
    return { tags: entries.map(({ participant }) => ({ participant, tag: this.#tags.get(participant) })) };
  }

  /** Starts the next epoch, as `rotateMinutes` does. */
  rotate() {
    this.#change({});
  }

  // A server that dies

  restarted() {
    this.#pending = undefined;
    this.#batch = undefined;
    for (const { client } of this.#stays.values()) this.server.time.after(GONE_MS, () => !client.isConnected && this.remove(client, 'disconnected'));
    this.#changes = undefined;
    this.#change({ hasLoss: true });
  }

  /** A client's connection and media broke. */
  lost(client) {
    this.server.time.after(GONE_MS, () => !client.isConnected && this.remove(client, 'disconnected'));
    if (this.#pending && this.#pending.leader?.client === client && !this.#pending.isAnswered) this.#lead(false);
  }

  welcome(client) {
    if (this.#changes?.isDue) this.#advance();
    if (this.stayOf(client)) this.server.tell(client, 'call.state', { call: this.id, ...this.state() });
  }
}
