// Whether the path from this device carries its camera, from the PeerConnection's statistics. If it does not, the picture takes from the voice.

const STARVED = 120_000; // bit/s: a voice and its headers take half of it, and the rest is too little for a picture
const NARROW = 400_000; // bit/s: with a shared screen Chromium’s estimate does not fall below 240 kbit/s
const LOSSY = 0.1; // of the packets: a voice is repaired up to about this
const SLOW_MS = 400; // above the shortest round trip so far: what was sent waits in a queue
const CLEAN = 0.02;
const QUICK_MS = 150; // above the shortest round trip
const POOR_MS = 8_000; // a path is poor after this long without a better measurement
const GOOD_MS = 20_000;
const FEW = 20; // packets between two measurements: fewer say nothing

/** The running sums by which two measurements are compared, and the browser's current values. */
function sumsOf(reports) {
  /** @type {{ packets: number, pictures: number, lost: number, roundTrip: number | undefined, estimate: number | undefined }} */
  const sums = { packets: 0, pictures: 0, lost: 0, roundTrip: undefined, estimate: undefined };
  for (const report of reports) {
    if (report.type === 'outbound-rtp') {
      sums.packets += report.packetsSent ?? 0;
      if (report.kind === 'video') sums.pictures += report.bytesSent ?? 0;
    }
    if (report.type === 'remote-inbound-rtp') {
      sums.lost += Math.max(0, report.packetsLost ?? 0);
      if (report.roundTripTime > 0) sums.roundTrip ??= report.roundTripTime * 1_000;
    }
    if (report.type !== 'candidate-pair' || !report.nominated) continue;
    if (report.currentRoundTripTime > 0) sums.roundTrip = report.currentRoundTripTime * 1_000;
    sums.estimate = report.availableOutgoingBitrate;
  }
  return sums;
}

export class Uplink {
  /** Whether the path is too poor for a camera. */
  isPoor = false;
  #before; // the sums and the time of the previous measurement
  #shortest = Infinity; // round trip, in ms
  #otherSince; // when the measurements began to speak against `isPoor`

  /**
   * Judges the reports of one more measurement at `now`, in ms. `isCameraOn`: without a camera the path cannot become too poor for it. Returns whether `isPoor`
   * has changed.
   */
  judge(now, reports, { isCameraOn }) {
    const sums = sumsOf(reports);
    const measured = this.#since(now, sums);
    this.#before = { now, ...sums };
    if (!measured) return false;
    const isOther = this.isPoor ? isGood(measured) : isCameraOn && isBad(measured);
    this.#otherSince = isOther ? (this.#otherSince ?? now) : undefined;
    if (!isOther || now - this.#otherSince < (this.isPoor ? GOOD_MS : POOR_MS)) return false;
    this.isPoor = !this.isPoor;
    this.#otherSince = undefined;
    return true;
  }

  /** `{loss, delay, isNarrow, isStarved}` since the previous measurement; undefined if too little was sent. */
  #since(now, { packets, pictures, lost, roundTrip, estimate }) {
    if (roundTrip) this.#shortest = Math.min(this.#shortest, roundTrip);
    const before = this.#before;
    const sent = before ? packets - before.packets : 0;
    if (sent < FEW || now <= before.now) return undefined;
    // Not every browser reports what it may send. Then what it did send of its camera is used instead.
    const rate = estimate ?? ((pictures - before.pictures) * 8_000) / (now - before.now);
    const loss = Math.max(0, lost - before.lost) / sent;
    return { loss, delay: roundTrip ? roundTrip - this.#shortest : 0, isNarrow: rate < NARROW, isStarved: estimate < STARVED };
  }
}

const isBad = ({ loss, delay, isNarrow, isStarved }) => isStarved || (isNarrow && (loss >= LOSSY || delay >= SLOW_MS));

/** An estimate says nothing here: it does not rise while only a voice is sent. */
const isGood = ({ loss, delay }) => loss <= CLEAN && delay <= QUICK_MS;
