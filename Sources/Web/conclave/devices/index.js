// This user's devices: the list, pairing, storage, presence and push.

export { OwnDevices } from './own-devices.js';
export { Presence } from './presence.js';
export { Push } from './push.js';
export { openStore } from './store.js';
