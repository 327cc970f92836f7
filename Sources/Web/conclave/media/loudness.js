// The loud audio of a PeerConnection, from its statistics (W3C webrtc-stats, `totalAudioEnergy`). The energy since the previous measurement counts, because the
// level of one moment (`audioLevel`) misses a short word between two measurements.

const SPEECH = 0.015; // of full scale: a quiet room is below

export class Loudness {
  #before = new Map(); // the energy and duration of each report, by its id

  /** The reports of one more measurement that were as loud as speech since the previous one. */
  loud(reports) {
    const before = this.#before;
    const audio = reports.filter(({ totalSamplesDuration }) => totalSamplesDuration > 0);
    this.#before = new Map(audio.map(({ id, totalAudioEnergy, totalSamplesDuration }) => [id, { energy: totalAudioEnergy, duration: totalSamplesDuration }]));
    return audio.filter(({ id, totalAudioEnergy, totalSamplesDuration }) => {
      const { energy, duration } = before.get(id) ?? { energy: 0, duration: 0 };
      const seconds = totalSamplesDuration - duration;
      return seconds > 0 && totalAudioEnergy - energy > SPEECH ** 2 * seconds;
    });
  }
}
