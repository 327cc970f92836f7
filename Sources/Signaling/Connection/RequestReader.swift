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
  /// - Parameters:
  ///   - path: of its destination, behind `/app/`.
  ///   - content: its body.
  func request(_ path: ArraySlice<Substring>, _ content: ByteBuffer) throws(RequestError) -> Request {
    // Requests that hand out keys may be larger than others.
    let limit = path.first == "calls" && path.last == "keys" ? keysBody : body
    guard content.readableBytes <= limit else {
      throw RequestError(.requestTooLarge, "the body may have \(limit) bytes; split it or send less")
    }
    do {
      guard let request = try Request(path: path, body: Body(content: content)) else {
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

  /// A frame's body, which is a JSON object. One without a byte stands for an empty object.
  private struct Body: RequestBody {
    let content: ByteBuffer

    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
      if content.readableBytes == 0 { return try JSONCoding.decode(type, from: Array("{}".utf8)) }
      guard content.readableBytesView.first(where: { !$0.isJSONBlank }) == UInt8(ascii: "{") else {
        throw RequestError(.requestInvalid, "the body must be a JSON object")
      }
      return try content.withUnsafeReadableBytes { try JSONCoding.decode(type, from: $0) }
    }
  }
}

extension UInt8 {
  fileprivate var isJSONBlank: Bool { self == 0x20 || self == 0x09 || self == 0x0A || self == 0x0D }
}

extension Request {
  /// Its cost beside its frame, in units of the simplest request (protocol section 10). The work that follows from it is charged when it is known.
  var weight: Int {
    switch self {
    case .start(let body): 2 + body.callees.count / 2 + (body.envelopes?.count ?? 0) / 16
    case .invite(_, let body): 2 + body.callees.count / 2
    case .cancel(_, let body): 2 + (body.callees?.count ?? 0) / 4
    case .listDevices(let body): body.users.count
    case .watchPresence(let body): (body.users?.count ?? 0) / 8
    case .keys(_, let body): body.envelopes.count / 16
    case .media: 8
    case .message(_, let body): (body.to?.count ?? 0) / 8
    case .accept, .join, .rejoin, .transfer, .listCalls, .listHistory, .deleteHistory, .historyTotals: 2
    default: 0
    }
  }
}
