// Storage for recordings that this browser makes: IndexedDB, so that they outlive the page, and a device without a network. Without it memory for this visit: a
// recording goes on, and the page says that it is lost with the tab. A tab owns its device (`page/session.js`), so nobody else writes these rows.

const NAME = 'conclave-recordings';
/**
 * `recordings`: by id, what stays as it was begun. `chains`: by id, `{n, key, head, end}`, the next chain key, which replaces the one before. `uploads`: by id, how
 * far the server has it. `segments`: by `[id, n]`, `{file, hash, witness}`, without its file once the server has shown that it has it. `seen`: by id, how far each reel
 * was when it was opened here, for recordings of others, too. `told`: by id, what the readers were told, and the notes that the server has not taken.
 */
const STORES = ['recordings', 'chains', 'uploads', 'segments', 'seen', 'told'];
const VERSION = 2;

function settled(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

class DatabaseStore {
  isLasting = true;
  #database;

  constructor(database) {
    this.#database = database;
  }

  get(store, key) {
    return settled(this.#database.transaction(store).objectStore(store).get(key));
  }

  /** All rows of `store`. */
  all(store) {
    return settled(this.#database.transaction(store).objectStore(store).getAll());
  }

  /** The keys of all rows of `store`. */
  keys(store) {
    return settled(this.#database.transaction(store).objectStore(store).getAllKeys());
  }

  /**
   * Puts `rows`, `[store, key, value]` each, all of them or none. Resolves when they are on the disk; rejects with `QuotaExceededError` if there is no room.
   */
  put(...rows) {
    const transaction = this.#database.transaction([...new Set(rows.map(([store]) => store))], 'readwrite', { durability: 'strict' });
    for (const [store, key, value] of rows) transaction.objectStore(store).put(value, key);
    return committed(transaction);
  }

  /** Forgets everything of a recording. */
  forget(id) {
    const transaction = this.#database.transaction(STORES, 'readwrite', { durability: 'strict' });
    for (const store of STORES) transaction.objectStore(store).delete(store === 'segments' ? IDBKeyRange.bound([id, 0], [id, Infinity]) : id);
    return committed(transaction);
  }
}

function committed(transaction) {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve(undefined);
    transaction.onabort = () => reject(transaction.error);
  });
}

export class MemoryStore {
  isLasting = false;
  #stores = Object.fromEntries(STORES.map((name) => [name, new Map()]));

  async get(store, key) {
    return this.#stores[store].get(String(key));
  }

  async all(store) {
    return [...this.#stores[store].values()];
  }

  async keys(store) {
    return [...this.#stores[store].keys()];
  }

  async put(...rows) {
    for (const [store, key, value] of rows) this.#stores[store].set(String(key), value);
  }

  async forget(id) {
    for (const rows of Object.values(this.#stores)) for (const key of rows.keys()) if (key === id || key.startsWith(`${id},`)) rows.delete(key);
  }
}

export async function openRecordings() {
  try {
    const request = indexedDB.open(NAME, VERSION);
    request.onupgradeneeded = () => STORES.filter((name) => !request.result.objectStoreNames.contains(name)).forEach((name) => request.result.createObjectStore(name));
    const database = await settled(request);
    database.onversionchange = () => database.close(); // a newer page must not wait for this one
    const store = new DatabaseStore(database);
    globalThis.navigator?.storage?.persist?.().catch(() => {}); // not waited for: a prompt may stay unanswered
    return store;
  } catch {
    return new MemoryStore();
  }
}
