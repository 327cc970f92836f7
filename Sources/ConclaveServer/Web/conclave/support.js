// Whether this browser can take part in calls. A module of its own, which imports no other: a page can ask before it loads the rest.

export const isSupported = () =>
  typeof RTCPeerConnection === 'function' && typeof RTCRtpScriptTransform === 'function' && Boolean(crypto.subtle);
