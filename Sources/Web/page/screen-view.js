// How a person looks at somebody's shared screen: enlarged, moved and turned, by fingers, a trackpad, a double press, buttons or keys.

const MOST = 8; // times the size at which all of it is seen
const DOUBLE_PRESS = 2.5;
const KEY_STEP = 0.1; // of the box
const SLACK = 6; // CSS pixels that a finger moves in a press
const STEPS = [1, 2, 4];
const arrows = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

const between = (value, least, most) => Math.min(Math.max(value, least), most);

/** The place of a picture in its box. Points are CSS pixels from the middle of the box. */
export class View {
  scale = 1;
  x = 0; // of the picture's middle
  y = 0;
  isTurned = false; // by a quarter to the right
  #box; // its width and height
  #picture; // the size at which all of it is seen in the box

  /** The size of the box, and the picture's width for each pixel of height. */
  fit(width, height, shape = width / height) {
    const seen = this.isTurned ? 1 / shape : shape;
    this.#box = [width, height];
    this.#picture = [Math.min(width, height * seen), Math.min(height, width / seen)];
    this.move(0, 0);
  }

  /** Makes it `factor` times as large. The point that is seen at (`x`, `y`) stays there, as far as the picture still covers the box. */
  zoom(factor, x = 0, y = 0) {
    const scale = between(this.scale * factor, 1, MOST);
    const ratio = scale / this.scale;
    this.scale = scale;
    this.#stand(x - (x - this.x) * ratio, y - (y - this.y) * ratio);
  }

  move(x, y) {
    this.#stand(this.x + x, this.y + y);
  }

  /** The next of a few sizes, and after the largest all of it again. */
  step() {
    this.zoom((STEPS.find((scale) => scale > this.scale) ?? 1) / this.scale);
  }

  turn() {
    this.isTurned = !this.isTurned;
    this.zoom(1 / this.scale);
  }

  /** Where the picture is larger than the box, no edge of it comes inside. Where it is smaller, it stays in the middle. */
  #stand(x, y) {
    const [across, down] = this.#picture.map((length, index) => Math.max(0, this.scale * length - this.#box[index]) / 2);
    this.x = between(x, -across, across) + 0; // not -0
    this.y = between(y, -down, down) + 0;
  }
}

export class ScreenView {
  #node;
  #video;
  #view = new View();
  #changed;
  #fingers = new Map(); // pointer ids to their last points
  #way = 0; // that the fingers have gone since the first was down
  #observer = new ResizeObserver(() => this.#fit());

  /** `node` is the tile of a screen, `video` its picture. `changed()` is called when the person has chosen another size. */
  constructor(node, video, changed) {
    this.#node = node;
    this.#video = video;
    this.#changed = changed;
    node.addEventListener('pointerdown', (event) => this.#down(event));
    node.addEventListener('pointermove', (event) => this.#drag(event));
    for (const name of ['pointerup', 'pointercancel']) node.addEventListener(name, (event) => this.#up(event));
    node.addEventListener('dblclick', (event) => this.#press(event));
    // A trackpad's pinch comes as a wheel with Ctrl.
    node.addEventListener('wheel', (event) => this.#wheel(event), { passive: false });
    video.addEventListener('resize', () => this.#fit());
    this.#observer.observe(node);
  }

  /** How many times as large it is seen. */
  get scale() {
    return this.#view.scale;
  }

  get isTurned() {
    return this.#view.isTurned;
  }

  /** Whether the fingers move the picture, and do not just press. */
  get isDragged() {
    return this.#way > SLACK;
  }

  /** The next size. */
  step() {
    this.#view.step();
    this.#show();
    this.#changed();
  }

  /** Turns it by a quarter, so that a wide screen fills an upright phone, or back. */
  turn() {
    this.#view.turn();
    this.#fit();
    this.#changed();
  }

  /** Moves what is seen by an arrow key. */
  key(event) {
    const by = arrows[event.key];
    if (!by || this.scale === 1) return;
    event.preventDefault();
    const { clientWidth, clientHeight } = this.#node;
    this.#view.move(by[0] * KEY_STEP * clientWidth, by[1] * KEY_STEP * clientHeight);
    this.#show();
  }

  #fit() {
    const { videoWidth, videoHeight } = this.#video;
    this.#view.fit(this.#node.clientWidth, this.#node.clientHeight, videoHeight > 0 ? videoWidth / videoHeight : undefined);
    this.#show();
  }

  #show() {
    const { scale, x, y, isTurned } = this.#view;
    const { clientWidth, clientHeight } = this.#node;
    this.#node.classList.toggle('enlarged', scale > 1);
    this.#node.classList.toggle('turned', isTurned);
    this.#node.style.setProperty('--turned-width', `${clientHeight}px`);
    this.#node.style.setProperty('--turned-height', `${clientWidth}px`);
    this.#video.style.transform = scale === 1 && !isTurned ? '' : `translate(${x}px, ${y}px) scale(${scale})${isTurned ? ' rotate(90deg)' : ''}`;
  }

  #pointOf({ clientX, clientY }) {
    const { left, top, width, height } = this.#node.getBoundingClientRect();
    return { x: clientX - left - width / 2, y: clientY - top - height / 2 };
  }

  #down(event) {
    if (event.target.closest('button') || this.#fingers.size === 2) return;
    if (this.#fingers.size === 0) this.#way = 0;
    this.#fingers.set(event.pointerId, this.#pointOf(event));
    this.#node.setPointerCapture(event.pointerId);
  }

  #drag(event) {
    const before = this.#fingers.get(event.pointerId);
    if (!before) return;
    const now = this.#pointOf(event);
    const other = [...this.#fingers].find(([id]) => id !== event.pointerId)?.[1];
    this.#fingers.set(event.pointerId, now);
    this.#way += Math.hypot(now.x - before.x, now.y - before.y);
    const share = other ? 0.5 : 1; // the middle of two fingers moves half as far as one of them
    this.#view.move((now.x - before.x) * share, (now.y - before.y) * share);
    if (other) {
      const far = (point) => Math.max(1, Math.hypot(point.x - other.x, point.y - other.y));
      this.#view.zoom(far(now) / far(before), (now.x + other.x) / 2, (now.y + other.y) / 2);
    }
    this.#show();
  }

  #up({ pointerId }) {
    if (this.#fingers.delete(pointerId) && this.#fingers.size === 0) this.#changed();
  }

  #press(event) {
    if (event.target.closest('button')) return;
    const { x, y } = this.#pointOf(event);
    this.#view.zoom(this.scale > 1 ? 1 / this.scale : DOUBLE_PRESS, x, y);
    this.#show();
    this.#changed();
  }

  #wheel(event) {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const { x, y } = this.#pointOf(event);
    this.#view.zoom(Math.exp(-event.deltaY / 100), x, y);
    this.#show();
    this.#changed();
  }
}
