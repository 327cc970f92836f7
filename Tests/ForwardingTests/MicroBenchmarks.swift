import CongestionControl
import Foundation
import LinuxIO
import MediaModel
import RTP
import Testing
import Transport

@testable import Forwarding

/// The parts of the packet path, one by one. `deploy/bench` runs them and compares each with the part of a bare loop in
/// C (loadtest/tools/packet-loop.c) whose name follows the figure.
@Suite(.serialized, .enabled(if: isRelease))
struct MicroBenchmarks {
  private static let rounds = 20

  /// Prints the best of several rounds of `count` times `body`, in ns for each of the `each` units in it.
  private func measure(
    _ name: String, like baseline: String = "-", count: Int, each: Int = 1, _ body: (Int) -> Void
  ) {
    var best = Double.infinity
    for round in 0..<Self.rounds {
      let start = ThreadClock.now()
      for i in 0..<count { body(round * count + i) }
      best = min(best, Double(ThreadClock.now() - start) / Double(count * each))
    }
    print("bench|\(name)|\(String(format: best < 100 ? "%.1f" : "%.0f", best))|\(baseline)")
  }

  /// A VP8 packet with a browser's extensions, and room behind it.
  private static func packet() -> UnsafeMutableRawBufferPointer {
    let packet = UnsafeMutableRawBufferPointer.allocate(byteCount: 1500, alignment: 64)
    packet.initializeMemory(as: UInt8.self, repeating: 0)
    RTPHeader.write(marker: true, payloadType: 96, sequenceNumber: 1, timestamp: 2, ssrc: 3, into: packet)
    var writer = HeaderExtensionWriter(packet)
    writer.append(1, "video0")
    writer.append(2, 77)
    let header = writer.finish()
    packet[header...].copyBytes(from: [0x90, 0xd0, 0x81, 0x02, 0x03, 0x05])
    return packet
  }

  @Test func parse() {
    let packet = Self.packet()
    defer { packet.deallocate() }
    let bytes = UnsafeRawBufferPointer(rebasing: packet[..<1200])
    var sum = 0
    measure("parse: header, one extension, VP8 descriptor", like: "parse", count: 20_000) { _ in
      guard let header = RTPHeader(parsing: bytes.bytes) else { return }
      sum &+= HeaderExtensions(header)?.element(2, in: bytes.bytes)?.offset ?? 0
      let payload = UnsafeRawBufferPointer(rebasing: bytes[header.payloadRange])
      sum &+= Int(VP8Descriptor(parsing: payload.bytes)?.pictureID ?? 0)
    }
    #expect(sum > 0)
  }

  @Test func rewrite() {
    let (source, packet) = (Self.packet(), Self.packet())
    defer {
      source.deallocate()
      packet.deallocate()
    }
    let bytes = UnsafeRawBufferPointer(rebasing: source[..<1200])
    guard let header = RTPHeader(parsing: bytes.bytes), let extensions = HeaderExtensions(header) else {
      Issue.record("the packet has no extensions")
      return
    }
    let payload = UnsafeRawBufferPointer(rebasing: bytes[header.payloadRange])
    guard let descriptor = VP8Descriptor(parsing: payload.bytes) else {
      Issue.record("the packet has no descriptor")
      return
    }
    var map = HeaderExtensionMap()
    map[2] = 5
    measure("rewrite: header, extensions, VP8 descriptor", like: "rewrite", count: 20_000) { i in
      RTPHeader.rewrite(
        payloadType: 97, sequenceNumber: UInt16(truncatingIfNeeded: i), timestamp: 7, ssrc: 9, in: packet)
      var writer = HeaderExtensionWriter(packet)
      writer.append(1, "s1")
      _ = writer.append(extensions, of: bytes, by: map, noting: 2)
      let length = writer.finish()
      let copy = UnsafeMutableRawBufferPointer(rebasing: packet[length..<length + descriptor.length])
      copy.copyMemory(from: UnsafeRawBufferPointer(rebasing: payload[..<descriptor.length]))
      descriptor.rewrite(pictureID: UInt16(i & 0x7fff), tl0PictureIndex: 1, keyIndex: 2, in: copy)
    }
    #expect(packet[1] & 0x7f == 97)
  }

  @Test func select() throws {
    let stream = try RecordedStream(named: "chrome-av1-l3t3key-e2ee-2747691869")
    var selector = FrameSelector(at: stream.frames[0].frame, target: 0)
    var admitted = 0
    measure("select: a frame, by its dependency descriptor", count: 200 * stream.frames.count) { i in
      let place = i % stream.frames.count
      if place == 0 { selector = FrameSelector(at: stream.frames[0].frame, target: 4) }
      if selector.admits(stream.frames[place].frame, wanted: 4, stream.frames[place].structure) { admitted += 1 }
    }
    #expect(admitted > 0)
  }

  @Test(arguments: [(SRTPProfile.aeadAES128GCM, "gcm"), (.aes128CMSHA1Tag80, "cm")], [1200, 137])
  func protect(profile: (SRTPProfile, String), length: Int) {
    let master = SRTPMasterKey(
      key: [UInt8](repeating: 1, count: 16), salt: [UInt8](repeating: 2, count: profile.0.saltLength))
    let sender = SRTPSender(profile: profile.0, master: master)
    let (source, packet) = (Self.packet(), Self.packet())
    defer {
      source.deallocate()
      packet.deallocate()
    }
    RTPHeader.write(marker: false, payloadType: 96, sequenceNumber: 0, timestamp: 2, ssrc: 3, into: packet)
    let payload = UnsafeRawBufferPointer(rebasing: source[..<(length - 12)])
    var protected = 0
    measure(
      "protect: \(length) bytes, AES-128-\(profile.1 == "gcm" ? "GCM" : "CM with HMAC-SHA1")",
      like: "\(profile.1)-\(length)", count: 2000
    ) { i in
      RTPHeader.rewrite(
        payloadType: 96, sequenceNumber: UInt16(truncatingIfNeeded: i), timestamp: 7, ssrc: 9, in: packet)
      if sender.protectRTP(packet, headerLength: 12, payload: payload) != nil { protected += 1 }
    }
    #expect(protected == Self.rounds * 2000)
  }

  /// From the datagram of one sender to 50 in the outbox.
  @Test(arguments: lengths) func forward(payload: Int, length: Int) throws {
    try measureForwarding("`SFU.handle`, 1 to 50, \(length) bytes", like: "forward-\(length)", payload: payload) { _ in
    }
  }

  /// The same, and to a socket on loopback, 16 packets for each receiver at a time.
  @Test(arguments: lengths) func forwardAndSend(payload: Int, length: Int) throws {
    let receiver = try DrainedSocket()
    let sender = try UDPSocket(port: 0)
    var messages: [DatagramRun] = []
    try measureForwarding(
      "`SFU.handle` and `UDPSocket.send`, 1 to 50, \(length) bytes", like: "sent-\(length)", payload: payload
    ) { runs in
      messages.removeAll(keepingCapacity: true)
      for var run in runs {
        run.destination = receiver.address
        messages.append(run)
      }
      messages.withUnsafeBufferPointer { sender.send($0) }
    }
    #expect(sender.counters.sent == UInt64((Self.warmUp + Self.packets * Self.rounds) * Self.receivers))
  }

  private static let lengths = [(1183, 1200), (120, 137)]
  private static let receivers = 50
  /// Each a multiple of 16, so that no packet waits for the next round.
  private static let (warmUp, packets) = (960, 160)

  /// Prints the best of several rounds, in ns for each sent packet.
  private func measureForwarding(
    _ name: String, like baseline: String, payload: Int, _ send: (UnsafeBufferPointer<DatagramRun>) -> Void
  ) throws {
    let bench = try ForwardingBench(
      receivers: Self.receivers, packets: Self.warmUp + Self.packets * Self.rounds, payload: payload, isReported: false)
    bench.forward(0..<Self.warmUp, batch: 16, send)
    measure(name, like: baseline, count: 1, each: Self.packets * Self.receivers) { round in
      let first = Self.warmUp + round * Self.packets
      bench.forward(first..<first + Self.packets, batch: 16, send)
    }
    #expect(bench.forwarded == UInt64((Self.warmUp + Self.packets * Self.rounds) * Self.receivers))
  }

  @Test func estimate() {
    var estimator = RateEstimator(now: 0)
    var now: Microseconds = 0
    measure("estimate: a packet sent and reported, ten in a report", count: 20_000) { i in
      now += 1000
      estimator.sent(UInt16(truncatingIfNeeded: i), size: 1200, kind: .video, probe: 0, now: now)
      guard i % 10 == 9 else { return }
      for number in i - 9...i {
        estimator.received(
          UInt16(truncatingIfNeeded: number), arrival: now + Int64(number - i) * 1000, now: now + 20_000)
      }
      estimator.endReport(now: now + 20_000)
      estimator.tick(now: now)
    }
    #expect(estimator.acknowledgedRate ?? 0 > 1_000_000)
  }
}
