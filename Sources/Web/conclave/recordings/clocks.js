// When the frames of a segment were captured: clock records map RTP timestamps to the time.

/**
 * The clock of one stream. A device's clock counts until its next one, because the timestamps leave out what a person paused. In a call the first sender report
 * counts for the whole segment, and without one the first arrival.
 */
class StreamClock {
  #rate;
  #first = new Map(); // by `how`

  constructor(rate) {
    this.#rate = rate;
  }

  /** The segment has this clock somewhere. */
  note(clock) {
    if (!this.#first.has(clock.how)) this.#first.set(clock.how, clock);
  }

  /** The following frames are behind this clock. */
  pass(clock) {
    if (clock.how === 'device') this.#first.set('device', clock);
  }

  /** µs since 1970, rounded down; undefined without a clock. */
  timeOf(timestamp) {
    const clock = this.#first.get('device') ?? this.#first.get('report') ?? this.#first.get('arrivals');
    // `| 0`: timestamps wrap, and a frame may be from before its clock.
    return clock && clock.time + Math.floor((((timestamp - clock.timestamp) | 0) * 1_000_000) / this.#rate);
  }
}

/** The frames among `records`, each with its `stream` and its `time` in µs since 1970. `start` is the segment's: without a clock the arrival counts. */
export function timedFrames(records, start) {
  const streams = new Map();
  const clocks = new Map();
  for (const record of records) {
    if (record.type === 'stream') {
      streams.set(record.index, record);
      clocks.set(record.index, new StreamClock(record.clockRate));
    } else if (record.type === 'clock') clocks.get(record.index).note(record);
  }
  const frames = [];
  for (const record of records) {
    if (record.type === 'clock') clocks.get(record.index).pass(record);
    if (record.type !== 'frame') continue;
    const time = clocks.get(record.index).timeOf(record.timestamp) ?? start + record.arrival * 1_000;
    frames.push({ ...record, stream: streams.get(record.index), time });
  }
  return frames;
}
