/// The coding between servers: `name` and `body`. Clients get the name as a header and the body's members in an `EventMessage`.
extension EventBody: Codable {
  private enum CodingKeys: String, CodingKey { case name, body }

  private struct Content: Encodable {
    let body: EventBody
    func encode(to encoder: any Encoder) throws { try body.encodeContent(to: encoder) }
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    let name = try container.decode(EventName.self, forKey: .name)
    self = try name.declaration.read(container.superDecoder(forKey: .body))
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(name, forKey: .name)
    try container.encode(Content(body: self), forKey: .body)
  }
}
