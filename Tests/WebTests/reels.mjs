// Reels whose segments are opened already, for tests of what plays and exports them.

import { load } from './web.mjs';

const { ReelSource } = await load('recordings/reel-source.js');
const { Refusal } = await load('wire/checks.js');

export const hexed = (text) => Uint8Array.from(Buffer.from(text.replaceAll(' ', ''), 'hex'));
export const START = 1_790_000_000_000_000; // µs
export const SOUND = Uint8Array.of(0x78, 1, 2);
export const KEY = hexed('10 02 00 9d 01 2a 80 02 68 01 aa');
export const DELTA = hexed('11 02 00 55');

/** A reel of segments of 4 s: sound every 20 ms and a picture every 100 ms, a key frame every second; `holes` are refused, `lost` are not there. */
export function reelOf(count, { holes = [], lost = [], gaps = {}, codec = 'vp8', end = 'more' } = {}) {
  const start = (n) => START + n * 4_000_000;
  const streams = [{ source: 'microphone', codec: 'opus', clockRate: 48_000 }, { source: 'camera', codec, clockRate: 90_000 }];
  const frameAt = (time, stream, isKey, data) => ({ type: 'frame', stream, isKey, time, data });
  const lacked = [];
  const reel = {
    length: count,
    segments: Array.from({ length: count }, (_, n) => ({ start: start(n) })),
    lack: (n) => lacked.push(n),
    async open(n) {
      if (holes.includes(n)) throw new Refusal('another hash');
      const frames = [];
      for (let ms = 0; ms < 4_000; ms += 20) {
        if (ms % 100 === 0) frames.push(frameAt(start(n) + ms * 1_000, streams[1], ms % 1_000 === 0, ms % 1_000 === 0 ? KEY : DELTA));
        frames.push(frameAt(start(n) + ms * 1_000, streams[0], true, SOUND));
      }
      const kept = frames.filter(({ time }) => !(gaps[n] ?? []).some(({ from, to }) => time >= start(n) + from * 1_000 && time < start(n) + to * 1_000));
      return { n, start: start(n), frames: kept.reverse(), records: (gaps[n] ?? []).map((gap) => ({ type: 'gap', ...gap })), end: end && { time: start(n) + 4_000_000 } };
    },
  };
  const fetched = [];
  const source = new ReelSource(reel, async (n) => (fetched.push(n), lost.includes(n) ? undefined : new Uint8Array(1)));
  return { source, fetched, lacked };
}
