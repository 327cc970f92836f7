// The devices of this user: which of them this device trusts, pairing with another one, and removing one permanently.

import { fingerprintOf, makeStatement } from '../trust/index.js';
import { equal, fromBase64, random, toBase64 } from '../wire/index.js';
import { Pairing, deviceText, fingerprintIn } from './pairing.js';

const ASKED_MS = 2 * 60_000; // as long as the other device's session lasts

/**
 * `request(path, body)` sends to `/app/devices/…`, `now` is the clock in ms.
 *
 * Events: `change`, when the state of `pairing` changes; `asked` with the id of a device that wants to be paired, which the person may then open.
 */
export class OwnDevices extends EventTarget {
  pairing;
  #identity;
  #directory;
  #request;
  #now;
  #asked;

  constructor({ identity, directory, request, now = Date.now }) {
    super();
    this.#identity = identity;
    this.#directory = directory;
    this.#request = request;
    this.#now = now;
    this.pairing = new Pairing({ user: identity.user, fingerprint: identity.fingerprint, random });
  }

  /**
   * This device first: `{device, name, fingerprint, keys, registeredAt, seenDay, level, isThis}`; `keys` are as reported by the server; `level` is as in
   * `Directory.examine`.
   */
  async list() {
    const examined = await this.#directory.devicesOf([this.#identity.user]);
    const devices = examined.map(({ entry, about, level, problem }) => ({ ...entry, ...about, level, problem, isThis: entry.device === this.#identity.device }));
    return devices.sort((a, b) => b.isThis - a.isThis);
  }

  /**
   * Removes a device, `self` or one of `list()`: it loses its place in calls, and nobody who trusts this device ever gives its keys anything again. The
   * statement names a fingerprint, in which user and device are hashed: a device listed by the server is signed only if the fingerprint is the hash of that
   * device's keys. Otherwise the person would revoke a device other than the displayed one, or this device.
   */
  async remove({ device, fingerprint, keys }) {
    const isOf = await this.#isOf(device, { fingerprint, keys });
    await this.#request('remove', { device, ...(isOf ? await this.#revoke({ device, fingerprint }) : {}) });
  }

  async #revoke(about) {
    const { device: _, ...revoke } = await makeStatement('revoke', this.#identity, about, this.#now());
    return { revoke };
  }

  async #isOf(device, { fingerprint, keys }) {
    const { user } = this.#identity;
    const own = device === this.#identity.device ? this.#identity.keys : keys;
    try {
      return toBase64(await fingerprintOf(user, device, own)) === fingerprint;
    } catch {
      return false; // not the keys of a device
    }
  }

  /** Removes all listed devices except this one. A device that disappears meanwhile is not an error. */
  async removeOthers() {
    for (const other of (await this.list()).filter(({ isThis }) => !isThis)) {
      await this.remove(other).catch((error) => {
        if (error.code !== 'device.not-found') throw error;
      });
    }
  }

  /** This device, as the others name it. */
  get self() {
    const { user, device, fingerprint } = this.#identity;
    return { user, device, fingerprint: toBase64(fingerprint) };
  }

  /** The text that this device shows for scanning or copying. */
  get text() {
    return deviceText(this.#identity.fingerprint);
  }

  // Pairing

  /** This device shows the digits, and they are typed on `device`. */
  async show(device) {
    const message = await this.pairing.begin(device, this.#now());
    this.#changed();
    await this.#send(message);
  }

  /** The digits of another device are typed here: of one that has already asked, or of the next one that does. */
  async type() {
    if (!this.pairing.open(this.#now())) return this.#changed();
    this.#changed();
    const asked = this.#asked;
    this.#asked = undefined;
    return asked && this.#now() - asked.at < ASKED_MS ? this.take(asked.event) : undefined;
  }

  /** The event `device.pair`. */
  async take(event) {
    if (!this.pairing.isRunning && typeof event.from === 'string') {
      this.#asked = { event, at: this.#now() };
      this.dispatchEvent(new CustomEvent('asked', { detail: event.from }));
      return;
    }
    const answer = await this.pairing.take(event, this.#now());
    this.#changed();
    await this.#send(answer);
  }

  /** The person typed the digits of the other device. Returns whether it is confirmed now. */
  async enter(digits) {
    const isRight = this.pairing.enter(digits, this.#now());
    const isConfirmed = isRight && (await this.#confirmPeer());
    if (isConfirmed) await this.#send(this.pairing.done());
    this.#changed();
    return isConfirmed;
  }

  /** The person says that the other device says it is confirmed. */
  async confirm() {
    const isConfirmed = this.pairing.confirm(this.#now()) && (await this.#confirmPeer());
    this.#changed();
    return isConfirmed;
  }

  /** The person scanned or copied the other device's text. Returns the device that is confirmed now, if any. */
  async confirmText(text) {
    const fingerprint = fingerprintIn(text);
    const found = fingerprint && (await this.list()).find((device) => device.fingerprint === fingerprint && !device.isThis);
    if (!found || !(await this.#trust(found))) return undefined;
    await this.cancel();
    return found;
  }

  async cancel() {
    const message = this.pairing.cancel();
    this.#changed();
    await this.#send(message).catch(() => {}); // it ends by itself
  }

  /** Makes room for another session if the previous one is over. */
  renew() {
    this.pairing.renew();
    this.#changed();
  }

  /** Ends a session that has lasted too long. */
  tick() {
    const { state } = this.pairing;
    this.pairing.tick(this.#now());
    if (this.pairing.state !== state) this.#changed();
  }

  /** The proven key must be the one that the server lists for that device, because others will see that one. */
  async #confirmPeer() {
    const { peer, peerFingerprint } = this.pairing;
    try {
      const found = (await this.list()).find(({ device }) => device === peer);
      if (found && equal(fromBase64(found.fingerprint), peerFingerprint) && (await this.#trust(found))) return true;
    } catch (error) {
      await this.#takeBack();
      throw error;
    }
    await this.#takeBack();
    return false;
  }

  async #takeBack() {
    await this.#send(this.pairing.cancel('refused')).catch(() => {});
    this.#changed();
  }

  /** Verified for this device, and vouched for to everybody who has verified this device. */
  async #trust({ device, fingerprint, problem }) {
    const { user } = this.#identity;
    if (problem === 'changed-key') await this.#directory.trust(user, device, fingerprint);
    if (problem === 'revoked' || (await this.#directory.verify([{ user, device, fingerprint }])).length === 0) return false;
    await this.#request('vouch', await makeStatement('vouch', this.#identity, { device, fingerprint }, this.#now()));
    return true;
  }

  async #send(message) {
    if (!message) return;
    try {
      await this.#request('pair', message);
    } catch (error) {
      this.pairing.cancel();
      this.#changed();
      throw error;
    }
  }

  #changed() {
    this.dispatchEvent(new Event('change'));
  }
}
