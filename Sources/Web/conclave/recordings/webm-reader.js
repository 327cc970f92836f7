// Reads WebM as a browser's `MediaRecorder` writes it, piece by piece: the frames of its tracks. A piece ends anywhere, clusters and segments have no size, and
// only the elements below matter (RFC 9559, EBML RFC 8794).

const SEGMENT = 0x18538067;
const CLUSTER = 0x1f43b675;
const TRACKS = 0x1654ae6b;
const TRACK_ENTRY = 0xae;
const INFO = 0x1549a966;
const TIMESTAMP_SCALE = 0x2ad7b1;
const TRACK_NUMBER = 0xd7;
const CODEC_ID = 0x86;
const CLUSTER_TIMESTAMP = 0xe7;
const SIMPLE_BLOCK = 0xa3;
const BLOCK_GROUP = 0xa0;
const BLOCK = 0xa1;
/** Elements that are entered: what is in them is read like what is beside them. */
const ENTERED = new Set([SEGMENT, CLUSTER, TRACKS, TRACK_ENTRY, INFO, BLOCK_GROUP]);
const MAX_ELEMENT = 8 * 1_048_576;
const LACING = 0x06;
const CODECS = { A_OPUS: 'opus', V_VP8: 'vp8' };

/** The recorder has written something that is not expected of it. */
export class WebMError extends Error {}

const numberOf = (bytes) => bytes.reduce((number, byte) => number * 256 + byte, 0);

/** The variable-size number at `at`: `{value, length}`, with `isUnknown` for a size that is not known yet; undefined if more bytes are needed. */
function variableAt(bytes, at, most, keepsMarker) {
  if (at >= bytes.length) return undefined;
  const length = Math.clz32(bytes[at]) - 23;
  if (length > most) throw new WebMError('a number of more bytes than there can be');
  if (at + length > bytes.length) return undefined;
  const first = keepsMarker ? bytes[at] : bytes[at] & (0xff >> length);
  const isUnknown = !keepsMarker && first === 0xff >> length && bytes.subarray(at + 1, at + length).every((byte) => byte === 0xff);
  return { value: bytes.subarray(at + 1, at + length).reduce((number, byte) => number * 256 + byte, first), length, isUnknown };
}

export class WebMReader {
  #rest = new Uint8Array(0);
  #scale = 1_000_000; // ns
  #cluster = 0; // its timestamp, in units of the scale
  #number; // of the track whose entry is being read
  #tracks = new Map(); // number -> codec

  /**
   * The frames in the next piece: `{codec, isKey, time, data}` each, `codec` being `opus` or `vp8`, `time` µs since the recorder began. Throws `WebMError`.
   * @param {Uint8Array} piece
   */
  read(piece) {
    const bytes = new Uint8Array(this.#rest.length + piece.length);
    bytes.set(this.#rest);
    bytes.set(piece, this.#rest.length);
    const frames = [];
    let at = 0;
    for (;;) {
      const element = elementAt(bytes, at);
      if (!element) break;
      if (ENTERED.has(element.id)) at = element.body;
      else {
        if (element.end > bytes.length) break;
        this.#take(element.id, bytes.subarray(element.body, element.end), frames);
        at = element.end;
      }
    }
    this.#rest = bytes.slice(at);
    return frames;
  }

  #take(id, data, frames) {
    if (id === TIMESTAMP_SCALE) this.#scale = numberOf(data);
    else if (id === TRACK_NUMBER) this.#number = numberOf(data);
    else if (id === CODEC_ID) this.#tracks.set(this.#number, CODECS[new TextDecoder().decode(data)]);
    else if (id === CLUSTER_TIMESTAMP) this.#cluster = numberOf(data);
    else if (id === SIMPLE_BLOCK || id === BLOCK) frames.push(this.#frameIn(data));
  }

  /** A block: track, 16 bits of time relative to its cluster, flags, frame. */
  #frameIn(data) {
    const track = variableAt(data, 0, 8, false);
    if (!track || data.length < track.length + 3) throw new WebMError('a block that is cut short');
    const codec = this.#tracks.get(track.value);
    if (!codec) throw new WebMError('a frame of a codec that was not asked for');
    const view = new DataView(data.buffer, data.byteOffset + track.length);
    if (view.getUint8(2) & LACING) throw new WebMError('a block of several frames');
    const frame = data.slice(track.length + 3);
    // The first bit of VP8's frame header (RFC 6386 section 9.1): blocks in groups have no flag for it.
    const isKey = codec === 'opus' || (frame[0] & 1) === 0;
    return { codec, isKey, time: ((this.#cluster + view.getInt16(0)) * this.#scale) / 1_000, data: frame };
  }
}

/** `{id, body, end}` of the element at `at`; undefined if more bytes are needed to know that. */
function elementAt(bytes, at) {
  const id = variableAt(bytes, at, 4, true);
  const size = id && variableAt(bytes, at + id.length, 8, false);
  if (!size) return undefined;
  const body = at + id.length + size.length;
  if (!ENTERED.has(id.value) && (size.isUnknown || size.value > MAX_ELEMENT)) throw new WebMError('an element of more than 8 MiB');
  return { id: id.value, body, end: body + size.value };
}
