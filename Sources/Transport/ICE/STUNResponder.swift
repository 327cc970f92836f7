import CSTUN
package import MediaModel
import Octets

/// Answers connectivity checks (RFC 8445 section 7.3): the server's half of ICE-lite for all peers of one port, and a client's answers to the server's checks.
package final class STUNResponder {
  package enum Response: Sendable, Equatable {
    /// An authentic check of the peer that owns `localFragment`: send the reply's first `length` bytes to its source, which is
    /// now a validated address of that peer. `nominated`: it contained USE-CANDIDATE.
    case accepted(localFragment: String, length: Int, nominated: Bool)
    /// Authentic, but answered with an error (role conflict, unknown attribute): send the reply, validate nothing.
    case refused(length: Int)
    /// Nothing is sent, so that a sender without the password learns nothing.
    case dropped(DropReason)
  }

  /// The room that a reply may need.
  package static let replyCapacity = 640

  /// libnice's agent holds 200 saved transactions (12 KiB), so it lives on the heap, and there is one per port.
  private let agent: UnsafeMutablePointer<StunAgent>
  private let role: ICERole

  package init(role: ICERole) {
    self.role = role
    agent = .allocate(capacity: 1)
    cstun_agent_init(agent)
  }

  deinit { agent.deallocate() }

  /// - Parameters:
  ///   - reply: at least `replyCapacity` bytes.
  ///   - password: the local password that belongs to a local fragment, nil if no peer has it.
  package func respond(
    to datagram: UnsafeRawBufferPointer, from source: SocketAddress, into reply: UnsafeMutableRawBufferPointer,
    password: (_ localFragment: String) -> String?
  ) -> Response {
    precondition(reply.count >= Self.replyCapacity)
    guard datagram.count >= 20, let bytes = datagram.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
      return .dropped(.malformed)
    }
    // A Binding request (RFC 8489 section 5).
    guard datagram.bytes.uint16(at: 0) == 0x0001 else { return .dropped(.unexpected) }
    var username: UnsafePointer<UInt8>?
    var usernameLength: UInt16 = 0
    guard cstun_inspect(agent, bytes, datagram.count, &username, &usernameLength), let username else {
      return .dropped(.malformed)
    }
    guard let fragment = localFragment(UnsafeBufferPointer(start: username, count: Int(usernameLength))) else {
      return .dropped(.malformed)
    }
    // libnice accepts any tag if the key is empty.
    guard var key = password(fragment), !key.isEmpty else { return .dropped(.unknownPeer) }
    return key.withUTF8 { key in
      answer(UnsafeBufferPointer(start: bytes, count: datagram.count), source, reply, fragment, key)
    }
  }

  /// The part of USERNAME before the colon (RFC 8445 section 7.2.2), at most 256 bytes (section 5.3).
  private func localFragment(_ username: UnsafeBufferPointer<UInt8>) -> String? {
    guard let colon = username.firstIndex(of: UInt8(ascii: ":")), (1...256).contains(colon) else { return nil }
    return String(validating: username[..<colon], as: UTF8.self)
  }

  private func answer(
    _ datagram: UnsafeBufferPointer<UInt8>, _ source: SocketAddress, _ reply: UnsafeMutableRawBufferPointer,
    _ fragment: String, _ key: UnsafeBufferPointer<UInt8>
  ) -> Response {
    var request = StunMessage()
    let status = cstun_validate(agent, &request, datagram.baseAddress, datagram.count, key.baseAddress, key.count)
    let out = reply.baseAddress?.assumingMemoryBound(to: UInt8.self)
    switch status {
    case STUN_VALIDATION_SUCCESS:
      var length = reply.count
      let result = cstun_reply(
        agent, &request, out, &length, source.high, source.low, source.port, role == .controlling)
      guard length > 0 else { return .dropped(.malformed) }
      guard result == STUN_USAGE_ICE_RETURN_SUCCESS else { return .refused(length: length) }
      return .accepted(
        localFragment: fragment, length: length, nominated: stun_usage_ice_conncheck_use_candidate(&request))
    case STUN_VALIDATION_UNKNOWN_REQUEST_ATTRIBUTE:
      var message = StunMessage()
      let length = stun_agent_build_unknown_attributes_error(agent, &message, out, reply.count, &request)
      return length > 0 ? .refused(length: length) : .dropped(.malformed)
    case STUN_VALIDATION_UNAUTHORIZED: return .dropped(.unauthenticated)
    default: return .dropped(.malformed)
    }
  }
}
