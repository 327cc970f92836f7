/// The parts of an SDP offer that the server needs. Created by `SDP`, read by `Calls`; it contains no text of the offer except mids and codec
/// parameters.
package struct MediaOffer: Codable, Sendable, Hashable {
  package enum Direction: String, Codable, Sendable, Hashable { case sendrecv, sendonly, recvonly, inactive }

  package struct Section: Codable, Sendable, Hashable {
    package enum Kind: Codable, Sendable, Hashable { case media(MediaKind), application }
    package var mid: String
    package var kind: Kind
    /// The protocol of its m= line, which the answer repeats.
    package var protocolName: String
    /// Port 0 without a=bundle-only: the section is rejected by the offerer.
    package var isRejected: Bool
    package var direction: Direction
    /// In the offerer's order of preference, without rtx, red, ulpfec and the like.
    package var formats: [PayloadFormat]
    /// Announced by a=ssrc, primary first; may be empty.
    package var ssrcs: [UInt32]
    /// RTX SSRC of each primary, from a=ssrc-group:FID.
    package var rtx: [UInt32: UInt32]
    /// The layers of a=simulcast:send that an a=rid describes, in its order, which is from the lowest to the highest; at most 3.
    package var rids: [String]
    /// Ids of the header extensions that this m-line offers for the direction in which its media can flow; the others
    /// are 0.
    package var extensions: HeaderExtensionIDs
    /// Those of them that are offered for one direction only (a=extmap:6/recvonly).
    package var oneWayExtensions: Set<UInt8>
    /// a=rtcp-rsize: RTCP need not be compound (RFC 5506).
    package var takesReducedSizeRTCP: Bool

    package init(
      mid: String, kind: Kind, protocolName: String = "UDP/TLS/RTP/SAVPF", isRejected: Bool = false,
      direction: Direction, formats: [PayloadFormat],
      ssrcs: [UInt32] = [], rtx: [UInt32: UInt32] = [:], rids: [String] = [],
      extensions: HeaderExtensionIDs = HeaderExtensionIDs(), oneWayExtensions: Set<UInt8> = [],
      takesReducedSizeRTCP: Bool = false
    ) {
      self.mid = mid
      self.kind = kind
      self.protocolName = protocolName
      self.isRejected = isRejected
      self.direction = direction
      self.formats = formats
      self.ssrcs = ssrcs
      self.rtx = rtx
      self.rids = rids
      self.extensions = extensions
      self.oneWayExtensions = oneWayExtensions
      self.takesReducedSizeRTCP = takesReducedSizeRTCP
    }
  }

  package var credentials: ICECredentials
  package var fingerprint: CertificateFingerprint
  package var extensions: HeaderExtensionIDs
  package var allowsMixedExtensions: Bool
  /// In the order of the offer's m-lines.
  package var sections: [Section]
  /// The mids of a=group:BUNDLE that are not rejected. All use the transport of the first one's m-line.
  package var bundle: [String]

  /// Without `bundle` the group is in the order of the m-lines.
  package init(
    credentials: ICECredentials, fingerprint: CertificateFingerprint, extensions: HeaderExtensionIDs,
    allowsMixedExtensions: Bool, sections: [Section], bundle: [String]? = nil
  ) {
    self.credentials = credentials
    self.fingerprint = fingerprint
    self.extensions = extensions
    self.allowsMixedExtensions = allowsMixedExtensions
    self.sections = sections
    self.bundle = bundle ?? sections.filter { !$0.isRejected }.map(\.mid)
  }
}

/// A sending section with the track that `Calls` gave it.
package struct NamedTrack: Sendable, Hashable {
  package var mid: String
  package var track: TrackID
  package var source: TrackSource
  package var muted: Bool
  package init(mid: String, track: TrackID, source: TrackSource, muted: Bool) {
    self.mid = mid
    self.track = track
    self.source = source
    self.muted = muted
  }
}
