package import MediaModel

extension SubscriberAnswer {
  /// Reads an answer as created by JSEP (RFC 9429) to an offer of the server. `Offering.apply` compares it with that offer.
  package init(parsing sdp: String) throws(SDPError) {
    let description = try SessionDescription(parsing: sdp)
    guard let first = description.sections.first else {
      throw SDPError(line: 1, "there is no m= line: an answer has one for each of the offer")
    }
    let bundle = try description.bundle(before: first)
    var sections = try description.mediaSections(in: bundle)
    // An answer's port 0 always rejects (RFC 8843 section 6); a=bundle-only is for offers.
    for (index, section) in description.sections.enumerated() where section.port == 0 {
      sections[index].isRejected = true
    }
    let living = sections.living(of: bundle)
    guard let tag = sections.firstIndex(where: { $0.mid == living.first && !$0.isRejected }) else {
      throw SDPError(line: first.line, "every m= line is rejected (port 0): accept one, or leave")
    }
    let tagged = description.sections[tag]
    let setup = tagged.attributes.first("setup") ?? description.attributes.first("setup")
    if let setup, setup.value != "active" {
      throw SDPError(line: setup.line, "the server waits for the DTLS handshake: answer a=setup:active")
    }
    try description.requireMultiplexing(of: sections)
    self.init(
      credentials: try ICECredentials(of: tagged, in: description),
      fingerprint: try CertificateFingerprint(of: tagged, in: description),
      allowsMixedExtensions: description.allowsMixedExtensions(in: sections), sections: sections)
  }
}
