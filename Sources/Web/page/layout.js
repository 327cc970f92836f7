// Where the tiles of a call are: rectangles in a box, in CSS pixels from its top and from the side at which text begins. Only numbers.

export const GAP = 12;
const MOST = 25; // people on a page: slots for video (protocol section 6)
const WIDE = 16 / 9;
const UPRIGHT = 3 / 4;
const EDGE = 12; // between one's own floating picture and the edge, as in style.css
/** The part of a picture that is at least seen in its tile. Pictures that lie across the stage, such as a laptop's on a phone, would be strips otherwise. */
const KEPT = 0.75;
const KEPT_ACROSS = { onUpright: 0.42, onWide: 0.56 };
const KEPT_ALONE = 0.5; // of an upright picture that has a wide stage for itself
/** Below it neither a face nor a name can be made out: beside something large, people may be smaller. */
const LEAST = { width: 100, area: 12_600 };
const LEAST_BESIDE = { width: 76, area: 5_600 };
/** Where a face is in a tile, as parts of it: from left to right, and from top to bottom. */
const FACE = { from: 0.28, to: 0.72, top: 0.1, bottom: 0.85 };

const between = (value, least, most) => Math.min(Math.max(value, least), Math.max(least, most));

/**
 * @typedef {{ x: number, y: number, width: number, height: number }} Rect
 * @typedef {object} Contents
 * @property {number} width
 * @property {number} height
 * @property {number} people how many tiles are not large
 * @property {boolean} [isFilled] the only other person has the stage
 * @property {boolean} [isAwaited] that person is rung: until it answers, one's own picture is behind it
 * @property {number} [shape] the usual one of the people's pictures: width by height
 * @property {number[]} [large] the shapes of what is large: shared screens, a pinned person
 * @property {{ shape: number, corner: string }} [own] one's own picture, if it is none of the people: it floats in this corner, unless it would hide a face
 */

/**
 * The rectangles of `people`, and of what is `large`. `own` is the rectangle of one's own picture where it does not float; `ownWidth` is its width where it does.
 * @param {Contents} contents
 * @returns {{ people: Rect[], large: Rect[], own: Rect | undefined, ownWidth: number }}
 */
export function layout({ width, height, people, isFilled = false, isAwaited = false, shape = WIDE, large = [], own }) {
  const box = { x: 0, y: 0, width, height };
  if (large.length > 0) {
    const places = placesFor(box, people, large);
    return { people: grid(people, places.people, limits(box, shape)), large: filling(places.large, large), own: undefined, ownWidth: 0 };
  }
  if (isAwaited && own) return { people: [box], large: [], own: box, ownWidth: 0 };
  if (isFilled) return { people: [alone(box, shape)], large: [], own: undefined, ownWidth: own ? ownWidth(own.shape, width) : 0 };
  const rects = grid(people, box, limits(box, shape));
  if (!own) return { people: rects, large: [], own: undefined, ownWidth: 0 };
  const floating = ownWidth(own.shape, rects[0]?.width ?? width);
  if (!rects.some((rect) => overlap(faceIn(rect), corner(own, floating, box)))) return { people: rects, large: [], own: undefined, ownWidth: floating };
  const all = grid(people + 1, box, limits(box, shape));
  return { people: all.slice(0, people), large: [], own: all[people], ownWidth: 0 };
}

/**
 * How many of the people are on a page: as many as can be made out, and on each of the pages about as many.
 * @param {Contents} contents
 */
export function pageSize({ width, height, people, shape = WIDE, large = [], own }) {
  const box = { x: 0, y: 0, width, height };
  const room = large.length > 0 ? placesFor(box, people, large).people : box;
  const least = large.length > 0 ? LEAST_BESIDE : LEAST;
  let size = between(people, 1, MOST);
  while (size > 1 && !isEnough(grid(size + Number(Boolean(own)), room, limits(box, shape))[0], least)) size -= 1;
  return Math.ceil(people / Math.ceil(people / size)) || 1;
}

const isEnough = ({ width, height }, least) => width >= least.width && width * height >= least.area;

/** The items of page `number` (from 0) of pages of `size`, with the actual page number, and how many pages there are. */
export function pageOf(items, size, number) {
  const pages = Math.max(1, Math.ceil(items.length / size));
  const at = Math.min(Math.max(0, number), pages - 1);
  return { items: items.slice(at * size, (at + 1) * size), number: at, pages };
}

/** The narrowest and the widest shape of a tile, which show enough of a picture of `shape`. */
function limits({ width, height }, shape) {
  const isUpright = height > width;
  const kept = isUpright ? KEPT_ACROSS.onUpright : shape < 1 ? KEPT_ACROSS.onWide : KEPT;
  return [between(shape * kept, UPRIGHT, WIDE), between(shape / kept, UPRIGHT, WIDE)];
}

/** The number of columns with which `count` tiles are largest, and their size. */
function columns(count, { width, height }, [narrowest, widest]) {
  let best = { columns: 1, width: 0, height: 0 };
  for (let number = 1; number <= count; number += 1) {
    const rows = Math.ceil(count / number);
    const across = (width - GAP * (number - 1)) / number;
    const down = (height - GAP * (rows - 1)) / rows;
    const tile = Math.floor(Math.max(0, Math.min(across, down * widest)));
    const made = { columns: number, width: tile, height: Math.floor(Math.max(0, Math.min(down, tile / narrowest))) };
    if (made.width * made.height > best.width * best.height) best = made;
  }
  return best;
}

/** `count` tiles of one size in the middle of `box`, row by row. */
function grid(count, box, shapes) {
  const { columns: across, width, height } = columns(count, box, shapes);
  const down = Math.ceil(count / across);
  const top = Math.floor(box.y + Math.max(0, box.height - down * (height + GAP) + GAP) / 2);
  return Array.from({ length: count }, (_, index) => {
    const row = Math.floor(index / across);
    const inRow = Math.min(across, count - row * across);
    const left = Math.floor(box.x + Math.max(0, box.width - inRow * (width + GAP) + GAP) / 2);
    return { x: left + (index % across) * (width + GAP), y: top + row * (height + GAP), width, height };
  });
}

/** Each large tile has all of its part of the box: nothing of a screen is cut off. */
function filling(box, shapes) {
  const { columns: across } = columns(shapes.length, box, [shapes[0], shapes[0]]);
  const down = Math.ceil(shapes.length / across);
  const width = Math.floor(Math.max(0, box.width - GAP * (across - 1)) / across);
  const height = Math.floor(Math.max(0, box.height - GAP * (down - 1)) / down);
  return shapes.map((_, index) => ({ x: box.x + (index % across) * (width + GAP), y: box.y + Math.floor(index / across) * (height + GAP), width, height }));
}

/** The boxes of what is large, and of the people: at its side or below it, where it is larger. The people have the room that it leaves, and always some. */
function placesFor(box, people, shapes) {
  const { width, height } = box;
  const shape = shapes[0];
  if (people === 0) return { large: box, people: { ...box, width: 0 } };
  const side = Math.floor(between(width - GAP - height * shape, between(width / 5, LEAST_BESIDE.width, 240), width * 0.4));
  const below = Math.floor(between(height - GAP - width / shape, between(height / 5, 84, 160), height * 0.45));
  const beside = { ...box, width: Math.max(0, width - side - GAP) };
  const above = { ...box, height: Math.max(0, height - below - GAP) };
  const seen = (room) => Math.min(room.width, room.height * shape);
  if (seen(beside) >= seen(above)) return { large: beside, people: { ...box, x: beside.width + GAP, width: side } };
  return { large: above, people: { ...box, y: above.height + GAP, height: below } };
}

/** The only other person has all of the stage, except where a face would be seen from too near. */
function alone(box, shape) {
  const width = Math.floor(shape < 1 ? Math.min(box.width, (box.height * shape) / KEPT_ALONE) : box.width);
  return { ...box, x: Math.floor((box.width - width) / 2), width };
}

/** The width of one's own floating picture, above a tile of `width`: beside the face in the middle of that. */
const ownWidth = (shape, width) => Math.floor(shape < 1 ? between(width * 0.24, 84, 150) : between(width * 0.24, 88, 240));

function corner({ shape, corner: name }, width, box) {
  const height = width / shape;
  const x = name.endsWith('end') ? box.width - EDGE - width : EDGE;
  return { x, y: name.startsWith('top') ? EDGE : box.height - EDGE - height, width, height };
}

const faceIn = ({ x, y, width, height }) => ({ x: x + width * FACE.from, y: y + height * FACE.top, width: width * (FACE.to - FACE.from), height: height * (FACE.bottom - FACE.top) });

const overlap = (one, other) => one.x < other.x + other.width && other.x < one.x + one.width && one.y < other.y + other.height && other.y < one.y + one.height;
