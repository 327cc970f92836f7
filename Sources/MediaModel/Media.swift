package enum MediaKind: String, Sendable, Hashable, Codable, CaseIterable { case audio, video }

/// The origin of a track's pictures or sound (protocol section 6).
package enum TrackSource: String, Sendable, Hashable, Codable, CaseIterable {
  case microphone, camera, screen
  case screenAudio = "screen-audio"

  package var kind: MediaKind {
    switch self {
    case .microphone, .screenAudio: .audio
    case .camera, .screen: .video
    }
  }
}

/// One payload format of an m-line (RFC 8866 a=rtpmap, a=fmtp, a=rtcp-fb) with its RTX payload type (RFC 4588).
package struct PayloadFormat: Codable, Sendable, Hashable {
  package var payloadType: UInt8
  /// As offered: "VP8", "opus", "H264".
  package let codec: String
  package let clockRate: UInt32
  /// nil for video.
  package var channels: UInt8?
  /// The text after a=fmtp:PT, or "".
  package let parameters: String
  /// The decoder that its streams need, and that its receivers have.
  package let profile: CodecProfile
  package var rtxPayloadType: UInt8?
  package var nack: Bool
  package var pli: Bool
  /// Its sender accepts FIR (RFC 5104 section 4.3.1), "ccm fir".
  package var fir: Bool
  /// Its sender accepts reports on all packets of the transport ("transport-cc").
  package var transportFeedback: Bool
  /// Its sender accepts a rate estimated by the receiver ("goog-remb").
  package var remb: Bool

  package init(
    payloadType: UInt8, codec: String, clockRate: UInt32, channels: UInt8? = nil, parameters: String = "",
    rtxPayloadType: UInt8? = nil, nack: Bool = false, pli: Bool = false, fir: Bool = false,
    transportFeedback: Bool = false,
    remb: Bool = false
  ) {
    self.payloadType = payloadType
    self.codec = codec
    self.clockRate = clockRate
    self.channels = channels
    self.parameters = parameters
    profile = CodecProfile(codec: codec, clockRate: clockRate, parameters: parameters)
    self.rtxPayloadType = rtxPayloadType
    self.nack = nack
    self.pli = pli
    self.fir = fir
    self.transportFeedback = transportFeedback
    self.remb = remb
  }

  /// All but the profile, which follows from them.
  private enum CodingKeys: String, CodingKey {
    case payloadType, codec, clockRate, channels, parameters, rtxPayloadType, nack, pli, fir, transportFeedback, remb
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      payloadType: try container.decode(UInt8.self, forKey: .payloadType),
      codec: try container.decode(String.self, forKey: .codec),
      clockRate: try container.decode(UInt32.self, forKey: .clockRate),
      channels: try container.decodeIfPresent(UInt8.self, forKey: .channels),
      parameters: try container.decode(String.self, forKey: .parameters),
      rtxPayloadType: try container.decodeIfPresent(UInt8.self, forKey: .rtxPayloadType),
      nack: try container.decode(Bool.self, forKey: .nack), pli: try container.decode(Bool.self, forKey: .pli),
      fir: try container.decode(Bool.self, forKey: .fir),
      transportFeedback: try container.decode(Bool.self, forKey: .transportFeedback),
      remb: try container.decode(Bool.self, forKey: .remb))
  }

  /// Whether a stream of `self` can be sent to a receiver as `other`.
  package func carries(_ other: PayloadFormat) -> Bool { other.profile.decodes(profile) }
}

/// Ids (RFC 8285, 1 to 255; 0 = not negotiated) of the header extensions that the SFU reads or forwards, the same for all m-lines of a bundle.
package struct HeaderExtensionIDs: Codable, Sendable, Hashable {
  package var mid: UInt8 = 0
  package var rid: UInt8 = 0
  package var repairedRID: UInt8 = 0
  package var audioLevel: UInt8 = 0
  package var videoOrientation: UInt8 = 0
  package var playoutDelay: UInt8 = 0
  package var dependencyDescriptor: UInt8 = 0
  /// The number of each packet of a transport (draft-holmer-rmcat-transport-wide-cc-extensions-01 section 2).
  package var transportSequence: UInt8 = 0
  /// When a packet left ("abs-send-time"): 24 bits, in seconds with 18 bits of fraction.
  package var sendTime: UInt8 = 0
  package init() {}
}

/// The reports of a receiver from which the sender determines the rate of the path.
package enum RateFeedback: Sendable, Hashable {
  case none
  /// The arrival of each packet, by its transport-wide number ("transport-cc").
  case packets
  /// A rate, which the receiver estimates from the times at which packets left and arrived ("goog-remb").
  case rate
}

package struct ICECredentials: Codable, Sendable, Hashable {
  package var fragment: String
  package var password: String
  package init(fragment: String, password: String) {
    self.fragment = fragment
    self.password = password
  }
}

extension ICECredentials: CustomStringConvertible { package var description: String { "credentials" } }

/// A certificate's digest, as in a=fingerprint (RFC 8122): lower-case hash name and raw bytes.
package struct CertificateFingerprint: Codable, Sendable, Hashable {
  package var hash: String
  package var digest: [UInt8]
  package init(hash: String, digest: [UInt8]) {
    self.hash = hash
    self.digest = digest
  }
}
