// Calls that cross (protocol section 4): people who call each other at the same moment intend one call. The server says which; this device joins it only if it
// has just called everybody who is in it.

import { CallState } from './call-state.js';

/** @typedef {import('./call-requests.js').CallConnection} CallConnection */

const TRIES = 3;
const PASSED = ['call.ended', 'call.not-found', 'call.not-ringing', 'call.not-joined']; // the other call is over by now, or this user's part in it has changed

/** The call that a refused `start` crossed; undefined for another error. */
export const crossedCall = (error) => (error.code === 'call.crossed' ? error.details?.call : undefined);

/** Whether a ring that no longer exists may have been replaced by the caller's next one. */
export const isPassed = (error) => PASSED.includes(error.code);

/** Whether there are others than `user` among `members`, and all of them are among `people`. */
export function isOfPeople(members, user, people) {
  const others = members.filter((member) => member.user !== user);
  return others.length > 0 && others.every((member) => people.includes(member.user));
}

/** Whether both rings are from one caller, to the same people. */
export function isSameRing(one, other) {
  const peopleOf = ({ members }) => members.map(({ user }) => user);
  return one.from === other.from && one.members.length === other.members.length && isOfPeople(one.members, one.from, peopleOf(other));
}

/** Joins `call` by `start` with `body`, or joins the call that this crosses; `isHere(id)` says whether a call is on this device. Returns the reply. */
export async function startOrJoinCrossed(call, body, { connection, isHere }) {
  for (let tries = TRIES; ; tries -= 1) {
    try {
      return await call.join('start', body);
    } catch (error) {
      const id = crossedCall(error);
      if (!id || isHere(id) || tries === 1) throw error;
      const reply = await joinCrossed(call, id, { connection, callees: body.callees, error });
      if (reply) return reply;
    }
  }
}

/**
 * Returns nothing if the other call is over by now.
 *
 * @param {any} call
 * @param {string} id
 * @param {{ connection: CallConnection, callees: string[], error: any }} options
 */
async function joinCrossed(call, id, { connection, callees, error }) {
  try {
    const { user, device } = connection.identity;
    const facts = new CallState({ id, user, device });
    facts.take(await connection.request(`calls/${id}/state`));
    // The server does not choose who hears this device.
    const caller = connection.callerOf(id);
    if (!isOfPeople([...facts.members.values()], user, callees) || (caller && ![user, ...callees].includes(caller))) throw error;
    return await call.joinCrossed(id, kindOf(facts), connection.takeRing(id), caller ? [caller] : [user, ...callees]);
  } catch (failure) {
    if (!isPassed(failure)) throw failure;
    return undefined;
  }
}

function kindOf({ phase, elsewhere }) {
  if (phase === 'ringing') return 'accept';
  return phase === 'joined' && elsewhere ? 'transfer' : 'rejoin';
}
