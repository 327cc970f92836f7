/// An id of the protocol: 1 to 128 bytes of `A-Z a-z 0-9 . _ ~ @ + -` (protocol section 2).
package protocol ProtocolIdentifier: Hashable, Comparable, Sendable, Codable, CodingKeyRepresentable {
  var text: String { get }
  init(unchecked text: String)
}

extension ProtocolIdentifier {
  /// nil if `text` violates the protocol's rule for ids.
  package init?(_ text: String) {
    guard (1...128).contains(text.utf8.count), text.utf8.allSatisfy(isIdentifierByte) else { return nil }
    self.init(unchecked: text)
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    let text = try container.decode(String.self)
    guard let value = Self(text) else {
      throw DecodingError.dataCorruptedError(
        in: container, debugDescription: "an id is 1 to 128 bytes of A-Z a-z 0-9 . _ ~ @ + -")
    }
    self = value
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }

  package var codingKey: any CodingKey { IdentifierKey(stringValue: text) }

  package init?<Key: CodingKey>(codingKey: Key) { self.init(codingKey.stringValue) }

  /// Ids sort as bytes, as the protocol's lists do (section 5, "List").
  package static func < (a: Self, b: Self) -> Bool { a.text.utf8.lexicographicallyPrecedes(b.text.utf8) }
}

private struct IdentifierKey: CodingKey {
  var stringValue: String
  var intValue: Int? { nil }
  init(stringValue: String) { self.stringValue = stringValue }
  init?(intValue: Int) { nil }
}

private func isIdentifierByte(_ byte: UInt8) -> Bool {
  switch byte {
  case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"),
    UInt8(ascii: "@"), UInt8(ascii: "+"), UInt8(ascii: "-"):
    true
  default: false
  }
}

/// A user of the app. Personal: it has no description, so that no log can contain it.
package struct UserID: ProtocolIdentifier {
  /// The prefix of guests' ids, and of no other user's (protocol section 2).
  package static let guestPrefix = "guest~"

  package let text: String
  package init(unchecked text: String) { self.text = text }

  /// The id of an issuer's subject, such as `auth0|5f7c`: `~` and each byte that an id cannot have are written as `~` and two uppercase hexadecimal digits
  /// (protocol section 2). So each subject has an id of its own. nil if that is empty or longer than 128 bytes.
  package init?(subject: String) {
    guard subject.utf8.count <= 128 else { return nil }
    self.init(
      subject.utf8.map { byte in
        if isIdentifierByte(byte), byte != UInt8(ascii: "~") { return String(UnicodeScalar(byte)) }
        return "~" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
      }.joined())
  }

  /// Joined one call by a link, without an account.
  package var isGuest: Bool { text.hasPrefix(Self.guestPrefix) }
}

/// One device of a user; unique only within the user. Personal, like `UserID`.
package struct DeviceID: ProtocolIdentifier {
  package let text: String
  package init(unchecked text: String) { self.text = text }
}

/// A device with its user: the addressee of an envelope.
package struct Device: Hashable, Comparable, Sendable, Codable {
  package var user: UserID
  package var device: DeviceID

  package init(user: UserID, device: DeviceID) {
    self.user = user
    self.device = device
  }

  package static func < (a: Device, b: Device) -> Bool { a.user == b.user ? a.device < b.device : a.user < b.user }
}

extension UserID: CustomStringConvertible { package var description: String { "user" } }
extension DeviceID: CustomStringConvertible { package var description: String { "device" } }

/// A call. Prints its first 6 characters, enough to follow one call through a log.
package struct CallID: ProtocolIdentifier, CustomStringConvertible {
  package let text: String
  package init(unchecked text: String) { self.text = text }
  package var description: String { String(text.prefix(6)) }
}

/// A recording: a UUID, written in lower case (RFC 9562 section 4). Its 16 bytes stand in what is hashed and signed. Prints its first 6 characters.
package struct RecordingID: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
  package static let byteCount = 16

  private let high: UInt64
  private let low: UInt64

  /// nil unless there are 16 bytes.
  package init?(_ bytes: some Collection<UInt8>) {
    guard bytes.count == Self.byteCount else { return nil }
    high = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    low = bytes.suffix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// nil for any other form: one recording has one name.
  package init?(_ text: String) {
    let digits = text.utf8.filter { $0 != UInt8(ascii: "-") }.compactMap { hexadecimalValue(of: $0) }
    let bytes = stride(from: 0, to: digits.count - 1, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    guard text.utf8.count == 36, let value = Self(bytes), value.text == text else { return nil }
    self = value
  }

  package var bytes: [UInt8] {
    [high, low].flatMap { word in stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: word >> $0) } }
  }

  package var text: String {
    var text = ""
    for (place, byte) in bytes.enumerated() {
      if [4, 6, 8, 10].contains(place) { text.append("-") }
      if byte < 16 { text.append("0") }
      text.append(String(byte, radix: 16))
    }
    return text
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let value = Self(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(
        in: container, debugDescription: "a recording's id is a UUID in lower case")
    }
    self = value
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }

  package static func < (a: Self, b: Self) -> Bool { (a.high, a.low) < (b.high, b.low) }

  package var description: String { String(text.prefix(6)) }
}

private func hexadecimalValue(of byte: UInt8) -> UInt8? {
  switch byte {
  case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
  case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
  default: nil
  }
}

/// A device's place in a call: a number from 1 on, never reused in a call.
package typealias ParticipantNumber = UInt32

/// A track: `participant.n`, n from 1 to 255.
package struct TrackID: Hashable, Comparable, Sendable, BitwiseCopyable, Codable, CustomStringConvertible {
  package var participant: ParticipantNumber
  package var index: UInt8

  package init(participant: ParticipantNumber, index: UInt8) {
    self.participant = participant
    self.index = index
  }

  package init?(_ text: String) {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 2, let participant = ParticipantNumber(parts[0]), let index = UInt8(parts[1]), index > 0
    else { return nil }
    self.init(participant: participant, index: index)
    guard description == text else { return nil }
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let track = TrackID(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "a track is written participant.n")
    }
    self = track
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }

  package var description: String { "\(participant).\(index)" }

  package static func < (a: TrackID, b: TrackID) -> Bool { (a.participant, a.index) < (b.participant, b.index) }
}

/// One participant's transport on the media plane; created by the control plane, never reused.
package struct PeerID: CountedID {
  package var rawValue: UInt64
  package init(rawValue: UInt64) { self.rawValue = rawValue }
}
