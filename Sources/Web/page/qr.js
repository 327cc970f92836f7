// A QR code (ISO/IEC 18004) for one short text: version 4 (33 by 33 modules), error correction M, byte mode, mask 0.

import { SVG } from './dom.js';

const SIZE = 33;
const DATA = 64; // codewords, in two blocks
const BLOCKS = 2;
const CORRECTION = 18; // codewords of each block
const MAXIMUM = DATA - 2; // 4 bits of mode and 8 of length leave 62 bytes
const FORMAT = 0b101010000010010; // M, mask 0, with its error correction and its own mask (7.9)
const ALIGNMENT = 26;

// GF(256) with the polynomial of 7.5.2.
const EXP = new Uint8Array(512);
const LOG = new Uint8Array(256);
for (let i = 0, value = 1; i < 255; i += 1) {
  EXP[i] = EXP[i + 255] = value;
  LOG[value] = i;
  value = value & 128 ? (value << 1) ^ 0x11d : value << 1;
}
const multiply = (a, b) => (a && b ? EXP[LOG[a] + LOG[b]] : 0);

function generator() {
  let polynomial = [1];
  for (let i = 0; i < CORRECTION; i += 1) {
    const next = [...polynomial, 0];
    polynomial.forEach((factor, index) => (next[index + 1] ^= multiply(factor, EXP[i])));
    polynomial = next;
  }
  return polynomial;
}

function correctionOf(block) {
  const factors = generator();
  const rest = [...block, ...new Array(CORRECTION).fill(0)];
  for (let i = 0; i < block.length; i += 1) {
    const lead = rest[i];
    factors.forEach((factor, index) => (rest[i + index] ^= multiply(factor, lead)));
  }
  return rest.slice(block.length);
}

/** The codewords in the order in which they are drawn. */
function codewordsOf(bytes) {
  if (bytes.length > MAXIMUM) throw new RangeError(`a QR code for more than ${MAXIMUM} bytes`);
  const bits = [[4, 4], [bytes.length, 8], ...Array.from(bytes, (byte) => [byte, 8]), [0, 4]];
  const digits = bits.map(([value, count]) => value.toString(2).padStart(count, '0')).join('');
  const data = (digits.match(/.{8}/g) ?? []).map((eight) => Number.parseInt(eight, 2));
  for (let pad = 0xec; data.length < DATA; pad ^= 0xec ^ 0x11) data.push(pad);
  const size = DATA / BLOCKS;
  const blocks = Array.from({ length: BLOCKS }, (_, index) => data.slice(index * size, (index + 1) * size));
  const corrections = blocks.map(correctionOf);
  const mixed = (parts, count) => Array.from({ length: count }, (_, i) => parts.map((part) => part[i])).flat();
  return [...mixed(blocks, size), ...mixed(corrections, CORRECTION)];
}

/** The modules as rows of booleans, true for dark, without the quiet zone of 4 modules around them. */
export function qrOf(text) {
  const codewords = codewordsOf(new TextEncoder().encode(text));
  const modules = Array.from({ length: SIZE }, () => new Array(SIZE));
  const set = (x, y, isDark) => {
    if (x >= 0 && y >= 0 && x < SIZE && y < SIZE) modules[y][x] = isDark;
  };
  for (let i = 8; i < SIZE - 8; i += 1) {
    set(i, 6, i % 2 === 0);
    set(6, i, i % 2 === 0);
  }
  for (const [left, top] of [[0, 0], [SIZE - 7, 0], [0, SIZE - 7]]) {
    for (let y = -1; y <= 7; y += 1) {
      for (let x = -1; x <= 7; x += 1) {
        const ring = Math.max(Math.abs(x - 3), Math.abs(y - 3));
        set(left + x, top + y, ring !== 2 && ring !== 4);
      }
    }
  }
  for (let y = -2; y <= 2; y += 1) {
    for (let x = -2; x <= 2; x += 1) set(ALIGNMENT + x, ALIGNMENT + y, Math.max(Math.abs(x), Math.abs(y)) !== 1);
  }
  drawFormat(set);
  drawData(modules, codewords);
  return modules;
}

/** The 15 bits twice (figure 25), and the module that is always dark. */
function drawFormat(set) {
  for (let i = 0; i < 15; i += 1) {
    const bit = ((FORMAT >> i) & 1) === 1;
    set(8, i < 6 ? i : i < 8 ? i + 1 : SIZE - 15 + i, bit);
    set(i < 8 ? SIZE - 1 - i : i === 8 ? 7 : 14 - i, 8, bit);
  }
  set(8, SIZE - 8, true);
}

/** Two columns at a time from the right, alternately up and down, skipping modules that are already drawn. */
function drawData(modules, codewords) {
  let index = 0;
  for (let right = SIZE - 1, isUp = true; right > 0; right -= 2, isUp = !isUp) {
    if (right === 6) right = 5;
    for (let step = 0; step < SIZE; step += 1) {
      const y = isUp ? SIZE - 1 - step : step;
      for (const x of [right, right - 1]) {
        if (modules[y][x] !== undefined) continue;
        const bit = (codewords[index >> 3] ?? 0) >> (7 - (index & 7)) & 1;
        modules[y][x] = (bit === 1) !== ((x + y) % 2 === 0);
        index += 1;
      }
    }
  }
}

/** A QR code of `text`, including the quiet zone that cameras need. */
export function qrCode(text, label) {
  const rows = qrOf(text);
  const svg = document.createElementNS(SVG, 'svg');
  const size = rows.length + 8;
  const attributes = { viewBox: `0 0 ${size} ${size}`, class: 'qr', role: 'img', 'aria-label': label };
  for (const [name, value] of Object.entries(attributes)) svg.setAttribute(name, value);
  const path = document.createElementNS(SVG, 'path');
  path.setAttribute('d', rows.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x + 4} ${y + 4}h1v1h-1z` : ''))).join(''));
  svg.append(path);
  return svg;
}
