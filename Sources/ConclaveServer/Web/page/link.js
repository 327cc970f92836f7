// The address of a call's link.

/**
 * `{id, link}` in `#join=<call>/<link>`. Browsers send the part behind `#` to no server.
 *
 * @returns {{id: string, link: string} | undefined}
 */
export function linkIn(hash) {
  const [, id, link] = /^#join=([\w-]+)\/([\w.~-]+)$/.exec(hash) ?? [];
  return id ? { id, link } : undefined;
}

/** The address that opens this page with the link in it. */
export const addressOf = ({ id, link }) => `${location.origin}${location.pathname}#join=${id}/${link}`;
