import Cryptography
import MediaModel
import NIOCore

/// The client's side of a conversation with a TURN server that shows whether it relays: an allocation with credentials, a permission for each address of the media
/// ports, and the end of the allocation (RFC 8656 sections 7 to 9). A STUN server is asked for this side's address. No sockets and no clock: messages in, messages
/// out.
struct TURNConversation {
  struct Credentials: Sendable {
    var name: String
    var password: String
  }

  enum Outcome: Sendable, Equatable {
    /// It relays from this address, but not to the refused ones, each with the error's number.
    case relays(from: MediaModel.SocketAddress, refused: [Refusal])
    /// A STUN server that reports this side's address.
    case answers
    /// An error's number; `knowsCredentials` says whether the refused request had them.
    case refuses(code: Int, knowsCredentials: Bool)
    /// The answer does not come from a TURN server.
    case isOther
  }

  struct Refusal: Sendable, Equatable {
    var peer: MediaModel.SocketAddress
    var code: Int
  }

  enum Step: Sendable {
    case send(ByteBuffer)
    case end(Outcome)
    /// Not the answer to the last request.
    case wait
  }

  private enum Phase { case binding, asking, allocating, permitting(MediaModel.SocketAddress), ending }

  private static let udp: [UInt8] = [17, 0, 0, 0]
  private static let unauthenticated = 401
  private static let staleNonce = 438

  private let credentials: Credentials?
  private var peers: [MediaModel.SocketAddress]
  private var phase: Phase
  private var transaction: [UInt8] = []
  private var realm: [UInt8] = []
  private var nonce: [UInt8] = []
  private var hasRenewedNonce = false
  private var relayed: MediaModel.SocketAddress?
  private var refused: [Refusal] = []

  /// - Parameters:
  ///   - credentials: nil for a STUN server.
  ///   - peers: the addresses to which it must relay.
  init(_ credentials: Credentials?, peers: [MediaModel.SocketAddress]) {
    self.credentials = credentials
    self.peers = peers
    phase = credentials == nil ? .binding : .asking
  }

  mutating func begin(using generator: inout some RandomNumberGenerator) -> ByteBuffer { request(&generator) }

  /// The complete answer to the last request.
  mutating func take(_ bytes: ByteBuffer, using generator: inout some RandomNumberGenerator) -> Step {
    guard let answer = TURNMessage(bytes), answer.kind != .request else { return .end(.isOther) }
    guard answer.transaction == transaction else { return .wait }
    if let code = answer.errorCode { return failed(code, answer, &generator) }
    switch phase {
    case .binding: return .end(answer.address(.xorMappedAddress) == nil ? .isOther : .answers)
    case .asking, .allocating:
      guard let address = answer.address(.xorRelayedAddress) else { return .end(.isOther) }
      relayed = address
      // A permission is for addresses of the relayed address's family (RFC 8656 section 9.1).
      peers.removeAll { $0.isIPv4 != address.isIPv4 }
      return next(&generator)
    case .permitting: return next(&generator)
    case .ending: return .end(end)
    }
  }

  private mutating func failed(_ code: Int, _ answer: TURNMessage, _ generator: inout some RandomNumberGenerator)
    -> Step
  {
    let isFirst = code == Self.unauthenticated && realm.isEmpty
    let isStale = code == Self.staleNonce && !hasRenewedNonce
    if credentials != nil, isFirst || isStale {
      guard let realm = answer[.realm] ?? (isStale ? realm : nil), let nonce = answer[.nonce] else {
        return .end(.isOther)
      }
      self.realm = realm
      self.nonce = nonce
      hasRenewedNonce = isStale
      if case .asking = phase { phase = .allocating }
      return .send(request(&generator))
    }
    switch phase {
    case .permitting(let peer):
      refused.append(Refusal(peer: peer, code: code))
      return next(&generator)
    // The allocation also ends by itself.
    case .ending: return .end(end)
    case .binding, .asking, .allocating: return .end(.refuses(code: code, knowsCredentials: !realm.isEmpty))
    }
  }

  private var end: Outcome { relayed.map { .relays(from: $0, refused: refused) } ?? .isOther }

  private mutating func next(_ generator: inout some RandomNumberGenerator) -> Step {
    hasRenewedNonce = false
    phase = peers.isEmpty ? .ending : .permitting(peers.removeFirst())
    return .send(request(&generator))
  }

  private mutating func request(_ generator: inout some RandomNumberGenerator) -> ByteBuffer {
    transaction = (0..<12).map { _ in UInt8.random(in: 0...255, using: &generator) }
    var message: TURNMessage
    switch phase {
    case .binding: return TURNMessage(.binding, transaction: transaction).encoded()
    case .asking, .allocating:
      message = TURNMessage(.allocate, transaction: transaction)
      message.add(.requestedTransport, Self.udp)
    case .permitting(let peer):
      message = TURNMessage(.createPermission, transaction: transaction)
      message.add(.xorPeerAddress, peer)
    case .ending:
      message = TURNMessage(.refresh, transaction: transaction)
      message.add(.lifetime, [0, 0, 0, 0])
    }
    guard let credentials, !realm.isEmpty else { return message.encoded() }
    message.add(.username, credentials.name.utf8)
    message.add(.realm, realm)
    message.add(.nonce, nonce)
    return message.encoded(key: Self.key(credentials.name, realm, credentials.password))
  }

  /// RFC 8489 section 9.2.2.
  static func key(_ name: String, _ realm: [UInt8], _ password: String) -> [UInt8] {
    HashAlgorithm.md5.digest(of: Array("\(name):".utf8) + realm + Array(":\(password)".utf8))
  }
}
