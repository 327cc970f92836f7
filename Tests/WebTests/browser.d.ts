// Parts of the browser that are unknown to TypeScript 4.8, the version of Debian 12.

declare class RTCRtpScriptTransform {
  constructor(worker: Worker, options: { operation: string; name: string; isVideo: boolean; rids?: string[] });
}

interface RTCRtpSender {
  transform: RTCRtpScriptTransform;
}

interface RTCRtpReceiver {
  transform: RTCRtpScriptTransform;
}

interface Navigator {
  connection?: EventTarget & { type?: string };
  userActivation?: { hasBeenActive: boolean };
  userAgentData?: { brands: { brand: string }[]; platform: string };
  wakeLock?: { request(type: 'screen'): Promise<{ released: boolean; release(): Promise<void> }> };
}

// Each kind of event of the library has its own `detail`.
interface EventTarget {
  addEventListener(name: string, listener: (event: CustomEvent) => unknown, options?: boolean | AddEventListenerOptions): void;
}

// Document Picture-in-Picture.
declare var documentPictureInPicture: { requestWindow(options: { width: number; height: number }): Promise<any> };

declare function addEventListener(name: 'rtctransform', listener: (event: { transformer: any }) => void): void;

// Background blur (Media Capture Extensions, section 7) and output devices (Audio Output Devices API).
interface MediaTrackConstraintSet {
  backgroundBlur?: boolean;
}

interface MediaTrackCapabilities {
  backgroundBlur?: boolean[];
}

// The service worker's globals (Service Workers, section 4), which TypeScript declares in another library than the page's.
declare function addEventListener(name: 'install' | 'activate' | 'fetch' | 'message' | 'push' | 'notificationclick', listener: (event: ServiceWorkerEvent) => void): void;
declare const registration: ServiceWorkerRegistration;
declare const clients: { get(id: string): Promise<any>; claim(): Promise<void>; openWindow(path: string): Promise<unknown> };
declare function skipWaiting(): Promise<void>;

interface ServiceWorkerEvent extends Event {
  request: Request;
  data: any;
  source: { id: string; postMessage(message: unknown): void };
  notification: Notification;
  action: string;
  waitUntil(done: Promise<unknown>): void;
  addRoutes?(rules: object): Promise<void>;
  respondWith(response: Promise<Response>): void;
}
