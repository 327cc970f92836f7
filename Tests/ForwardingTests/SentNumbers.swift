import MediaModel
import Octets
import Testing
import Transport

@testable import Forwarding

/// The invariant of every simulated call: two consecutive packets in a stream to a receiver are never more than 1,024
/// numbers apart. The receiver guesses the upper half of their indices from the last packet that it got (RFC 3711
/// section 3.3.1).
struct SentNumbers {
  static let farthest = 1_024

  /// Keyed by SSRC, which differs from slot to slot and from receiver to receiver.
  private var last: [UInt32: UInt16] = [:]

  /// Records a sent datagram.
  mutating func check(_ datagram: Datagram) {
    datagram.bytes.withUnsafeBytes { bytes in
      guard bytes.count >= 12, case .rtp = DatagramKind.classify(bytes.bytes) else { return }
      let number = bytes.bytes.uint16(at: 2)
      let ssrc = bytes.bytes.uint32(at: 8)
      if let before = last.updateValue(number, forKey: ssrc) {
        let step = Int(Int16(bitPattern: number &- before))
        if abs(step) > Self.farthest {
          Issue.record("\(step) numbers lie between two packets of stream \(ssrc)")
        }
      }
    }
  }
}

/// A second receiver with a peer's keys that loses up to 50 packets in a row, and opens each of the others.
struct UnluckyReceiver {
  private let receiver: SRTPReceiver
  private var random: SplitMix64
  /// How many more packets it loses, or gets, before that changes.
  private var left = 0
  private var isLosing = false
  private(set) var opened = 0

  init(_ receiver: SRTPReceiver, seed: UInt64) {
    self.receiver = receiver
    random = SplitMix64(seed: seed)
  }

  /// An authentic packet arrives for the first time.
  mutating func receive(_ datagram: [UInt8]) {
    if left == 0 {
      isLosing.toggle()
      left = Int.random(in: 1...(isLosing ? [1, 5, 50][opened % 3] : 100), using: &random)
    }
    left -= 1
    guard !isLosing else { return }
    var datagram = datagram
    let outcome = datagram.withUnsafeMutableBytes { receiver.unprotectRTP($0) }
    switch outcome {
    case .packet: opened += 1
    // An old packet, since it has lost the ones in between.
    case .dropped(.replayed): break
    case .dropped(let reason): Issue.record("a receiver that lost packets cannot open the next: \(reason)")
    }
  }
}
