import CongestionControl

/// The history of a flow, in samples of 10 ms.
struct FlowLog {
  private(set) var steps: [Int] = []
  private(set) var targets: [Int] = []
  var queues: [Microseconds] = []
  /// Bytes that arrived, by 100 ms.
  private(set) var arrived: [Int] = []
  private(set) var mediaBytes = 0
  private(set) var copyBytes = 0
  private(set) var paddingBytes = 0
  private(set) var videoPackets = 0
  private(set) var spatialChanges = 0
  private(set) var changes = 0
  var dropped = 0

  mutating func sample(_ flow: Flow, now: Microseconds) {
    steps.append(flow.isAtTop ? VideoSource.steps.count - 1 : min(flow.step ?? -1, VideoSource.steps.count - 2))
    targets.append(flow.controller.target)
  }

  mutating func sent(_ packet: Packet) {
    switch packet.kind {
    case .audio, .video: mediaBytes += packet.size
    case .retransmission: copyBytes += packet.size
    case .padding: paddingBytes += packet.size
    }
    if packet.kind == .video { videoPackets += 1 }
  }

  mutating func arrived(_ packet: Packet, at time: Microseconds) {
    let slice = Int(time / (100 * millisecond))
    while arrived.count <= slice { arrived.append(0) }
    if packet.kind != .padding { arrived[slice] += packet.size }
  }

  mutating func changed(from old: LayerStep?, to new: LayerStep?) {
    changes += 1
    if old?.spatial != new?.spatial { spatialChanges += 1 }
  }

  /// The bit/s without padding that arrived in an interval.
  func rate(_ time: Range<Microseconds>) -> Int {
    let slices = Int(time.lowerBound / (100 * millisecond))..<Int(time.upperBound / (100 * millisecond))
    let bytes = slices.reduce(0) { $0 + ($1 < arrived.count ? arrived[$1] : 0) }
    return bytes * 8_000_000 / Int(time.upperBound - time.lowerBound)
  }
}
