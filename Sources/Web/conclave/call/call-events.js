// The server's events of one call, passed to the part of the call that they concern.

import { seatsOf } from '../keys/index.js';
import { changesIn } from '../wire/index.js';

/** The events that change a call's state. */
const CHANGES = ['call.member', 'call.members', 'track.added', 'track.updated', 'track.removed', 'keys.switch'];

/**
 * `facts` is the call's `CallState`, `recording` its `CallRecording`. `stay` is set to the one whose keys and media are in use.
 *
 * Events: `notice` with a detail for people; `over` with `{reason, by}`: the call is over; `state`: the whole state has arrived; `own-change` with the last change
 * of this user as a member; `knock` and `knock-over` with their bodies; `wanted`: the path needs a negotiation; `message` with its body; `screen-over`: the server has ended this device's screen.
 */
export class CallEvents extends EventTarget {
  /** @type {import('./stay.js').Stay | undefined} */
  stay;
  #facts;
  #recording;

  constructor(facts, recording) {
    super();
    this.#facts = facts;
    this.#recording = recording;
  }

  isKnown(name) {
    return Object.hasOwn(this.#handlers, name);
  }

  /** Returns the result of a handler of keys: false for an envelope that did not open, `{later}` for one that waits for the person. */
  handle(name, body) {
    const apply = () => this.#handlers[name](body);
    return CHANGES.includes(name) ? this.#facts.change(body.rev, apply) : apply();
  }

  /** `call.state`, or the reply of `state`. */
  takeState(state) {
    // older than the known state
    if (state.rev < this.#facts.rev) return;
    this.#facts.take(state);
    if (state.state === 'ended') {
      this.#tell('over', { reason: 'lost' });
      return;
    }
    this.#keys?.seated(seatsOf(this.#facts.members.values()));
    this.#keys?.inUse(state.epoch).catch(() => {});
    this.#recording.take(state.recording);
    this.#tell('state');
  }

  get #keys() {
    return this.stay?.keys;
  }

  get #path() {
    return this.stay?.path;
  }

  #handlers = {
    'call.state': (body) => this.takeState(body),
    'call.member': (body) => this.#membersChanged(changesIn('call.member', body), body.at),
    'call.members': (body) => this.#membersChanged(changesIn('call.members', body), body.at),
    'guest.knock': (body) => this.#tell('knock', body),
    'guest.knock-over': (body) => this.#tell('knock-over', body),
    'call.ended': ({ reason, by }) => this.#tell('over', { reason, by }),
    'track.added': (body) => this.#setTrack(body),
    'track.updated': (body) => this.#setTrack(body),
    'track.removed': (body) => this.#removeTrack(body),
    'keys.rotate': (body) => this.#keys?.rotate(body),
    'keys.envelope': (body) => this.#keys?.envelope(body),
    'keys.switch': (body) => this.#keys?.switchTo(body),
    'keys.request': (body) => void this.#keys?.requested(body),
    'keys.confirmed': (body) => this.#keys?.confirmed(body),
    'keys.waiting': (body) => this.#keys?.waiting(body),
    'recording.started': (body) => this.#ofRecording(body, () => this.#recording.started(body)),
    'recording.consent': (body) => this.#ofRecording(body, () => this.#recording.consented(body)),
    'recording.running': (body) => this.#ofRecording(body, () => this.#recording.running(body)),
    'recording.stopped': (body) => this.#ofRecording(body, () => this.#recording.stopped(body)),
    'media.slots': (body) => this.#path?.showSlots(body),
    'media.wanted': (body) => this.#path?.wantLayers(body),
    'media.need': (body) => {
      if (this.#path?.want(body)) this.#tell('wanted');
    },
    quality: ({ level }) => {
      this.#facts.quality = level;
    },
    message: (body) => this.#tell('message', body),
  };

  /** A state that is newer has told of it: the recording may be over by now. */
  #ofRecording({ rev = Infinity }, apply) {
    if (rev >= this.#facts.rev) this.#facts.change(Number.isFinite(rev) ? rev : undefined, apply);
  }

  /** Changes in order. Their effect on this device's own place is judged after the last one. */
  #membersChanged(changes, at) {
    let own;
    for (const change of changes) {
      const news = this.#facts.memberChanged(change, at);
      this.#keys?.seated(seatsOf([this.#facts.members.get(change.user)]));
      if (news) this.#tell('notice', news);
      else own = change;
    }
    if (own) this.#tell('own-change', own);
  }

  #setTrack(track) {
    const { isNew, news } = this.#facts.trackSet(track);
    if (news) this.#tell('notice', news);
    // Without waiting for `media.need` a new track is on the screen a second earlier.
    if (isNew && this.#path?.wantFor(this.#facts.tracksOfOthers)) this.#tell('wanted');
  }

  #removeTrack({ track, participant, cause }) {
    const news = this.#facts.trackRemoved({ track, participant });
    if (news) this.#tell('notice', news);
    if (participant !== this.stay?.participant || track !== this.#path?.trackID('screen')) return;
    if (cause === 'replaced') this.#tell('notice', { kind: 'screen-replaced' });
    this.#tell('screen-over');
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
