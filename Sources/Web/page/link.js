// The address of a call's link.

import { plainLine } from './dom.js';

const LONGEST_NAME = 60; // characters

const plain = (name) => [...plainLine(name)].slice(0, LONGEST_NAME).join('');

function decoded(text) {
  try {
    return plain(decodeURIComponent(text));
  } catch {
    return ''; // somebody has shortened the address
  }
}

/**
 * `{id, link, secret, name}` in `#join=<call>/<link>/<secret>` or, with a name, `#join=<call>/<link>/<secret>/<name>`. Browsers do not send the part after `#` to
 * a server, and this page sends neither the secret nor the name to one. The name is as good as the link: whoever passed it on could have changed it.
 *
 * @returns {{id: string, link: string, secret: string, name: string} | undefined}
 */
export function linkIn(hash) {
  const [, id, link, secret, name = ''] = /^#join=([\w-]+)\/([\w.~-]+)\/([\w-]{64})(?:\/(.*))?$/.exec(hash) ?? [];
  return id ? { id, link, secret, name: decoded(name) } : undefined;
}

/** The address that opens this page with the link; `name` is what the person calls the call. */
export function addressOf({ id, link, secret, name = '' }) {
  const shown = plain(name);
  return `${location.origin}${location.pathname}#join=${id}/${link}/${secret}${shown && `/${encodeURIComponent(shown)}`}`;
}
