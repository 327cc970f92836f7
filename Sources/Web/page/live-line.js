// The player's lines about a recording that others follow: whether it is live, and where the person is.

import { byID, setText } from './dom.js';
import { labelFor } from './names.js';
import { mapOf, wordsForLive, wordsForPlace } from './own-words.js';
import { newestPlace } from './place.js';
import { t } from './texts.js';

const CLOSE_MS = 12_000; // so far behind is live

export class LiveLine {
  #opened;
  #player;
  #call;

  constructor() {
    byID('player-newest').addEventListener('click', () => this.#player?.seekNewest());
    byID('player-call').addEventListener('click', () => this.#call?.());
  }

  /** Follows `opened` (see `Recordings.open`) in `player`; `call()` rings the person who records. */
  begin(opened, player, call) {
    [this.#opened, this.#player, this.#call] = [opened, player, call];
    opened.live?.addEventListener('change', () => player === this.#player && player.grown());
    if (opened.live) player.seekNewest();
    this.draw();
  }

  draw() {
    const { live, notes = new Map(), reader, reels } = this.#opened ?? {};
    const place = newestPlace((live?.notes ?? notes).values());
    const isOfOthers = Boolean(this.#call && reader);
    byID('player-live').hidden = !live && !place && !isOfOthers;
    if (byID('player-live').hidden) return;
    const behind = (this.#player?.behind ?? 0) / 1_000;
    setText(byID('player-live-state'), live ? wordsForLive({ state: live.state, length: reels[0].source.length, behind, end: reels[0].source.end / 1_000 }) : '');
    byID('player-newest').hidden = !live?.isRunning || behind < CLOSE_MS;
    byID('player-call').hidden = !isOfOthers;
    if (isOfOthers) setText(byID('player-call-text'), t('live.call', { name: labelFor(reader.statement.by.user) }));
    setText(byID('player-place'), place ? wordsForPlace(place) : '');
    byID('player-map').hidden = !place;
    if (place) byID('player-map').href = mapOf(place);
  }

  end() {
    [this.#opened, this.#player, this.#call] = [undefined, undefined, undefined];
    byID('player-live').hidden = true;
  }
}
