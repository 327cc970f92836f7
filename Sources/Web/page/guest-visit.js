// A guest's visit: one call, entered as soon as there is a connection. When it is over, nothing of the guest is kept.

import { linkIn } from './link.js';
import { onStop, showDoorWait } from './link-wait.js';
import * as session from './session.js';
import { wordsForError } from './notices.js';
import { t } from './texts.js';

const RENEWED_EVERY_MS = 1_200_000; // a token is valid for an hour

export class GuestVisit {
  hasEnded = false;
  /** Guests are not rung. */
  rings = { current: undefined };
  /** For the field of people to add, which a guest does not see. */
  fieldOptions = { isDemo: false, own: '', reachable: async () => new Set() };
  #conclave;
  #signIn;
  #entered;
  #hasBegun = false;
  #hasStopped = false; // by the guest, who waited to be admitted
  #renewedAt = Date.now();

  /**
   * `signIn` contains the guest's `token`, and in `guest` the call, its link and whether camera and microphone are wanted. `entered()` is called when the call is joined.
   */
  constructor({ conclave, signIn, entered }) {
    this.#conclave = conclave;
    this.#signIn = signIn;
    this.#entered = entered;
    setInterval(() => this.#renew().catch(() => {}), RENEWED_EVERY_MS);
    const followed = new WeakSet();
    conclave.addEventListener('calls', () => {
      const { current: call } = conclave;
      if (!call || followed.has(call)) return;
      followed.add(call);
      call.addEventListener('waiting', () => {
        if (call.isWaiting) showDoorWait();
        else if (call.participant && !call.hasEnded) entered(); // it had come back, and waited again
      });
    });
    onStop(() => {
      this.#hasStopped = true;
      conclave.current?.leave();
    });
  }

  /** The connection is ready: the call is joined the first time. */
  async begin() {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    const { id, link, camera, microphone } = this.#signIn.guest;
    try {
      // Only the address contains the secret: it is stored nowhere.
      const { secret = '', isLasting = false } = linkIn(location.hash) ?? {};
      const call = await this.#conclave.joinByLink(id, { link, secret, isLasting }, { camera, microphone });
      if (!call.hasEnded) this.#entered();
    } catch (error) {
      await this.end({ words: this.#hasStopped ? '' : wordsForError(error), isError: true });
    }
  }

  /** For the next connection. After the computer has slept the token is renewed before it is used. */
  async freshToken(wasRefused) {
    if (wasRefused || Date.now() - this.#renewedAt > RENEWED_EVERY_MS) await this.#renew();
    return this.#signIn.token;
  }

  async #renew() {
    const { token } = await session.guestToken({ token: this.#signIn.token });
    this.#signIn.token = token;
    this.#renewedAt = Date.now();
    session.saveSignIn(this.#signIn);
  }

  /** The page starts over with `words`; with `mayReturn` the call may go on, with `isError` the guest was not in it. */
  async end({ words, mayReturn = false, isError = false }) {
    if (this.hasEnded) return;
    this.hasEnded = true;
    session.forgetSignIn();
    session.saveFarewell({ words: words ?? t('farewell.left'), name: this.#signIn.name, mayReturn, isError });
    if (this.#conclave.identity) {
      session.forgetCall(this.#conclave.identity.device);
      await this.#conclave.forget({ all: true }).catch(() => {});
    }
    this.#conclave.close();
    location.reload();
  }
}
