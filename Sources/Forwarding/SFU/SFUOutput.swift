import MediaModel
import Octets

/// The output of an SFU and its parts besides packets: counts, events for the control plane, and the times at which calls and peers need the timers.
final class SFUOutput {
  /// In the order in which they happened.
  var events: [MediaEvent] = []
  /// Valid as long as the SFU.
  var counts: UnsafeMutablePointer<SFUCounters> { countsBox.pointer }
  private let countsBox = Box(SFUCounters())
  private var peers = DeadlineQueue<Peer>()
  private var calls = DeadlineQueue<ForwardedCall>()
  /// When the next flood is reported.
  private var nextFloodNotice = Instant(nanoseconds: 0)

  func drop(_ reason: DropReason) { counts.pointee.drop(reason) }

  /// A peer exceeds its limit. The event is sent once in a while, however many peers do so.
  func dropFlood(now: Instant) {
    drop(.tooMuch)
    guard nextFloodNotice <= now else { return }
    nextFloodNotice = now.advanced(by: .seconds(10))
    events.append(.tooMuch)
  }

  func report(_ quality: (level: Int, bitrate: Int)?, of peer: Peer) {
    guard let quality else { return }
    events.append(.quality(peer.id, level: quality.level, bitrate: quality.bitrate))
  }

  // MARK: deadlines

  /// When the first peer or call needs the timers; nil if none does.
  var nextTimeout: Instant? {
    guard let peer = peers.first, let call = calls.first else { return peers.first ?? calls.first }
    return min(peer, call)
  }

  /// Deadlines that were moved, for the count of what is examined.
  var visits: UInt64 { peers.visits &+ calls.visits }

  /// Makes sure that the timers look at `peer` at `instant`.
  func schedule(_ peer: Peer, _ instant: Instant?) {
    guard let instant else { return }
    peer.schedule(instant)
    setDeadline(of: peer)
  }

  /// Takes over the peer's own deadline.
  func setDeadline(of peer: Peer) {
    // Tracks and slots of a removed peer may live a little longer.
    if !peer.isGone { peers.set(peer, to: peer.deadline) }
  }

  /// Makes sure that the timers look at the call when it needs them.
  func schedule(_ call: ForwardedCall) { calls.set(call, to: call.deadline) }

  func unschedule(_ peer: Peer) { peers.set(peer, to: nil) }

  func unschedule(_ call: ForwardedCall) { calls.set(call, to: nil) }

  func takeDuePeer(_ now: Instant) -> Peer? { peers.takeDue(now) }

  func takeDueCall(_ now: Instant) -> ForwardedCall? { calls.takeDue(now) }

  /// The peer's timers ask the encoding's sender for a key frame.
  func requestKeyFrame(of encoding: Encoding, now: Instant) {
    encoding.requestKeyFrame(now)
    schedule(encoding.track.peer, encoding.reception.pointee.keyFrames.deadline)
  }

  /// Makes sure that packets that wait for the peer's narrow path are released.
  func scheduleRelease(to peer: Peer) {
    guard let due = peer.transport.downlink?.pointee.nextRelease else { return }
    // Usually others wait already.
    if peer.deadline.map({ due < $0 }) ?? true { schedule(peer, due) }
  }
}
