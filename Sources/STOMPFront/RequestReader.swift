import Contract
import JSON
import NIOCore
import STOMP

/// Reads requests from SEND frames.
struct RequestReader {
  /// In bytes: of `…/keys` and of all others.
  let keysBody: Int
  let body: Int

  /// The request in a SEND.
  /// - Parameters:
  ///   - path: of its destination, after `/app/`.
  ///   - content: its body.
  func request(_ path: ArraySlice<Substring>, _ content: ByteBuffer) throws(RequestError) -> Request {
    // Requests that hand out keys may be larger than others.
    let limit = path.count == 3 && path.first == "calls" && path.last == "keys" ? keysBody : body
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

  /// A frame's body, which is a JSON object. An empty body stands for an empty object.
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

/// The cost of a request in addition to its frame, in units of the simplest one (protocol section 10). The work that follows from it is charged when it
/// is known.
extension Request {
  var weight: Int {
    switch self {
    case .people(.listDevices(let body)): body.users.count
    case .people(.watchPresence(let body)): (body.users?.count ?? 0) / 8
    case .people: 0
    case .history: 2
    case .recordings(.start), .recordings(.share): 4
    case .recordings(.delete(let body)): 2 + body.ids.count / 4
    case .recordings: 2
    case .calls(.start(let body)): 2 + body.callees.count / 2 + (body.envelopes?.count ?? 0) / 16
    case .calls(.list): 2
    case .calls(.call(_, let request)): request.weight
    case .calls(.inCall(_, let request)): request.weight
    }
  }
}

extension MemberRequest {
  fileprivate var weight: Int {
    switch self {
    case .accept, .join, .rejoin, .transfer, .knock: 2
    case .invite(let body): 2 + body.callees.count / 2
    case .cancel(let body): 2 + (body.callees?.count ?? 0) / 4
    case .decline, .leave, .end, .link, .admitGuest, .refuseGuest, .removeGuest, .hold, .state, .report: 0
    }
  }
}

extension ParticipantRequest {
  fileprivate var weight: Int {
    switch self {
    case .media: 8
    case .keys(let body): body.envelopes.count / 16
    case .message(let body): (body.to?.count ?? 0) / 8
    case .startRecording: 4
    case .track, .receive, .stats, .requestKey, .listKeys, .waitForKey, .confirmKey, .listConfirmations,
      .consentToRecording, .exportTrackKeys, .stopRecording:
      0
    }
  }
}
