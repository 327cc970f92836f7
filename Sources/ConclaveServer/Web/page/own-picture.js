// The position of one's own small picture on the other's large one: in a corner, or where it was dragged to; or it is hidden.

const CORNERS = ['bottom end', 'bottom start', 'top start', 'top end']; // start and end of a line of text
const EDGE = 12; // CSS pixels
const STEP = 24;
const keys = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] };

const between = (value, least, most) => Math.min(Math.max(value, least), Math.max(least, most));

export class OwnPicture {
  isHidden = false;
  #root;
  #node;
  #corner = 0;
  #place; // {x, y} of its upper left corner in the stage, once it was dragged
  #grip;

  /** `root` is the stage. */
  constructor(root) {
    this.#root = root;
  }

  /** `node` is the tile, or undefined. */
  attach(node) {
    if (node === this.#node) return;
    this.#node = node;
    if (!node) return;
    node.addEventListener('pointerdown', (event) => this.#grab(event));
    node.addEventListener('pointermove', (event) => this.#drag(event));
    for (const name of ['pointerup', 'pointercancel']) node.addEventListener(name, () => (this.#grip = undefined));
    node.addEventListener('keydown', (event) => this.#key(event));
  }

  /** Moves it to the next corner: the same as dragging, with one press (WCAG 2.2, 2.5.7). */
  move() {
    this.#place = undefined;
    this.#corner = (this.#corner + 1) % CORNERS.length;
    this.arrange();
  }

  /** Puts it in its place, and keeps it within the stage. */
  arrange() {
    if (!this.#node) return;
    const [least, mostX, mostY] = this.#bounds();
    const [row, column] = CORNERS[this.#corner].split(' ');
    const isRightToLeft = document.documentElement.dir === 'rtl';
    const corner = { x: (column === 'start') === isRightToLeft ? mostX : least, y: row === 'top' ? least : mostY };
    const { x, y } = this.#place ?? corner;
    this.#node.style.setProperty('--x', `${between(x, least, mostX)}px`);
    this.#node.style.setProperty('--y', `${between(y, least, mostY)}px`);
  }

  #bounds() {
    const { clientWidth, clientHeight } = this.#root;
    return [EDGE, clientWidth - this.#node.offsetWidth - EDGE, clientHeight - this.#node.offsetHeight - EDGE];
  }

  get #isFloating() {
    return this.#root.dataset.mode === 'pair';
  }

  #grab(event) {
    if (!this.#isFloating || event.target.closest('button')) return;
    this.#grip = { x: event.clientX - this.#node.offsetLeft, y: event.clientY - this.#node.offsetTop };
    this.#node.setPointerCapture(event.pointerId);
  }

  #drag(event) {
    if (this.#grip) this.#moveTo(event.clientX - this.#grip.x, event.clientY - this.#grip.y);
  }

  #key(event) {
    const by = keys[event.key];
    if (!by || !this.#isFloating) return;
    event.preventDefault();
    this.#moveTo(this.#node.offsetLeft + by[0], this.#node.offsetTop + by[1]);
  }

  #moveTo(x, y) {
    const [least, mostX, mostY] = this.#bounds();
    this.#place = { x: between(x, least, mostX), y: between(y, least, mostY) };
    this.arrange();
  }
}
