// Where keys and pins live: IndexedDB, which keeps private keys without ever showing them. Without it, memory for this visit.

const NAME = 'conclave';
const STORES = ['identities', 'pins'];

function settled(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

class DatabaseStore {
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
  #stores = new Map(STORES.map((name) => [name, new Map()]));

  async get(store, key) {
    return this.#stores.get(store).get(key);
  }

  async put(store, key, value) {
    this.#stores.get(store).set(key, value);
  }

  async has(store, prefix) {
    return [...this.#stores.get(store).keys()].some((key) => key.startsWith(prefix));
  }

  prune() {}
}

export async function openStore() {
  try {
    const request = indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => {
      for (const name of STORES) request.result.createObjectStore(name);
    };
    return new DatabaseStore(await settled(request));
  } catch {
    return new MemoryStore();
  }
}
