// As much of a document as the page's dialogs need: elements with children, attributes and listeners, but no layout.

class Element {
  children = [];
  dataset = {};
  listeners = {};
  style = { setProperty() {} };
  classList = { add() {}, remove() {}, toggle() {}, contains: () => false };
  hidden = false;

  constructor(tag) {
    this.tag = tag;
  }

  append(...children) {
    this.children.push(...children);
  }

  replaceChildren(...children) {
    this.children = children;
  }

  remove() {}

  before() {}

  after() {}

  setAttribute(name, value) {
    this[name] = value;
  }

  addEventListener(name, listener) {
    this.listeners[name] = listener;
  }

  click() {
    return this.disabled ? undefined : this.listeners.click();
  }

  contains(other) {
    return this === other || this.children.some((child) => child.contains?.(other));
  }

  focus() {
    document.activeElement = this;
  }

  showModal() {
    this.open = true;
  }

  close() {
    this.open = false;
  }

  /** All elements below this one with a tag or a class. */
  querySelectorAll(selector) {
    const fits = ({ tag, className }) => (selector.startsWith('.') ? (className ?? '').split(' ').includes(selector.slice(1)) : tag === selector);
    return this.children.flatMap((child) => [...(fits(child) ? [child] : []), ...(child.querySelectorAll?.(selector) ?? [])]);
  }

  querySelector(selector) {
    return this.querySelectorAll(selector)[0];
  }

  get outerHTML() {
    const { tag, className, ariaLabel, textContent, dataset, children } = this;
    return JSON.stringify([tag, className, ariaLabel, textContent, dataset, children.map((child) => child.outerHTML ?? child)]);
  }
}

/** Installs a document; an element that is asked for by its id always exists. */
export function page() {
  const byID = new Map();
  globalThis.addEventListener ??= () => {};
  globalThis.document = {
    body: new Element('body'),
    documentElement: new Element('html'),
    addEventListener() {},
    createElement: (tag) => new Element(tag),
    createElementNS: (_, tag) => new Element(tag),
    querySelectorAll: () => [],
    getElementById: (id) => byID.get(id) ?? byID.set(id, new Element('div')).get(id),
  };
  return (id) => document.getElementById(id);
}
