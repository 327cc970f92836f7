import CAllocations
import LinuxIO
import Seeded
import Testing
import Transport

/// The CPU time for a packet of 1,200 and of 137 bytes, compared with libsrtp2's in the same run. Allocations are not
/// counted under sanitizers, and their times are meaningless.
@Suite(.serialized, .enabled(if: allocations_are_counted())) struct SRTPCostTests {
  /// AES-CM once used libsrtp2, and cost more than everything else in the server.
  @Test func counterModeCostsLessThanLibsrtp() {
    for length in [1200, 137] {
      let ours = Self.cost(of: .aes128CMSHA1Tag80, length)
      let theirs = Self.oracleCost(of: .aes128CMSHA1Tag80, length)
      print("AES-CM, \(length) B: protect \(ours.protect), open \(ours.open), libsrtp2 protects in \(theirs) ns")
      #expect(ours.protect > 0 && ours.open > 0 && max(ours.protect, ours.open) < theirs)
    }
  }

  /// AES-GCM reads a packet once, AES-CM with HMAC-SHA1 twice.
  @Test(arguments: [SRTPProfile.aeadAES128GCM, .aeadAES256GCM])
  func gcmCostsLessThanCounterMode(profile: SRTPProfile) {
    let gcm = Self.cost(of: profile, 1200)
    let small = Self.cost(of: profile, 137)
    print("\(profile): protect \(gcm.protect), open \(gcm.open); 137 B: \(small.protect), \(small.open) ns")
    #expect(gcm.protect > 0 && gcm.protect < Self.cost(of: .aes128CMSHA1Tag80, 1200).protect)
  }

  private static let count = 4000

  /// The best of several rounds, in ns a packet.
  private static func cost(of profile: SRTPProfile, _ length: Int) -> (protect: Int, open: Int) {
    var generator = SeededGenerator(seed: 1)
    let master = SRTPMasterKey(profile, from: &generator)
    let sender = SRTPSender(profile: profile, master: master)
    let receiver = SRTPReceiver(profile: profile, master: master)
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 1500 * 32, alignment: 64)
    let payload = UnsafeMutableRawBufferPointer.allocate(byteCount: length, alignment: 64)
    defer {
      room.deallocate()
      payload.deallocate()
    }
    payload.initializeMemory(as: UInt8.self, repeating: 1)
    var best = (protect: Int.max, open: Int.max)
    var sequenceNumber: UInt16 = 0
    var lost = 0
    for _ in 0..<10 {
      var spent = (protect: UInt64(0), open: UInt64(0))
      for _ in 0..<count / 32 {
        var lengths = [Int](repeating: 0, count: 32)
        for i in 0..<32 { writeHeader(sequenceNumber &+ UInt16(i), to: room.baseAddress.unsafelyUnwrapped + 1500 * i) }
        let start = ThreadClock.now()
        for i in 0..<32 {
          let packet = UnsafeMutableRawBufferPointer(rebasing: room[(1500 * i)..<(1500 * (i + 1))])
          lengths[i] =
            sender.protectRTP(
              packet, headerLength: 12, payload: UnsafeRawBufferPointer(rebasing: payload[..<(length - 12)])) ?? 0
        }
        let middle = ThreadClock.now()
        for i in 0..<32 {
          let packet = UnsafeMutableRawBufferPointer(rebasing: room[(1500 * i)..<(1500 * i + lengths[i])])
          if receiver.unprotectRTP(packet) != .packet(length: length) { lost += 1 }
        }
        spent.open += ThreadClock.now() - middle
        spent.protect += middle - start
        sequenceNumber &+= 32
      }
      best = (min(best.protect, Int(spent.protect) / count), min(best.open, Int(spent.open) / count))
    }
    #expect(lost == 0)
    return best
  }

  private static func oracleCost(of profile: SRTPProfile, _ length: Int) -> Int {
    var generator = SeededGenerator(seed: 1)
    let oracle = SRTPOracle(profile: profile, master: SRTPMasterKey(profile, from: &generator), .sending)
    let packet = UnsafeMutableRawBufferPointer.allocate(byteCount: 1500, alignment: 64)
    defer { packet.deallocate() }
    packet.initializeMemory(as: UInt8.self, repeating: 0)
    let base = packet.baseAddress.unsafelyUnwrapped
    var best = Int.max
    var sequenceNumber: UInt16 = 0
    for _ in 0..<10 {
      let start = ThreadClock.now()
      for _ in 0..<count {
        writeHeader(sequenceNumber, to: base)
        guard oracle.protectRTP(base, length) != nil else { return 0 }
        sequenceNumber &+= 1
      }
      best = min(best, Int(ThreadClock.now() - start) / count)
    }
    return best
  }

  private static func writeHeader(_ sequenceNumber: UInt16, to packet: UnsafeMutableRawPointer) {
    packet.storeBytes(of: (0x8060_0000 | UInt32(sequenceNumber)).bigEndian, as: UInt32.self)
    packet.storeBytes(of: 0, toByteOffset: 4, as: UInt32.self)
    packet.storeBytes(of: UInt32(1).bigEndian, toByteOffset: 8, as: UInt32.self)
  }
}
