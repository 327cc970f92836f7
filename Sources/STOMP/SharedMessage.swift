package import NIOCore

/// A MESSAGE for one subscriber or many. The shared part is encoded once per version; each subscriber's own lines are put in front of it.
package struct SharedMessage: Sendable {
  package let destination: String
  /// `destination` and the sender's headers, without those that the server sets for each subscriber.
  package let headers: Headers
  package let body: ByteBuffer
  /// Whether the body, and so the whole frame, is UTF-8. Checked once for all subscribers.
  package let isText: Bool
  private var tails: [ByteBuffer?] = []

  private static let subscribersOwn: Set<String> = ["subscription", "message-id", "ack", "redelivered"]

  package init(destination: String, headers: Headers, body: ByteBuffer) {
    var all: Headers = ["destination": destination]
    for field in headers.fields where !Self.subscribersOwn.contains(field.name) { all.append(field.name, field.value) }
    self.destination = destination
    self.headers = all
    self.body = body
    isText = body.isUTF8
  }

  /// The memory that it occupies, in bytes.
  package var size: Int { headers.size + body.readableBytes }

  /// The bytes from the first shared header to the NUL.
  mutating func tail(for version: Version) -> ByteBuffer {
    if tails.isEmpty { tails = Array(repeating: nil, count: Version.allCases.count) }
    let index = version.index
    if let tail = tails[index] { return tail }
    let tail = FrameEncoder(version: version).tail(headers: headers, body: body, of: .message)
    tails[index] = tail
    return tail
  }
}

extension ByteBuffer {
  package var isUTF8: Bool { (try? UTF8Span(validating: readableBytesUInt8Span)) != nil }
}

extension Version {
  fileprivate var index: Int {
    switch self {
    case .v10: 0
    case .v11: 1
    case .v12: 2
    }
  }
}
