// Where the tiles of a call are, on stages of many sizes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadPage } from './web.mjs';

const { layout, pageOf, pageSize } = await loadPage('layout.js');

const WIDE = 16 / 9;
const UPRIGHT = 9 / 16;
/** The stages of a desktop, a phone both ways up, a tablet, a page at 200 %, a small window, a wide screen, and those that hardly have room. */
const STAGES = [[1256, 640], [366, 690], [820, 292], [796, 1010], [616, 280], [476, 360], [2536, 1220], [330, 150], [150, 330], [90, 90]];
const COUNTS = [1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 24, 25, 40, 99, 300];
const CORNERS = ['top end', 'bottom end', 'bottom start', 'top start'];

/** All kinds of stages, each with a description of it. */
function* stages() {
  for (const [width, height] of STAGES) {
    for (const people of COUNTS) {
      for (const shape of [WIDE, 4 / 3, UPRIGHT]) {
        for (const large of [[], [WIDE], [UPRIGHT], [WIDE, 4 / 3]]) {
          for (const corner of large.length > 0 ? [undefined] : [undefined, ...CORNERS]) {
            const contents = { width, height, people, shape, large, own: corner && { shape, corner } };
            yield [contents, `${people} of ${shape.toFixed(2)} on ${width}×${height}, ${large.length} large, own ${corner ?? 'none'}`];
          }
        }
      }
    }
  }
}

/** The rectangles of its first page. */
function drawn(contents) {
  const size = pageSize(contents);
  const people = Math.min(size, contents.people);
  const places = layout({ ...contents, people });
  assert.equal(places.people.length, people);
  return { ...places, size, all: [...places.large, ...places.people, ...(places.own ? [places.own] : [])] };
}

const overlap = (one, other) => one.x < other.x + other.width && other.x < one.x + one.width && one.y < other.y + other.height && other.y < one.y + one.height;

/** Where one's own floating picture is, 12 pixels from the edges. */
function floating({ width, height, own: { shape, corner } }, ownWidth) {
  const tall = ownWidth / shape;
  return { x: corner.endsWith('end') ? width - 12 - ownWidth : 12, y: corner.startsWith('top') ? 12 : height - 12 - tall, width: ownWidth, height: tall };
}

/** The middle of a tile, where a face is. */
const faceOf = ({ x, y, width, height }) => ({ x: x + width / 3, y: y + height / 6, width: width / 3, height: height / 2 });

test('tiles never overlap and never leave the stage', () => {
  for (const [contents, name] of stages()) {
    const { all } = drawn(contents);
    for (const [index, { x, y, width, height }] of all.entries()) {
      assert.ok(x >= 0 && y >= 0 && width >= 0 && height >= 0 && x + width <= contents.width && y + height <= contents.height, `${name}: ${x}, ${y}, ${width}×${height}`);
      for (const other of all.slice(0, index)) assert.ok(!overlap(all[index], other), name);
    }
  }
});

test('all people are on some page, at most 25 on one, and on each about as many', () => {
  for (const [contents, name] of stages()) {
    const people = Array.from({ length: contents.people }, (_, index) => index);
    const size = pageSize(contents);
    assert.ok(size >= 1 && size <= 25, name);
    const { pages } = pageOf(people, size, 0);
    const shown = Array.from({ length: pages }, (_, number) => pageOf(people, size, number).items);
    assert.deepEqual(shown.flat(), people, name);
    assert.ok(size - shown.at(-1).length < pages, `${name}: ${shown.map(({ length }) => length)}`);
  }
});

test('where there is more than one person on a page, a face and a name can be made out', () => {
  for (const [contents, name] of stages()) {
    const { people, size } = drawn(contents);
    if (size === 1) continue;
    const [width, area] = contents.large.length > 0 ? [76, 5_600] : [100, 12_600];
    for (const tile of people) assert.ok(tile.width >= width && tile.width * tile.height >= area, `${name}: ${tile.width}×${tile.height}`);
  }
});

test('a tile shows enough of its picture', () => {
  for (const [contents, name] of stages()) {
    const { width, height, shape } = contents;
    const least = height > width ? 0.42 : shape < 1 ? 0.55 : 0.74;
    for (const tile of drawn(contents).people) {
      if (tile.height < 40) continue; // whole pixels
      const seen = tile.width / tile.height / shape;
      assert.ok(Math.min(seen, 1 / seen) >= least - 0.02, `${name}: ${tile.width}×${tile.height}`);
    }
  }
});

test('25 people are on one page of a desktop, and readable; a phone has two pages', () => {
  const desktop = { width: 1256, height: 640, people: 24, own: { shape: WIDE, corner: 'top end' } };
  assert.equal(pageSize(desktop), 24);
  const { people, own } = layout(desktop);
  assert.ok(people[0].width >= 200 && people[0].height >= 110, `${people[0].width}×${people[0].height}`);
  assert.deepEqual([own?.width, own?.height], [people[0].width, people[0].height], 'one’s own picture is one of the tiles');
  assert.equal(pageSize({ ...desktop, width: 366, height: 690 }), 12);
  assert.equal(pageSize({ ...desktop, people: 60 }), 20, 'three pages of 20, and not two of 25 and one of 10');
});

test('tiles use the room that there is', () => {
  for (const [people, width, height, least] of [[2, 1256, 640, 0.7], [2, 366, 690, 0.95], [4, 366, 690, 0.6], [6, 1256, 640, 0.95], [9, 1256, 640, 0.8], [8, 366, 690, 0.9], [3, 820, 292, 0.65], [24, 1256, 640, 0.9]]) {
    const tiles = layout({ width, height, people }).people;
    const area = tiles.reduce((sum, tile) => sum + (tile.width + 12) * (tile.height + 12), 0);
    assert.ok(area / (width + 12) / (height + 12) >= least, `${people} on ${width}×${height}: ${(area / (width + 12) / (height + 12)).toFixed(2)}`);
  }
});

test('the only other person has all of the stage, and one’s own picture is beside the face', () => {
  for (const [width, height] of STAGES.slice(0, 7)) {
    const own = { shape: width > height ? WIDE : UPRIGHT, corner: 'top end' };
    const { people, ownWidth } = layout({ width, height, people: 1, isFilled: true, shape: WIDE, own });
    assert.deepEqual(people, [{ x: 0, y: 0, width, height }]);
    assert.ok(ownWidth >= 84 && ownWidth <= 240 && ownWidth < width / 2, `${ownWidth} of ${width}`);
  }
  const [upright] = layout({ width: 1280, height: 800, people: 1, isFilled: true, shape: UPRIGHT }).people;
  assert.ok(upright.height === 800 && upright.width < 910 && Math.abs(upright.x * 2 + upright.width - 1280) <= 1, 'an upright picture is not cut to the nose');
});

test('while the only other person is rung, one’s own picture fills the stage', () => {
  const { people, own } = layout({ width: 390, height: 844, people: 1, isFilled: true, isAwaited: true, own: { shape: UPRIGHT, corner: 'top end' } });
  assert.deepEqual([people[0], own], [{ x: 0, y: 0, width: 390, height: 844 }, { x: 0, y: 0, width: 390, height: 844 }]);
  assert.equal(layout({ width: 390, height: 844, people: 1, isFilled: true, isAwaited: true }).own, undefined, 'if it has one');
});

test('one’s own picture floats in a corner where it hides no face, else it is a tile like the others', () => {
  let [floats, stands] = [0, 0];
  for (const [contents, name] of stages()) {
    if (!contents.own) continue;
    const { people, own, ownWidth } = drawn(contents);
    if (own) {
      stands += 1;
      assert.equal(ownWidth, 0);
      continue;
    }
    floats += 1;
    assert.ok(ownWidth >= 84, name);
    const small = floating(contents, ownWidth);
    for (const tile of people) assert.ok(!overlap(faceOf(tile), small), name);
  }
  assert.ok(floats > 100 && stands > 100, `${floats}, ${stands}`);
});

test('a shared screen has most of the stage, with people at its side or below it, and on a phone more than one row of them', () => {
  const seen = ({ width, height }, shape) => Math.min(width, height * shape) ** 2 / shape;
  for (const [width, height] of STAGES.slice(0, 7)) {
    for (const people of [1, 3, 9, 24]) {
      const { large, people: tiles } = drawn({ width, height, people, large: [WIDE] });
      const all = seen({ width, height }, WIDE);
      assert.ok(seen(large[0], WIDE) >= 0.5 * all, `${people} on ${width}×${height}: ${seen(large[0], WIDE) / all}`);
      assert.ok(tiles.length > 0);
    }
  }
  const phone = { width: 366, height: 690, people: 24, large: [WIDE] };
  assert.equal(drawn(phone).large[0].width, 366, 'the whole width');
  assert.ok(pageSize(phone) >= 8, `${pageSize(phone)} people beside the screen`);
  const turned = drawn({ ...phone, large: [UPRIGHT] });
  assert.ok(turned.large[0].height >= 0.75 * phone.height, 'turned, it has most of the height');
});

test('the last page remains when later ones are gone', () => {
  const people = Array.from({ length: 23 }, (_, index) => index);
  assert.equal(pageOf(people, 10, 9).number, 2);
  assert.deepEqual(pageOf([], 10, 0), { items: [], number: 0, pages: 1 });
});

test('a stage without room, or without people, has no tiles that could be seen', () => {
  assert.deepEqual(layout({ width: 0, height: 0, people: 2 }).people.map(({ width, height }) => [width, height]), [[0, 0], [0, 0]]);
  assert.deepEqual(layout({ width: 800, height: 600, people: 0 }).people, []);
  assert.equal(pageSize({ width: 0, height: 0, people: 0 }), 1);
});
