import Contract
import MediaModel

/// The answer to a guest who waits at the door of a call.
enum DoorAnswer: Sendable {
  case over(KnockOver.Outcome)
  /// It cannot knock any longer.
  case failed(SignalingError)
}

/// Guests who wait until a member admits them (protocol section 4, "Guests").
extension CallClient {
  /// How often an admitted guest tries to join: a restart of the server forgets who was admitted.
  static let doorAttempts = 4
  /// The server forgets a guest that has not knocked for a minute.
  private static let knockInterval = Duration.seconds(20)

  /// Knocks until a member has admitted this guest.
  func waitAtDoor(of call: String, link: String, secret: LinkSecret) async throws(SignalingError) {
    guard let id = CallID(call), doors[id] == nil, let word = Admission.coming(by: secret, into: id, as: identity)
    else { throw .notAdmitted }
    let (answers, door) = AsyncStream.makeStream(of: DoorAnswer.self, bufferingPolicy: .bufferingNewest(4))
    doors[id] = door
    defer {
      doors[id] = nil
      door.finish()
    }
    let knocking = Task { await knock(.call(id, .knock(Knock(link: link, admission: word))), at: door) }
    defer { knocking.cancel() }
    tell(.waitingForAdmission(call: call))
    for await answer in answers {
      switch answer {
      case .over(.admitted): return
      case .over: throw .notAdmitted
      case .failed(let error): throw error
      }
    }
    // The task was cancelled.
    Task { try? await perform(.call(id, .leave)) }
    throw .notAdmitted
  }

  private func knock(_ request: Request, at door: AsyncStream<DoorAnswer>.Continuation) async {
    while !Task.isCancelled {
      do throws(SignalingError) {
        _ = try await requestAgain(request, reply: Knocking.self)
      } catch {
        door.yield(.failed(error))
        return
      }
      try? await Task.sleep(for: Self.knockInterval)
    }
  }

  func admit(_ guest: String, to call: CallID) async throws(SignalingError) {
    let guest = try Self.identifiers([guest])[0]
    guard let word = calls[call]?.keys.waitingGuests.word(of: guest)?.admitted(into: call, by: identity) else {
      throw .notInCall
    }
    try await answer(guest, .admitGuest(AdmitGuest(admission: word)), in: call)
  }

  func refuse(_ guest: String, from call: CallID) async throws(SignalingError) {
    let guest = try Self.identifiers([guest])[0]
    try await answer(guest, .refuseGuest(RefuseGuest(guest: guest)), in: call)
  }

  private func answer(_ guest: UserID, _ request: MemberRequest, in call: CallID) async throws(SignalingError) {
    do {
      try await perform(.call(call, request))
    } catch {
      // Somebody was first, or the server was restarted: the guest is not at the door.
      if case .refused(RequestError.Code.userNotFound.rawValue, _) = error { feed(.knockOver(guest), to: call) }
      throw error
    }
  }
}

extension SignalingError {
  fileprivate static let noAdmission = "no member has admitted this guest"
  static var notAdmitted: SignalingError {
    .refused(code: RequestError.Code.callNotAdmitted.rawValue, message: noAdmission)
  }
}
