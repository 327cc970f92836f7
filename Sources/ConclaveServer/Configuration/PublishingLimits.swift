import Forwarding
import MediaPlane

/// The most that is accepted from a publisher. The rest is dropped, because the receivers multiply it.
package struct PublishingLimits: Sendable, Hashable {
  /// Packets a second and kbit/s of a microphone, or of the sound of a screen.
  package var audioPackets = SFUConfiguration().audioTrack.packets
  package var audioKbps = SFUConfiguration().audioTrack.kilobits
  /// The same for a camera or screen, all its layers together.
  package var videoPackets = SFUConfiguration().videoTrack.packets
  package var videoKbps = SFUConfiguration().videoTrack.kilobits
  /// The same for all tracks of one participant.
  package var participantPackets = SFUConfiguration().publisher.packets
  package var participantKbps = SFUConfiguration().publisher.kilobits

  func apply(to layout: inout MediaPlaneConfiguration) {
    layout.setPublishing(
      audio: (audioPackets, audioKbps), video: (videoPackets, videoKbps),
      participant: (participantPackets, participantKbps))
  }
}
