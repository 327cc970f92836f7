package import MediaModel

// Links that are made without a call, last for days and serve many calls (protocol section 4, "Lasting links").

/// The id of a lasting link: 16 bytes that are made from its secret, as base64url without padding. Everybody who has it may ask for the link's call, so no
/// log contains it.
package struct LinkID: Hashable, Comparable, Sendable, Codable {
  package let text: String

  package init(unchecked text: String) { self.text = text }

  /// nil when `text` is not the canonical base64url of 16 bytes.
  package init?(_ text: String) {
    let digits = Array(text.utf8)
    // The last of 22 digits has two bits of the last byte; the others are zero.
    guard digits.count == 22, digits.allSatisfy(Self.isDigit), "AQgw".utf8.contains(digits[21]) else { return nil }
    self.text = text
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: false
    }
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let link = LinkID(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(
        in: container, debugDescription: "a lasting link's id is 16 bytes as base64url without padding")
    }
    self = link
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }

  package static func < (one: LinkID, other: LinkID) -> Bool { one.text < other.text }
}

extension LinkID: CustomStringConvertible { package var description: String { "link" } }

package struct MakeLastingLink: Codable, Sendable {
  /// The shortest life, in seconds; the longest is the operator's choice.
  package static let shortest = 3_600

  package var link: LinkID
  /// In seconds.
  package var expiresIn: Int
  package init(link: LinkID, expiresIn: Int) {
    self.link = link
    self.expiresIn = expiresIn
  }
}

package struct DeleteLastingLink: Codable, Sendable {
  package var link: LinkID
  package init(link: LinkID) { self.link = link }
}

package struct OpenLastingLink: Codable, Sendable {
  package var link: LinkID
  package init(link: LinkID) { self.link = link }
}

/// A lasting link, as its owner sees it.
package struct LastingLink: Codable, Sendable, Hashable {
  package var link: LinkID
  /// The device that made it, which alone can start its calls.
  package var device: DeviceID
  package var expiresAt: Timestamp
  /// The call that runs.
  package var call: CallID?
  package init(link: LinkID, device: DeviceID, expiresAt: Timestamp, call: CallID? = nil) {
    self.link = link
    self.device = device
    self.expiresAt = expiresAt
    self.call = call
  }
}

package struct LastingLinkList: Codable, Sendable, Hashable {
  package var links: [LastingLink]
  /// The longest life of a new one.
  package var days: Int
  package init(links: [LastingLink], days: Int) {
    self.links = links
    self.days = days
  }
}

/// A lasting link, as its holder sees it. With `call` and `token`, the token of a link of that call; without them, the holder waits.
package struct OpenedLink: Codable, Sendable, Hashable {
  /// The owner's display name.
  package var name: String?
  package var expiresAt: Timestamp
  package var call: CallID?
  package var token: String?
  package init(name: String?, expiresAt: Timestamp, call: CallID? = nil, token: String? = nil) {
    self.name = name
    self.expiresAt = expiresAt
    self.call = call
    self.token = token
  }
}

/// For the connections that wait at a lasting link: it has a call now, or is over.
package struct LinkChanged: Codable, Sendable, Hashable {
  package var link: LinkID
  package init(link: LinkID) { self.link = link }
}

/// For the owner's devices: somebody waits at the link.
package struct LinkWaiting: Codable, Sendable, Hashable {
  package var link: LinkID
  package init(link: LinkID) { self.link = link }
}
