// Calls on this device, and rings.

export { Calls } from './calls.js';
export { isPassed, isSameRing } from './crossing.js';
export { isLost } from './members.js';
export { RingMemory } from './ring-memory.js';
export { Rings } from './rings.js';

/** @typedef {import('./call-requests.js').CallConnection} CallConnection */
