import MediaModel
import Octets
import RTP
import Transport

@testable import Forwarding

/// A member who has keys and sends what no client would, as `HostileStrategy` decides, millisecond by millisecond.
final class HostileMember {
  let peer: TestPeer
  unowned let call: SimulatedCall
  var random: SplitMix64
  /// Milliseconds since it began.
  var tick = 0
  /// The state of its strategies.
  var sequence: UInt16
  var timestamp: UInt32
  var reference: UInt32
  private var reports: UInt8 = 0

  init(_ peer: TestPeer, in call: SimulatedCall, seed: UInt64) {
    self.peer = peer
    self.call = call
    random = SplitMix64(seed: seed)
    sequence = UInt16(truncatingIfNeeded: random.next())
    timestamp = UInt32(truncatingIfNeeded: random.next())
    reference = UInt32(truncatingIfNeeded: random.next())
    for track in peer.tracks { track.isSending = false }
  }

  func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }
  func chance(_ percent: Int) -> Bool { number(1...100) <= percent }
  func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) } }

  func track(_ kind: MediaKind) -> TestTrack {
    peer.tracks.filter { $0.description.source.kind == kind }.randomElement(using: &random)!
  }
  func slot() -> SlotDescription { peer.configuration.slots.randomElement(using: &random)! }

  /// Sends a packet of a track with this payload.
  /// - Parameters:
  ///   - type: nil for the track's own payload type.
  ///   - level: of RFC 6464, 0 is the loudest.
  ///   - elements: more header extensions.
  func send(
    _ track: TestTrack, ssrc: UInt32? = nil, sequence: UInt16, timestamp: UInt32, type: UInt8? = nil, level: UInt8 = 20,
    marker: Bool = true, elements: [(UInt8, [UInt8])] = [], _ payload: [UInt8]
  ) {
    var header = [UInt8](repeating: 0, count: 400)
    let length = header.withUnsafeMutableBytes { buffer in
      RTPHeader.write(
        marker: marker, payloadType: type ?? track.description.formats[0].payloadType, sequenceNumber: sequence,
        timestamp: timestamp, ssrc: ssrc ?? track.ssrc, into: buffer)
      var writer = HeaderExtensionWriter(buffer, hasTwoByteHeaders: elements.contains { $0.1.count > 16 })
      writer.append(peer.configuration.extensions.mid, Array(track.description.mid.utf8).span)
      if !track.isVideo { writer.append(peer.configuration.extensions.audioLevel, [0x80 | level].span) }
      for (id, data) in elements { writer.append(id, data.span) }
      return writer.finish()
    }
    peer.send(Array(header[..<length]) + payload)
  }

  /// The next packet of a track, with its proper numbers.
  func sendNext(_ track: TestTrack, length: Int, level: UInt8 = 20, elements: [(UInt8, [UInt8])] = []) {
    track.sequenceNumber &+= 1
    track.timestamp &+= track.isVideo ? 3_000 : 960
    send(
      track, sequence: track.sequenceNumber, timestamp: track.timestamp, level: level, elements: elements,
      payload(track, length: length))
  }

  /// A body after a valid VP8 descriptor, which sometimes indicates a key frame.
  func payload(_ track: TestTrack, length: Int) -> [UInt8] {
    let body = bytes(length)
    guard track.isVideo else { return body }
    return [
      0x90, 0xd0, 0x80 | UInt8(number(0...127)), UInt8(number(0...255)), UInt8(number(0...255)), 5, chance(20) ? 0 : 1,
    ]
      + body
  }

  /// Transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01) of `count` packets.
  /// - Parameter symbol: for all of them: 0 not received, 1 a small delta, 2 a large one.
  func report(from first: UInt16, count: Int, reference: UInt32, symbol: Int, delta: UInt16) {
    reports &+= 1
    var body: [UInt8] = [0, 0, 0, 1, 0, 0, 0, 1]
    body += [UInt8(first >> 8), UInt8(first & 255), UInt8(count >> 8), UInt8(count & 255)]
    body += [UInt8(reference >> 16 & 255), UInt8(reference >> 8 & 255), UInt8(reference & 255), reports]
    let chunk = UInt16(symbol << 13 | count)
    body += [UInt8(chunk >> 8), UInt8(chunk & 255)]
    for _ in 0..<(symbol == 0 ? 0 : count) {
      if symbol == 2 { body.append(UInt8(delta >> 8)) }
      body.append(UInt8(delta & 255))
    }
    while body.count % 4 != 0 { body.append(0) }
    let words = body.count / 4
    peer.sendRTCP([0x8f, 205, UInt8(words >> 8), UInt8(words & 255)] + body)
  }

  /// A receiver's estimate (draft-alvestrand-rmcat-remb-03).
  func estimate(exponent: Int, mantissa: Int) {
    peer.sendRTCP(
      [0x8f, 206, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0] + Array("REMB".utf8) + [
        1, UInt8(exponent << 2 | mantissa >> 16), UInt8(mantissa >> 8 & 255), UInt8(mantissa & 255), 0, 0, 0, 9,
      ])
  }
}
