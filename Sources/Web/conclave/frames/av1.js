// AV1: a browser's packetizer cuts frames into OBUs, so a sealed frame travels as one (protocol section 5, "Clear bytes"; AV1 specification, section 5.3).

import { concat } from '../wire/index.js';
import { SFrameError } from './sframe.js';

const FRAME = 6; // the type of an OBU that contains a whole frame
const HAS_SIZE = 0x02;
const HAS_EXTENSION = 0x04;
const SEQUENCE_HEADER = Uint8Array.of(0x0a, 0x01, 0x00); // by which receivers recognize a key frame without a dependency descriptor

/** A sealed frame as a browser can packetize it. */
export function envelopeOf(sealed, isKeyFrame) {
  return concat(...(isKeyFrame ? [SEQUENCE_HEADER] : []), Uint8Array.of(FRAME << 3), sealed);
}

/** Reads a leb128 number of at most four bytes at `offset` (section 4.10.5): `{value, end}`. */
function sizeAt(data, offset) {
  let value = 0;
  for (let place = 0; place < 4 && offset + place < data.length; place += 1) {
    value |= (data[offset + place] & 0x7f) << (7 * place);
    if (data[offset + place] < 0x80) return { value, end: offset + place + 1 };
  }
  throw new SFrameError('header'); // an OBU without a size
}

/** The sealed frame in an envelope, which depacketizers write with sizes. Throws `SFrameError` for anything else. */
export function sealedIn(data) {
  let offset = 0;
  while (offset < data.length) {
    const header = data[offset];
    const start = offset + (header & HAS_EXTENSION ? 2 : 1);
    const { value, end } = header & HAS_SIZE ? sizeAt(data, start) : { value: data.length - start, end: start };
    if (end > data.length || value > data.length - end) throw new SFrameError('header');
    if (((header >> 3) & 0x0f) === FRAME) return data.subarray(end, end + value);
    offset = end + value;
  }
  throw new SFrameError('header'); // no OBU with a frame
}
