// Push to talk: a muted microphone is on while the space bar or its button is held.

const TAP_MS = 300; // a shorter press of the button is a press, not a hold

export class PushToTalk {
  #held; // `key` or `button`
  #since;

  get isTalking() {
    return this.#held !== undefined;
  }

  /** `by`, `key` or `button`, is held from `now` on, in ms. Returns whether the microphone is to be turned on. */
  press(by, { isMuted, now }) {
    if (this.isTalking || !isMuted) return false;
    this.#held = by;
    this.#since = now;
    return true;
  }

  /** Returns whether the microphone is to be muted. After a tap of its button it stays on, as without push to talk. */
  release(by, now) {
    if (this.#held !== by) return false;
    this.#held = undefined;
    return by === 'key' || now - this.#since >= TAP_MS;
  }

  /** The page no longer learns of a release: another window or tab is in front, or a finger was taken for a gesture. Returns whether to mute. */
  interrupt() {
    const wasTalking = this.isTalking;
    this.#held = undefined;
    return wasTalking;
  }
}

const BUSY = 'input, textarea, select, button, a, summary, [contenteditable], [role=button]';

/** Whether a key event is about the space bar, and not about a field or a button that has the focus. */
export const isTalkKey = ({ key, ctrlKey, metaKey, altKey, shiftKey, target }) =>
  key === ' ' && !ctrlKey && !metaKey && !altKey && !shiftKey && !target?.closest?.(BUSY);
