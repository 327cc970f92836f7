import MediaModel

/// The rules for a bundle that hold for offers and for answers.
extension SessionDescription {
  /// The mids of the only BUNDLE group, in its order.
  func bundle(before first: Section) throws(SDPError) -> [Substring] {
    for group in attributes.all("group") {
      let words = group.value.split(separator: " ")
      if words.first == "BUNDLE" { return Array(words.dropFirst()) }
    }
    throw SDPError(
      line: first.line, "there is no a=group:BUNDLE above it: use bundlePolicy max-bundle, one transport carries all")
  }

  func mediaSections(in bundle: [Substring]) throws(SDPError) -> [MediaOffer.Section] {
    var sections: [MediaOffer.Section] = []
    var mids: Set<String> = []
    for section in self.sections {
      let read = try MediaOffer.Section(parsing: section, in: self)
      if !read.mid.isEmpty, !mids.insert(read.mid).inserted {
        throw SDPError(line: section.line, "its a=mid is another m= line's too: each needs its own")
      }
      guard read.isRejected || bundle.contains(where: { $0 == read.mid }) else {
        throw SDPError(line: section.line, "its a=mid is not in a=group:BUNDLE: bundle every m= line")
      }
      sections.append(read)
    }
    return sections
  }

  /// - Parameter sections: those of `mediaSections`.
  func allowsMixedExtensions(in sections: [MediaOffer.Section]) -> Bool {
    attributes.contains("extmap-allow-mixed")
      || zip(self.sections, sections).allSatisfy {
        $1.isRejected || $1.kind == .application || $0.attributes.contains("extmap-allow-mixed")
      }
  }

  /// One a=rtcp-mux in the bundle suffices: it is of the category IDENTICAL (RFC 8859), so the other m-lines need not repeat it.
  func requireMultiplexing(of sections: [MediaOffer.Section]) throws(SDPError) {
    let media = zip(self.sections, sections).filter { !$1.isRejected && $1.kind != .application }
    if let first = media.first, !media.contains(where: { $0.0.attributes.contains("rtcp-mux") }) {
      throw SDPError(line: first.0.line, "it has no a=rtcp-mux: use rtcpMuxPolicy require")
    }
  }
}

extension [MediaOffer.Section] {
  /// The group's mids with a section that is not rejected, each once.
  func living(of bundle: [Substring]) -> [String] {
    var left = Set(lazy.filter { !$0.isRejected }.map(\.mid))
    return bundle.lazy.map(String.init).filter { left.remove($0) != nil }
  }
}
