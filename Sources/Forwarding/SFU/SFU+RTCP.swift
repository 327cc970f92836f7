import MediaModel
import Octets
import Transport

extension SFU {
  /// An SRTCP packet of a known peer: decrypted, charged, and handed to `Feedback`.
  func handleRTCP(
    _ datagram: UnsafeMutableRawBufferPointer, age: UInt64, on pair: CandidatePair, now: Instant, into outbox: Outbox
  ) {
    let peer = pair.peer
    guard let inbound = peer.inbound else { return drop(.notConnected) }
    let length: Int
    switch inbound.unprotectRTCP(datagram) {
    case .packet(let plain): length = plain
    case .dropped(let reason): return drop(reason)
    }
    paths.heard(pair, now: now, into: outbox)
    // Round trips and losses from long ago would be taken for current ones, and every report is repeated anyway.
    guard age <= longestAge else { return drop(.stale) }
    // A compound has room for 100 requests for key frames, or for 5,000 for packets.
    guard peer.controlled.takes(length, now: now) else { return output.dropFlood(now: now) }
    feedback.handle(UnsafeRawBufferPointer(datagram.part(0..<length)), of: peer, now: now, into: outbox)
  }
}
