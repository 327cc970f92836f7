/// A waiting packet: where to find it, not its bytes. It is numbered for the transport and encrypted when it leaves. 16 bytes.
package struct PacedPacket: Equatable, Sendable {
  /// The publisher's index of the packet, in the history of `slot`'s source.
  package var index: UInt64
  package var size: UInt16
  /// Distinguishes the frame from those around it: the low bits of its number or of its RTP timestamp.
  package var frame: UInt16
  package var slot: UInt8
  package var kind: SentKind
  /// No other frame needs this one.
  package var isDiscardable: Bool
  package var isKeyFrame: Bool

  package init(
    index: UInt64, size: Int, frame: UInt16, slot: UInt8, kind: SentKind, isDiscardable: Bool = false,
    isKeyFrame: Bool = false
  ) {
    self.index = index
    self.size = UInt16(clamping: size)
    self.frame = frame
    self.slot = slot
    self.kind = kind
    self.isDiscardable = isDiscardable
    self.isKeyFrame = isKeyFrame
  }
}

/// Paces only debt: a packet passes immediately while the last 40 ms have sent no more than the rate allows, and a frame that has begun
/// to pass does so completely. So runs for `UDP_SEGMENT` survive, and only key frames, retransmissions and several publishers at once
/// ever wait.
///
/// Audio, STUN, DTLS and RTCP never ask; `sent` counts them. It allocates only in `init`.
package struct Pacer: Sendable {
  package enum Verdict: Equatable, Sendable {
    case passes, queued, dropped
  }

  private static let burst = 40 * Microseconds.millisecond
  /// With more than this waiting, frames that no other frame needs are dropped; with twice as much, everything up to a key
  /// frame.
  private static let longestWait = 250 * Microseconds.millisecond
  package static let slots = 64

  private struct SlotState {
    var passing: UInt16?
    var refused: UInt16?
    /// The latest key frame.
    var keyFrame: UInt16?
    var needsKeyFrame = false
  }

  private var debt = 0
  private var settled: Microseconds
  private var retransmissions: PacketQueue
  private var video: PacketQueue
  private var states = [SlotState](repeating: SlotState(), count: slots)

  package init(capacity: Int = 512, now: Microseconds) {
    settled = now
    retransmissions = PacketQueue(capacity: capacity / 4)
    video = PacketQueue(capacity: capacity)
  }

  package var queuedBytes: Int { retransmissions.bytes + video.bytes }
  package var isEmpty: Bool { retransmissions.isEmpty && video.isEmpty }

  /// Decides on a packet. After `.passes` the caller sends it now and calls `sent`; queued packets are returned by
  /// `next`.
  /// - Parameter rate: of the pacer, in bit/s.
  package mutating func offer(_ packet: PacedPacket, rate: Int, now: Microseconds) -> Verdict {
    settle(rate: rate, now: now)
    let slot = Int(packet.slot) % Self.slots
    let limit = bytes(at: rate, in: Self.burst)
    if packet.kind == .retransmission {
      if isEmpty, debt <= limit { return .passes }
      return retransmissions.append(packet) ? .queued : .dropped
    }
    if states[slot].refused == packet.frame { return .dropped }
    if packet.isKeyFrame {
      // The waiting packets are older than the new start. A key frame is examined once, so that each packet is visited at most twice.
      if states[slot].keyFrame != packet.frame { video.remove(slot: slot, except: packet.frame) }
      states[slot].keyFrame = packet.frame
      states[slot].needsKeyFrame = false
    }
    if states[slot].needsKeyFrame { return .dropped }
    if isEmpty, debt <= limit || (states[slot].passing == packet.frame && debt <= 2 * limit) {
      states[slot].passing = packet.frame
      return .passes
    }
    let wait = bytes(at: rate, in: Self.longestWait)
    let isBegun = states[slot].passing == packet.frame
    if !isBegun, !packet.isKeyFrame, queuedBytes > (packet.isDiscardable ? wait : 2 * wait) {
      states[slot].refused = packet.frame
      states[slot].needsKeyFrame = !packet.isDiscardable
      return .dropped
    }
    guard video.append(packet) else {
      states[slot].refused = packet.frame
      states[slot].needsKeyFrame = !packet.isDiscardable
      return .dropped
    }
    states[slot].passing = packet.frame
    return .queued
  }

  /// The next waiting packet, if the debt allows one: retransmissions first. The caller sends it and calls `sent`.
  package mutating func next(rate: Int, now: Microseconds) -> PacedPacket? {
    settle(rate: rate, now: now)
    guard debt <= bytes(at: rate, in: Self.burst) else { return nil }
    return retransmissions.removeFirst() ?? video.removeFirst()
  }

  /// Whether packets of the slot wait.
  package func holds(slot: UInt8) -> Bool {
    video.contains(slot: Int(slot) % Self.slots) || retransmissions.contains(slot: Int(slot) % Self.slots)
  }

  /// Discards the packets of a slot that shows something else from now on.
  package mutating func removeAll(slot: UInt8) {
    let slot = Int(slot) % Self.slots
    video.remove(slot: slot, except: nil)
    retransmissions.remove(slot: slot, except: nil)
    states[slot] = SlotState()
  }

  /// Bytes that left, of any kind.
  package mutating func sent(bytes: Int) { debt += bytes }

  /// Whether the slot was cut off and waits for a key frame.
  package func needsKeyFrame(slot: UInt8) -> Bool { states[Int(slot) % Self.slots].needsKeyFrame }

  private mutating func settle(rate: Int, now: Microseconds) {
    guard now > settled else { return }
    debt = max(0, debt - bytes(at: rate, in: min(now - settled, .second)))
    settled = now
  }
}
