// Storage for keys and pins: IndexedDB, which keeps private keys without ever revealing them. Without it, or if a newer page has upgraded it, memory for this
// visit, and the page says so.

const NAME = 'conclave';
// `pins` contains the devices of others by `owner>user/device`, `statements` the contents of their vouches and revocations by `owner>user`, `rings` the calls
// whose ring envelope was used, by `user/device>call`.
const STORES = ['identities', 'pins', 'statements', 'rings'];
const VERSION = 3;
// `links` contains the lasting links that a device made, with their secrets, by `user/device>link`. It is a database of its own: an older page in another tab would
// keep this one from adding it to the first.
const LINKS = { name: 'conclave-links', stores: ['links'], version: 1 };

function settled(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

class DatabaseStore {
  /** Whether what is put here outlives the page. */
  isLasting = true;
  #database;

  constructor(database) {
    this.#database = database;
  }

  get(store, key) {
    return settled(this.#database.transaction(store).objectStore(store).get(key));
  }

  put(store, key, value) {
    return settled(this.#database.transaction(store, 'readwrite').objectStore(store).put(value, key));
  }

  /** Whether there is an entry of `store` whose key begins with `prefix`. */
  async has(store, prefix) {
    const range = IDBKeyRange.bound(prefix, `${prefix}\uffff`);
    return (await settled(this.#database.transaction(store).objectStore(store).count(range))) > 0;
  }

  /** The entries of `store` whose key begins with `prefix`: `[key, value]` each. */
  async entries(store, prefix) {
    const objects = this.#database.transaction(store).objectStore(store);
    const range = IDBKeyRange.bound(prefix, `${prefix}\uffff`);
    const [keys, values] = await Promise.all([settled(objects.getAllKeys(range)), settled(objects.getAll(range))]);
    return keys.map((key, index) => [key, values[index]]);
  }

  async delete(store, key) {
    await settled(this.#database.transaction(store, 'readwrite').objectStore(store).delete(key));
  }

  /** Forgets the entries of `store` whose key begins with `prefix`. */
  deleteAll(store, prefix) {
    return this.delete(store, IDBKeyRange.bound(prefix, `${prefix}\uffff`));
  }

  /** Forgets the entries of `store` whose `lastUsed` is before `time` (ms since 1970). */
  prune(store, time) {
    const cursors = this.#database.transaction(store, 'readwrite').objectStore(store).openCursor();
    cursors.onsuccess = () => {
      const cursor = cursors.result;
      if (!cursor) return;
      if (cursor.value.lastUsed < time) cursor.delete();
      cursor.continue();
    };
  }
}

export class MemoryStore {
  isLasting = false;
  #stores = Object.fromEntries([...STORES, ...LINKS.stores].map((name) => [name, new Map()]));

  async get(store, key) {
    return this.#stores[store].get(key);
  }

  async put(store, key, value) {
    this.#stores[store].set(key, value);
  }

  async has(store, prefix) {
    return [...this.#stores[store].keys()].some((key) => key.startsWith(prefix));
  }

  async entries(store, prefix) {
    return [...this.#stores[store]].filter(([key]) => key.startsWith(prefix));
  }

  async delete(store, key) {
    this.#stores[store].delete(key);
  }

  async deleteAll(store, prefix) {
    for (const [key] of await this.entries(store, prefix)) this.#stores[store].delete(key);
  }

  prune() {}
}

/** The store of lasting links. */
export const openLinkStore = () => openDatabase(LINKS);

export const openStore = () => openDatabase({ name: NAME, stores: STORES, version: VERSION });

async function openDatabase({ name, stores, version }) {
  try {
    const request = indexedDB.open(name, version);
    request.onupgradeneeded = () => {
      const { result } = request;
      for (const store of stores) if (!result.objectStoreNames.contains(store)) result.createObjectStore(store);
    };
    const database = new DatabaseStore(await settled(request));
    // An evicted store would be a silent first use of everybody's keys. The browser may refuse.
    globalThis.navigator?.storage?.persist?.().catch(() => {});
    return database;
  } catch {
    return new MemoryStore();
  }
}
