// The table of lies (Tests/Vectors/lies.json): each row is run against the web client's own modules. After each, no (key, nonce) was used twice, nobody opened
// what was not meant for it, and nothing was attributed to a wrong sender (`World.assertInvariants`).

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { rows as admissions } from './world/lies-admissions.mjs';
import { rows as epochs } from './world/lies-epochs.mjs';
import { rows as hearing } from './world/lies-hearing.mjs';
import { rows as lists } from './world/lies-lists.mjs';
import { rows as media } from './world/lies-media.mjs';
import { rows as recordings } from './world/lies-recordings.mjs';
import { rows as secrets } from './world/lies-secrets.mjs';
import { rows as trust } from './world/lies-trust.mjs';

console.warn = process.env.LOUD ? console.log : () => {};

const { rows: all } = JSON.parse(readFileSync(new URL('../Vectors/lies.json', import.meta.url), 'utf8'));
const table = all.filter(({ only = 'web' }) => only === 'web');
const rows = new Map([...lists, ...epochs, ...media, ...secrets, ...trust, ...hearing, ...admissions, ...recordings]);
const wanted = process.env.ROWS?.split(',').map(Number);

test('every row of the table is run', () => {
  assert.deepEqual(table.map(({ n }) => n).filter((n) => !rows.has(n)), []);
});

for (const { n, lie } of table) {
  if (rows.has(n) && (!wanted || wanted.includes(n))) test(`row ${n}: ${lie}`, rows.get(n));
}
