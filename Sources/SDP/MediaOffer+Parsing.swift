package import MediaModel

extension MediaOffer {
  /// Reads an offer as created by JSEP (RFC 9429). It must be for one transport: BUNDLE, rtcp-mux, ICE and DTLS-SRTP.
  package init(parsing sdp: String) throws(SDPError) {
    let description = try SessionDescription(parsing: sdp)
    guard let first = description.sections.first else {
      throw SDPError(line: 1, "there is no m= line: add a track or a transceiver before createOffer()")
    }
    let bundle = try description.bundle(before: first)
    var sections = try description.mediaSections(in: bundle)
    let extensions = try Self.unite(&sections, of: description)
    try Self.checkStreams(of: sections, in: description)
    let living = sections.living(of: bundle)
    guard let tag = sections.firstIndex(where: { $0.mid == living.first && !$0.isRejected }) else {
      throw SDPError(line: first.line, "every m= line is rejected (port 0): leave one that is not")
    }
    // The whole bundle uses the transport of the group's first section (RFC 8843 section 7.1.1).
    let tagged = description.sections[tag]
    self.init(
      credentials: try ICECredentials(of: tagged, in: description),
      fingerprint: try CertificateFingerprint(of: tagged, in: description),
      extensions: extensions,
      allowsMixedExtensions: description.allowsMixedExtensions(in: sections),
      sections: sections, bundle: living)
    try Self.checkTransport(of: tagged, in: description, sections)
  }

  private static func checkTransport(
    of tagged: SessionDescription.Section, in description: SessionDescription, _ sections: [Section]
  ) throws(SDPError) {
    let setup = tagged.attributes.first("setup") ?? description.attributes.first("setup")
    if let setup, setup.value != "actpass", setup.value != "active" {
      throw SDPError(line: setup.line, "the server waits for the DTLS handshake: offer a=setup:actpass")
    }
    try description.requireMultiplexing(of: sections)
  }

  /// Gives each extension one id in the bundle, and each id one extension (RFC 8285 section 5): the first m-line's. A later sending m-line that
  /// maps them differently does without the extension, which the answer then omits there.
  /// - Returns: the union of the sections' offers.
  private static func unite(
    _ sections: inout [Section], of description: SessionDescription
  ) throws(SDPError) -> HeaderExtensionIDs {
    var union = HeaderExtensionIDs()
    var taken: Set<UInt8> = []
    for index in sections.indices where !sections[index].isRejected {
      for (_, path) in HeaderExtensionIDs.uris where sections[index].extensions[keyPath: path] != 0 {
        let id = sections[index].extensions[keyPath: path]
        if union[keyPath: path] == id { continue }
        if union[keyPath: path] == 0, taken.insert(id).inserted {
          union[keyPath: path] = id
          continue
        }
        guard sections[index].direction != .recvonly else {
          throw SDPError(
            line: description.sections[index].line,
            "an a=extmap has another id here than in an m= line before: use one in all of the bundle")
        }
        sections[index].extensions[keyPath: path] = 0
      }
    }
    return union
  }

  /// Streams of an m-line without a=ssrc, a=rid and MID are distinguished by their payload types (RFC 8843 section 9.2), so those must be
  /// unique to it.
  private static func checkStreams(
    of sections: [Section], in description: SessionDescription
  ) throws(SDPError) {
    for (index, section) in sections.enumerated()
    where section.sends && section.ssrcs.isEmpty && section.extensions.mid == 0 {
      let others = sections.indices.lazy.filter { $0 != index && sections[$0].sends }
      let types = Set(section.formats.map(\.payloadType))
      guard others.allSatisfy({ types.isDisjoint(with: sections[$0].formats.map(\.payloadType)) }) else {
        throw SDPError(
          line: description.sections[index].line,
          "its streams cannot be told from those of another m= line: offer the header extension sdes:mid, or a=ssrc")
      }
    }
  }
}

extension MediaOffer.Section {
  fileprivate var sends: Bool {
    !isRejected && kind != .application && (direction == .sendonly || direction == .sendrecv)
  }
}
