import Contract
import Dispatch
import JSON
import MediaModel
import Signaling

@testable import ConclaveServer

/// Any JSON value. A value that can be read can be written and means the same.
private indirect enum AnyValue: Codable, Equatable {
  case null
  case bool(Bool)
  case integer(Int64)
  case number(Double)
  case text(String)
  case list([AnyValue])
  case object([String: AnyValue])

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let value = try? container.decode(Bool.self) {
      self = .bool(value)
    } else if let value = try? container.decode(Int64.self) {
      self = .integer(value)
    } else if let value = try? container.decode(Double.self) {
      self = .number(value)
    } else if let value = try? container.decode(String.self) {
      self = .text(value)
    } else if let value = try? container.decode([AnyValue].self) {
      self = .list(value)
    } else {
      self = .object(try container.decode([String: AnyValue].self))
    }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .bool(let value): try container.encode(value)
    case .integer(let value): try container.encode(value)
    case .number(let value): try container.encode(value)
    case .text(let value): try container.encode(value)
    case .list(let value): try container.encode(value)
    case .object(let value): try container.encode(value)
    }
  }
}

func readJSON(_ input: UnsafeMutableRawBufferPointer) {
  guard let value = try? JSONCoding.decode(AnyValue.self, from: UnsafeRawBufferPointer(input)) else { return }
  guard let text = try? JSONCoding.encode(value) else { fatalError("a value that was read cannot be written") }
  guard let again = try? JSONCoding.decode(AnyValue.self, from: text) else { fatalError("written text cannot be read") }
  precondition(again == value)
}

/// One text for each sequence of bytes.
func readBase64(_ input: UnsafeMutableRawBufferPointer) {
  let text = input.text
  guard let read = Base64Bytes(base64: text), let written = try? JSONCoding.encode([read]) else { return }
  precondition((try? JSONCoding.decode([String].self, from: written)) == [text])
}

/// The URL of a push subscription: what was read means what is written.
func readEndpoint(_ input: UnsafeMutableRawBufferPointer) {
  guard let endpoint = PushEndpoint(input.text) else { return }
  precondition(PushEndpoint(endpoint.origin + endpoint.target) == endpoint)
}

private let secret = "a secret of thirty-two bytes, so"
private let authority = TokenAuthority(secret: secret)

/// A token as it comes, and its payload behind a right signature.
func readToken(_ input: UnsafeMutableRawBufferPointer) {
  let text = input.text
  let claims = wait { try? await authority.verify(text, now: Timestamp(milliseconds: 1_000)) }
  precondition(claims == nil || !claims!.user.text.isEmpty)
}

func readKeySet(_ input: UnsafeMutableRawBufferPointer) { _ = try? KeySet(json: input.octets) }

/// Blocks until `work` is done.
private func wait<Value: Sendable>(_ work: @escaping @Sendable () async -> Value) -> Value {
  let done = DispatchSemaphore(value: 0)
  nonisolated(unsafe) var value: Value?
  Task {
    value = await work()
    done.signal()
  }
  done.wait()
  return value!
}
