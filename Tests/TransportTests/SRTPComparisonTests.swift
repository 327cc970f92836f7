import MediaModel
import Seeded
import Testing
import Transport

/// Packets of every shape, compared with libsrtp2, and their handling on a hostile path.
struct SRTPComparisonTests {
  private struct Packet {
    var bytes: [UInt8]
    var header: Int
    var padding: Int

    /// RFC 3550 section 5.1: CSRCs, extension and padding in all combinations, payloads of all lengths from 0.
    init(_ sequenceNumber: UInt16, from generator: inout SeededGenerator) {
      let sources = Int.random(in: 0...15, using: &generator)
      let words = Bool.random(using: &generator) ? Int.random(in: 0...9, using: &generator) : nil
      padding = Bool.random(using: &generator) ? Int.random(in: 1...255, using: &generator) : 0
      bytes = [0x80 | (words == nil ? 0 : 0x10) | (padding == 0 ? 0 : 0x20) | UInt8(sources), 111]
      bytes += [UInt8(sequenceNumber >> 8), UInt8(truncatingIfNeeded: sequenceNumber)]
      bytes += generator.bytes(4) + [0, 0, 0, 7] + generator.bytes(4 * sources)
      if let words { bytes += [0xbe, 0xde, 0, UInt8(words)] + generator.bytes(4 * words) }
      header = bytes.count
      bytes += generator.bytes(Int.random(in: 0...300, using: &generator))
      if padding > 0 { bytes += [UInt8](repeating: 0, count: padding - 1) + [UInt8(padding)] }
    }
  }

  /// Both ends in two implementations, ours and libsrtp2's, with the same keys.
  private final class Ends {
    let sender: SRTPSender
    let receiver: SRTPReceiver
    let theirSender: SRTPOracle
    let theirReceiver: SRTPOracle

    init(_ profile: SRTPProfile, from generator: inout SeededGenerator) {
      let master = SRTPMasterKey(profile, from: &generator)
      sender = SRTPSender(profile: profile, master: master)
      receiver = SRTPReceiver(profile: profile, master: master)
      theirSender = SRTPOracle(profile: profile, master: master, .sending)
      theirReceiver = SRTPOracle(profile: profile, master: master, .receiving)
    }

    func protect(_ packet: Packet, prefix: Int) -> [UInt8] {
      var room = [UInt8](repeating: 0, count: packet.bytes.count + 16)
      let payload = packet.bytes[(packet.header + prefix)..<(packet.bytes.count - packet.padding)]
      room.replaceSubrange(0..<packet.header + prefix, with: packet.bytes[..<(packet.header + prefix)])
      let length = room.withUnsafeMutableBytes { room in
        Array(payload).withUnsafeBytes {
          sender.protectRTP(
            room, headerLength: packet.header, prefixLength: prefix, payload: $0, padding: UInt8(packet.padding))
        }
      }
      return Array(room.prefix(length ?? 0))
    }

    func open(_ packet: [UInt8]) -> [UInt8]? {
      var packet = packet
      guard case .packet(let length) = packet.withUnsafeMutableBytes({ receiver.unprotectRTP($0) }) else { return nil }
      return Array(packet.prefix(length))
    }

    func openRTCP(_ packet: [UInt8]) -> [UInt8]? {
      var packet = packet
      guard case .packet(let length) = packet.withUnsafeMutableBytes({ receiver.unprotectRTCP($0) }) else { return nil }
      return Array(packet.prefix(length))
    }

    /// The result of libsrtp2, which works in place, in a buffer with room for tags.
    func theirs(_ function: (UnsafeMutableRawPointer, Int) -> Int?, _ packet: [UInt8]) -> [UInt8]? {
      var room = packet + [UInt8](repeating: 0, count: 160)
      let length = room.withUnsafeMutableBytes { function($0.baseAddress.unsafelyUnwrapped, packet.count) }
      return length.map { Array(room.prefix($0)) }
    }
  }

  @Test(arguments: SRTPProfile.allCases)
  func packetsOfAllShapesAreTheSameBytes(profile: SRTPProfile) {
    let seed: UInt64 = 0x3711
    var generator = SeededGenerator(seed: seed)
    let ends = Ends(profile, from: &generator)
    var faults: [Int] = []
    // Across two rollovers of the sequence number.
    for i in 0..<4000 {
      let packet = Packet(UInt16(truncatingIfNeeded: i &* 37), from: &generator)
      let payload = packet.bytes.count - packet.padding - packet.header
      let sealed = ends.protect(packet, prefix: min(i % 4, payload))
      if sealed != ends.theirs(ends.theirSender.protectRTP, packet.bytes) || ends.open(sealed) != packet.bytes
        || ends.open(sealed) != nil || ends.theirs(ends.theirReceiver.unprotectRTP, sealed) != packet.bytes
      {
        faults.append(i)
      }
    }
    #expect(faults.isEmpty, "seed \(seed)")
  }

  /// Both refuse a packet with any byte changed, and any prefix of a packet. The state does not change, so that the
  /// packet still opens afterwards.
  @Test(arguments: SRTPProfile.allCases)
  func noPartOfAPacketCanBeChangedOrLeftOut(profile: SRTPProfile) {
    let seed: UInt64 = 0x3550
    var generator = SeededGenerator(seed: seed)
    let ends = Ends(profile, from: &generator)
    var refused = 0
    for i in 0..<40 as Range<UInt16> {
      let packet = Packet(i, from: &generator)
      let sealed = ends.protect(packet, prefix: 0)
      for forged in Self.forgeries(of: sealed, from: &generator) {
        if ends.open(forged) == nil, ends.theirs(ends.theirReceiver.unprotectRTP, forged) == nil { refused += 1 }
      }
      refused -= 2 * sealed.count
      #expect(ends.open(sealed) == packet.bytes, "packet \(i), seed \(seed)")
      #expect(ends.theirs(ends.theirReceiver.unprotectRTP, sealed) == packet.bytes, "packet \(i), seed \(seed)")
    }
    #expect(refused == 0, "seed \(seed)")
  }

  @Test(arguments: SRTPProfile.allCases)
  func noPartOfAnRTCPPacketCanBeChangedOrLeftOut(profile: SRTPProfile) {
    let seed: UInt64 = 0x3611
    var generator = SeededGenerator(seed: seed)
    let ends = Ends(profile, from: &generator)
    var refused = 0
    for length in [8, 28, 60, 200] {
      let plain = hex("81c8000d 4d617273") + generator.bytes(length - 8)
      var sealed = plain + [UInt8](repeating: 0, count: profile.rtcpOverhead)
      let written = sealed.withUnsafeMutableBytes { ends.sender.protectRTCP($0, length: length) }
      #expect(written == sealed.count)
      for forged in Self.forgeries(of: sealed, from: &generator) {
        if ends.openRTCP(forged) == nil, ends.theirs(ends.theirReceiver.unprotectRTCP, forged) == nil { refused += 1 }
      }
      refused -= 2 * sealed.count
      #expect(ends.openRTCP(sealed) == plain, "\(length) bytes, seed \(seed)")
      #expect(ends.theirs(ends.theirReceiver.unprotectRTCP, sealed) == plain, "\(length) bytes, seed \(seed)")
    }
    #expect(refused == 0, "seed \(seed)")
  }

  /// Each byte with a random bit changed, then each proper prefix.
  private static func forgeries(of packet: [UInt8], from generator: inout SeededGenerator) -> [[UInt8]] {
    packet.indices.map { i in
      var forged = packet
      forged[i] ^= 1 << UInt8(generator.next() % 8)
      return forged
    } + packet.indices.map { Array(packet[..<$0]) }
  }
}
