// Writes Golden/export.webm with the web client's own modules: the file that WebMWriterTests expects, byte for byte.
//   node Tests/RecordingToolTests/golden.mjs           writes it
//   node Tests/RecordingToolTests/golden.mjs --check   shows that it is what the web client makes

import { readFileSync, writeFileSync } from 'node:fs';
import { concat } from '../../Sources/Web/conclave/wire/index.js';
import { WebMWriter } from '../../Sources/Web/conclave/recordings/webm-writer.js';

const FILE = new URL('Golden/export.webm', import.meta.url);
const START = 1_800_000_000_000_000;
const KEY = Uint8Array.of(0x10, 0, 0, 0x9d, 0x01, 0x2a, 0x40, 0x01, 0xb4, 0x00, 1, 2, 3);
const DELTA = Uint8Array.of(0x11, 4, 5, 6);

export function made() {
  const tracks = [{ number: 1, codec: 'opus', channels: 2, clockRate: 48_000 }, { number: 2, codec: 'vp8', width: 320, height: 180 }];
  const writer = new WebMWriter(tracks, START);
  const body = [];
  for (let step = 0; step < 60; step += 1) {
    const time = START + step * 200_000;
    body.push(writer.add({ number: 1, isKey: true, time: time + 1_499, data: Uint8Array.of(0xfc, step) }));
    if (step % 2 === 0) body.push(writer.add({ number: 2, isKey: step % 20 === 0, time: time - 700, data: step % 20 === 0 ? KEY : DELTA }));
  }
  const { tail, head } = writer.finish(START + 12_345_678);
  return concat(head, ...body, tail);
}

if (process.argv[2] === '--check') {
  if (!Buffer.from(made()).equals(readFileSync(FILE))) throw new Error('export.webm is not what the web client makes: run golden.mjs');
} else if (process.argv[1] === new URL(import.meta.url).pathname) writeFileSync(FILE, made());
