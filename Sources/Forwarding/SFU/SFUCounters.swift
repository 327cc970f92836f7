package import MediaModel

/// Counts of one SFU since it was made; a value to copy out at any time.
///
/// Many properties: it is a table of counters, and no rule connects one with another.
package struct SFUCounters: Sendable {
  package var datagramsIn: UInt64 = 0
  package var bytesIn: UInt64 = 0
  package var datagramsOut: UInt64 = 0
  package var bytesOut: UInt64 = 0
  /// RTP packets forwarded to a receiver, without retransmissions.
  package var forwarded: UInt64 = 0
  /// Packets handed to another worker, once for each.
  package var relayed: UInt64 = 0
  package var retransmitted: UInt64 = 0
  /// Sequence numbers requested, from senders and by receivers.
  package var nacksSent: UInt64 = 0
  package var nacksReceived: UInt64 = 0
  package var keyFrameRequestsSent: UInt64 = 0
  package var keyFrameRequestsReceived: UInt64 = 0
  /// Transport-wide reports to publishers, and packets with a number that no report will cover: too late, or a repeated number.
  package var arrivalReportsSent: UInt64 = 0
  package var arrivalsUnreported: UInt64 = 0
  /// Transport-wide reports from receivers.
  package var feedbackReceived: UInt64 = 0
  /// The estimates of the receivers' rates, sampled once a second from each that reports.
  package var estimates = RateHistogram()
  /// Slots that switched to another layer of their track.
  package var layerSwitches: UInt64 = 0
  /// Probes of receivers' paths, and the packets sent only for them.
  package var probes: UInt64 = 0
  package var fillers: UInt64 = 0
  /// Slots that paused because the receiver's rate had no room for them.
  package var withheld: UInt64 = 0
  /// Packets that waited for a receiver's narrow path.
  package var paced: UInt64 = 0
  /// Slots that paused because the worker could not keep up.
  package var shed: UInt64 = 0
  /// Checks that we sent, of addresses at which peers want their media.
  package var checksSent: UInt64 = 0
  /// First packets of frames whose SFrame header could not be read; they are forwarded.
  package var sframeUnread: UInt64 = 0
  /// Peers, tracks, slots and deadlines that were examined outside the packet path: for slots, speakers and timers.
  package var visits: UInt64 = 0
  /// Histories that lost half of their memory because all together had too much.
  package var historiesHalved: UInt64 = 0
  /// Bytes of packets kept for retransmission now.
  package var historyBytes = 0
  /// Current peers, and how many of them media can flow to.
  package var peers = 0
  package var connected = 0
  private var dropped = InlineArray<64, UInt64>(repeating: 0)

  package init() {}

  package func drops(_ reason: DropReason) -> UInt64 { dropped[Int(reason.rawValue)] }

  mutating func drop(_ reason: DropReason) { dropped[Int(reason.rawValue)] &+= 1 }
}
