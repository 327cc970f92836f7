package import Contract
package import MediaModel

/// An abuse report as kept for the operator.
package struct StoredReport: Hashable, Sendable, Codable {
  /// How many reports by one user are kept; above it the user's oldest is deleted.
  package static let capacityOfAuthor = 100
  /// How many reports are kept in total. Above it the oldest of the user with the most is deleted, so that nobody displaces
  /// the others'.
  package static let capacity = 10_000

  package var id: ReportID
  package var at: Timestamp
  package var call: CallID
  package var report: Report

  package init(id: ReportID, at: Timestamp, call: CallID, report: Report) {
    self.id = id
    self.at = at
    self.call = call
    self.report = report
  }
}

/// The name of a report for the operator: 16 hexadecimal digits, of a random number.
package struct ReportID: Hashable, Sendable, Codable {
  package let text: String

  package init(number: UInt64) {
    let digits = String(number, radix: 16)
    text = String(repeating: "0", count: 16 - digits.utf8.count) + digits
  }

  /// nil if the text is not such an id.
  package init?(_ text: String) {
    guard text.utf8.count == 16, let number = UInt64(text, radix: 16), ReportID(number: number).text == text else {
      return nil
    }
    self.text = text
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let id = ReportID(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "is no id of a report")
    }
    self = id
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }
}

extension StoredReport: CustomStringConvertible { package var description: String { "report" } }
