import Contract
import MediaModel

/// Links, and joining by one.
extension CallControl {
  mutating func link(_ id: CallID, _ request: MakeLink, _ device: Device) throws(RequestError) -> Transition {
    let (random, hashing) = (random, hashing)
    return try run(id, by: device.user) { call, now, out throws(RequestError) in
      guard request.revoke != true else {
        try call.revokeLinks(by: device.user, now: now, out: &out)
        return .done
      }
      let key = { (0..<4).flatMap { _ in bytes(of: random()) } }
      return .reply(.link(try call.makeLink(request, by: device, key: key, hashing: hashing, now: now, out: &out)))
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

  /// The word by which a device joins. If none is needed, a bad one is ignored.
  /// - Parameter isNeeded: only a link lets the user in.
  /// - Throws: `call.link-invalid`.
  func linkWord(
    _ word: Admission?, _ kind: JoinMemory.Kind, _ caller: Caller, to id: CallID, isNeeded: Bool
  ) throws(RequestError) -> Admission? {
    guard kind == .join || kind == .rejoin, let call = calls[id] else { return nil }
    let isGood = word?.link.map { call.epochs.admissions.isOpen($0, now: now) } ?? false
    if let word, isGood, hashing.isByLink(word, in: id) {
      return Admission(user: word.user, link: word.link, fingerprint: word.fingerprint, signature: word.signature)
    }
    guard !isNeeded, !call.isGuestWithOtherKeys(caller) else {
      throw RequestError(.callLinkInvalid, "the link's key is not the call's, or was revoked", field: "admission")
    }
    return nil
  }

  /// Whether somebody without an account may join this link's call as a guest.
  func admitsGuest(by link: String, to id: CallID, now: Timestamp) -> Bool {
    let links = calls[id]?.links ?? CallLinks(key: [UInt8](repeating: 0, count: 32), now: now)
    return links.isValid(link, for: id, now: now, hashing: hashing) && calls[id]?.links != nil
  }
}

private func bytes(of word: UInt64) -> [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) } }
