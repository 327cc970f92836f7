/// Why bytes are not a frame. The connection cannot continue, because the beginning of the next frame is unknown.
package struct FrameError: Error, Equatable {
  package enum Reason: String, Sendable, CaseIterable {
    case unknownCommand = "unknown command"
    case commandTooLong = "command line too long"
    case tls = "this port speaks STOMP without TLS"
    case headerLineTooLong = "header line too long"
    case tooManyHeaders = "too many headers"
    case headTooLong = "headers too long"
    case nullInHead = "NUL in the headers"
    case noColon = "header line without a colon"
    case emptyHeaderName = "header without a name"
    case badEscape = "undefined escape in a header"
    case bareCarriageReturn = "carriage return in a header"
    case notUTF8 = "header is not UTF-8"
    case badContentLength = "content-length is not a number"
    case bodyTooLong = "body too long"
    case bodyNotTerminated = "content-length does not end at a NUL"
  }

  package var reason: Reason
  /// The `receipt` of the broken frame, if it had been read by then.
  package var receipt: String?

  package init(_ reason: Reason, receipt: String? = nil) {
    self.reason = reason
    self.receipt = receipt
  }

  /// Whether the bytes may have been a valid frame that is larger than accepted.
  package var isLimit: Bool {
    switch reason {
    case .commandTooLong, .headerLineTooLong, .tooManyHeaders, .headTooLong, .bodyTooLong: true
    default: false
    }
  }
}
