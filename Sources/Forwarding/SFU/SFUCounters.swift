package import MediaModel

/// Counts of one SFU since it was made; a value to copy out at any time.
package struct SFUCounters: Sendable {
  package var datagramsIn: UInt64 = 0
  package var bytesIn: UInt64 = 0
  package var datagramsOut: UInt64 = 0
  package var bytesOut: UInt64 = 0
  /// RTP packets sent on to a receiver, retransmissions apart.
  package var forwarded: UInt64 = 0
  /// Packets handed to another worker, once for each.
  package var relayed: UInt64 = 0
  package var retransmitted: UInt64 = 0
  /// Sequence numbers asked for, of senders and by receivers.
  package var nacksSent: UInt64 = 0
  package var nacksReceived: UInt64 = 0
  package var keyFrameRequestsSent: UInt64 = 0
  package var keyFrameRequestsReceived: UInt64 = 0
  /// Transport-wide reports to publishers, and packets with a number that no report will speak of: too late, or a number that came before.
  package var arrivalReportsSent: UInt64 = 0
  package var arrivalsUnreported: UInt64 = 0
  /// Transport-wide reports of receivers.
  package var feedbackReceived: UInt64 = 0
  /// The estimates of the receivers' rates, taken once a second from each that reports.
  package var estimates = RateHistogram()
  /// Slots that went over to another layer of their track.
  package var layerSwitches: UInt64 = 0
  /// Probes of receivers' paths, and the packets sent for nothing else.
  package var probes: UInt64 = 0
  package var fillers: UInt64 = 0
  /// Slots that paused, for the receiver's rate had no room for them.
  package var withheld: UInt64 = 0
  /// Packets that waited for a receiver's narrow path.
  package var paced: UInt64 = 0
  /// Slots that paused, for the worker could not keep up.
  package var shed: UInt64 = 0
  /// Checks of ours: of addresses that peers want their media at.
  package var checksSent: UInt64 = 0
  /// First packets of frames whose SFrame header could not be read; they are forwarded.
  package var sframeUnread: UInt64 = 0
  /// Peers, tracks, slots and deadlines that were looked at beside packets: for slots, speakers and timers.
  package var visits: UInt64 = 0
  /// Histories that lost half of their memory, for all together had too much.
  package var historiesHalved: UInt64 = 0
  /// Bytes of packets kept for retransmission now.
  package var historyBytes = 0
  /// Peers now, and those of them to which media can flow.
  package var peers = 0
  package var connected = 0
  private var dropped = InlineArray<64, UInt64>(repeating: 0)

  package init() {}

  package func drops(_ reason: DropReason) -> UInt64 { dropped[Int(reason.rawValue)] }

  mutating func drop(_ reason: DropReason) { dropped[Int(reason.rawValue)] &+= 1 }
}
