/// The packets that were sent while the test measured, counted once for each receiver, and how many of them arrived.
struct PacketArrivals: Sendable, Hashable {
  private(set) var expected: UInt64 = 0
  private(set) var received: UInt64 = 0

  /// - Parameters:
  ///   - counts: whether to count the participant of an index, as a sender and as a receiver.
  ///   - isAudioOnly: video is left out.
  init(_ traffic: [PeerTraffic], isAudioOnly: Bool = false, of counts: (Int) -> Bool = { _ in true }) {
    for members in Dictionary(grouping: traffic.filter { counts($0.index) }, by: \.call).values {
      let sent = members.reduce(into: [TrackKey: Traffic]()) { $0.merge($1.sent) { first, _ in first } }
      for member in members {
        for (key, traffic) in sent where member.sent[key] == nil && !(isAudioOnly && traffic.isVideo) {
          expected += traffic.packets
          received += min(traffic.packets, member.received[key]?.packets ?? 0)
        }
      }
    }
  }

  /// 0 to 1.
  var loss: Double { expected == 0 ? 0 : Double(expected - received) / Double(expected) }
  var isComplete: Bool { expected > 0 && received == expected }
}
