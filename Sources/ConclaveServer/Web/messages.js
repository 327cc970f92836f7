// Messages to the others in a call: text and reactions, sealed in the worker with the keys that seal frames (protocol section 6).

import { fromBase64, toBase64, utf8 } from './bytes.js';

const MAX_BYTES = 12_000; // base64 of it stays below the protocol's 16 KiB
const ANSWER_MS = 3_000;

/** `{text}` or `{reaction}` as bytes; undefined for what is too long. */
export function encodeMessage(message) {
  const bytes = utf8(JSON.stringify(message));
  return bytes.length <= MAX_BYTES ? bytes : undefined;
}

/** Undefined for bytes that are no message: another client may send what it likes. */
export function decodeMessage(bytes) {
  try {
    const { text, reaction } = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof text === 'string') return { text };
    if (typeof reaction === 'string' && reaction.length <= 16) return { reaction };
  } catch {
    // not JSON
  }
  return undefined;
}

/** The worker's part of sealing and opening, as promises. */
export class MessageSealer {
  #worker;
  #waiting = new Map();
  #next = 1;

  constructor(worker) {
    this.#worker = worker;
    worker.addEventListener('message', ({ data }) => {
      if (data.type === 'answer') this.#waiting.get(data.id)?.(data.result);
    });
  }

  /** Base64 of the sealed message; undefined when there is no key to seal with. */
  async seal(message) {
    const data = encodeMessage(message);
    const sealed = data && (await this.#ask('seal-message', data));
    return sealed && toBase64(sealed);
  }

  /** `{participant, text}` or `{participant, reaction}`; undefined for what did not open. */
  async open(body) {
    const opened = await this.#ask('open-message', fromBase64(body));
    const message = opened && decodeMessage(opened.data);
    return message && { participant: opened.participant, ...message };
  }

  #ask(type, data) {
    const id = this.#next++;
    return new Promise((resolve) => {
      const timer = setTimeout(() => settle(undefined), ANSWER_MS); // the worker may be gone
      const settle = (result) => {
        clearTimeout(timer);
        this.#waiting.delete(id);
        resolve(result);
      };
      this.#waiting.set(id, settle);
      this.#worker.postMessage({ type, id, data });
    });
  }
}
