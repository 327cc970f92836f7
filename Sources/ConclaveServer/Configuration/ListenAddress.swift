/// The address of a listener: a port, and possibly a separate address. In the file a number, or a text such as `127.0.0.1:9464` or
/// `[::1]:9464`.
package struct ListenAddress: Sendable, Hashable {
  package var port: Int
  /// nil for `listen.address`.
  package var address: String?

  package init(port: Int, address: String? = nil) {
    self.port = port
    self.address = address
  }

  /// nil for text in another form.
  init?(_ text: String) {
    guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]) else { return nil }
    let host = text[..<colon]
    let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
    let address = isBracketed ? host.dropFirst().dropLast() : host
    guard !address.isEmpty, isBracketed == address.contains(":"), !address.contains(where: "[]/ ".contains) else {
      return nil
    }
    self.init(port: port, address: String(address))
  }

  /// As written in the file.
  var json: JSONValue {
    guard let address else { return .integer(port) }
    return .string(address.contains(":") ? "[\(address)]:\(port)" : "\(address):\(port)")
  }

  static let isPort = 0...65_535

  /// The schema of its two forms.
  static let schema: [JSONValue] = [
    ["type": "integer", "minimum": 0, "maximum": 65_535],
    ["type": "string", "pattern": #"^([^:\[\]/ ]+|\[[0-9A-Fa-f:.%]+\]):[0-9]{1,5}$"#],
  ]

  /// Whether both cannot be open at once: `::` and `0.0.0.0` are all addresses.
  /// - Parameter usual: the address of those without a separate one.
  func overlaps(_ other: ListenAddress, usual: String) -> Bool {
    guard port == other.port, port != 0 else { return false }
    let addresses = [address ?? usual, other.address ?? usual]
    return addresses[0] == addresses[1] || addresses.contains { ["::", "0.0.0.0"].contains($0) }
  }
}

extension ListenAddress: ExpressibleByIntegerLiteral {
  package init(integerLiteral value: Int) { self.init(port: value) }
}

extension ListenAddress: Decodable {
  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if let port = try? container.decode(Int.self) {
      self.init(port: port)
    } else if let text = try? container.decode(String.self), let address = ListenAddress(text) {
      self = address
    } else {
      throw DecodingError.dataCorruptedError(
        in: container,
        debugDescription: "take a port, as 9464, or an address with one, as \"127.0.0.1:9464\" or \"[::1]:9464\"")
    }
  }
}
