// How many tiles of 16:9 a box shows at once, and how large they are. Only numbers, in CSS pixels.

export const GAP = 12; // as in style.css
const SHAPE = 16 / 9;
export const LEAST_WIDTH = 150; // below it a face can no longer be seen
const MOST = 25; // slots for video (protocol section 6)

/** The size of `count` tiles in a box: the number of columns that makes them largest. */
export function layout(count, width, height) {
  let best = { width: 0, height: 0 };
  for (let columns = 1; columns <= count; columns += 1) {
    const rows = Math.ceil(count / columns);
    const across = (width - GAP * (columns - 1)) / columns;
    const down = (height - GAP * (rows - 1)) / rows;
    const tile = Math.floor(Math.max(0, Math.min(across, down * SHAPE)));
    if (tile > best.width) best = { width: tile, height: Math.floor(tile / SHAPE) };
  }
  return best;
}

/** How many tiles fit on a page, with a width that shows a face; at least one. */
export function pageSize(width, height) {
  const columns = Math.floor((width + GAP) / (LEAST_WIDTH + GAP));
  const rows = Math.floor((height + GAP) / (LEAST_WIDTH / SHAPE + GAP));
  return Math.min(MOST, Math.max(1, columns) * Math.max(1, rows));
}

/** The items of page `number` (from 0) of pages of `size`, with the actual page number, and how many pages there are. */
export function pageOf(items, size, number) {
  const pages = Math.max(1, Math.ceil(items.length / size));
  const at = Math.min(Math.max(0, number), pages - 1);
  return { items: items.slice(at * size, (at + 1) * size), number: at, pages };
}
