// A file for the person to keep: written piece by piece where the browser can (File System Access), else put together in memory.

const FREED_AFTER_MS = 60_000; // a browser may still read it after the press

/**
 * `{write(bytes, position), close(), abort()}` of a file that is called `name` unless the person says otherwise; undefined if the person wants none. To be called by a
 * press: a browser shows its question only then.
 */
export async function keptFile(name, type, browser = /** @type {any} */ (globalThis)) {
  if (typeof browser.showSaveFilePicker !== 'function') return inMemory(name, type, browser);
  try {
    const handle = await browser.showSaveFilePicker({ suggestedName: name });
    const file = await handle.createWritable();
    return { write: (data, position) => file.write({ type: 'write', position, data }), close: () => file.close(), abort: () => file.abort() };
  } catch (error) {
    if (error.name === 'AbortError') return undefined;
    throw error;
  }
}

function inMemory(name, type, browser) {
  const pieces = new Map(); // by position: the first is written once more at the end
  return {
    write: async (data, position) => void pieces.set(position, data),
    abort: async () => pieces.clear(),
    async close() {
      const inOrder = [...pieces].sort(([one], [other]) => one - other).map(([, data]) => data);
      const href = browser.URL.createObjectURL(new browser.Blob(inOrder, { type }));
      const link = Object.assign(browser.document.createElement('a'), { href, download: name });
      link.click();
      setTimeout(() => browser.URL.revokeObjectURL(href), FREED_AFTER_MS);
    },
  };
}
