import Contract

/// A reply names the kind of its body, which a client knows from its request.
extension Reply: Codable {
  private enum CodingKeys: String, CodingKey { case ok, body, failed }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    if let error = try container.decodeIfPresent(RequestError.self, forKey: .failed) {
      self = .failed(error)
    } else {
      let name = try container.decode(ReplyName.self, forKey: .ok)
      self = .ok(try ReplyBody(name, from: container.superDecoder(forKey: .body)))
    }
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    switch self {
    case .ok(let body):
      try container.encode(body.name, forKey: .ok)
      try container.encode(body, forKey: .body)
    case .failed(let error): try container.encode(error, forKey: .failed)
    }
  }
}

/// As text: JSON's integers end at 2^63.
extension SessionID: Codable {
  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let number = UInt64(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "is no number of a connection")
    }
    self.init(rawValue: number)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(String(rawValue))
  }
}
