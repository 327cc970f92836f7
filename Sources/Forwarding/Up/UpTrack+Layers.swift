import MediaModel
import RTP

/// Simulcast: a track with several encodings, of which each receiver gets one.
extension UpTrack {
  /// An encoding is dead after this time without a packet, if the others sent enough frames meanwhile: a slow screen has gaps, too.
  static let deadAfter = Duration.milliseconds(250)
  private static let deadFrames = 4

  var isLayered: Bool { encodings.count > 1 }

  /// The layer for a receiver that wants `height` pixels: the lowest that is at least as high, or the highest; nil also means the
  /// highest.
  func layer(for height: Int?, within ceiling: LayerCeiling) -> Encoding? {
    let allowed = encodings.prefix(ceiling.spatial.map { $0 &+ 1 } ?? encodings.count)
    guard let height else { return allowed.last }
    return allowed.first { $0.height >= height } ?? allowed.last
  }

  /// The best encoding that flows for a receiver of `wanted`: `wanted` itself, the next lower or the next higher; `wanted` also if none
  /// flows.
  func liveEncoding(near wanted: Encoding) -> Encoding {
    encodings.last { $0.isAlive && $0.rank <= wanted.rank } ?? encodings.first { $0.isAlive } ?? wanted
  }

  /// Notes a packet of `encoding`, not one of RTX. Returns whether a layer began to flow or stopped.
  func noteArrival(of encoding: Encoding, endsFrame: Bool, now: Instant) -> Bool {
    let before = encodings.reduce(0) { $0 + ($1.isAlive ? 1 << $1.rank : 0) }
    encoding.isAlive = true
    encoding.framesOfOthers = 0
    if endsFrame {
      for other in encodings where other !== encoding && other.isAlive {
        other.framesOfOthers += 1
        guard other.framesOfOthers >= Self.deadFrames, let last = other.reception.pointee.lastPacket else { continue }
        if last.duration(to: now) >= Self.deadAfter { other.isAlive = false }
      }
    }
    return encodings.reduce(0) { $0 + ($1.isAlive ? 1 << $1.rank : 0) } != before
  }

  /// The timestamp of an instant in `new` minus its timestamp in `old`: by frame numbers, else sender reports, else
  /// arrivals.
  func timestampDifference(from old: Encoding, to new: Encoding) -> UInt32? {
    if let known = clock.difference(from: old.rank, to: new.rank) { return known }
    let (from, to) = (old.reception.pointee.statistics, new.reception.pointee.statistics)
    if let a = from.lastReport, let b = to.lastReport {
      let nanoseconds = Int64(bitPattern: a.ntp.nanoseconds &- b.ntp.nanoseconds)
      // Reports of one clock that are a minute apart are of no use.
      if nanoseconds.magnitude < 60_000_000_000 {
        // In range: 26 bits and 32.
        let ticks = nanoseconds / 1_000 * Int64(clockRate) / 1_000_000
        return b.rtp &+ UInt32(truncatingIfNeeded: ticks) &- a.rtp
      }
    }
    guard old.reception.pointee.lastPacket != nil, new.reception.pointee.lastPacket != nil else { return nil }
    return from.transit &- to.transit
  }

  /// Reports the new demand; nil while it is what the sender already knows.
  func updateDemand(now: Instant) -> [WantedLayer]? {
    let isShown = encodings.contains(where: \.isWanted)
    let wanted = encodings.map { $0.isWanted || $0.rank == 0 && isShown }
    guard demand.update(wanted, now: now) else { return nil }
    return zip(encodings, demand.active).map { WantedLayer(rid: $0.rid ?? "", active: $1) }
  }
}
