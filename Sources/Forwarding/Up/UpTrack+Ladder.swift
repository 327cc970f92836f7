import CongestionControl
import RTP

extension UpTrack {
  /// The qualities in which receivers can get the track now, each better than the one before and at a higher rate. Empty before they were measured.
  ///
  /// Above the lowest spatial layer no step has less than half of the layer's frames: 30 frames a second of a small picture are better than 7.5
  /// of a large one.
  func ladder() -> [LayerStep] {
    var steps: [LayerStep] = []
    for encoding in encodings where !isLayered || encoding.isAlive { encoding.addSteps(to: &steps) }
    guard let lowest = steps.map(\.spatial).min() else { return [] }
    return LayerStep.ladder(
      steps.filter { step in
        step.spatial == lowest
          || !steps.contains { $0.spatial == step.spatial && $0.temporal > step.temporal + 1 }
      })
  }
}

extension Encoding {
  /// The stream's rate on the wire now, in bit/s, with the layers of `target`.
  func rate(of target: Int) -> Int { reception.pointee.rates[frames == nil ? 0 : target] }

  fileprivate func addSteps(to steps: inout [LayerStep]) {
    guard reception.pointee.rates.isMeasured else { return }
    guard let frames, frames.pointee.structure.targetCount > 0 else {
      return steps.append(LayerStep(spatial: UInt8(rank), temporal: 0, rate: rate(of: 0), height: height))
    }
    let active = frames.pointee.activeTargets
    for target in 0..<frames.pointee.structure.targetCount where active >> UInt32(target) & 1 != 0 {
      let spatial = track.isLayered ? rank : frames.pointee.structure.spatialLayer(of: target)
      let temporal = frames.pointee.structure.temporalLayer(of: target)
      let rate = rate(of: target)
      // A spatial layer of one stream needs the lower ones, so a lower rate says that nothing is sent of it.
      let isIdle =
        !track.isLayered && steps.contains { $0.spatial < spatial && $0.temporal == temporal && $0.rate >= rate }
      guard rate > 0, !isIdle else { continue }
      let lines = track.isLayered ? height : frames.pointee.structure.height(of: spatial) ?? 180 << spatial
      steps.append(LayerStep(spatial: UInt8(spatial), temporal: UInt8(temporal), rate: rate, height: lines))
    }
  }
}
