import CSRTP
import Glibc
import MediaModel
import Seeded
import Testing
import Transport

/// Each profile compared with libsrtp2, in both directions, across two rollovers of the sequence number, with
/// reordering, losses, duplicates and replays.
struct SRTPOracleTests {
  private static let count = 1 << 17
  private static let capacity = 256

  /// A packet of a reproducible stream: a header, sometimes with an extension, and a payload of varying length.
  private static func writePacket(_ i: Int, _ ssrc: UInt32, to packet: UnsafeMutableRawPointer) -> (
    header: Int, length: Int
  ) {
    let hasExtension = i % 5 == 0
    packet.storeBytes(of: hasExtension ? 0x90 : 0x80, as: UInt8.self)
    packet.storeBytes(of: UInt8(i % 128), toByteOffset: 1, as: UInt8.self)
    packet.storeBytes(of: UInt16(truncatingIfNeeded: i + 30_000).bigEndian, toByteOffset: 2, as: UInt16.self)
    packet.storeBytes(of: UInt32(i &* 960).bigEndian, toByteOffset: 4, as: UInt32.self)
    packet.storeBytes(of: ssrc.bigEndian, toByteOffset: 8, as: UInt32.self)
    var header = 12
    if hasExtension {
      packet.storeBytes(of: UInt64(0xbede_0001_1080_0000).bigEndian, toByteOffset: 12, as: UInt64.self)
      header = 20
    }
    let length = header + i % 61
    (packet + header).initializeMemory(as: UInt8.self, repeating: UInt8(truncatingIfNeeded: i), count: length - header)
    return (header, length)
  }

  /// The order of arrival: blocks of 16 shuffled, one in 50 lost, one in 50 twice.
  private static func arrivals(_ generator: inout SeededGenerator) -> [Int] {
    stride(from: 0, to: count, by: 16).flatMap { start in
      (start..<start + 16).shuffled(using: &generator).flatMap { i in
        switch generator.next() % 50 {
        case 0: [] as [Int]
        case 1: [i, i]
        default: [i]
        }
      }
    }
  }

  @Test(arguments: SRTPProfile.allCases)
  func libsrtpOpensWhatIsSent(profile: SRTPProfile) {
    var generator = SeededGenerator(seed: 1)
    let master = SRTPMasterKey(profile, from: &generator)
    let sender = SRTPSender(profile: profile, master: master)
    let oracle = SRTPOracle(profile: profile, master: master, .receiving)
    let (plain, packet) = (Self.buffer(), Self.buffer())
    defer {
      plain.deallocate()
      packet.deallocate()
    }
    var seen = Set<Int>()
    var faults = 0
    for i in Self.arrivals(&generator) {
      let (header, length) = Self.writePacket(i, 0xfeed_beef, to: plain.baseAddress.unsafelyUnwrapped)
      packet.copyMemory(from: UnsafeRawBufferPointer(rebasing: plain[..<header]))
      // The payload in the three forms that a forwarder uses: all from the source, a written prefix, all in place.
      let prefix = [0, min(3, length - header), length - header][i % 3]
      UnsafeMutableRawBufferPointer(rebasing: packet[header...])
        .copyMemory(from: UnsafeRawBufferPointer(rebasing: plain[header..<header + prefix]))
      let protected = sender.protectRTP(
        packet, headerLength: header, prefixLength: prefix,
        payload: UnsafeRawBufferPointer(rebasing: plain[header + prefix..<length]))
      let isFirst = seen.insert(i).inserted
      guard let protected else {
        // Only a second use of a nonce is refused.
        faults += isFirst ? 1 : 0
        continue
      }
      let opened = oracle.unprotectRTP(packet.baseAddress.unsafelyUnwrapped, protected)
      if !isFirst || opened != length || protected != length + profile.rtpOverhead
        || memcmp(packet.baseAddress.unsafelyUnwrapped, plain.baseAddress.unsafelyUnwrapped, length) != 0
      {
        faults += 1
      }
    }
    #expect(faults == 0)
    #expect(seen.count > Self.count * 9 / 10)
  }

  @Test(arguments: SRTPProfile.allCases)
  func packetsOfLibsrtpAreOpened(profile: SRTPProfile) {
    var generator = SeededGenerator(seed: 2)
    let master = SRTPMasterKey(profile, from: &generator)
    let receiver = SRTPReceiver(profile: profile, master: master)
    let oracle = SRTPOracle(profile: profile, master: master, .sending)
    let (plain, packet) = (Self.buffer(), Self.buffer())
    defer {
      plain.deallocate()
      packet.deallocate()
    }
    let arrivals = Self.arrivals(&generator)
    var sent = 0
    var protected = [Int: [UInt8]]()
    var opened = Set<Int>()
    var faults = 0
    for i in arrivals {
      // libsrtp sends in order, a block ahead of what arrives.
      while sent <= min(i / 16 * 16 + 15, Self.count - 1) {
        let (_, length) = Self.writePacket(sent, 0x0102_0304, to: packet.baseAddress.unsafelyUnwrapped)
        guard let length = oracle.protectRTP(packet.baseAddress.unsafelyUnwrapped, length) else { break }
        protected[sent] = Array(UnsafeRawBufferPointer(rebasing: packet[..<length]))
        protected[sent - 64] = nil
        sent += 1
      }
      let (_, length) = Self.writePacket(i, 0x0102_0304, to: plain.baseAddress.unsafelyUnwrapped)
      let bytes = protected[i] ?? []
      packet.copyBytes(from: bytes)
      let outcome = receiver.unprotectRTP(UnsafeMutableRawBufferPointer(rebasing: packet[..<bytes.count]))
      let expected = opened.insert(i).inserted ? Unprotected.packet(length: length) : .dropped(.replayed)
      if outcome != expected { faults += 1 }
      if case .packet = expected,
        memcmp(packet.baseAddress.unsafelyUnwrapped, plain.baseAddress.unsafelyUnwrapped, length) != 0
      {
        faults += 1
      }
    }
    #expect(faults == 0)
  }

  @Test(arguments: SRTPProfile.allCases)
  func rtcpIsTheSameBothWays(profile: SRTPProfile) {
    var generator = SeededGenerator(seed: 3)
    let master = SRTPMasterKey(profile, from: &generator)
    let ours = (SRTPSender(profile: profile, master: master), SRTPReceiver(profile: profile, master: master))
    let theirs = (
      SRTPOracle(profile: profile, master: master, .sending), SRTPOracle(profile: profile, master: master, .receiving)
    )
    let packet = Self.buffer(2048)
    defer { packet.deallocate() }
    let base = packet.baseAddress.unsafelyUnwrapped
    for length in Array(8...200) + [1000, 1496] {
      let plain = hex("81c8000d 4d617273") + generator.bytes(length - 8)
      packet.copyBytes(from: plain)
      let sent = ours.0.protectRTCP(packet, length: length)
      #expect(sent == length + profile.rtcpOverhead)
      #expect(theirs.1.unprotectRTCP(base, sent ?? 0) == length)
      #expect(packet.prefix(length).elementsEqual(plain))

      guard let received = theirs.0.protectRTCP(base, length) else {
        Issue.record("libsrtp refused \(length) bytes")
        continue
      }
      let copy = Array(packet.prefix(received))
      #expect(ours.1.unprotectRTCP(.init(rebasing: packet[..<received])) == .packet(length: length))
      #expect(packet.prefix(length).elementsEqual(plain))
      packet.copyBytes(from: copy)
      #expect(ours.1.unprotectRTCP(.init(rebasing: packet[..<received])) == .dropped(.replayed))
    }
  }

  @Test(arguments: SRTPProfile.allCases)
  func eachLengthFromEmptyToFullGoesBothWays(profile: SRTPProfile) {
    var generator = SeededGenerator(seed: 4)
    let master = SRTPMasterKey(profile, from: &generator)
    let ours = (SRTPSender(profile: profile, master: master), SRTPReceiver(profile: profile, master: master))
    let theirs = (
      SRTPOracle(profile: profile, master: master, .sending), SRTPOracle(profile: profile, master: master, .receiving)
    )
    let packet = Self.buffer(2048)
    defer { packet.deallocate() }
    let base = packet.baseAddress.unsafelyUnwrapped
    var faults = 0
    for length in 0...1500 {
      let header: [UInt8] = [0x80, 96, UInt8(length >> 8), UInt8(length & 255), 0, 0, 0, 1, 9, 9, 9, 9]
      let payload = generator.bytes(length)
      let padding = UInt8(length % 4)
      let whole = header + payload + (padding == 0 ? [] : (1...padding).map { $0 == padding ? padding : 0 })
      packet.copyBytes(from: header)
      let sent = payload.withUnsafeBytes {
        ours.0.protectRTP(packet, headerLength: 12, payload: $0, padding: padding)
      }
      if theirs.1.unprotectRTP(base, sent ?? 0) != whole.count { faults += 1 }
      if memcmp(base, whole, whole.count) != 0 { faults += 1 }
      packet.copyBytes(from: whole)
      let received = theirs.0.protectRTP(base, whole.count) ?? 0
      if ours.1.unprotectRTP(.init(rebasing: packet[..<received])) != .packet(length: whole.count) { faults += 1 }
      if memcmp(base, whole, whole.count) != 0 { faults += 1 }
    }
    #expect(faults == 0)
  }

  private static func buffer(_ capacity: Int = capacity) -> UnsafeMutableRawBufferPointer {
    .allocate(byteCount: capacity, alignment: 16)
  }
}
