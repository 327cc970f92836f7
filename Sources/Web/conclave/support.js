// Whether this browser can take part in calls. A separate module that imports no other, so that a page can ask before it loads the rest.

export const isSupported = () =>
  typeof RTCPeerConnection === 'function' && typeof RTCRtpScriptTransform === 'function' && Boolean(crypto.subtle);
