// The address of a call's link.

/** `{id, link}` in `#join=<call>/<link>`; what is behind `#` is sent to no server. */
export function linkIn(hash) {
  const [, id, link] = /^#join=([\w-]+)\/([\w.~-]+)$/.exec(hash) ?? [];
  return id && { id, link };
}

/** The address that opens this page with the link in it. */
export const addressOf = ({ id, link }) => `${location.origin}${location.pathname}#join=${id}/${link}`;
