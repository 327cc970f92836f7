// One's own small picture above the others: in a corner, to which it snaps when it was dragged; or it is hidden.

const CORNERS = ['top end', 'bottom end', 'bottom start', 'top start']; // start and end of a line of text
const EDGE = 12; // CSS pixels, as in style.css
const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const between = (value, least, most) => Math.min(Math.max(value, least), Math.max(least, most));

export class OwnPicture {
  isHidden = false;
  #root;
  #node;
  #corner = CORNERS[0];
  #grip; // {x, y} of the pointer in the picture
  #floating = new AbortController(); // ends what listens to the tile

  #moved;

  /** `root` is the stage; `moved()` is called when the picture has gone to another corner. */
  constructor(root, moved) {
    this.#root = root;
    this.#moved = moved;
  }

  /** Where it floats: top or bottom, and start or end of a line of text. */
  get corner() {
    return this.#corner;
  }

  /** `node` is the tile that floats, or undefined. */
  attach(node) {
    if (node === this.#node) return;
    this.#drop();
    this.#node?.classList.remove('floating');
    this.#floating.abort();
    this.#node = node;
    if (!node) return;
    node.classList.add('floating');
    node.dataset.corner = this.#corner;
    this.#floating = new AbortController();
    const { signal } = this.#floating;
    node.addEventListener('pointerdown', (event) => this.#grab(event), { signal });
    node.addEventListener('pointermove', (event) => this.#drag(event), { signal });
    for (const name of ['pointerup', 'pointercancel']) node.addEventListener(name, () => this.#release(), { signal });
    node.addEventListener('keydown', (event) => this.#key(event), { signal });
  }

  /** Moves it to the next corner: the same as dragging, with one press (WCAG 2.2, 2.5.7). */
  move() {
    this.#stand(CORNERS[(CORNERS.indexOf(this.#corner) + 1) % CORNERS.length]);
  }

  #stand(corner) {
    this.#corner = corner;
    this.#node.dataset.corner = corner;
    this.#moved();
  }

  #grab(event) {
    if (event.target.closest('button')) return;
    const { left, top } = this.#node.getBoundingClientRect();
    this.#grip = { x: event.clientX - left, y: event.clientY - top };
    this.#node.setPointerCapture(event.pointerId);
    this.#node.classList.add('dragged');
  }

  #drag(event) {
    if (!this.#grip) return;
    const { left, top, width, height } = this.#root.getBoundingClientRect();
    const { offsetWidth, offsetHeight, offsetLeft, offsetTop, style } = this.#node;
    const x = between(event.clientX - this.#grip.x - left, EDGE, width - offsetWidth - EDGE);
    const y = between(event.clientY - this.#grip.y - top, EDGE, height - offsetHeight - EDGE);
    style.translate = `${x - offsetLeft}px ${y - offsetTop}px`;
  }

  /** Where it lies in the middle it would hide a face: it goes to the nearest corner. */
  #release() {
    if (!this.#grip) return;
    const stage = this.#root.getBoundingClientRect();
    const own = this.#node.getBoundingClientRect();
    const isRight = own.left + own.right > stage.left + stage.right;
    const isLow = own.top + own.bottom > stage.top + stage.bottom;
    this.#drop();
    this.#stand(cornerOf(isRight, isLow));
  }

  /** Ends a drag, which may be under way when the picture stops floating. */
  #drop() {
    if (!this.#grip) return;
    this.#grip = undefined;
    this.#node.classList.remove('dragged');
    this.#node.style.translate = '';
  }

  #key(event) {
    const by = arrows[event.key];
    if (!by) return;
    event.preventDefault();
    const [row, column] = this.#corner.split(' ');
    const isRight = by[0] ? by[0] > 0 : (column === 'end') !== isRightToLeft();
    this.#stand(cornerOf(isRight, by[1] ? by[1] > 0 : row === 'bottom'));
  }
}

const isRightToLeft = () => document.documentElement.dir === 'rtl';

function cornerOf(isRight, isLow) {
  return `${isLow ? 'bottom' : 'top'} ${isRight !== isRightToLeft() ? 'end' : 'start'}`;
}
