// The addresses of links: of a call's link, and of a lasting one, which is made without a call.

import { plainLine } from './dom.js';

const LONGEST_NAME = 60; // characters

/** Somebody else's name, on one short line. */
export const plainName = (name) => [...plainLine(name)].slice(0, LONGEST_NAME).join('');

function decoded(text) {
  try {
    return plainName(decodeURIComponent(text));
  } catch {
    return ''; // somebody has shortened the address
  }
}

/**
 * `{id, link, secret, name}` in `#join=<call>/<link>/<secret>` or, with a name, `#join=<call>/<link>/<secret>/<name>`. Browsers do not send the part after `#` to
 * a server, and this page sends neither the secret nor the name to one. The name is as good as the link: whoever passed it on could have changed it.
 *
 * In `#meet=<secret>` or `#meet=<secret>/<name>` it is a lasting link (`isLasting`), without a call and a token.
 *
 * @returns {{id: string, link: string, secret: string, name: string, isLasting?: boolean} | undefined}
 */
export function linkIn(hash) {
  const [, lasting, lastingName = ''] = /^#meet=([\w-]{64})(?:\/(.*))?$/.exec(hash) ?? [];
  if (lasting) return { id: '', link: '', secret: lasting, name: decoded(lastingName), isLasting: true };
  const [, id, link, secret, name = ''] = /^#join=([\w-]+)\/([\w.~-]+)\/([\w-]{64})(?:\/(.*))?$/.exec(hash) ?? [];
  return id ? { id, link, secret, name: decoded(name) } : undefined;
}

/** The address that opens this page with the link; `name` is what the person calls the call. */
export function addressOf({ id = '', link = '', secret, name = '', isLasting = false }) {
  const shown = plainName(name);
  const parts = isLasting ? `meet=${secret}` : `join=${id}/${link}/${secret}`;
  return `${location.origin}${location.pathname}#${parts}${shown && `/${encodeURIComponent(shown)}`}`;
}
