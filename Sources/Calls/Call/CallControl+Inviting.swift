import Contract
import MediaModel

/// Links, and joining by one.
extension CallControl {
  mutating func link(_ id: CallID, _ request: MakeLink, _ user: UserID) throws(RequestError) -> Transition {
    let (random, hashing) = (random, hashing)
    return try run(id, by: user) { call, now, out throws(RequestError) in
      guard request.revoke != true else {
        try call.revokeLinks(by: user, now: now, out: &out)
        return .done
      }
      let key = { (0..<4).flatMap { _ in bytes(of: random()) } }
      return .reply(try call.makeLink(request.expiresIn, by: user, key: key, hashing: hashing, now: now, out: &out))
    }
  }

  /// Whether the user comes in by a link. A member, or a former member of a call that has ended, needs none and joins as without it.
  ///
  /// A stranger learns nothing about the call from a refusal: it is the same whether the call exists, has ended or never was, and the same HMAC is
  /// computed in each case.
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

  /// Whether somebody without an account may have this link's call as a guest.
  func admitsGuest(by link: String, to id: CallID, now: Timestamp) -> Bool {
    let links = calls[id]?.links ?? CallLinks(key: [UInt8](repeating: 0, count: 32), now: now)
    return links.isValid(link, for: id, now: now, hashing: hashing) && calls[id]?.links != nil
  }
}

private func bytes(of word: UInt64) -> [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) } }
