// A recording as one WebM file that every player opens.

import { Refusal } from '../wire/index.js';
import { PictureGate } from './picture-gate.js';
import { WebMWriter, opusChannels, vp8Size } from './webm-writer.js';

const NUMBERS = { opus: 1, vp8: 2 };
const LOOKED_AT = 4; // segments, for the tracks

/**
 * Writes the recording of `source`, a `ReelSource`, by `write(bytes, position)`: one piece behind the other, and at the end the first once more. `told(share)` is
 * called with how much is done, 0 to 1. Gaps stay gaps, and pictures that refer to one that is missing are left out. Throws `Refusal` if nothing in it can be
 * exported.
 */
export async function exportWebM(source, write, told = (_share) => {}) {
  const tracks = await tracksOf(source);
  if (tracks.length === 0) throw new Refusal('a recording without sound or pictures that can be exported');
  const writer = new WebMWriter(tracks, source.start);
  let position = 0;
  const append = async (bytes) => {
    if (bytes.length > 0) await write(bytes, position);
    position += bytes.length;
  };
  await append(writer.head);
  const codecs = new Set(tracks.map(({ codec }) => codec));
  const gate = new PictureGate();
  for (let n = 0; n < source.length; n += 1) {
    const { frames, gaps } = await source.segment(n);
    gate.note(gaps);
    for (const frame of frames) {
      const { codec } = frame.stream;
      if (codecs.has(codec) && (codec === 'opus' || gate.takes(frame))) await append(writer.add({ ...frame, number: NUMBERS[codec] }));
    }
    told((n + 1) / source.length);
  }
  const { head, tail } = writer.finish(source.end);
  await append(tail);
  await write(head, 0);
}

/** The first frames say what the tracks are. */
async function tracksOf(source) {
  const tracks = new Map();
  for (let n = 0; n < Math.min(source.length, LOOKED_AT); n += 1) {
    for (const { stream: { codec, clockRate }, data } of (await source.segment(n)).frames) {
      if (tracks.has(codec) || data.length === 0) continue;
      const size = codec === 'vp8' ? vp8Size(data) : undefined;
      if (size) tracks.set(codec, { number: NUMBERS.vp8, codec, ...size });
      if (codec === 'opus') tracks.set(codec, { number: NUMBERS.opus, codec, channels: opusChannels(data), clockRate });
    }
  }
  return [...tracks.values()].sort((a, b) => a.number - b.number);
}
