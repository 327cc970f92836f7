import NIOHTTP1

extension HTTPRequestHead {
  /// A target in absolute form counts as its path, and its authority as the host (RFC 9112 section 3.2.2).
  var inOriginForm: HTTPRequestHead {
    let scheme = ["http://", "https://"].first { uri.lowercased().hasPrefix($0) }
    guard let scheme, method != .CONNECT, hasValidHost else { return self }
    let rest = uri.dropFirst(scheme.count)
    let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
    guard end > rest.startIndex else { return self }
    var head = self
    head.headers.replaceOrAdd(name: "host", value: String(rest[..<end]))
    head.uri = rest[end...].hasPrefix("/") ? String(rest[end...]) : "/" + rest[end...]
    return head
  }

  /// Exactly one in HTTP/1.1, at most one before, and a valid one (RFC 9112 section 3.2): a proxy before us and we must not read different
  /// hosts.
  var hasValidHost: Bool {
    let hosts = headers["host"]
    guard hosts.count == 1 || hosts.isEmpty && version == .http1_0 else { return false }
    return hosts.allSatisfy { host in
      host.utf8.allSatisfy { character in
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"):
          true
        // RFC 3986 section 3.2.2, without the comma: a comma means that a proxy merged two Host headers.
        default: "-._~%!$&'()*+;=:[]".utf8.contains(character)
        }
      }
    }
  }
}

extension HTTPRequestHead {
  /// Without the query.
  var path: String { String(uri.prefix { $0 != "?" }) }

  /// Whether the client expects something of the server (RFC 9110 section 10.1.1). HTTP/1.0 cannot.
  var hasExpectation: Bool { version == .http1_1 && !headers[canonicalForm: "expect"].isEmpty }

  /// Whether that is only to be told to send the body.
  var expectsContinue: Bool { headers[canonicalForm: "expect"].allSatisfy { $0.lowercased() == "100-continue" } }

  /// The bytes of the body, as far as the head says.
  var announcedLength: Int { headers.first(name: "content-length").flatMap(Int.init) ?? 0 }
}
