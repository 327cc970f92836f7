// The server reports names: a known person keeps the remembered name, and a deceptive name is shown with the user id.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadPage } from './web.mjs';

const { acceptName, beginNames, labelFor, learnNames, namesakeOf, newNameOf, rememberNames, suggestName } = await loadPage('names.js');
const { isDoubtful, skeletonOf } = await loadPage('looks.js');

const LIKE_ALICE = [
  'Alice', 'А\u006cice', 'Alice\u034f', 'Alice\u2800', 'Alice\u3164', 'Alice\ufe0f', 'Alіce', 'ALICE', 'A l i c e', 'Alice\u200b', 'Alice\u00ad', 'Àlice'.normalize('NFD'), 'Αlice', 'Alicе', 'A1ice', 'AIice', '𝐀lice', 'Alice.',
  'Alice\u180b', 'Alice\u115f', 'Ａｌｉｃｅ', 'Аӏісе',
];

test('names that look alike are the same, others are not', () => {
  for (const name of LIKE_ALICE) assert.equal(skeletonOf(name), skeletonOf('Alice'), JSON.stringify(name));
  assert.equal(skeletonOf('Norman'), skeletonOf('Nonnan'.replace('nn', 'rm')));
  assert.equal(skeletonOf('Marnie'), skeletonOf('Mamie'));
  const others = ['Alice', 'Alina', 'Bob', 'Carol', '李雷', '韩梅', 'राम', 'रमा', 'محمد', 'Сергей', 'Олег', 'Müller', 'Maier'];
  assert.equal(new Set(others.map(skeletonOf)).size, others.length);
});

test('a name with two scripts, a stray combining mark or an invisible character is doubtful; honest names from all over the world are not', () => {
  for (const name of ['Аlice', 'Alicе', 'Αlice', 'Alice\u200b', 'Alice\u2800', 'Alice\u034f', 'Q\u0301ube', 'Bob\ufe0f', 'ꓐob']) assert.equal(isDoubtful(name), true, JSON.stringify(name));
  const honest = [
    'Alice', 'Bob Smith', 'Anna 2', "O'Brien", 'Jean-Luc', 'Núñez', 'Núñez'.normalize('NFD'), 'Ørsted', 'Łukasz Żak', 'Nguyễn Văn An', 'Strauß', 'İbrahim Işık', 'Κώστας', 'Сергей', 'Олексій', 'Մարիամ', 'ბექა', 'דוד', 'محمد', 'مُحَمَّد',
    'राम', 'রহিম', 'ਸਿੰਘ', 'தமிழ்', 'สมชาย', '李雷', '田中太郎', 'タナカ', '田中 Ken', 'さくら', '김민수', '김 Min', 'አበበ',
  ];
  for (const name of honest) assert.equal(isDoubtful(name), false, name);
});

test('a known person keeps the remembered name, with the id beside it, until the user accepts the new one', () => {
  for (const name of [...LIKE_ALICE, 'Carol the accountant']) {
    let saved;
    beginNames('me', [['alice', 'Alice'], ['bob', 'Bob']], (names) => (saved = new Map(names)));
    learnNames([{ user: 'bob', name }]);
    assert.equal(labelFor('bob'), 'Bob (bob)', JSON.stringify(name));
    assert.equal(labelFor('alice'), 'Alice', 'nobody has this name yet');
    rememberNames(['bob']);
    assert.equal(saved.get('bob'), 'Bob', 'a call with the new name changes nothing');
  }
  let saved;
  beginNames('me', [['bob', 'Bob']], (names) => (saved = new Map(names)));
  learnNames([{ user: 'bob', name: 'Robert' }]);
  assert.equal(newNameOf('bob'), 'Robert');
  acceptName('bob', 'Alice');
  assert.equal(labelFor('bob'), 'Bob (bob)', 'the server has changed it since it was shown');
  acceptName('bob', 'Robert');
  assert.deepEqual([labelFor('bob'), newNameOf('bob'), saved.get('bob')], ['Robert', undefined, 'Robert']);
});

test('a name that the user accepts may still be somebody else’s', () => {
  beginNames('me', [['alice', 'Alice'], ['bob', 'Bob']], () => {});
  learnNames([{ user: 'bob', name: 'Alіce' }]);
  acceptName('bob', newNameOf('bob'));
  assert.equal(namesakeOf('bob'), 'alice');
  assert.match(labelFor('bob'), /\(bob\)$/);
  assert.equal(labelFor('alice'), 'Alice (alice)');
});

test('the first name of a person is shown with the id beside it, and a typed name does not replace a remembered one', () => {
  beginNames('me', [['u-17', 'u-17'], ['dora', 'Dora']], () => {});
  learnNames([{ user: 'u-17', name: 'Eve' }]);
  assert.deepEqual([labelFor('u-17'), newNameOf('u-17')], ['Eve (u-17)', undefined], 'it is the server’s first word');
  rememberNames(['u-17']);
  assert.equal(labelFor('u-17'), 'Eve');
  suggestName('dora', 'Dorothy');
  assert.equal(labelFor('dora'), 'Dora');
});
