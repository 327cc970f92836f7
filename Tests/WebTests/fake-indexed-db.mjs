// IndexedDB as far as the store of recordings uses it: transactions are whole or nothing, and nothing is seen of them before they are committed.

const settle = (request, action) =>
  setImmediate(() => {
    try {
      request.result = action();
      request.onsuccess?.();
    } catch (error) {
      request.error = error;
      request.onerror?.();
    }
  });
const nameOf = (key) => JSON.stringify(key);

class FakeTransaction {
  #rows;
  #writes = [];
  #fault;

  constructor(rows, names, { durability }, fault) {
    this.#rows = rows;
    this.names = [names].flat();
    this.durability = durability;
    this.#fault = fault;
    // After the callbacks of the requests that were made together.
    setImmediate(() => setImmediate(() => this.#end()));
  }

  objectStore(name) {
    if (!this.names.includes(name)) throw new Error(`NotFoundError: ${name}`);
    const rows = () => this.#rows.get(name);
    const read = (action) => {
      const request = {};
      settle(request, action);
      return request;
    };
    const write = (action) => {
      this.#writes.push(action);
      return read(() => undefined);
    };
    return {
      get: (key) => read(() => structuredClone(rows().get(nameOf(key))?.value)),
      getAllKeys: () => read(() => [...rows().values()].map(({ key }) => structuredClone(key))),
      getAll: () => read(() => [...rows().values()].map(({ value }) => structuredClone(value))),
      put: (value, key) => write(() => rows().set(nameOf(key), { key, value: structuredClone(value) })),
      delete: (key) => write(() => [...rows()].forEach(([name, row]) => (key.holds ? key.holds(row.key) : nameOf(key) === name) && rows().delete(name))),
    };
  }

  #end() {
    this.error = this.#writes.length > 0 ? this.#fault() : undefined;
    if (this.error) return this.onabort?.();
    this.#writes.forEach((action) => action());
    return this.oncomplete?.();
  }
}

/** The browser's databases: `disk` outlives a page, `fault()` is the error of the next transaction, if any. */
export function fakeIndexedDB({ disk = new Map(), fault = () => undefined } = {}) {
  const transactions = [];
  const isBetween = (least, key, most) => key[0] === least[0] && key[1] >= least[1] && key[1] <= most[1];
  globalThis.IDBKeyRange = /** @type {any} */ ({ bound: (least, most) => ({ holds: (key) => isBetween(least, key, most) }) });
  globalThis.indexedDB = /** @type {any} */ ({
    open(name, version) {
      const isNew = !disk.has(name);
      if (isNew) disk.set(name, { version: 0, rows: new Map() });
      const { rows } = disk.get(name);
      const database = {
        objectStoreNames: { contains: (store) => rows.has(store) },
        createObjectStore: (store) => rows.set(store, new Map()),
        transaction: (names, _mode, options = {}) => {
          const transaction = new FakeTransaction(rows, names, options, fault);
          transactions.push(transaction);
          return transaction;
        },
      };
      const request = { result: database };
      setImmediate(() => {
        if (disk.get(name).version < version) request.onupgradeneeded?.();
        disk.get(name).version = version;
        request.onsuccess?.();
      });
      return request;
    },
  });
  return { disk, transactions };
}
