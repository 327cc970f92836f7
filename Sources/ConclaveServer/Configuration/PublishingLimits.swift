import MediaPlane

/// The most that is taken of a publisher; what is beyond is dropped, for the receivers multiply it.
package struct PublishingLimits: Sendable, Hashable {
  /// Packets a second and kbit/s of a microphone, or of the sound of a screen.
  package var audioPackets = 200
  package var audioKbps = 512
  /// Those of a camera or screen, all its layers together.
  package var videoPackets = 3_000
  package var videoKbps = 12_000
  /// Those of all tracks of one participant.
  package var participantPackets = 6_400
  package var participantKbps = 25_000

  func check(_ faults: inout Faults) {
    let members = [
      ("audioPackets", audioPackets, 50), ("audioKbps", audioKbps, 32), ("videoPackets", videoPackets, 100),
      ("videoKbps", videoKbps, 200), ("participantPackets", participantPackets, 100),
      ("participantKbps", participantKbps, 200),
    ]
    for (name, value, least) in members where !(least...10_000_000).contains(value) {
      faults.add("media.publishing.\(name): \(value) is out of range; take \(least) to 10000000")
    }
  }

  func apply(to layout: inout MediaPlaneConfiguration) {
    layout.setPublishing(
      audio: (audioPackets, audioKbps), video: (videoPackets, videoKbps),
      participant: (participantPackets, participantKbps))
  }
}

extension PublishingLimits: Decodable {
  private enum CodingKeys: String, CodingKey, CaseIterable {
    case audioPackets, audioKbps, videoPackets, videoKbps, participantPackets, participantKbps
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
    audioPackets = try container.decodeIfPresent(Int.self, forKey: .audioPackets) ?? audioPackets
    audioKbps = try container.decodeIfPresent(Int.self, forKey: .audioKbps) ?? audioKbps
    videoPackets = try container.decodeIfPresent(Int.self, forKey: .videoPackets) ?? videoPackets
    videoKbps = try container.decodeIfPresent(Int.self, forKey: .videoKbps) ?? videoKbps
    participantPackets = try container.decodeIfPresent(Int.self, forKey: .participantPackets) ?? participantPackets
    participantKbps = try container.decodeIfPresent(Int.self, forKey: .participantKbps) ?? participantKbps
  }
}
