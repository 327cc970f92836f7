// The address of a call's link.

/**
 * `{id, link, secret}` in `#join=<call>/<link>/<secret>`. Browsers do not send the part after `#` to a server, and this page does not send the secret to one.
 *
 * @returns {{id: string, link: string, secret: string} | undefined}
 */
export function linkIn(hash) {
  const [, id, link, secret] = /^#join=([\w-]+)\/([\w.~-]+)\/([\w-]{64})$/.exec(hash) ?? [];
  return id ? { id, link, secret } : undefined;
}

/** The address that opens this page with the link. */
export const addressOf = ({ id, link, secret }) => `${location.origin}${location.pathname}#join=${id}/${link}/${secret}`;
