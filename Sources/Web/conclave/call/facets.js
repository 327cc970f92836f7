// The parts of a call that have a separate event of the same name: a page that draws them separately need not examine everything after each `change`.

const SOURCES = ['microphone', 'camera', 'screen', 'screen-audio'];

/** `members` are the people in the call, with their tracks; `stop` only its cause; `local` what this device sends. */
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

  /** The names of the parts that have changed since the last look. */
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
