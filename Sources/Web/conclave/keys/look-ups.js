// Looking up the devices of a list in the directory: asynchronously, so that a server that withholds an answer delays nothing else.

/** `judged(record)` follows each look-up that `begin` has started, `read()` when the local store was read, before the server has answered. */
export class LookUps {
  #directory;
  #warnings;
  #judged;
  #read;
  #begun = new WeakMap(); // record -> promise

  constructor({ directory, warnings, judged, read }) {
    this.#directory = directory;
    this.#warnings = warnings;
    this.#judged = judged;
    this.#read = read;
  }

  begin(record, entries) {
    if (entries.length > 0) this.#begun.set(record, this.examine(record, entries).then(() => this.#judged(record)));
  }

  /** Resolves when the look-up of a record's devices is over. */
  async finished(record) {
    await this.#begun.get(record)?.catch(() => {});
  }

  /** As `look`; a failed look-up changes nothing. */
  async examine(record, entries = record.others) {
    if (entries.length === 0) return;
    try {
      await this.look(record, entries);
    } catch (error) {
      this.#warnings.refuse(error);
    } finally {
      this.#read();
    }
  }

  /** Each problem, and each new device, is reported once per key. */
  async look(record, entries = record.others) {
    const tell = (results) => {
      for (const { entry, problem, isSelfRevoked, isOfVerified } of results) this.#warnings.warn(problem, { epoch: record.epoch, ...entry, isSelfRevoked, isOfVerified });
    };
    const distrusted = (results) => {
      tell(results);
      this.#read();
    };
    tell(await record.examine(this.#directory, entries, distrusted));
  }
}
