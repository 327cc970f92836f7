import MediaModel

extension ICECredentials {
  /// a=ice-ufrag and a=ice-pwd (RFC 8839 section 5.4) of the bundle's section, or of the whole description.
  init(of section: SessionDescription.Section, in description: SessionDescription) throws(SDPError) {
    guard
      let fragment = section.attributes.first("ice-ufrag") ?? description.attributes.first("ice-ufrag"),
      let password = section.attributes.first("ice-pwd") ?? description.attributes.first("ice-pwd")
    else {
      throw SDPError(line: section.line, "it has no a=ice-ufrag and a=ice-pwd: send the whole description")
    }
    guard (4...256).contains(fragment.value.utf8.count), fragment.value.isICEText else {
      throw SDPError(line: fragment.line, "an ice-ufrag must be 4 to 256 letters, digits, + or /")
    }
    guard (22...256).contains(password.value.utf8.count), password.value.isICEText else {
      throw SDPError(line: password.line, "an ice-pwd must be 22 to 256 letters, digits, + or /")
    }
    self.init(fragment: String(fragment.value), password: String(password.value))
  }
}

extension StringProtocol {
  /// ice-char, and characters that older clients used in addition; never ":", which separates the two names in STUN's
  /// USERNAME.
  fileprivate var isICEText: Bool {
    utf8.allSatisfy {
      switch $0 {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        true
      default: "+/-_=#".utf8.contains($0)
      }
    }
  }
}

extension ICECredentials {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  /// 48 bits of fragment, by which a worker finds the peer, and 144 bits of password (RFC 8445 section 5.3 requires 24 and 128).
  init(using generator: inout some RandomNumberGenerator) {
    self.init(fragment: Self.text(8, using: &generator), password: Self.text(24, using: &generator))
  }

  private static func text(_ count: Int, using generator: inout some RandomNumberGenerator) -> String {
    String(decoding: (0..<count).map { _ in alphabet.randomElement(using: &generator)! }, as: UTF8.self)
  }
}
