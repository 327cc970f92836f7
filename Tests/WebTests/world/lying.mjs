// Shared by the rows of the table of lies: calls of three, lists made by hand, frames and envelopes made by members.

import assert from 'node:assert/strict';
import { load } from '../web.mjs';
import { attacker } from './time.mjs';
import { inWorld } from './world.mjs';

const { fromBase64, toBase64, utf8 } = await load('wire/bytes.js');
const { makeEnvelope } = await load('keys/envelopes.js');
const { deriveKey, seal } = await load('frames/sframe.js');
const { baseKeyOf, byUserThenDevice, kidOf, listHashOf, rosterHashOf } = await load('wire/transcript.js');

/** Alice, Bob and Carol are in a call, in epoch 2; `more` are connected but not in it. */
export const inCall = (action, more = []) =>
  inWorld(['alice', 'bob', 'carol', ...more], async (world, alice, bob, carol, ...others) => {
    const call = await world.call(alice, bob, carol);
    await action({ world, call, alice, bob, carol, others });
  });

/** Somebody joins whom the initiator has let in; with `isUninvited`, nobody has. */
export function comes(call, client, options) {
  call.missed(client.user, options);
  client.join(call.id);
}

/** Waits until all these clients use the call's newest epoch. */
export const settled = (world, call, clients) =>
  world.until(() => call.epoch === call.newest.epoch && clients.every((client) => client.call?.epoch === call.epoch && !client.call.stop), 30_000);

/** The body of `keys.rotate` with the whole list `entries`, its correct hash, and the server's words. */
export async function announcement(call, { epoch = call.newest.epoch + 1, mode = 'fresh', entries = call.newest.list, previous = call.newest.listHash, isSorted = true, ...rest } = {}) {
  const list = isSorted ? [...entries].sort(byUserThenDevice) : entries;
  const numbered = list.every(({ participant }) => Number.isInteger(participant) && participant >= 0 && participant < 2 ** 32);
  const roster = numbered ? await rosterHashOf(list) : new Uint8Array(32);
  const listHash = await listHashOf({ call: call.id, epoch: Number.isInteger(epoch) && epoch > 0 && epoch < 2 ** 32 ? epoch : 1, previous: fromBase64(previous), roster });
  return { call: call.id, epoch, mode, leader: 9, previous, list, listHash: toBase64(listHash), ...call.wordsOf(list), ...rest };
}

/** Sends it to one device, bypassing the sequencer. */
export async function tell(world, client, name, body) {
  const { event } = world.server.lie;
  world.server.lie.event = undefined;
  world.server.tell(client, name, body);
  world.server.lie.event = event;
  await world.run(300);
}

/** A client's entry on the server's newest list. */
export const entryOf = (call, client) => call.newest.list.find(({ user, device }) => user === client.user && device === client.device);

/** An entry for somebody who is in no call: a ghost of the server, with real keys. */
export async function ghostEntry(client, call, participant) {
  const { JoinKeys } = await load('keys/join-keys.js');
  const join = await JoinKeys.make(client.identity, call.id);
  const { user, device, fingerprint, keys } = client.asDevice();
  return { entry: { user, device, participant, fingerprint, ...join.wire }, keys, join };
}

/** The secret of an epoch from a member, and the inputs of its keys. */
export const epochOf = (member, epoch) => member.secrets.find((message) => message.epoch === epoch);

/** A frame under `victim`'s sending key, which every member can make. */
export async function forge(member, victim, { call, epoch, n = 1, counter = 0n, plain = utf8('forged'), metadata = new Uint8Array(0) }) {
  const { secret, listHash } = epochOf(member, epoch);
  const { participant, fingerprint, joinId } = entryOf(call, victim);
  const base = await baseKeyOf(secret, { call: call.id, epoch, listHash }, { participant, fingerprint: fromBase64(fingerprint), joinId: fromBase64(joinId) });
  const key = await deriveKey(base, BigInt(kidOf(participant, n, epoch)));
  attacker.isSealing = true;
  const sealed = seal(key, counter, metadata, plain);
  attacker.isSealing = false;
  return sealed;
}

/** An envelope signed by `signer`, with any secret, as forwarded by the server. */
export async function envelopeBy(signer, call, { to, target, secret, epoch = call.newest.epoch, listHash = call.newest.listHash, id = call.id }) {
  const made = await makeEnvelope({ identity: signer.identity, call: id, epoch, listHash: fromBase64(listHash), entry: to, target, secret });
  return { call: call.id, ...made, from: { user: signer.user, device: signer.device } };
}

/** The mid of the slot in which `hearer` has `speaker`. */
export function slotOf(call, hearer, speaker) {
  const { participant } = entryOf(call, speaker);
  return call.stayOf(hearer).receive.find((slot) => slot.participant === participant)?.mid;
}

export function warns(client, ...problems) {
  for (const problem of problems) assert.ok(client.problems.includes(problem), `${client.name} warns of ${problem}, not only of ${client.problems}`);
}

export const isSilent = async (client) => assert.equal(await client.say(), undefined, `${client.name} is silent`);

/** Collects the requests that a client makes from now on. */
export function requestsOf(client) {
  const requests = [];
  const { request } = client;
  client.request = (path, body) => {
    requests.push({ path: path.split('/').slice(2).join('/') || path, body });
    return request.call(client, path, body);
  };
  return requests;
}
