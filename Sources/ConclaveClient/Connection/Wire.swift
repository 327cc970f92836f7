import Contract
import Foundation
import MediaModel
import NIOCore

/// JSON bodies of requests, replies and events.
enum Wire {
  static func encode(_ body: some Encodable) throws -> ByteBuffer { ByteBuffer(bytes: try JSONEncoder().encode(body)) }

  static func decode<Body: Decodable>(_ type: Body.Type, from body: ByteBuffer) throws -> Body {
    try JSONDecoder().decode(type, from: data(body))
  }

  static func event(_ name: EventName, from body: ByteBuffer) throws -> EventMessage {
    let decoder = JSONDecoder()
    decoder.userInfo[Event.name] = name
    return try decoder.decode(Event.self, from: data(body)).message
  }

  private static func data(_ body: ByteBuffer) -> Data {
    // An empty body is `{}` (protocol section 3).
    body.readableBytes == 0 ? Data("{}".utf8) : Data(body.readableBytesView)
  }

  /// An event's name stands in its header, so it is handed to the decoder beside the body.
  private struct Event: Decodable {
    static let name = CodingUserInfoKey(rawValue: "event")!
    let message: EventMessage

    init(from decoder: any Decoder) throws {
      guard let name = decoder.userInfo[Self.name] as? EventName else {
        throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "an event has a name"))
      }
      message = try EventMessage(name, from: decoder)
    }
  }
}
