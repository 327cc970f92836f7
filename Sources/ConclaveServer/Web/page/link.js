// The address of a call's link.

/**
 * `{id, link, secret}` in `#join=<call>/<link>/<secret>`. Browsers send the part behind `#` to no server, and this page sends the secret to none.
 *
 * @returns {{id: string, link: string, secret: string} | undefined}
 */
export function linkIn(hash) {
  const [, id, link, secret] = /^#join=([\w-]+)\/([\w.~-]+)\/([\w-]{64})$/.exec(hash) ?? [];
  return id ? { id, link, secret } : undefined;
}

/** The address that opens this page with the link in it. */
export const addressOf = ({ id, link, secret }) => `${location.origin}${location.pathname}#join=${id}/${link}/${secret}`;
