import CallMessages
import Contract
import MediaModel
import Octets

/// Guests who wait at the door: `knock`, `admit-guest` and `refuse-guest` (protocol section 4, "Guests").
extension Call {
  /// A guest knocks, or repeats its knock so that it goes on waiting.
  /// - Parameter word: by a link of this call, with a good signature.
  mutating func knock(
    _ word: Admission, by caller: Caller, now: Timestamp, out: inout Outputs
  ) throws(RequestError) -> Knocking {
    let user = caller.device.user
    guard epochs.admissions.waits(word.link), needsLink(user) || isGuestWithOtherKeys(caller) else {
      throw RequestError(.requestInvalid, "this guest need not wait: join, or rejoin", field: "admission")
    }
    guard !knocks.isRefused(user) else {
      throw RequestError(.callLinkInvalid, "a member has refused this guest", field: "link")
    }
    if let knock = knocks[user], knock.word.isOfSameGuest(as: word) {
      if knock.admitted == nil { knocks[user]?.heardAt = now } else { tell(user, .admitted, to: [], out: &out) }
    } else {
      stopKnocking(user, out: &out)
      try checkRoom(for: word)
      let knock = Knocks.Knock(device: caller.device, name: caller.name, word: word, since: now, heardAt: now)
      knocks[user] = knock
      out.event(.knock(event(of: knock)), to: .devices(doorkeepers))
    }
    guard let knock = knocks[user] else { throw .notFound }
    out.set(.knock(user), at: knock.due)
    return Knocking(expiresAt: knock.expiresAt)
  }

  private func checkRoom(for word: Admission) throws(RequestError) {
    guard knocks.hasRoom(for: word) else {
      throw RequestError(.callFull, "as many guests as may wait are waiting: try again in a minute")
    }
    guard members.count < limits.members, members.count(where: \.user.isGuest) < limits.guests else {
      throw RequestError(.callFull, "the call has \(limits.guests) guests, those who left counted")
    }
  }

  /// A member's device admits a guest. The first answer counts.
  mutating func admitGuest(
    _ word: Admission, by device: Device, hashing: Hashing, now: Timestamp, out: inout Outputs
  ) throws(RequestError) {
    let keys = try keys(ofInviting: device)
    let knock = try unanswered(word.user, field: "admission.user")
    guard knock.word.isOfSameGuest(as: word), let user = word.user, let link = word.link else {
      throw RequestError(.requestInvalid, "the guest has knocked with another word", field: "admission")
    }
    guard let by = word.admittedBy else {
      throw RequestError(.requestInvalid, "a guest is admitted by a signature", field: "admission.admittedBy")
    }
    let signature = try SignatureCheck(keys, hashing)
    try signature.checkSigner(by, field: "admission.admittedBy")
    let message = Transcript.guestAdmission(
      call: id.text, fingerprint: by.fingerprint.bytes, link: link.bytes, guest: word.fingerprint.bytes,
      user: user.text)
    try signature.check(by, of: message, field: "admission.admittedBy")
    var admitted = knock.word
    admitted.admittedBy = by
    knocks[user]?.admitted = (admitted, Signer(keys))
    knocks[user]?.heardAt = now
    out.set(.knock(user), at: now + Knocks.joinTime)
    tell(user, .admitted, to: doorkeepers, out: &out)
  }

  /// A member refuses a guest, of whom nothing is kept.
  mutating func refuseGuest(_ guest: UserID, by user: UserID, out: inout Outputs) throws(RequestError) {
    try checkMayInvite(user)
    _ = try unanswered(guest, field: "guest")
    knocks.refuse(guest)
    out.cancel(.knock(guest))
    tell(guest, .refused, to: doorkeepers, out: &out)
    if member(guest) == nil { out.tell(.guestRemoved(guest)) }
  }

  private func unanswered(_ guest: UserID?, field: String) throws(RequestError) -> Knocks.Knock {
    guard let knock = guest.flatMap({ knocks[$0] }), knock.admitted == nil else {
      throw RequestError(.userNotFound, "this guest does not wait, or somebody has answered", field: field)
    }
    return knock
  }

  // MARK: the end of waiting

  mutating func stopKnocking(_ user: UserID, out: inout Outputs) {
    guard let knock = knocks.remove(user) else { return }
    out.cancel(.knock(user))
    tell(user, .over, to: knock.admitted == nil ? doorkeepers : [], out: &out)
  }

  mutating func knockTimedOut(_ user: UserID, now: Timestamp, out: inout Outputs) {
    guard let knock = knocks[user], knock.due <= now else { return }
    stopKnocking(user, out: &out)
  }

  /// The links are void, and with them what guests have by them.
  mutating func endKnocks(out: inout Outputs) {
    for user in knocks.users { stopKnocking(user, out: &out) }
  }

  /// The call is over: nothing is kept of guests who waited for it.
  mutating func dismissKnocks(out: inout Outputs) {
    for user in knocks.users {
      _ = knocks.remove(user)
      tell(user, .over, to: [], out: &out)
      if member(user) == nil { out.tell(.guestRemoved(user)) }
    }
  }

  // MARK: telling

  /// A device that has joined hears who waits.
  func tellKnocks(to device: Device, out: inout Outputs) {
    guard mayAdmit(device.user) else { return }
    for knock in knocks.unanswered { out.event(.knock(event(of: knock)), to: .devices([device])) }
  }

  /// The devices that hear of guests who wait.
  private var doorkeepers: [Device] { participantDevices.filter { mayAdmit($0.user) } }

  private func mayAdmit(_ user: UserID) -> Bool {
    !user.isGuest && (rules.invite == .members || user == initiator)
  }

  private func tell(_ guest: UserID, _ outcome: KnockOver.Outcome, to devices: [Device], out: inout Outputs) {
    let body = EventBody.knockOver(KnockOver(user: guest, outcome: outcome))
    out.event(body, to: .users([guest]))
    if !devices.isEmpty { out.event(body, to: .devices(devices)) }
  }

  private func event(of knock: Knocks.Knock) -> GuestKnock {
    let admissions = epochs.admissions
    let words = admissions.shown(knock.word.link.map { admissions.needed(by: $0) } ?? [:])
    return GuestKnock(
      user: knock.device.user, name: knock.name, expiresAt: knock.expiresAt,
      admissions: [knock.word] + (words.admissions ?? []), signers: words.signers)
  }
}
