/// The counts of the peers of one thread.
struct Tally: Sendable {
  /// RTP packets of the server's streams, retransmissions included.
  var packetsReceived: UInt64 = 0
  var packetsSent: UInt64 = 0
  var bytesReceived: UInt64 = 0
  var bytesSent: UInt64 = 0
  /// Frames that did not open: wrong key, changed bytes, or delivered twice.
  var decryptFailures: UInt64 = 0
  /// Frames of epochs from before the receiver joined.
  var beforeJoining: UInt64 = 0
  /// Frames that may come from guests, if the call has guests.
  var guestFrames: UInt64 = 0
  /// Measured frames that opened.
  var frames: UInt64 = 0
  /// Packets that were asked for again, and packets that came by RTX.
  var nacked: UInt64 = 0
  var retransmitted: UInt64 = 0
  /// Packets given up as lost.
  var abandoned: UInt64 = 0
  /// Key frames that the server asked for.
  var keyFrameRequests: UInt64 = 0
  /// Packets that SRTP or the parsers refused.
  var refused: UInt64 = 0
  /// Datagrams that the kernel lost on this side, for lack of buffer.
  var socketDrops: UInt64 = 0
  /// Datagrams that the impairments dropped, and how many of them for lack of memory.
  var impaired: UInt64 = 0
  var impairedWithoutRoom: UInt64 = 0
  /// CPU time of the thread, in nanoseconds.
  var threadNanoseconds: UInt64 = 0
  /// How late the thread ran for its timers.
  var lateness = LatencyHistogram()
  var latency = LatencyHistogram()
  var layers = LayerCount()
  /// The latency of audio only.
  var audioLatency = LatencyHistogram()

  mutating func merge(_ other: Tally) {
    packetsReceived += other.packetsReceived
    packetsSent += other.packetsSent
    bytesReceived += other.bytesReceived
    bytesSent += other.bytesSent
    decryptFailures += other.decryptFailures
    beforeJoining += other.beforeJoining
    frames += other.frames
    nacked += other.nacked
    retransmitted += other.retransmitted
    abandoned += other.abandoned
    keyFrameRequests += other.keyFrameRequests
    refused += other.refused
    guestFrames += other.guestFrames
    socketDrops += other.socketDrops
    impaired += other.impaired
    impairedWithoutRoom += other.impairedWithoutRoom
    threadNanoseconds += other.threadNanoseconds
    lateness.merge(other.lateness)
    latency.merge(other.latency)
    layers.merge(other.layers)
    audioLatency.merge(other.audioLatency)
  }
}

/// The frames of one track while the test measured, and their RTP packets.
struct Traffic: Sendable, Hashable {
  var frames: UInt64 = 0
  var packets: UInt64 = 0
  var isVideo = false

  mutating func subtract(_ other: Traffic) {
    frames -= min(frames, other.frames)
    packets -= min(packets, other.packets)
  }
}

/// A track, by the name that all participants of a call use.
struct TrackKey: Sendable, Hashable {
  var participant: UInt32
  var track: UInt8
}

extension TrackKey {
  /// Reads `participant.n`.
  init?(_ text: String) {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 2, let participant = UInt32(parts[0]), let track = UInt8(parts[1]) else { return nil }
    self.init(participant: participant, track: track)
  }
}

/// The measured frames of layered tracks that arrived.
struct LayerCount: Sendable, Hashable {
  /// Frames of each layer that a decoder could show, the lowest layer first.
  var decodable = [UInt64](repeating: 0, count: CameraLayer.all.count)
  /// Frames whose reference is missing.
  var undecodable: UInt64 = 0
  /// How often a slot switched to another layer.
  var switches: UInt64 = 0
  /// The longest time in which a slot showed nothing new, in nanoseconds.
  var longestGap: UInt64 = 0

  mutating func merge(_ other: LayerCount) {
    for rank in decodable.indices { decodable[rank] += other.decodable[rank] }
    undecodable += other.undecodable
    switches += other.switches
    longestGap = max(longestGap, other.longestGap)
  }

  /// The difference to `earlier`. The longest gap remains that of the whole time.
  func since(_ earlier: LayerCount) -> LayerCount {
    var rest = self
    for rank in decodable.indices { rest.decodable[rank] -= min(decodable[rank], earlier.decodable[rank]) }
    rest.undecodable -= min(undecodable, earlier.undecodable)
    rest.switches -= min(switches, earlier.switches)
    return rest
  }

  var total: UInt64 { decodable.reduce(undecodable, +) }
}

/// One peer's part of the result.
struct PeerTraffic: Sendable {
  /// The participant's index over all calls.
  var index: Int
  var call: Int
  var sent: [TrackKey: Traffic]
  var received: [TrackKey: Traffic]

  /// The sum of both connections of the participant.
  func with(_ other: PeerTraffic) -> PeerTraffic {
    var sum = self
    sum.sent.merge(other.sent) { first, _ in first }
    sum.received.merge(other.received) { first, _ in first }
    return sum
  }

  /// The difference to `earlier`, of the same participant.
  func since(_ earlier: PeerTraffic?) -> PeerTraffic {
    guard let earlier else { return self }
    var rest = self
    for (key, traffic) in earlier.sent { rest.sent[key]?.subtract(traffic) }
    for (key, traffic) in earlier.received { rest.received[key]?.subtract(traffic) }
    return rest
  }
}
