// The byte layouts of protocol section 5 that lists, signatures and the call code are made of, and the ratchet.

import { concat, fromBase64, lp, sha256, u32, utf8 } from './bytes.js';

export const SECRET_BYTES = 32;

const byUserThenDevice = (a, b) =>
  a.user < b.user ? -1 : a.user > b.user ? 1 : a.device < b.device ? -1 : a.device > b.device ? 1 : 0;

/** The list as bytes: fingerprint ‖ joinId ‖ SHA-256(join key SPKI) of each device, sorted by user, then device. */
export async function listBytes(list) {
  const rows = [...list].sort(byUserThenDevice).map(async ({ fingerprint, joinId, joinKey }) =>
    concat(
      fromBase64(fingerprint),
      joinId ? fromBase64(joinId) : new Uint8Array(16),
      joinKey ? await sha256(fromBase64(joinKey.publicKey)) : new Uint8Array(32),
    ),
  );
  return concat(...(await Promise.all(rows)));
}

export const listHashOf = async (list) => sha256(await listBytes(list));

/** The 40 digits that are the same on all honest screens. */
export async function callCodeOf(call, list) {
  const digest = await sha256(concat(utf8('conclave-code-v1'), lp(call), await listBytes(list)));
  const number = digest.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
  return (number % 10n ** 40n).toString().padStart(40, '0');
}

/** The secret of the next epoch, for everybody who has this one's. */
export async function ratchet(secret) {
  const source = await crypto.subtle.importKey('raw', secret, 'HKDF', false, ['deriveBits']);
  const parameters = { name: 'HKDF', hash: 'SHA-512', salt: new Uint8Array(0), info: utf8('SFrame 1.0 Ratchet') };
  return new Uint8Array(await crypto.subtle.deriveBits(parameters, source, SECRET_BYTES * 8));
}

/** What an envelope's signature covers. `call` is empty for a ring envelope: `start` does not know the id yet. */
export async function envelopeBytes({ call, epoch, from, to, alg, ciphertext, listHash }) {
  const names = [from.user, from.device, to.user, to.device, alg].map(lp);
  return concat(utf8('conclave-envelope-v1'), lp(call), u32(epoch), ...names, await sha256(ciphertext), listHash);
}
