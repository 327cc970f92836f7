// A reader of a call's recording who was not in the call, and has everything that the server ever saw: every key that was handed out, and every frame.

import { load } from '../web.mjs';

const { grantIn, openGrant } = await load('consent/grants.js');
const { openStatement, statementIn } = await load('consent/statement.js');
const { openTrackKeys, trackKeysIn } = await load('consent/track-keys.js');
const { open, parseHeader } = await load('frames/sframe.js');
const { fromBase64 } = await load('wire/bytes.js');
const { kidOf } = await load('wire/transcript.js');

const none = new Uint8Array(0);

/** Keeps every frame that anybody sends from now on, as `{said, sealed}`. */
export function capture(world) {
  const frames = [];
  const { spoke } = world;
  world.spoke = (speaker, said, sealed) => {
    frames.push({ said, sealed });
    return spoke.call(world, speaker, said, sealed);
  };
  return frames;
}

/** The recording as a server that keeps everything has it: it is changed by nothing that happens later. */
export const captured = ({ recording }) => structuredClone({ statement: recording.statement, grants: recording.grants, keys: recording.keys });

/**
 * The key pair of the recording `{statement, grants}`, opened by `reader`, a client with a grant, and `st`.
 * `starter` is the client that has begun it.
 */
export async function unlock({ statement: told, grants }, reader, starter) {
  const statement = statementIn(told);
  const { keys, fingerprint } = starter.identity;
  const st = await openStatement(statement, { keys, fingerprint, now: Date.now() });
  const { user, device, wrap } = reader.identity;
  const own = { user, device, wrap, publicKey: fromBase64(reader.identity.keys.find(({ use }) => use === 'wrap').publicKey) };
  const grant = grantIn(grants.find(({ to }) => to.user === user && to.device === device));
  const { pair } = await openGrant(grant, { id: statement.id, st, publicKey: statement.publicKey, own, keys });
  return { st, pair };
}

/** The texts of `frames` that open with the keys `{keys}` that were handed out to readers. `entries` are all lists' entries that there were. */
export async function readable(recorded, frames, { reader, starter, entries }) {
  const { st, pair } = await unlock(recorded, reader, starter);
  const found = new Map();
  for (const told of recorded.keys) {
    const { participant, fingerprint, joinId, keys } = entries.find((entry) => entry.participant === told.participant);
    const stay = { participant, fingerprint: fromBase64(fingerprint), joinId: fromBase64(joinId), keys };
    for (const [n, key] of await openTrackKeys(trackKeysIn(told), { st, pair, stay })) found.set(kidOf(participant, n, told.epoch), key);
  }
  const texts = [];
  for (const { said, sealed } of frames) {
    const header = parseHeader(sealed);
    const key = found.get(Number(header.kid));
    if (key) texts.push(new TextDecoder().decode(await open(key, header, none, sealed)));
    else for (const other of found.values()) await open(other, header, none, sealed).then(() => texts.push(`under another key: ${said}`), () => {});
  }
  return texts;
}

/** The speakers of texts, `user/device`, each once. */
export const speakersOf = (texts) => [...new Set(texts.map((text) => text.split(' ', 1)[0]))].sort();

