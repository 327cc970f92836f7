import Contract
import JSON
import NIOCore
import STOMP

/// Reads requests out of SEND frames.
struct RequestReader {
  /// In bytes; of `…/keys` and of all others.
  let keysBody: Int
  let body: Int

  /// The request that a SEND asks for.
  func request(_ frame: Frame) throws(RequestError) -> Request {
    let destination = frame.headers["destination"] ?? ""
    let limit = Destination.isKeys(destination) ? keysBody : body
    guard frame.body.readableBytes <= limit else {
      throw RequestError(.requestTooLarge, "the body may have \(limit) bytes; split it or send less")
    }
    do {
      guard let request = try Request(destination: destination, decode: { try decode($0, frame.body) }) else {
        throw RequestError(.requestUnknown, "there is no such request; check the destination")
      }
      return request
    } catch let error as RequestError {
      throw error
    } catch let error as JSONError {
      throw RequestError(.requestInvalid, error.reason, field: error.field)
    } catch {
      throw RequestError(.requestInvalid, "the body does not fit the request")
    }
  }

  private func decode<Body: Decodable>(_ type: Body.Type, _ body: ByteBuffer) throws -> Body {
    if body.readableBytes == 0 { return try JSON.decode(type, from: Array("{}".utf8)) }
    guard body.readableBytesView.first(where: { !$0.isJSONBlank }) == UInt8(ascii: "{") else {
      throw RequestError(.requestInvalid, "the body must be a JSON object")
    }
    return try body.withUnsafeReadableBytes { try JSON.decode(type, from: $0) }
  }
}

extension UInt8 {
  fileprivate var isJSONBlank: Bool { self == 0x20 || self == 0x09 || self == 0x0A || self == 0x0D }
}
