import Contract
import MediaModel

/// Links, and joining by one.
extension Calls {
  mutating func link(_ id: CallID, _ request: MakeLink, _ user: UserID) throws(RequestError) -> Outcome {
    let random = random
    return try with(id, user) { call, now, out throws(RequestError) -> any Encodable & Sendable in
      guard request.revoke != true else {
        try call.revokeLinks(by: user, now: now, out: &out)
        return NoBody()
      }
      let key = { (0..<4).flatMap { _ in bytes(of: random()) } }
      return try call.makeLink(request.expiresIn, by: user, key: key, now: now, out: &out)
    }
  }

  /// Whether the user comes in by a link. Who needs none joins as without it.
  /// - Throws: `call.link-invalid`; `call.ended` when the link was for a call that is over.
  func isLetIn(_ user: UserID, by link: String?, to id: CallID) throws(RequestError) -> Bool {
    guard let link else { return false }
    guard let call = calls[id] else {
      guard ended.isOpen(id, to: link, now: now, digest: digest) else { return false }
      throw RequestError(.callEnded, "the call has ended")
    }
    guard call.needsLink(user) else { return false }
    guard call.isOpen(to: link, now: now) else {
      throw RequestError(.callLinkInvalid, "the link is over, was revoked, or is for another call", field: "link")
    }
    return true
  }
}

private func bytes(of word: UInt64) -> [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) } }
