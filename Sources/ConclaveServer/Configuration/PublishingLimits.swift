import MediaPlane

/// The most that is accepted from a publisher. The rest is dropped, because the receivers multiply it.
package struct PublishingLimits: Sendable, Hashable {
  /// Packets a second and kbit/s of a microphone, or of the sound of a screen.
  package var audioPackets = 200
  package var audioKbps = 512
  /// The same for a camera or screen, all its layers together.
  package var videoPackets = 3_000
  package var videoKbps = 12_000
  /// The same for all tracks of one participant.
  package var participantPackets = 6_400
  package var participantKbps = 25_000

  func apply(to layout: inout MediaPlaneConfiguration) {
    layout.setPublishing(
      audio: (audioPackets, audioKbps), video: (videoPackets, videoKbps),
      participant: (participantPackets, participantKbps))
  }
}
