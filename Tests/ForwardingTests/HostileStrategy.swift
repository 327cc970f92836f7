import MediaModel
import Octets
import RTP

@testable import Forwarding

/// The actions of a hostile member in one millisecond. The table has a row for each known attack.
struct HostileStrategy: Sendable {
  var name: String
  /// False for a row whose defence does not exist yet.
  var isOn = true
  var act: @Sendable (HostileMember) -> Void

  static let all: [HostileStrategy] = media + numbers + reports + requests + signaling

  static let enabled = all.filter(\.isOn)

  /// Too much media.
  private static let media = [
    HostileStrategy(name: "audio flood") { member in
      for _ in 0..<2 { member.sendNext(member.track(.audio), length: member.number(1...60)) }
    },
    HostileStrategy(name: "video flood") { member in
      for _ in 0..<4 { member.sendNext(member.track(.video), length: 400) }
    },
    HostileStrategy(name: "flood of all tracks") { member in
      for track in member.peer.tracks { member.sendNext(track, length: 30) }
    },
    HostileStrategy(name: "fake speaker") { member in
      if member.tick % 20 == 0 { member.sendNext(member.track(.audio), length: 20, level: UInt8(member.number(0...2))) }
    },
    HostileStrategy(name: "retransmissions of nonsense") { member in
      let track = member.track(.video)
      guard let type = track.description.formats[0].rtxPayloadType else { return }
      track.rtxSequenceNumber &+= 1
      let original = [UInt8(member.number(0...255)), UInt8(member.number(0...255))]
      member.send(
        track, ssrc: track.rtxSSRC, sequence: track.rtxSequenceNumber, timestamp: track.timestamp, type: type,
        Array((original + member.payload(track, length: 40)).prefix(member.number(0...60))))
    },
    HostileStrategy(name: "unknown payload types and streams") { member in
      member.sequence &+= 1
      member.send(
        member.track(member.chance(50) ? .audio : .video),
        ssrc: member.chance(50) ? UInt32(member.number(1...90_000)) : nil,
        sequence: member.sequence, timestamp: 1, type: UInt8(member.number(0...127)), member.bytes(20))
    },
  ]

  /// Numbers and times that do not occur in real streams.
  private static let numbers = [
    HostileStrategy(name: "sequence jumps of video") { member in
      guard member.tick % 4 == 0 else { return }
      let track = member.track(.video)
      track.sequenceNumber &+= UInt16(member.number(1...(member.chance(30) ? 32_000 : 3)))
      member.sendNext(track, length: 50)
    },
    HostileStrategy(name: "sequence jumps of audio") { member in
      guard member.tick % 5 == 0 else { return }
      let track = member.track(.audio)
      track.sequenceNumber &+= UInt16(member.number(0...(member.chance(30) ? 32_000 : 1)))
      member.sendNext(track, length: 20)
    },
    HostileStrategy(name: "sequence numbers that go back") { member in
      let track = member.track(member.chance(50) ? .video : .audio)
      track.sequenceNumber &-= UInt16(member.number(0...3))
      member.sendNext(track, length: 30)
    },
    HostileStrategy(name: "times that jump") { member in
      let track = member.track(member.chance(50) ? .video : .audio)
      track.timestamp = UInt32(truncatingIfNeeded: member.random.next())
      if member.tick % 3 == 0 { member.sendNext(track, length: 60) }
    },
    HostileStrategy(name: "equal times that fill histories") { member in
      for _ in 0..<2 {
        let track = member.track(.video)
        track.timestamp &-= 3_000
        member.sendNext(track, length: 20)
      }
    },
    HostileStrategy(name: "dependency descriptors of nonsense") { member in
      guard member.tick % 2 == 0 else { return }
      let id = member.peer.configuration.extensions.dependencyDescriptor
      let start: [UInt8] = [
        UInt8(member.number(0...255)), UInt8(member.number(0...255)), UInt8(member.number(0...255)),
      ]
      member.sendNext(
        member.track(.video), length: 40, elements: [(id, start + member.bytes(member.number(0...40)))])
    },
    HostileStrategy(name: "layers that change") { member in
      let extensions = member.peer.configuration.extensions
      let track = member.track(.video)
      member.sequence &+= 1
      let layer = member.number(0...2)
      member.send(
        track, ssrc: track.ssrc &+ UInt32(10_000 + layer + 3 * (member.tick / 600)), sequence: member.sequence,
        timestamp: track.timestamp, elements: [(extensions.rid, Array(["q", "h", "f"][layer].utf8))],
        member.payload(track, length: 40))
    },
  ]

  /// Lies about what arrived.
  private static let reports = [
    HostileStrategy(name: "reports with the largest steps") { member in
      member.reference &+= 0x7f_ffff
      member.report(
        from: UInt16(member.number(0...65_535)), count: 1, reference: member.reference & 0xff_ffff, symbol: 2,
        delta: 0x8000)
    },
    HostileStrategy(name: "reports of random numbers") { member in
      member.report(
        from: UInt16(member.number(0...65_535)), count: member.number(1...200),
        reference: UInt32(member.number(0...0xff_ffff)),
        symbol: member.number(0...2), delta: UInt16(member.number(0...65_535)))
    },
    HostileStrategy(name: "everything was lost") { member in
      guard member.tick % 20 == 0 else { return }
      member.report(from: UInt16(member.number(0...65_535)), count: 400, reference: 5, symbol: 0, delta: 0)
      let block = ReportBlock(
        ssrc: member.slot().ssrc, fractionLost: 255, cumulativeLost: 0x7f_ffff, highestSequence: .max, jitter: .max,
        lastSenderReport: .max, delaySinceLastSenderReport: .max)
      member.peer.sendRTCP { $0.receiverReport(ssrc: 1, reports: [block].span) }
    },
    HostileStrategy(name: "estimates that lie") { member in
      member.estimate(exponent: member.chance(30) ? 0 : member.number(0...63), mantissa: member.number(0...0x3ffff))
    },
    HostileStrategy(name: "sender reports of other times") { member in
      let track = member.track(.audio)
      member.peer.sendRTCP {
        $0.senderReport(
          ssrc: track.ssrc, ntp: NTPTimestamp(rawValue: member.random.next()), rtpTimestamp: UInt32(member.tick),
          packetCount: .max,
          octetCount: .max)
      }
    },
  ]

  /// Endless requests.
  private static let requests = [
    HostileStrategy(name: "storm of requests for packets") { member in
      let slot = member.slot()
      let newest = member.peer.streams[slot.ssrc]?.newest ?? UInt16(member.number(0...65_535))
      let numbers = (0..<100).map { newest &- UInt16($0) }
      member.peer.sendRTCP { $0.nack(sender: 1, media: slot.ssrc, missing: numbers.span) }
    },
    HostileStrategy(name: "storm of requests for key frames") { member in
      member.peer.sendRTCP { writer in
        for slot in member.peer.configuration.slots {
          writer.pictureLoss(sender: 1, media: slot.ssrc)
          writer.fullIntraRequest(sender: 1, media: slot.ssrc, sequence: UInt8(truncatingIfNeeded: member.tick))
        }
      }
    },
    HostileStrategy(name: "control packets of nonsense") { member in
      var compound: [UInt8] = []
      while compound.count < 900 {
        let words = member.number(0...20)
        compound += [0x80 | UInt8(member.number(0...31)), UInt8(member.number(199...208)), 0, UInt8(words)]
        compound += member.bytes(4 * words)
      }
      member.peer.sendRTCP(compound)
    },
  ]

  /// Rapid changes in the signaling.
  private static let signaling = [
    HostileStrategy(name: "mutes in quick turns") { member in
      member.call.mute(member.peer, member.number(0...member.peer.tracks.count - 1), member.chance(50))
      if member.tick % 5 == 0 { member.sendNext(member.track(.video), length: 50) }
    },
    HostileStrategy(name: "holds in quick turns") { member in
      guard member.tick % 3 == 0 else { return }
      member.call.command(.hold(member.peer.configuration.peer, member.chance(50)))
      member.sendNext(member.track(.audio), length: 50)
    },
    HostileStrategy(name: "offers in quick turns") { member in
      guard member.tick % 10 == 0 else { return }
      member.call.configure(member.peer)
      member.sendNext(member.track(.video), length: 50)
    },
    HostileStrategy(name: "wishes in quick turns") { member in
      var videos: [TrackID: Wishes.Video] = [:]
      for other in member.call.peers {
        for track in other.configuration.tracks where track.source.kind == .video {
          videos[track.track] = Wishes.Video(maxHeight: member.number(1...2_000), isPaused: member.chance(30))
        }
      }
      member.call.wish(member.peer, videos)
    },
  ]
}
