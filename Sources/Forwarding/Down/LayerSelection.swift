import MediaModel
import RTP

/// The highest layers of its encoding that a slot gets.
struct LayerLimits: Equatable {
  var spatial = Int.max
  var temporal = Int.max
  /// The slot waits for a lower encoding. Until then the lowest temporal layer of the current one suffices, so that the rate falls at once.
  var isSteppingDown = false
}

/// Which frames of its encoding a slot gets, by the receiver's wish and by what there is room for.
struct LayerSelection {
  /// The receiver's wish, in pixels; nil for no limit.
  private(set) var maxHeight: Int?
  private(set) var limits = LayerLimits()
  /// Reads the encoding's dependency descriptors; nil where it has none.
  private(set) var frames: UnsafeMutablePointer<FrameReader>?
  /// Decides which frames go out; nil for a source without descriptors.
  private var selector: FrameSelector?
  private var numbers = FrameNumbers()
  /// Frames of VP8's higher temporal layers were left out since the last key frame.
  private var isThinned = false
  /// The decode target chosen by wish, limits and structure, and the revision of the structure by which it was chosen.
  private(set) var target = 0
  private var revision: UInt64 = 0

  /// Some packets of the source may be left out. Most sources have no layers, and then packets are not examined.
  @inline(__always)
  var mayOmit: Bool { frames != nil || limits.isSteppingDown || isThinned }

  /// A frame of the target was refused because it refers to one that was not sent.
  var isBroken: Bool { selector?.isBroken ?? false }

  /// The offsets from the source's frame numbers and template ids to the receiver's; nil for a source without descriptors.
  @inline(__always)
  var shift: (frameNumber: UInt16, templates: UInt8)? { frames == nil ? nil : (numbers.shift, numbers.templateShift) }

  /// The slot gets another encoding.
  mutating func read(by frames: UnsafeMutablePointer<FrameReader>?) {
    self.frames = frames
    selector = nil
  }

  mutating func wish(_ maxHeight: Int?) {
    guard maxHeight != self.maxHeight else { return }
    self.maxHeight = maxHeight
    chooseTarget()
  }

  mutating func limit(to limits: LayerLimits) {
    guard limits != self.limits else { return }
    self.limits = limits
    chooseTarget()
  }

  /// `packet` is the first that is sent of a source, or the first after a pause.
  /// - Parameter isSameTrack: it belongs to another layer of the previous track.
  mutating func begin(_ packet: borrowing Packet, isSameTrack: Bool) {
    isThinned = false
    selector = nil
    guard let frame = packet.frame, let frames else { return }
    chooseTarget()
    selector = FrameSelector(at: frame, target: target)
    numbers.begin(frame, frames.pointee.structure, isSameTrack: isSameTrack)
  }

  /// Whether the receiver gets the packet. The receiver does not miss frames that it does not get.
  mutating func selects(_ packet: borrowing Packet) -> Bool {
    guard let frames, selector != nil, let frame = packet.frame else { return selectsWithoutDescriptor(packet) }
    if frames.pointee.revision != revision { chooseTarget() }
    return selector?.admits(frame, wanted: target, frames.pointee.structure) ?? true
  }

  /// VP8's own temporal layers: the higher ones are left out, from the beginning of a frame until the next key frame.
  private mutating func selectsWithoutDescriptor(_ packet: borrowing Packet) -> Bool {
    guard limits.isSteppingDown || isThinned, let vp8 = packet.vp8 else { return true }
    if packet.isKeyFrame { isThinned = false }
    if limits.isSteppingDown, vp8.startsFrame { isThinned = true }
    return !isThinned || vp8.temporalLayer ?? 0 == 0
  }

  /// The packet leaves now or waits for the receiver's path.
  @inline(__always)
  mutating func taken(_ packet: borrowing Packet) {
    if let frames, let frame = packet.frame { numbers.sent(frame, frames.pointee.structure) }
  }

  /// Whether the last packet of a frame gets the marker although its sender did not set it: no higher layer of the picture goes to this
  /// receiver.
  @inline(__always)
  func endsPicture(_ packet: borrowing Packet) -> Bool {
    guard frames != nil, let frame = packet.frame else { return false }
    return endsPicture(frame.dependencies, endsFrame: frame.endsFrame)
  }

  /// The same for a packet of the source's history.
  /// - Parameter id: the source's id of the dependency descriptor.
  func endsPicture(ofKept packet: borrowing Packet, descriptor id: UInt8) -> Bool {
    guard let frames, let element = packet.extensions?.element(id, in: packet.bytes.bytes),
      let descriptor = frames.pointee.layers(element, in: packet.bytes.bytes)
    else { return false }
    return endsPicture(descriptor.frame, endsFrame: descriptor.endsFrame)
  }

  private func endsPicture(_ frame: FrameDependencies, endsFrame: Bool) -> Bool {
    guard endsFrame, let selector, let frames else { return false }
    return selector.marks(frame, endsPicture: false, frames.pointee.structure)
  }

  /// Chooses the decode target by the wish and by the stream's layers. Its spatial layer is the lowest that is high enough.
  private mutating func chooseTarget() {
    guard let frames else { return }
    revision = frames.pointee.revision
    let count = frames.pointee.structure.targetCount
    let active = frames.pointee.activeTargets
    let wantedLayer = min(wantedSpatialLayer(of: frames), limits.spatial)
    let wantedTemporal = limits.isSteppingDown ? 0 : limits.temporal
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
