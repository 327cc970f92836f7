import Contract
import Foundation
import NIOCore

/// Reads the JSON bodies of replies and events. The clients of one process may share the decoded bodies.
struct BodyDecoder: Sendable {
  private let work: PublicWork

  /// Shorter bodies are not cut into their elements.
  private static let smallest = 2_048
  /// How many elements are looked up together: most of a large call's members are the same in consecutive states.
  private static let blockLength = 32

  init(_ work: PublicWork) { self.work = work }

  func decode<Body: Decodable & Sendable>(_ type: Body.Type, from body: ByteBuffer) throws -> Body {
    if let listing = type as? any Listing.Type, let whole = try decodeParts(listing, of: body) as? Body { return whole }
    return try Self.decode(type, from: body)
  }

  /// Decodes the body's elements separately, because many participants get the same ones in different bodies; nil if it is not worthwhile.
  private func decodeParts<Body: Listing>(_ type: Body.Type, of body: ByteBuffer) throws -> Body? {
    guard let parts = parts(of: body, at: type.path) else { return nil }
    var whole = try Self.decode(type, from: parts.rest)
    whole.elements = try elements(parts)
    return whole
  }

  private func parts(of body: ByteBuffer, at path: [String]) -> JSONElements? {
    guard work.isShared, body.readableBytes >= Self.smallest else { return nil }
    return JSONElements(of: body, at: path)
  }

  private func elements<Element: Decodable & Sendable>(_ parts: JSONElements) throws -> [Element] {
    let count = parts.elements.count
    return try stride(from: 0, to: count, by: Self.blockLength).flatMap { start in
      let block = start..<min(start + Self.blockLength, count)
      func decode(_: ByteBuffer) throws -> [Element] {
        try parts.elements[block].map { try work.value(in: $0) { try Self.decode(Element.self, from: $0) } }
      }
      return try parts.text(of: block).map { try work.value(in: $0, decode) } ?? []
    }
  }

  func event(_ name: EventName, from body: ByteBuffer) throws -> EventMessage {
    // It is for one device only, so only its members are worth keeping.
    if name == .callState, let state = try state(from: body) { return state }
    return try work.value(in: body, name: name) { body in
      guard name == .keysRotate else { return try Self.event(name, from: body) }
      let list = parts(of: body, at: KeyList.path)
      let words = parts(of: list?.rest ?? body, at: ["admissions"])
      guard list != nil || words != nil else { return try Self.event(name, from: body) }
      var message = try Self.event(name, from: words?.rest ?? list?.rest ?? body)
      guard case .rotate(var rotation) = message.body else { return try Self.event(name, from: body) }
      if let list { rotation.list = try elements(list) }
      if let words {
        guard let admissions: [Admission] = try? elements(words) else { return try Self.event(name, from: body) }
        rotation.admissions = admissions
      }
      message.body = .rotate(rotation)
      return message
    }
  }

  private func state(from body: ByteBuffer) throws -> EventMessage? {
    guard let parts = parts(of: body, at: CallState.path) else { return nil }
    var message = try Self.event(.callState, from: parts.rest)
    guard case .state(var state) = message.body else { return nil }
    state.members = try elements(parts)
    message.body = .state(state)
    return message
  }

  private static func event(_ name: EventName, from body: ByteBuffer) throws -> EventMessage {
    let decoder = JSONDecoder()
    decoder.userInfo[Event.name] = name
    do {
      return try decoder.decode(Event.self, from: data(body)).message
    } catch {
      guard let words = LooseWords(of: body) else { throw error }
      var message = try decoder.decode(Event.self, from: data(words.rest)).message
      switch message.body {
      case .rotate(var rotation):
        (rotation.admissions, rotation.signers) = (words.admissions, words.signers)
        message.body = .rotate(rotation)
      case .ring(var ring):
        (ring.admissions, ring.signers) = (words.admissions, words.signers)
        message.body = .ring(ring)
      default: throw error
      }
      return message
    }
  }

  private static func decode<Body: Decodable>(_ type: Body.Type, from body: ByteBuffer) throws -> Body {
    do {
      return try JSONDecoder().decode(type, from: data(body))
    } catch {
      guard type == KeyList.self, let words = LooseWords(of: body) else { throw error }
      var list = try JSONDecoder().decode(KeyList.self, from: data(words.rest))
      (list.admissions, list.signers) = (words.admissions, words.signers)
      guard let list = list as? Body else { throw error }
      return list
    }
  }

  private static func data(_ body: ByteBuffer) -> Data {
    // An empty body is `{}` (protocol section 3).
    body.readableBytes == 0 ? Data("{}".utf8) : Data(body.readableBytesView)
  }

  /// An event's name is in its header, so it is passed to the decoder along with the body.
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

/// A body whose bulk is one list.
private protocol Listing: Decodable {
  associatedtype Element: Decodable & Sendable
  /// The members that lead to the list.
  static var path: [String] { get }
  var elements: [Element] { get set }
}

extension Devices: Listing {
  fileprivate static let path = ["devices"]
  fileprivate var elements: [DeviceEntry] {
    get { devices }
    set { devices = newValue }
  }
}

extension CallState: Listing {
  fileprivate static let path = ["members"]
  fileprivate var elements: [MemberState] {
    get { members }
    set { members = newValue }
  }
}

extension Joined: Listing {
  fileprivate static let path = ["call", "members"]
  fileprivate var elements: [MemberState] {
    get { call.members }
    set { call.members = newValue }
  }
}

extension KeyList: Listing {
  fileprivate static let path = ["list"]
  fileprivate var elements: [ListEntry] {
    get { list }
    set { list = newValue }
  }
}
