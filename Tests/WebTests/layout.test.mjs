// The library stands alone: it can be copied as it is, and the page uses no more of it than others may.

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';

const folderOf = (name) => new URL(`../../Sources/Web/${name}/`, import.meta.url);
const modulesIn = (name) => readdirSync(folderOf(name)).filter((file) => file.endsWith('.js'));
/** The code of a module, without its comments. */
const codeOf = (name, module) => readFileSync(new URL(module, folderOf(name)), 'utf8').replace(/^\s*(\/\/|\/?\*).*$/gm, '');
const importsOf = (text) => [...text.matchAll(/(?:from |^import |import\()'([^']+)'/gm)].map(([, path]) => path);

/** The modules of a folder that `roots` load. */
function loadedBy(name, roots) {
  const loaded = new Set();
  const add = (module) => {
    if (loaded.has(module)) return;
    loaded.add(module);
    for (const path of importsOf(codeOf(name, module))) if (path.startsWith('./')) add(path.slice(2));
  };
  roots.forEach(add);
  return loaded;
}

test('a module of the library imports its neighbours alone and touches no page', () => {
  for (const module of modulesIn('conclave')) {
    const code = codeOf('conclave', module);
    for (const path of importsOf(code)) assert.match(path, /^\.\/[\w-]+\.js$/, `${module} imports ${path}`);
    assert.doesNotMatch(code, /\b(document|localStorage|sessionStorage|location)\b|\bwindow\./, module);
  }
});

test('the page imports the library by its index alone, but for the modules that check for a supported browser and for guests', () => {
  for (const module of modulesIn('page')) {
    for (const path of importsOf(codeOf('page', module))) assert.match(path, /^(\.\/[\w-]+\.js|\.\.\/conclave\/(guests|index|support)\.js)$/, `${module} imports ${path}`);
  }
});

test('every module is loaded by something', () => {
  assert.deepEqual(new Set(modulesIn('conclave')), loadedBy('conclave', ['index.js', 'sframe-worker.js']));
  assert.deepEqual(new Set(modulesIn('page')), loadedBy('page', ['app.js']));
});
