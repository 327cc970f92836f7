// The connection to the server: STOMP over WebSocket, requests, and events in order. A body enters by the tables of `border.js`.

export { eventFrom, replyFrom } from './border.js';
export { Inbox } from './inbox.js';
export { RequestError, StompConnection } from './stomp.js';
