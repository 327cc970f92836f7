// The quality of the received media, from the PeerConnection's statistics: the contents of `stats` (protocol section 6).

const KNOWN = ['rtt', 'loss', 'jitter', 'freezes', 'firstFrameMs'];

/** The running sums by which two measurements are compared. */
function sumsOf(reports) {
  const sums = { received: 0, lost: 0, freezes: 0, jitter: 0, rtt: /** @type {number | undefined} */ (undefined) };
  for (const report of reports) {
    if (report.type === 'candidate-pair' && report.nominated && report.currentRoundTripTime !== undefined) {
      sums.rtt = report.currentRoundTripTime * 1_000;
    }
    if (report.type !== 'inbound-rtp') continue;
    sums.received += report.packetsReceived ?? 0;
    sums.lost += Math.max(0, report.packetsLost ?? 0);
    sums.freezes += report.freezeCount ?? 0;
    sums.jitter = Math.max(sums.jitter, (report.jitter ?? 0) * 1_000);
  }
  return sums;
}

/** Turns reports into the numbers since the last ones; numbers that could not be measured are omitted. */
export class QualityMeter {
  #before = { received: 0, lost: 0, freezes: 0 };

  numbers(reports, firstFrameMs) {
    const now = sumsOf(reports);
    const [received, lost] = [now.received - this.#before.received, now.lost - this.#before.lost];
    const freezes = Math.max(0, now.freezes - this.#before.freezes);
    this.#before = now;
    const loss = received + lost > 0 ? Math.max(0, lost) / (received + Math.max(0, lost)) : undefined;
    const measured = { rtt: now.rtt, loss, jitter: received > 0 ? now.jitter : undefined, freezes, firstFrameMs };
    return Object.fromEntries(KNOWN.filter((name) => Number.isFinite(measured[name])).map((name) => [name, measured[name]]));
  }
}
