import MediaModel

extension CertificateFingerprint {
  /// Accepted hashes, in order of preference, with their lengths in bytes. SHA-1 and MD5 can be forged.
  private static let hashes: [(String, Int)] = [("sha-256", 32), ("sha-384", 48), ("sha-512", 64)]

  /// a=fingerprint (RFC 8122) of the bundle's section, or of the whole description; if there are several, the first in the order
  /// of `hashes`.
  init(of section: SessionDescription.Section, in description: SessionDescription) throws(SDPError) {
    var lines = section.attributes.all("fingerprint")
    if lines.isEmpty { lines = description.attributes.all("fingerprint") }
    guard let first = lines.first else {
      throw SDPError(line: section.line, "it has no a=fingerprint: media needs DTLS-SRTP")
    }
    for (hash, length) in Self.hashes {
      for line in lines {
        let words = line.value.split(separator: " ")
        guard words.first?.lowercased() == hash else { continue }
        guard words.count == 2, let digest = Self.bytes(words[1]), digest.count == length else {
          throw SDPError(line: line.line, "a \(hash) fingerprint must be \(length) bytes in hex with : between")
        }
        self.init(hash: hash, digest: digest)
        return
      }
    }
    throw SDPError(line: first.line, "no a=fingerprint uses sha-256, sha-384 or sha-512: weaker hashes are not taken")
  }

  private static func bytes(_ text: Substring) -> [UInt8]? {
    var bytes: [UInt8] = []
    for part in text.split(separator: ":", omittingEmptySubsequences: false) {
      guard part.utf8.count == 2, part.allSatisfy(\.isHexDigit), let byte = UInt8(part, radix: 16) else { return nil }
      bytes.append(byte)
    }
    return bytes
  }

  /// As in a=fingerprint.
  var text: String {
    let digits = Array("0123456789ABCDEF")
    return "\(hash) " + digest.map { String([digits[Int($0 >> 4)], digits[Int($0 & 15)]]) }.joined(separator: ":")
  }
}
