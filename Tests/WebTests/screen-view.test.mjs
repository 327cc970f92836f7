// A shared screen can be enlarged and moved, and always covers its box.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { View } from '../../Sources/Web/page/screen-view.js';

const [WIDTH, HEIGHT] = [400, 300];

function view() {
  const made = new View();
  made.fit(WIDTH, HEIGHT);
  return made;
}

/** The point of the picture, at its first size, that is seen at (x, y). */
const seenAt = (made, x, y) => [(x - made.x) / made.scale, (y - made.y) / made.scale];

test('the point between two fingers stays between them', () => {
  const made = view();
  made.zoom(2, 50, -20);
  assert.equal(made.scale, 2);
  const before = seenAt(made, 30, 40);
  made.zoom(1.5, 30, 40);
  assert.deepEqual(seenAt(made, 30, 40).map(Math.round), before.map(Math.round));
});

test('no edge enters the box, however the picture is moved', () => {
  const made = view();
  made.move(1_000, 1_000);
  assert.deepEqual([made.x, made.y], [0, 0], 'at its first size it does not move');
  made.zoom(3);
  made.move(10_000, -10_000);
  assert.deepEqual([made.x, made.y], [WIDTH, -HEIGHT]);
  made.zoom(0.5, WIDTH / 2, HEIGHT / 2);
  assert.ok(Math.abs(made.x) <= (0.5 * WIDTH) / 2 && Math.abs(made.y) <= (0.5 * HEIGHT) / 2);
});

test('a wide picture in a tall box leaves as little of the box empty as possible', () => {
  const made = new View();
  made.fit(300, 600, 2); // seen as 300 by 150
  made.zoom(2);
  made.move(1_000, 1_000);
  assert.deepEqual([made.x, made.y], [150, 0], 'its height does not fill the box yet');
  made.zoom(3);
  made.move(0, 1_000);
  assert.equal(made.y, 150);
  made.turn();
  made.fit(300, 600, 2); // now it fills the box
  made.zoom(2);
  made.move(1_000, 1_000);
  assert.deepEqual([made.x, made.y], [150, 300]);
});

test('it is never smaller than its box, nor more than eight times larger', () => {
  const made = view();
  made.zoom(0.01);
  assert.equal(made.scale, 1);
  made.zoom(1e9);
  assert.equal(made.scale, 8);
});

test('a smaller box moves it back inside', () => {
  const made = view();
  made.zoom(2);
  made.move(WIDTH, HEIGHT);
  made.fit(100, 100);
  assert.deepEqual([made.x, made.y], [50, 50]);
});

test('presses cycle through a few sizes and back to the whole picture', () => {
  const made = view();
  const sizes = [1, 2, 3, 4].map(() => {
    made.step();
    return made.scale;
  });
  assert.deepEqual(sizes, [2, 4, 1, 2]);
  made.zoom(8 / made.scale);
  made.step();
  assert.equal(made.scale, 1);
});

test('rotating shows the whole picture', () => {
  const made = view();
  made.zoom(4, 100, 100);
  made.turn();
  assert.deepEqual([made.isTurned, made.scale, made.x, made.y], [true, 1, 0, 0]);
  made.turn();
  assert.equal(made.isTurned, false);
});
