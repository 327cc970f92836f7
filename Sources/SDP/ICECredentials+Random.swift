import MediaModel

extension ICECredentials {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  /// 48 bits of fragment, by which a worker finds the peer, and 144 bits of password (RFC 8445 section 5.3 asks for 24 and 128).
  init(using generator: inout some RandomNumberGenerator) {
    self.init(fragment: Self.text(8, using: &generator), password: Self.text(24, using: &generator))
  }

  private static func text(_ count: Int, using generator: inout some RandomNumberGenerator) -> String {
    String(decoding: (0..<count).map { _ in alphabet.randomElement(using: &generator)! }, as: UTF8.self)
  }
}
