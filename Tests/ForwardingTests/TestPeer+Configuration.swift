import MediaModel
import Transport

@testable import Forwarding

extension TestPeer {
  /// Numbers differ between peers wherever offers may differ: payload types, extension ids, mids of several lengths.
  static func configuration(
    _ number: UInt32, _ sources: [TrackSource], _ audioSlots: Int, _ videoSlots: Int, _ muted: Bool,
    _ announcesSSRCs: Bool, _ codec: String
  ) -> PeerConfiguration {
    var extensions = HeaderExtensionIDs()
    extensions.mid = UInt8(1 + number % 3)
    extensions.audioLevel = UInt8(5 + number % 4)
    if !sources.isEmpty { extensions.transportSequence = UInt8(13 + number % 2) }
    let tracks = sources.enumerated().map { i, source in
      trackDescription(number, i, source, muted: muted, announcesSSRCs: announcesSSRCs, codec: codec)
    }
    let slots = (0..<audioSlots + videoSlots).map { i -> SlotDescription in
      let kind: MediaKind = i < audioSlots ? .audio : .video
      return SlotDescription(
        mid: "\(String(repeating: "s", count: 1 + i % 3))\(i)", kind: kind, ssrc: 1_000_000 * number + UInt32(i),
        rtxSSRC: 1_000_000 * number + 500 + UInt32(i), formats: formats(kind, number, codec))
    }
    return PeerConfiguration(
      peer: PeerID(rawValue: UInt64(number)), call: SimulatedCall.name, participant: number, isOnKeyList: false,
      local: ICECredentials(fragment: "near\(number)", password: "local password of \(number)...."),
      remote: ICECredentials(fragment: "peer\(number)", password: "remote password of \(number)..."),
      fingerprint: certificate.fingerprint, extensions: extensions, tracks: tracks, slots: slots)
  }

  static func trackDescription(
    _ number: UInt32, _ index: Int, _ source: TrackSource, muted: Bool = false, announcesSSRCs: Bool = true,
    codec: String = "VP8"
  ) -> UpTrackDescription {
    let ssrc = number * 1000 + UInt32(index)
    return UpTrackDescription(
      track: TrackID(participant: number, index: UInt8(index + 1)), source: source, mid: "\(index)", muted: muted,
      formats: formats(source.kind, number, codec), ssrcs: announcesSSRCs ? [ssrc] : [],
      rtx: announcesSSRCs && source.kind == .video ? [ssrc: ssrc + 500] : [:])
  }

  private static func formats(_ kind: MediaKind, _ number: UInt32, _ codec: String) -> [PayloadFormat] {
    let type = UInt8(96 + 2 * (number % 8))
    return switch kind {
    case .audio:
      [PayloadFormat(payloadType: 120, codec: "opus", clockRate: 48_000, channels: 2)]
    case .video:
      [
        PayloadFormat(
          payloadType: type, codec: codec, clockRate: 90_000, rtxPayloadType: type + 1, nack: true, pli: true)
      ]
    }
  }
}
