import CAllocations
import MediaModel
import Seeded
import Testing
import Transport

struct SRTPReceiverTests {
  /// A sender and its receiver with a buffer for a packet.
  private final class Path {
    let profile: SRTPProfile
    let sender: SRTPSender
    let receiver: SRTPReceiver
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 2048, alignment: 16)

    init(_ profile: SRTPProfile) {
      var generator = SeededGenerator(seed: 5)
      let master = SRTPMasterKey(profile, from: &generator)
      self.profile = profile
      sender = SRTPSender(profile: profile, master: master)
      receiver = SRTPReceiver(profile: profile, master: master)
    }

    deinit { buffer.deallocate() }

    func rtp(_ sequenceNumber: UInt16, ssrc: UInt32 = 1, payload: Int = 20) -> [UInt8]? {
      writeHeader(sequenceNumber, ssrc)
      let payload = [UInt8](repeating: 7, count: payload)
      let length = payload.withUnsafeBytes { sender.protectRTP(buffer, headerLength: 12, payload: $0) }
      return length.map { Array(buffer.prefix($0)) }
    }

    func rtcp(ssrc: UInt32 = 1, length: Int = 28) -> [UInt8]? {
      buffer.storeBytes(of: UInt32(0x81c8_0006).bigEndian, as: UInt32.self)
      buffer.storeBytes(of: ssrc.bigEndian, toByteOffset: 4, as: UInt32.self)
      return sender.protectRTCP(buffer, length: length).map { Array(buffer.prefix($0)) }
    }

    func writeHeader(_ sequenceNumber: UInt16, _ ssrc: UInt32) {
      buffer.storeBytes(of: UInt32(0x8060_0000 | UInt32(sequenceNumber)).bigEndian, as: UInt32.self)
      buffer.storeBytes(of: 0, toByteOffset: 4, as: UInt32.self)
      buffer.storeBytes(of: ssrc.bigEndian, toByteOffset: 8, as: UInt32.self)
    }

    func receive(_ packet: [UInt8]?) -> Unprotected {
      var packet = packet ?? []
      return packet.withUnsafeMutableBytes { receiver.unprotectRTP($0) }
    }

    func receiveRTCP(_ packet: [UInt8]?) -> Unprotected {
      var packet = packet ?? []
      return packet.withUnsafeMutableBytes { receiver.unprotectRTCP($0) }
    }
  }

  @Test(arguments: SRTPProfile.allCases)
  func opensEachPacketOnceAndKnows1024(profile: SRTPProfile) {
    let path = Path(profile)
    let packets = (0...1024).map { path.rtp(UInt16($0)) }
    #expect(path.receive(packets[1024]) == .packet(length: 32))
    #expect(path.receive(packets[0]) == .dropped(.replayed), "1024 behind")
    #expect(path.receive(packets[1]) == .packet(length: 32), "1023 behind")
    #expect(path.receive(packets[1]) == .dropped(.replayed))
    #expect(path.receive(packets[1024]) == .dropped(.replayed))
  }

  @Test(arguments: SRTPProfile.allCases)
  func aForgeryMovesNothing(profile: SRTPProfile) {
    let path = Path(profile)
    let packets = (0..<3).map { path.rtp(UInt16($0)) }
    #expect(path.receive(packets[0]) == .packet(length: 32))
    var forged = packets[1] ?? []
    forged[2] = 0x7f
    #expect(path.receive(forged) == .dropped(.unauthenticated))
    forged = packets[1] ?? []
    forged[13] ^= 1
    #expect(path.receive(forged) == .dropped(.unauthenticated))
    #expect(path.receive(packets[1]) == .packet(length: 32))
    #expect(path.receive(packets[2]) == .packet(length: 32))
  }

  @Test(arguments: SRTPProfile.allCases)
  func dropsWhatIsShorterThanItsParts(profile: SRTPProfile) {
    let path = Path(profile)
    let rtp = path.rtp(1, payload: 0) ?? []
    let rtcp = path.rtcp(length: 8) ?? []
    #expect(rtp.count == 12 + profile.rtpOverhead && rtcp.count == 8 + profile.rtcpOverhead)
    for count in 0..<rtp.count { #expect(path.receive(Array(rtp.prefix(count))) == .dropped(.malformed)) }
    for count in 0..<rtcp.count { #expect(path.receiveRTCP(Array(rtcp.prefix(count))) == .dropped(.malformed)) }
    #expect(path.receive(rtp) == .packet(length: 12))
    #expect(path.receiveRTCP(rtcp) == .packet(length: 8))
  }

  @Test(arguments: SRTPProfile.allCases)
  func dropsAHeaderThatReachesIntoTheTag(profile: SRTPProfile) {
    let path = Path(profile)
    var packet = path.rtp(1, payload: 20) ?? []
    packet[0] = 0x8f  // 15 CSRCs: 60 bytes
    #expect(path.receive(packet) == .dropped(.malformed))
    packet[0] = 0x90  // an extension of 0x0707 words
    #expect(path.receive(packet) == .dropped(.malformed))
    packet[0] = 0x40  // version 1
    #expect(path.receive(packet) == .dropped(.malformed))
  }

  @Test(arguments: SRTPProfile.allCases)
  func refusesUnencryptedRTCP(profile: SRTPProfile) {
    let path = Path(profile)
    var packet = path.rtcp() ?? []
    packet[profile == .aes128CMSHA1Tag80 ? packet.count - 14 : packet.count - 4] &= 0x7f
    #expect(path.receiveRTCP(packet) == .dropped(.unauthenticated))
  }

  @Test(arguments: SRTPProfile.allCases)
  func keepsABoundedNumberOfSources(profile: SRTPProfile) {
    let path = Path(profile)
    for ssrc in 1...256 as ClosedRange<UInt32> {
      #expect(path.receive(path.rtp(1, ssrc: ssrc)) == .packet(length: 32))
    }
    #expect(path.rtp(1, ssrc: 257) == nil, "the sender does not keep more either")
    let other = Path(profile)
    #expect(path.receive(other.rtp(1, ssrc: 257)) == .dropped(.tooManySources))
    #expect(path.receive(path.rtp(2, ssrc: 200)) == .packet(length: 32), "the known ones continue")
  }

  @Test(arguments: SRTPProfile.allCases)
  func theSenderUsesNoNonceTwice(profile: SRTPProfile) {
    let path = Path(profile)
    #expect(path.rtp(5) != nil)
    #expect(path.rtp(5) == nil)
    #expect(path.rtp(4) != nil, "late, but not used before")
    #expect(path.rtp(4) == nil)
    #expect(path.rtp(2000) != nil)
    #expect(path.rtp(900) == nil, "too late to tell")
    #expect(path.rtp(5, ssrc: 2) != nil, "another source")
  }

  /// Allocations are counted in every library, including OpenSSL and Swift's.
  @Test(.enabled(if: allocations_are_counted()), arguments: SRTPProfile.allCases)
  func allocatesNothingPerPacket(profile: SRTPProfile) {
    let path = Path(profile)
    let payload = [UInt8](repeating: 1, count: 1200)
    var opened = 0
    func exchange(_ sequenceNumber: UInt16, _ ssrc: UInt32) {
      path.writeHeader(sequenceNumber, ssrc)
      let length = payload.withUnsafeBytes { path.sender.protectRTP(path.buffer, headerLength: 12, payload: $0) }
      let packet = UnsafeMutableRawBufferPointer(start: path.buffer.baseAddress, count: length ?? 0)
      if case .packet = path.receiver.unprotectRTP(packet) { opened += 1 }
      if case .dropped(.replayed) = path.receiver.unprotectRTP(packet) {} else { opened -= 1 }
      path.writeHeader(sequenceNumber, ssrc)
      let rtcp = path.sender.protectRTCP(path.buffer, length: 60)
      let compound = UnsafeMutableRawBufferPointer(start: path.buffer.baseAddress, count: rtcp ?? 0)
      if case .packet = path.receiver.unprotectRTCP(compound) { opened += 1 }
    }
    // There is no iteration over ranges here, since it allocates without optimisation.
    var before: UInt = 0
    var i: UInt32 = 0
    while i < 3003 {
      if i == 3 { before = allocations_of_this_thread() }
      exchange(UInt16(i / 3), i % 3)
      i += 1
    }
    #expect(allocations_of_this_thread() - before == 0)
    #expect(opened == 2 * 3003)
  }

  @Test(arguments: SRTPProfile.allCases)
  func survivesMutations(profile: SRTPProfile) {
    let path = Path(profile)
    let seed: UInt64 = 0x5254_5000
    var generator = SeededGenerator(seed: seed)
    let seeds =
      (0..<8).map { path.rtp(UInt16($0), payload: $0 * 9) ?? [] } + (0..<8).map { path.rtcp(length: 8 + $0 * 4) ?? [] }
    for _ in 0..<10_000 {
      let original = seeds[Int(generator.next() % 16)]
      let packet = generator.mutated(original)
      guard packet != original else { continue }
      if case .packet = path.receive(packet) { Issue.record("opened as RTP, seed \(seed): \(packet)") }
      if case .packet = path.receiveRTCP(packet) { Issue.record("opened as RTCP, seed \(seed): \(packet)") }
    }
  }
}
