// The library of the web client: end-to-end encrypted group calls on a Conclave server. Plain modules, no build step, no dependency, and nothing of a page.
//
// import { Conclave, isSupported } from './conclave/index.js';
//
// const conclave = new Conclave({ url: 'wss://host/stomp', device: 'laptop', credentials: async () => ({ token, user: 'alice' }) });
// conclave.addEventListener('ring', ({ detail: ring }) => …); conclave.connect(); const call = await conclave.call(['bob', 'carol'], { camera: true });
//
// Copy this folder to your own origin and serve it over HTTPS. The other modules are internal and may change: import only this one. `docs/clients.md` has the
// guide; `../page` is an example.

export { isLost } from './call/index.js';
export { canBlur } from './capture.js';
export { Conclave } from './conclave.js';
export { RequestError } from './connection/index.js';
export { isGuest } from './guests.js';
export { isSupported } from './support.js';
export { lastingLinkID, readable } from './trust/index.js';
