import Connections
import Contract
import Cryptography
import JSON
import LinuxIO
import Listening
import MediaModel
import NIOCore

@testable import ConclaveServer

/// Any JSON value. A value that was read can be written, and then means the same.
indirect enum AnyValue: Codable, Equatable {
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

/// Each sequence of bytes has one encoding.
func readBase64(_ input: UnsafeMutableRawBufferPointer) {
  let text = input.text
  guard let read = Base64Bytes(base64: text), let written = try? JSONCoding.encode([read]) else { return }
  precondition((try? JSONCoding.decode([String].self, from: written)) == [text])
}

/// The URL of a push subscription: what was read means what was written.
func readEndpoint(_ input: UnsafeMutableRawBufferPointer) {
  guard let endpoint = PushEndpoint(input.text) else { return }
  precondition(PushEndpoint(endpoint.origin + endpoint.target) == endpoint)
}

private let secret = "a secret of thirty-two bytes, so"
private let authority = TokenAuthority(secret: secret)

/// The input as a token, and as the payload of a token with a valid signature.
func readToken(_ input: UnsafeMutableRawBufferPointer) {
  let text = input.text
  let claims = wait { try? await authority.verify(text, now: Timestamp(milliseconds: 1_000)) }
  precondition(claims == nil || !claims!.user.text.isEmpty)
}

func readKeySet(_ input: UnsafeMutableRawBufferPointer) { _ = try? KeySet(json: input.octets) }

/// The answer of the app's back end to `authorize`.
func readAuthorizeAnswer(_ input: UnsafeMutableRawBufferPointer) {
  guard let answer = try? JSONCoding.decode(AuthorizeAnswer.self, from: input.octets) else { return }
  precondition(answer.allowed.allSatisfy { UserID($0.text) == $0 })
}

private let sender = P256PrivateKey()

/// A push subscription with its two keys: everything sealed for them has the same length.
func readSubscription(_ input: UnsafeMutableRawBufferPointer) {
  guard let subscription = try? JSONCoding.decode(PushSubscription.self, from: input.octets) else { return }
  _ = PushEndpoint(subscription.endpoint)
  let body = PushEncryption.body(
    of: Array("content".utf8), for: subscription, salt: [UInt8](repeating: 1, count: 16), sender: sender)
  precondition(body == nil || body!.count == 86 + PushEncryption.contentBytes + 1 + 16)
}

/// A word of a device: the first byte chooses the algorithm, then follow the signature and the key, each after its
/// length.
func readDeviceSignature(_ input: UnsafeMutableRawBufferPointer) {
  let parts = UnsafeMutableRawBufferPointer(rebasing: input.dropFirst()).parts
  guard let first = input.first, parts.count == 2 else { return }
  let algorithm = ["ES256", "PS256", "EdDSA"][Int(first) % 3]
  let signature = DeviceSignature(bytes: parts[0].octets, message: Array("conclave-admission-v1".utf8))
  sum &+= signature.isValid(algorithm: algorithm, publicKey: parts[1].octets) ? 1 : 0
}

private let guests = TokenAuthority(guestSecret: secret)

/// The body of a guest's request for a token. The input cannot know the fixed token of the link, so nobody is let in.
func readGuest(_ input: UnsafeMutableRawBufferPointer) {
  let body = ByteBuffer(bytes: input)
  let entry = GuestEntry(
    tokens: guests, clock: WallClock(), proxies: .loopback,
    calls: GuestEntry.CallLookup(
      admits: { link, call in link == "good" && call.text == "c1" }, runs: { _ in true }, opened: { _ in nil },
      waits: { _ in }))
  let status = wait {
    await entry.respond(
      to: HTTPRequest(
        method: "POST", path: "/guest/token", query: nil, headers: [("content-type", "application/json")], body: body,
        remoteAddress: try? SocketAddress(ipAddress: "127.0.0.1", port: 5)))?.status
  }
  precondition([200, 400, 403].contains(status))
  precondition((status == 200) == (entry.counts.letIn + entry.counts.renewed == 1))
}

/// The admin socket. The first byte chooses between a request, as the server reads it, and the reply to a command, as `conclave` prints it.
func readAdmin(_ input: UnsafeMutableRawBufferPointer) {
  guard let first = input.first else { return }
  let text = Array(input.dropFirst())
  let commands: [AdminRequest.Command] = [.status, .calls, .call, .users, .end]
  guard Int(first) % 6 < commands.count else {
    guard let request = try? JSONCoding.decode(AdminRequest.self, from: text) else { return }
    precondition((try? JSONCoding.decode(AdminRequest.self, from: JSONCoding.encode(request))) == request)
    return
  }
  let table = try? AdminTables.text(of: text, to: commands[Int(first) % 6], now: Timestamp(milliseconds: 1_000))
  sum &+= table?.utf8.count ?? 0
}
