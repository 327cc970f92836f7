import RTP

/// The frame that a packet belongs to, by its dependency descriptor.
struct EncodedFrame {
  /// The unwrapped frame number.
  var number: UInt64
  var timestamp: UInt32
  var startsFrame: Bool
  var endsFrame: Bool
  var isKeyFrame: Bool
  var dependencies: FrameDependencies
  /// Where the descriptor's data is in the packet.
  var descriptor: Range<Int>
}

/// Reads the dependency descriptors of one stream.
struct FrameReader {
  private(set) var structure = DependencyStructure()
  /// Rises when the structure or the active targets change.
  private(set) var revision: UInt64 = 0
  /// The decode targets that are produced now, one bit each.
  private(set) var activeTargets = UInt32.max
  /// The unwrapped number of the packet that brought the structure.
  private var structureIndex: UInt64 = 0
  private var newest: UInt64 = 65_536
  /// Descriptors in a row that could not be read.
  private var unread = 0

  /// Too many packets were not understood for the structure to still arrive by retransmission.
  var lacksStructure: Bool { unread >= 80 }

  /// The frame of a packet whose descriptor is `element`; nil if it is malformed, of an unknown structure, or older than the structure.
  /// - Parameter index: the packet's unwrapped sequence number.
  mutating func read(
    _ element: HeaderExtensions.Element, in packet: RawSpan, index: UInt64, timestamp: UInt32
  ) -> EncodedFrame? {
    // With the new structure, an older packet would be misread.
    guard index >= structureIndex else { return nil }
    guard
      let descriptor = try? DependencyDescriptor(parsing: packet.extracting(element.range), by: &structure)
    else {
      unread += 1
      return nil
    }
    unread = 0
    if descriptor.hasStructure { structureIndex = index }
    if let active = descriptor.activeTargets, descriptor.hasStructure || active != activeTargets {
      activeTargets = active
      revision += 1
    }
    return EncodedFrame(
      number: number(descriptor), timestamp: timestamp, startsFrame: descriptor.startsFrame,
      endsFrame: descriptor.endsFrame, isKeyFrame: descriptor.isKeyFrame, dependencies: descriptor.frame,
      descriptor: element.range)
  }

  /// The layers and the ends of a frame whose packet is sent again, read by the current structure; nil if that is
  /// impossible.
  func layers(_ element: HeaderExtensions.Element, in packet: RawSpan) -> DependencyDescriptor? {
    var structure = structure
    return try? DependencyDescriptor(parsing: packet.extracting(element.range), by: &structure)
  }

  private mutating func number(_ descriptor: DependencyDescriptor) -> UInt64 {
    let distance = SequenceNumber.distance(from: UInt16(truncatingIfNeeded: newest), to: descriptor.frameNumber)
    var number = newest &+ UInt64(bitPattern: Int64(distance))
    // The stream was off while the numbers, which it shares with other layers, advanced by half their range or more.
    if descriptor.isKeyFrame, number < newest { number &+= 65_536 }
    newest = max(newest, number)
    return number
  }
}
