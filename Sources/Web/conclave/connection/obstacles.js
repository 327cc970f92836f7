// Why a WebSocket does not open. A page is not told, so it sends an HTTP request to the same address, whose answer it can read.

const PATIENCE_MS = 5_000;

/**
 * `origin`: the server does not let this page's origin connect. `websocket`: the server, or something before it, answers, but no WebSocket gets through.
 * Undefined if nothing answers, or the server behind a proxy is down. The request is a POST, with which browsers send `Origin` to the page's own server, too.
 */
export async function obstacleTo(url, ask = fetch) {
  const address = new URL(url);
  address.protocol = address.protocol === 'wss:' ? 'https:' : 'http:';
  const patience = new AbortController();
  const timer = setTimeout(() => patience.abort(), PATIENCE_MS);
  try {
    const answer = await ask(address.href, { method: 'POST', cache: 'no-store', credentials: 'omit', signal: patience.signal });
    if (answer.status >= 500) return undefined;
    return answer.status === 403 && (await answer.text()).includes('listen.origins') ? 'origin' : 'websocket';
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}
