import CongestionControl
import MediaModel
import RTP

extension UpTrack {
  /// The qualities in which receivers can get the track now, each better than the one before and at a higher rate. Empty before they were measured.
  ///
  /// Above the lowest spatial layer no step looks choppy or has less than half of the layer's pictures, unless the layer has no better step: 30
  /// pictures a second of a small size are better than 7.5 of a large one.
  /// - Parameter ceiling: steps above it are left out, unless all are.
  func ladder(within ceiling: LayerCeiling = LayerCeiling()) -> [LayerStep] {
    var steps: [(layer: LayerStep, isChoppy: Bool)] = []
    for encoding in encodings where !isLayered || encoding.isAlive { encoding.addSteps(to: &steps) }
    if ceiling != LayerCeiling() {
      let allowed = steps.filter { ceiling.allows($0.layer) }
      steps = allowed.isEmpty ? Array(steps.prefix(1)) : allowed
    }
    guard let lowest = steps.map(\.layer.spatial).min() else { return [] }
    let chosen = steps.filter { step, isChoppy in
      let omitted: UInt8 = isChoppy ? 0 : 1
      return step.spatial == lowest
        || !steps.contains { $0.layer.spatial == step.spatial && $0.layer.temporal > step.temporal + omitted }
    }
    return LayerStep.ladder(chosen.map(\.layer))
  }
}

extension LayerCeiling {
  fileprivate func allows(_ step: LayerStep) -> Bool {
    (spatial.map { step.spatial <= $0 } ?? true) && (temporal.map { step.temporal <= $0 } ?? true)
  }
}

extension Encoding {
  /// The stream's rate on the wire now, in bit/s, with the layers of `target`.
  func rate(of target: Int) -> Int { reception.pointee.rates[frames == nil ? 0 : target] }

  fileprivate func addSteps(to steps: inout [(layer: LayerStep, isChoppy: Bool)]) {
    guard reception.pointee.rates.isMeasured else { return }
    guard let frames, frames.pointee.structure.targetCount > 0 else {
      let layer = LayerStep(spatial: UInt8(rank), temporal: 0, rate: rate(of: 0), height: height)
      return steps.append((layer, isChoppy: false))
    }
    let active = frames.pointee.activeTargets
    for target in 0..<frames.pointee.structure.targetCount where active >> UInt32(target) & 1 != 0 {
      let spatial = track.isLayered ? rank : frames.pointee.structure.spatialLayer(of: target)
      let temporal = frames.pointee.structure.temporalLayer(of: target)
      let rate = rate(of: target)
      // A spatial layer of one stream needs the lower ones, so a lower rate means that nothing of it is sent.
      let isIdle =
        !track.isLayered
        && steps.contains { $0.layer.spatial < spatial && $0.layer.temporal == temporal && $0.layer.rate >= rate }
      guard rate > 0, !isIdle else { continue }
      let lines = track.isLayered ? height : frames.pointee.structure.height(of: spatial) ?? 180 << spatial
      let layer = LayerStep(spatial: UInt8(spatial), temporal: UInt8(temporal), rate: rate, height: lines)
      steps.append((layer, reception.pointee.rates.isChoppy(target)))
    }
  }
}
