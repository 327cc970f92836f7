// The library is independent: it can be copied as it is, the page uses only its public interface, and it has a folder for each subject, in layers.

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { posix } from 'node:path';
import { test } from 'node:test';

const FLOORS = 5;
const root = new URL('../../Sources/Web/', import.meta.url);
/** The paths of the modules under `name`, relative to it. */
const modulesIn = (name) => readdirSync(new URL(`${name}/`, root), { recursive: true }).filter((file) => file.endsWith('.js') && !file.startsWith('catalogues/'));
/** The code of a module, without its comments. */
const codeOf = (name, module) => readFileSync(new URL(`${name}/${module}`, root), 'utf8').replace(/^\s*(\/\/|\/?\*).*$/gm, '');
const importsOf = (text) => [...text.matchAll(/(?:from |^import |import\()'([^']+)'/gm)].map(([, path]) => path);
/** The folder of a module of the library; '' for those at the top. */
const folderOf = (module) => module.split('/').slice(0, -1).join('/');
const nameOf = (module) => module.split('/').at(-1);

const library = new Map(modulesIn('conclave').map((module) => [module, codeOf('conclave', module)]));
/** The modules of the library that each of them imports. */
const imported = new Map([...library].map(([module, code]) => [module, importsOf(code).map((path) => posix.join(folderOf(module), path))]));
const folders = [...new Set([...library.keys()].map(folderOf))].filter(Boolean);

/** The modules of a folder that `roots` load, directly or indirectly. */
function loadedBy(name, roots) {
  const loaded = new Set();
  const add = (module) => {
    if (loaded.has(module)) return;
    loaded.add(module);
    for (const path of importsOf(codeOf(name, module))) {
      const other = posix.join(folderOf(module), path);
      if (!other.startsWith('..')) add(other);
    }
  };
  roots.forEach(add);
  return loaded;
}

/** The depth of each of these, itself included, by `below(each)`. Fails for a cycle. */
function floorsOf(all, below) {
  const floors = new Map();
  const floorOf = (each, above) => {
    assert.ok(!above.includes(each), `a cycle: ${[...above, each].join(' → ')}`);
    if (!floors.has(each)) floors.set(each, 1 + Math.max(0, ...below(each).map((other) => floorOf(other, [...above, each]))));
    return floors.get(each);
  };
  for (const each of all) floorOf(each, []);
  return floors;
}

test('a module of the library does not touch the page, and imports only its neighbours, the index of another folder, or a top-level module without imports', () => {
  for (const [module, paths] of imported) {
    const folder = folderOf(module);
    for (const path of paths) {
      assert.ok(library.has(path), `${module} imports ${path}, which is not in the library`);
      const isNeighbour = folderOf(path) === folder && nameOf(path) !== 'index.js';
      const isLeaf = folderOf(path) === '' && imported.get(path).length === 0;
      assert.ok(isNeighbour || isLeaf || nameOf(path) === 'index.js' && folderOf(path) !== folder, `${module} imports ${path}; only the index of another folder is open`);
    }
    assert.doesNotMatch(library.get(module), /\b(document|localStorage|sessionStorage|location)\b|\bwindow\./, module);
  }
});

test('the folders of the library have at most five layers, and neither they nor their modules form a cycle', () => {
  assert.ok(folders.length > 5, folders.join());
  const below = (folder) => [...new Set([...imported].filter(([module]) => folderOf(module) === folder).flatMap(([, paths]) => paths.map(folderOf)))].filter((other) => other && other !== folder);
  const floors = floorsOf(folders, below);
  // The modules at the top are the layer above all folders.
  const top = Math.max(...floors.values()) + 1;
  assert.ok(top <= FLOORS && top > 2, [...floors].map(([folder, floor]) => `${folder} ${floor}`).join(', '));
  floorsOf(library.keys(), (module) => imported.get(module));
  for (const folder of folders) assert.ok(!folder.includes('/'), `${folder} is a folder in a folder`);
});

test('the modules of a folder have at most five layers below its index', () => {
  for (const folder of folders) {
    const modules = [...library.keys()].filter((module) => folderOf(module) === folder && nameOf(module) !== 'index.js');
    const floors = floorsOf(modules, (module) => imported.get(module).filter((path) => folderOf(path) === folder));
    assert.ok(Math.max(...floors.values()) <= FLOORS, [...floors].map(([module, floor]) => `${module} ${floor}`).join(', '));
  }
});

test('no object of the library passes itself to its parts, except `Conclave`, which calls know as `CallConnection`', () => {
  assert.match(readFileSync(new URL('conclave/conclave.js', root), 'utf8'), /@implements \{CallConnection\}/);
  for (const [module, code] of library) if (module !== 'conclave.js') assert.doesNotMatch(code, /\bnew \w+\(this\b(?!\.)|[{,]\s*\w+: this\s*[,}]/, module);
});

test('a page reads the active call as `conclave.current`: `conclave.call` calls people', () => {
  for (const module of modulesIn('page')) assert.doesNotMatch(codeOf('page', module), /\bconclave\??\.call\b(?!\()/, module);
});

test('an index exports only what another folder uses', () => {
  const named = (list) => list.split(',').map((name) => name.trim()).filter(Boolean);
  for (const folder of folders) {
    const index = `${folder}/index.js`;
    const code = library.get(index);
    const exported = [...code.matchAll(/^export \{([^}]*)\} from '[^']+';$/gm)].flatMap(([, list]) => named(list));
    assert.equal(code.replace(/^export \{([^}]*)\} from '[^']+';$/gm, '').trim(), '', `${index} contains code`);
    const used = new Set();
    for (const [module, other] of library) {
      for (const [, list, path] of other.matchAll(/^(?:import|export) \{([^}]*)\} from '([^']+)';$/gm)) {
        if (posix.join(folderOf(module), path) === index) named(list).forEach((name) => used.add(name));
      }
    }
    assert.deepEqual(exported.sort(), [...used].sort(), index);
  }
});

test('the worker loads no more than it needs', () => {
  const loaded = [...loadedBy('conclave', ['sframe-worker.js'])];
  assert.deepEqual(new Set(loaded.map(folderOf)), new Set(['', 'frames', 'wire']));
});

test('the page imports only the library’s index, except for modules that check for a supported browser, guests, devices before a call, and recordings', () => {
  for (const module of modulesIn('page')) {
    for (const path of importsOf(codeOf('page', module))) assert.match(path, /^(\.\/(words\/)?[\w-]+\.js|\.\.\/conclave\/(capture|guests|index|recordings|support)\.js)$/, `${module} imports ${path}`);
  }
});

test('every module is used', () => {
  assert.deepEqual(new Set(modulesIn('conclave')), loadedBy('conclave', ['index.js', 'recordings.js', 'sframe-worker.js']));
  assert.deepEqual(new Set(modulesIn('page')), loadedBy('page', ['app.js']));
});
