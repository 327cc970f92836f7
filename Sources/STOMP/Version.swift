/// A version of STOMP. The differences between versions are a table here, so that the session's rules are the same for all.
package enum Version: String, CaseIterable, Comparable, Sendable {
  case v10 = "1.0"
  case v11 = "1.1"
  case v12 = "1.2"

  package static func < (a: Version, b: Version) -> Bool { a.rawValue < b.rawValue }

  /// Escapes of header names and values: the octet after a backslash and its meaning. 1.0 has none.
  var escapes: [(letter: UInt8, octet: UInt8)] {
    switch self {
    case .v10: []
    case .v11: [(.letterN, .lineFeed), (.letterC, .colon), (.backslash, .backslash)]
    case .v12: [(.letterN, .lineFeed), (.letterC, .colon), (.backslash, .backslash), (.letterR, .carriageReturn)]
    }
  }

  /// 1.0's own examples pad header values; the later versions forbid trimming.
  var trimsHeaders: Bool { self == .v10 }

  /// From 1.2 on a CR may only precede a LF or be escaped.
  var refusesBareCarriageReturn: Bool { self >= .v12 }

  var requiresSubscriptionID: Bool { self >= .v11 }

  /// From 1.1 on only SEND, MESSAGE and ERROR may have a body; 1.0 ignores one elsewhere.
  var refusesStrayBodies: Bool { self >= .v11 }

  var hasHeartBeats: Bool { self >= .v11 }

  var hasNack: Bool { self >= .v11 }

  /// The header by which an ACK names its message.
  var acknowledgedBy: String { self >= .v12 ? "id" : "message-id" }

  /// Whether ACK names the subscription in addition to the message.
  var acknowledgesBySubscription: Bool { self == .v11 }

  package var ackModes: [AckMode] { self == .v10 ? [.auto, .client] : AckMode.allCases }

  /// The highest version named in an `accept-version` header, ignoring blanks around commas; a missing header means 1.0, no common version
  /// nil.
  package static func highest(acceptedBy header: String?) -> Version? {
    guard let header else { return .v10 }
    return header.split(separator: ",").compactMap { Version(rawValue: String($0.trimmingBlanks)) }.max()
  }
}
