// Where this device is, as it tells the contacts of a recording: at the beginning, and when it has moved. The person is asked by the browser first.

const EVERY_MS = 30_000;
const MOVED_M = 25;
const EARTH_M = 6_371_000;
const DECIMALS = 5; // a metre
const PATIENCE_MS = 20_000;

const radians = (degrees) => (degrees * Math.PI) / 180;
const rounded = (value) => Number(value.toFixed(DECIMALS));

/** Metres between two places, `{lat, lon}` in degrees (the haversine formula). */
export function distance(one, other) {
  const half = (a, b) => Math.sin(radians(b - a) / 2) ** 2;
  const share = half(one.lat, other.lat) + Math.cos(radians(one.lat)) * Math.cos(radians(other.lat)) * half(one.lon, other.lon);
  return 2 * EARTH_M * Math.asin(Math.min(1, Math.sqrt(share)));
}

/** Whether `place` is to be told, after `told` was: neither too often nor if it did not change. */
export const isNews = (place, told) => !told || (place.at - told.at >= EVERY_MS && distance(place, told) >= MOVED_M);

/** The content of a note about a `GeolocationPosition`. */
export const noteOf = ({ coords: { latitude, longitude, accuracy }, timestamp }) => ({
  kind: 'place', lat: rounded(latitude), lon: rounded(longitude), accuracy: Math.round(accuracy), at: Math.round(timestamp),
});

/** `{lat, lon, accuracy?, at}` of a note's content, which another client has written; undefined if it is no place. */
export function placeIn({ kind, lat, lon, accuracy, at }) {
  const isWithin = (value, most) => Number.isFinite(value) && Math.abs(value) <= most;
  if (kind !== 'place' || !isWithin(lat, 90) || !isWithin(lon, 180) || !Number.isSafeInteger(at) || at < 0) return undefined;
  return { lat: rounded(lat), lon: rounded(lon), at, accuracy: Number.isFinite(accuracy) && accuracy >= 0 && accuracy < EARTH_M ? accuracy : undefined };
}

/** The newest place of `notes`. */
export function newestPlace(notes) {
  const places = [...notes].map(placeIn).filter(Boolean);
  return places.sort((one, other) => (one?.at ?? 0) - (other?.at ?? 0)).at(-1);
}

/**
 * Event: `change` of `state`: `off`, `searching`, `told` (`told` has the place), `denied` or `failed`; the browser goes on trying after the latter.
 */
export class Place extends EventTarget {
  state = 'off';
  /** The place that was told last. @type {any} */
  told;
  #geolocation;
  #watch;

  constructor(geolocation = globalThis.navigator?.geolocation) {
    super();
    this.#geolocation = geolocation;
  }

  /** Whether this browser can tell at all. */
  get isPossible() {
    return Boolean(this.#geolocation);
  }

  /** Has the browser ask the person, before it is needed. Resolves with whether it may be told. */
  ask() {
    return new Promise((resolve) => {
      if (!this.#geolocation) return resolve(false);
      return this.#geolocation.getCurrentPosition(() => resolve(true), ({ code }) => resolve(code !== 1), { timeout: PATIENCE_MS, maximumAge: Infinity });
    });
  }

  /** `tell(content)` gets the content of a note about each place. */
  start(tell) {
    this.stop();
    this.told = undefined;
    if (!this.#geolocation) return this.#set('failed');
    this.#set('searching');
    const options = { enableHighAccuracy: true, maximumAge: EVERY_MS };
    const found = (position) => {
      const place = noteOf(position);
      if (!placeIn(place) || !isNews(place, this.told)) return;
      this.told = place;
      tell(place);
      this.#set('told');
    };
    this.#watch = this.#geolocation.watchPosition(found, ({ code }) => this.#set(code === 1 ? 'denied' : this.told ? 'told' : 'failed'), options);
    return undefined;
  }

  stop() {
    if (this.#watch !== undefined) this.#geolocation.clearWatch(this.#watch);
    this.#watch = undefined;
    this.#set('off');
  }

  #set(state) {
    this.state = state;
    this.dispatchEvent(new Event('change'));
  }
}
