import MediaModel
import RTP

extension DownStream {
  /// Begins with a source's first packet, or its first after a pause.
  mutating func begin(_ packet: borrowing Packet, now: Instant) {
    let isSameTrack = sourceSwitch.isBetweenLayers
    sourceSwitch.start(packet, clockRate: clockRate, now: now)
    isThinned = false
    selector = nil
    guard let frame = packet.frame, let frames else { return }
    chooseTarget()
    selector = FrameSelector(at: frame, target: target)
    frameNumbers.begin(frame, frames.pointee.structure, isSameTrack: isSameTrack)
  }

  /// Some packets of the source may be left out. Most sources have no layers, and then packets are not examined.
  var mayOmit: Bool { frames != nil || isLimited || isThinned }

  /// Whether the receiver gets the packet. The receiver does not miss frames that it does not get.
  mutating func selects(_ packet: borrowing Packet) -> Bool {
    guard let frames, selector != nil, let frame = packet.frame else { return selectsWithoutDescriptor(packet) }
    if frames.pointee.revision != revision { chooseTarget() }
    return selector?.admits(frame, wanted: target, frames.pointee.structure) ?? true
  }

  /// VP8's own temporal layers: the higher ones are left out, from the beginning of a frame until the next key frame.
  private mutating func selectsWithoutDescriptor(_ packet: borrowing Packet) -> Bool {
    guard isLimited || isThinned, let vp8 = packet.vp8 else { return true }
    if packet.isKeyFrame { isThinned = false }
    if isLimited, vp8.startsFrame { isThinned = true }
    return !isThinned || vp8.temporalLayer ?? 0 == 0
  }

  /// Whether the last packet of a frame gets the marker although its sender did not set it: no higher layer of the picture goes to this
  /// receiver.
  func endsPicture(_ frame: FrameDependencies, endsFrame: Bool) -> Bool {
    guard endsFrame, let selector, let frames else { return false }
    return selector.marks(frame, endsPicture: false, frames.pointee.structure)
  }

  /// Chooses the decode target by the wish and by the stream's layers. Its spatial layer is the lowest that is high enough.
  mutating func chooseTarget() {
    guard let frames else { return }
    revision = frames.pointee.revision
    let count = frames.pointee.structure.targetCount
    let active = frames.pointee.activeTargets
    let wantedLayer = min(wantedSpatialLayer(of: frames), spatialLimit)
    let wantedTemporal = isLimited ? 0 : temporalLimit
    target = 0
    for candidate in 0..<count where active >> UInt32(candidate) & 1 != 0 {
      let spatial = frames.pointee.structure.spatialLayer(of: candidate)
      let temporal = frames.pointee.structure.temporalLayer(of: candidate)
      if spatial <= wantedLayer, temporal <= wantedTemporal { target = candidate }
    }
  }

  private func wantedSpatialLayer(of frames: UnsafeMutablePointer<FrameReader>) -> Int {
    let last = max(0, frames.pointee.structure.spatialLayerCount - 1)
    guard let maxHeight else { return last }
    for layer in 0..<last where frames.pointee.structure.height(of: layer) ?? 180 << layer >= maxHeight { return layer }
    return last
  }

  /// Only a key frame leads to the wanted target: the frames in between refer to others that the receiver did not get.
  var needsKeyFrame: Bool {
    guard let selector, let frames else { return false }
    let count = frames.pointee.structure.targetCount
    guard !selector.isBroken, selector.target < count, target < count else { return true }
    return frames.pointee.structure.spatialLayer(of: selector.target)
      != frames.pointee.structure.spatialLayer(of: target)
  }
}
