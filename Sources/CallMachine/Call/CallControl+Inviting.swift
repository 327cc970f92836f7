import CallMessages
import Contract
import MediaModel

/// Links, and joining by one.
extension CallControl {
  /// - Parameter grant: if it is for a lasting link.
  mutating func link(
    _ id: CallID, _ request: MakeLink, _ device: Device, _ grant: LinkGrant?
  ) throws(RequestError) -> Transition {
    let (random, hashing) = (random, hashing)
    return try run(id, by: device.user) { call, now, out throws(RequestError) in
      guard request.revoke != true else {
        try call.revokeLinks(by: device.user, now: now, out: &out)
        return .done
      }
      let key = { (0..<4).flatMap { _ in bytes(of: random()) } }
      return .reply(
        .link(try call.makeLink(request, by: device, grant, key: key, hashing: hashing, now: now, out: &out)))
    }
  }

  /// Whether the user joins by a link. A member, or a former member of a call that has ended, needs no link and joins as if without one.
  ///
  /// A stranger learns nothing about the call from a refusal: it is the same whether the call exists, has ended or never existed, and the same
  /// HMAC is computed in each case.
  /// - Throws: `call.link-invalid`.
  func isLetIn(_ user: UserID, by link: String?, to id: CallID) throws(RequestError) -> Bool {
    guard let link else { return false }
    let call = calls[id]
    if let call, !call.needsLink(user) { return false }
    if call == nil, ended.wasMember(user, of: id) { return false }
    let links = call?.links ?? CallLinks(key: [UInt8](repeating: 0, count: 32), now: now)
    let isValid = links.isValid(link, for: id, now: now, hashing: hashing)
    guard isValid, call?.links != nil else {
      throw RequestError(.callLinkInvalid, "the link is over, was revoked, or is for another call", field: "link")
    }
    return true
  }

  /// Checks the word of a `join` or `rejoin`, as far as possible without the call: it is the sender's own, and comes with
  /// a link.
  func checkWord(of request: Join, _ kind: JoinMemory.Kind, _ caller: Caller) throws(RequestError) {
    guard let word = request.admission else {
      guard kind != .join || request.link == nil else {
        throw RequestError(.requestInvalid, "a link comes with the word for the user", field: "admission")
      }
      return
    }
    guard kind != .join || request.link != nil else {
      throw RequestError(.requestInvalid, "the word for a user comes with a link", field: "link")
    }
    guard word.user == caller.device.user else {
      throw RequestError(.requestInvalid, "the word is not for the sender", field: "admission.user")
    }
    guard word.fingerprint == caller.keys?.fingerprint else {
      throw RequestError(
        .requestInvalid, "this is not the sending device's fingerprint", field: "admission.fingerprint")
    }
  }

  /// The word by which a device joins, with the device that admitted it. If none is needed, a bad one is ignored.
  /// - Parameter isNeeded: only a link lets the user in.
  /// - Throws: `call.link-invalid`; `call.not-admitted` for a guest who has to wait.
  func linkWord(
    _ word: Admission?, _ kind: JoinMemory.Kind, _ caller: Caller, to id: CallID, isNeeded: Bool
  ) throws(RequestError) -> (Admission?, Signer?) {
    guard kind == .join || kind == .rejoin, let call = calls[id] else { return (nil, nil) }
    let mustHave = isNeeded || call.isGuestWithOtherKeys(caller)
    guard let word = goodWord(word, by: call) else {
      guard !mustHave else { throw .linkVoid }
      return (nil, nil)
    }
    guard caller.device.user.isGuest, call.epochs.admissions.waits(word.link) else { return (word, nil) }
    if let admitted = call.knocks.admittance(of: word) { return (admitted.word, admitted.signer) }
    guard !mustHave else {
      throw RequestError(.callNotAdmitted, "guests of this link wait until a member admits them: knock", field: "link")
    }
    // It has the word by which it was admitted.
    return (nil, nil)
  }

  /// The word of a user who comes by a link of the call, without anything that it does not need; nil if it is not good.
  private func goodWord(_ word: Admission?, by call: Call) -> Admission? {
    guard let word, let link = word.link, call.epochs.admissions.isOpen(link, now: now),
      hashing.isByLink(word, in: call.id)
    else { return nil }
    return Admission(user: word.user, link: link, fingerprint: word.fingerprint, signature: word.signature)
  }

  /// `knock`: a guest asks to be admitted.
  mutating func knock(_ id: CallID, _ request: Knock, _ caller: Caller) throws(RequestError) -> Transition {
    let user = caller.device.user
    guard user.isGuest else { throw RequestError(.authForbidden, "only guests wait to be admitted: join the call") }
    try checkWord(of: Join(link: request.link, admission: request.admission), .join, caller)
    if try !isLetIn(user, by: request.link, to: id) { try checkMembership(user, of: id) }
    guard let call = calls[id], let word = goodWord(request.admission, by: call) else { throw .linkVoid }
    return try run(id, by: nil) { call, now, out throws(RequestError) in
      .reply(.knocking(try call.knock(word, by: caller, now: now, out: &out)))
    }
  }

  /// Whether somebody without an account may join this link's call as a guest.
  func admitsGuest(by link: String, to id: CallID, now: Timestamp) -> Bool {
    let links = calls[id]?.links ?? CallLinks(key: [UInt8](repeating: 0, count: 32), now: now)
    return links.isValid(link, for: id, now: now, hashing: hashing) && calls[id]?.links != nil
  }
}

extension RequestError {
  fileprivate static let linkVoid = RequestError(
    .callLinkInvalid, "the link's key is not the call's, or was revoked", field: "admission")
}

private func bytes(of word: UInt64) -> [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) } }
