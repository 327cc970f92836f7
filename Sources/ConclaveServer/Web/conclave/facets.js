// The parts of a call that have an event of their own, of the same name: a page that draws them apart need not look at all of it after each `change`.

const SOURCES = ['microphone', 'camera', 'screen', 'screen-audio'];

/** `members` are the people in the call, with their tracks; `stop` for its cause; `local` for what this device sends. */
const FACETS = Object.entries({
  path: (call) => call.path,
  code: (call) => call.code,
  quality: (call) => call.quality,
  hasKey: (call) => call.hasKey,
  stop: (call) => call.stop?.cause,
  members: (call) => call.facts.rev,
  local: (call) => SOURCES.map((source) => [call.local(source).isOn, call.local(source).track?.id]).join(),
});

export class Facets {
  #before = new Map();

  /** The names of those that are others than at the last look. */
  changed(call) {
    const names = [];
    for (const [name, of] of FACETS) {
      const now = of(call);
      if (this.#before.get(name) !== now) names.push(name);
      this.#before.set(name, now);
    }
    return names;
  }
}
