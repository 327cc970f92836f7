// This user's devices: the list, pairing, storage, lasting links, presence and push.

export { LastingLinks } from './lasting-links.js';
export { OwnDevices } from './own-devices.js';
export { Presence } from './presence.js';
export { Push } from './push.js';
export { openLinkStore, openStore } from './store.js';
