import COpenSSL
import CSTUN
package import MediaModel
import Octets

/// One side's connectivity checks (RFC 8445 section 7.2) for one peer connection, and the verification of their answers.
///
/// A client checks the server's candidates and nominates immediately. The server checks that an address nominated by a client receives packets: only a
/// receiver can answer, because an answer repeats the 96 random bits of the check (RFC 7675 section 5.1).
package final class ConnectivityChecker {
  package enum Answer: Sendable, Equatable {
    /// The path works; the other side sees this side as `mapped`.
    case succeeded(mapped: SocketAddress)
    /// The other side answered with an authentic error.
    case refused
    case dropped(DropReason)
  }

  /// The room that a check may need.
  package static let checkCapacity = 640

  private static let outstandingLimit = 16

  private struct Check {
    var transaction: [UInt8]
    var address: SocketAddress
  }

  private let role: ICERole
  private let agent: UnsafeMutablePointer<StunAgent>
  /// libnice keeps a pointer to the key of each outstanding check, so the bytes must not move.
  private let key: UnsafeMutableBufferPointer<UInt8>
  private let username: [UInt8]
  private let tieBreaker: UInt64
  private var outstanding: [Check] = []

  /// nil if a fragment is longer than 256 bytes (RFC 8445 section 5.3) or the remote password empty: libnice accepts any tag if
  /// the key is empty.
  package init?(role: ICERole, local: ICECredentials, remote: ICECredentials, tieBreaker: UInt64) {
    guard !remote.password.isEmpty, max(local.fragment.utf8.count, remote.fragment.utf8.count) <= 256 else {
      return nil
    }
    self.role = role
    agent = .allocate(capacity: 1)
    cstun_agent_init(agent)
    key = .allocate(capacity: remote.password.utf8.count)
    _ = key.initialize(from: remote.password.utf8)
    username = Array("\(remote.fragment):\(local.fragment)".utf8)
    self.tieBreaker = tieBreaker
  }

  deinit {
    agent.deallocate()
    key.deallocate()
  }

  /// 96 bits of the system's cryptographic generator: an answer proves something only if nobody can guess them.
  package static func randomTransaction() -> (UInt64, UInt32) {
    var transaction: (UInt64, UInt32) = (0, 0)
    let isRandom = withUnsafeMutableBytes(of: &transaction) { RAND_bytes($0.baseAddress, 12) == 1 }
    precondition(isRandom, "the system has a random generator")
    return transaction
  }

  /// Writes a Binding request with USERNAME, PRIORITY and the role's attribute, from a controlling agent with USE-CANDIDATE; also the consent check of RFC 7675.
  /// At most 16 checks are outstanding; the oldest is forgotten.
  /// - Parameters:
  ///   - address: where it is sent; an answer from elsewhere is ignored (RFC 8445 section 7.2.5.2.1).
  ///   - transaction: 96 random bits, never reused.
  /// - Returns: the bytes to send, written to the start of `buffer` (at least `checkCapacity`).
  package func makeCheck(
    of address: SocketAddress, transaction: (UInt64, UInt32), priority: UInt32 = 0x7eff_ffff,
    into buffer: UnsafeMutableRawBufferPointer
  ) -> Int {
    precondition(buffer.count >= Self.checkCapacity)
    if outstanding.count == Self.outstandingLimit {
      var oldest = outstanding.removeFirst().transaction
      stun_agent_forget_transaction(agent, &oldest)
    }
    let bytes = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)
    var message = StunMessage()
    stun_agent_init_request(agent, &message, bytes, buffer.count, STUN_BINDING)
    // The transaction id follows the magic cookie. libnice has generated one itself; the caller's makes runs repeatable.
    buffer.store(transaction.0, at: 8)
    buffer.store(transaction.1, at: 16)
    if role == .controlling { stun_message_append_flag(&message, STUN_ATTRIBUTE_USE_CANDIDATE) }
    stun_message_append32(&message, STUN_ATTRIBUTE_PRIORITY, priority)
    let roleAttribute = role == .controlling ? STUN_ATTRIBUTE_ICE_CONTROLLING : STUN_ATTRIBUTE_ICE_CONTROLLED
    stun_message_append64(&message, roleAttribute, tieBreaker)
    stun_message_append_bytes(&message, STUN_ATTRIBUTE_USERNAME, username, username.count)
    let length = stun_agent_finish_message(agent, &message, key.baseAddress, key.count)
    precondition(length > 0, "the buffer holds any check and the agent has free transactions")
    outstanding.append(Check(transaction: Array(buffer[4..<20]), address: address))
    return length
  }

  /// Verifies an answer to one of the checks.
  package func handle(_ datagram: UnsafeRawBufferPointer, from source: SocketAddress) -> Answer {
    guard datagram.count >= 20, let bytes = datagram.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
      return .dropped(.malformed)
    }
    // Success or error response to Binding (RFC 8489 section 5).
    guard [0x0101, 0x0111].contains(datagram.bytes.uint16(at: 0)) else { return .dropped(.unexpected) }
    guard let check = outstanding.firstIndex(where: { $0.transaction.elementsEqual(datagram.part(4..<20)) }) else {
      return .dropped(.replayed)
    }
    guard outstanding[check].address == source else { return .dropped(.unexpected) }
    var username: UnsafePointer<UInt8>?
    var usernameLength: UInt16 = 0
    guard cstun_inspect(agent, bytes, datagram.count, &username, &usernameLength) else { return .dropped(.malformed) }
    var response = StunMessage()
    switch cstun_validate(agent, &response, bytes, datagram.count, key.baseAddress, key.count) {
    case STUN_VALIDATION_SUCCESS: break
    case STUN_VALIDATION_UNAUTHORIZED: return .dropped(.unauthenticated)
    case STUN_VALIDATION_UNMATCHED_RESPONSE: return .dropped(.replayed)
    default: return .dropped(.malformed)
    }
    outstanding.remove(at: check)
    var mapped = SocketAddress(high: 0, low: 0, port: 0)
    switch cstun_mapped_address(&response, &mapped.high, &mapped.low, &mapped.port) {
    case STUN_USAGE_ICE_RETURN_SUCCESS: return .succeeded(mapped: mapped)
    case STUN_USAGE_ICE_RETURN_ERROR, STUN_USAGE_ICE_RETURN_ROLE_CONFLICT: return .refused
    default: return .dropped(.malformed)
    }
  }
}

/// The controlling agent chooses the path (RFC 8445 section 2.2). An ICE-lite server is always controlled, so its clients are controlling.
package enum ICERole: Sendable { case controlling, controlled }
