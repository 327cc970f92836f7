import Contract
import MediaModel

/// Calls that cross (protocol section 4): people who call each other at the same moment intend one call.
extension CallClient {
  /// How often a call that crosses another is started.
  private static let startAttempts = 3
  /// The crossed call has ended meanwhile, or this user's part in it has changed.
  private static let passed: Set = ["call.ended", "call.not-found", "call.not-ringing", "call.not-joined"]

  /// The call that `start` creates, or the one that it crosses.
  func meeting(
    _ callees: [UserID], _ start: () async throws(SignalingError) -> JoinedCall
  ) async throws(SignalingError) -> JoinedCall {
    for _ in 1..<Self.startAttempts {
      do {
        return try await start()
      } catch .crossed(let call) {
        if let joined = try await comeInto(call, callees) { return joined }
      }
    }
    return try await start()
  }

  /// Answers a ring, or the ring that replaced it.
  func answering(
    _ id: CallID, _ answer: (CallID) async throws(SignalingError) -> JoinedCall
  ) async throws(SignalingError) -> JoinedCall {
    let people = rung[id]
    do {
      return try await answer(id)
    } catch {
      guard case .refused(let code, _) = error, Self.passed.contains(code), let people,
        let next = rung.first(where: { $0.key != id && $0.value == people })?.key
      else { throw error }
      return try await answer(next)
    }
  }

  /// Joins the call that a `start` crossed: this user has just called everybody who is in it.
  /// - Returns: nil if the call is over by now.
  /// - Throws: `crossed` for a call of other people: the server does not choose who hears this device.
  private func comeInto(_ call: String, _ callees: [UserID]) async throws(SignalingError) -> JoinedCall? {
    guard let id = CallID(call), calls[id] == nil else { throw .crossed(call: call) }
    do throws(SignalingError) {
      let state = try await requestAgain(.call(id, .state), reply: CallState.self)
      let (user, device) = (identity.address.user, identity.address.device)
      let known = Set(callees + [user])
      guard state.id == id, state.members.count > 1, state.members.allSatisfy({ known.contains($0.user) }),
        let own = state.members.first(where: { $0.user == user }), ringers[id].map(known.contains) ?? true
      else { throw .crossed(call: call) }
      if own.state == .ringing { return try await answer(id, calling: known) }
      let isElsewhere = own.state == .joined && !own.participants.contains { $0.device == device }
      return try await join(call, by: nil, calling: known) {
        .call($0, isElsewhere ? .transfer($1.body) : .rejoin($1.body))
      }
    } catch {
      guard case .refused(let code, _) = error, Self.passed.contains(code) else { throw error }
      return nil
    }
  }
}

/// The people of a ring. Two rings with the same people are the same intent.
struct RungPeople: Hashable {
  private let from: UserID
  private let members: Set<UserID>

  init(_ ring: Ring) {
    from = ring.from
    members = Set(ring.members.map(\.user))
  }
}
