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

  func apply(to layout: inout MediaPlaneConfiguration) {
    layout.setPublishing(
      audio: (audioPackets, audioKbps), video: (videoPackets, videoKbps),
      participant: (participantPackets, participantKbps))
  }
}
