import MediaModel

/// Bounds the copies to a receiver that does not report arrivals, so that no rate of its path is known: to a share of what the slot sends.
extension DownTrack {
  /// Whether a packet may be sent again. If so, `sentCopy` follows.
  func permitsCopy(of number: UInt16, now: Instant) -> Bool {
    var budget = copies ?? CopyBudget(now: now)
    // Not held twice meanwhile, because its table would be copied.
    copies = nil
    defer { copies = budget }
    return budget.permits(number, of: description.ssrc, rate: copiedRate, roundTrip: peer.roundTrip, now: now)
  }

  /// The rate of which copies may take a share, in bit/s. A receiver's own estimate may exceed what the slot sends, but it may also be a
  /// lie.
  private var copiedRate: Int {
    let sent = sentRate
    guard let downlink = transport.downlink, downlink.pointee.nextPass != nil else { return sent }
    return max(sent, min(downlink.pointee.rate, 2 * sent))
  }

  /// - Parameter bytes: of the datagram.
  func sentCopy(_ bytes: Int) { copies?.sent(bytes) }
}
