// Decodes the pictures of one source, and shows the newest that is due.

const CODECS = { vp8: 'vp8', vp9: 'vp09.00.10.08' };

/** `draw(picture)` shows a `VideoFrame`, or nothing if it is undefined; `decoded()` says that there is another one, `failed()` that the decoder cannot go on. */
export class PictureOutput {
  #browser;
  #draw;
  #decoded;
  #failed;
  #decoder;
  #pictures = []; // decoded, or that nothing is to be seen from a time on; the first is shown or will be next
  #isDrawn = false; // the first of them

  constructor({ browser, draw, decoded, failed }) {
    this.#browser = browser;
    this.#draw = draw;
    this.#decoded = decoded;
    this.#failed = failed;
  }

  /** How many pictures are decoded, or will be, and not shown yet. */
  get ahead() {
    return this.#pictures.length + (this.#decoder?.decodeQueueSize ?? 0);
  }

  take({ stream: { codec }, isKey, time, data }) {
    if (!Object.hasOwn(CODECS, codec)) return;
    this.#decoder ??= this.#open(CODECS[codec]);
    if (this.#decoder.state !== 'configured') return;
    this.#decoder.decode(new this.#browser.EncodedVideoChunk({ type: isKey ? 'key' : 'delta', timestamp: time, data }));
  }

  /** From `timestamp` on nothing is to be seen, until the next picture. */
  off(timestamp) {
    this.#add({ timestamp, isOff: true, close() {} });
  }

  /** Draws the newest that is due at `position`, µs since 1970. */
  show(position) {
    while (this.#pictures.length > 1 && this.#pictures[1].timestamp <= position) {
      this.#pictures.shift().close();
      this.#isDrawn = false;
    }
    const [picture] = this.#pictures;
    if (!picture || this.#isDrawn || picture.timestamp > position) return;
    this.#draw(picture.isOff ? undefined : picture);
    this.#isDrawn = true;
  }

  blank() {
    this.#draw(undefined);
  }

  /** Forgets everything that was decoded. */
  reset() {
    if (this.#decoder && this.#decoder.state !== 'closed') this.#decoder.close();
    this.#decoder = undefined;
    for (const picture of this.#pictures) picture.close();
    [this.#pictures, this.#isDrawn] = [[], false];
  }

  #add(picture) {
    const at = this.#pictures.filter(({ timestamp }) => timestamp <= picture.timestamp).length;
    if (at === 0) this.#isDrawn = false;
    this.#pictures.splice(at, 0, picture);
  }

  #open(codec) {
    const decoder = new this.#browser.VideoDecoder({
      // A decoder that was closed gives nothing more, but its last outputs may be on their way.
      output: (picture) => {
        if (decoder !== this.#decoder) return picture.close();
        this.#add(picture);
        return this.#decoded();
      },
      error: () => decoder === this.#decoder && this.#failed(),
    });
    decoder.configure({ codec, optimizeForLatency: true });
    return decoder;
  }
}
