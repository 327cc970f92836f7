import CallMessages
import Contract
import MediaModel
import Octets

/// Links: invitations for anyone who holds them (protocol section 4).
extension Call {
  /// Checks that the user may invite: a joined member; if `policy.invite` is `initiator`, only the initiator (rule 5).
  func checkMayInvite(_ user: UserID) throws(RequestError) {
    guard member(user)?.isJoined == true else {
      throw RequestError(.callNotJoined, "only who has joined the call may add people")
    }
    guard rules.invite == .members || user == initiator else {
      throw RequestError(.callInviteNotAllowed, "only the initiator of this call may add people")
    }
  }

  /// The keys of the device's participant, with which it lets people in.
  func keys(ofInviting device: Device) throws(RequestError) -> DeviceEntry {
    try checkMayInvite(device.user)
    guard member(device.user)?.participant(on: device) != nil else {
      throw RequestError(.callAnsweredElsewhere, "another device of this user is in the call: it lets people in")
    }
    guard let keyedDevice = epochs.keyedDevices[device] else {
      throw RequestError(.keysNotAllowed, "a device without registered keys, a joinId and a joinKey lets nobody in")
    }
    return keyedDevice.keys
  }

  /// Makes a link. `key` is used for the call's first link, and for the first after a `revoke`.
  /// - Parameter grant: for a lasting link. Its holders know the device that made it, and count only a call that this device has
  ///   started.
  mutating func makeLink(
    _ request: MakeLink, by device: Device, _ grant: LinkGrant?, key: () -> [UInt8], hashing: Hashing, now: Timestamp,
    out: inout Outputs
  ) throws(RequestError) -> CallLink {
    let keys = try keys(ofInviting: device)
    if let grant {
      guard device == start.token.device else {
        throw RequestError(.callNotInitiator, "the device that started this call opens lasting links", field: "lasting")
      }
      guard keys.fingerprint == grant.fingerprint else {
        throw RequestError(.keysNotAllowed, "this device had other keys when it made the link: make a new one")
      }
    }
    let seconds = request.expiresIn ?? CallLinks.defaultLifetime
    guard CallLinks.lifetimes.contains(seconds) else {
      throw RequestError(.requestInvalid, "a link is valid for 60 to 86,400 seconds", field: "expiresIn")
    }
    let word = try linkWord(request.admission, by: keys, hashing: hashing)
    let until = grant?.expiresAt ?? now + .seconds(seconds)
    try epochs.admissions.makeLink(word, until: until, by: Signer(keys), now: now)
    var links = self.links ?? CallLinks(key: key(), now: now)
    let link = links.make(for: id, until: until, hashing: hashing)
    self.links = links
    settle(now: now, out: &out)
    if let grant { out.tell(.linkOpened(grant.link, of: device.user, link)) }
    return link
  }

  /// The word of a `link` request, with its signature checked.
  private func linkWord(
    _ word: Admission?, by keys: DeviceEntry, hashing: Hashing
  ) throws(RequestError) -> Admission {
    guard let word, word.user == nil else {
      throw RequestError(.requestInvalid, "a link is made by a word with the link's key", field: "admission")
    }
    guard let link = word.link, link.bytes.count == 32 else {
      throw RequestError(.requestInvalid, "a link's key is an Ed25519 public key of 32 bytes", field: "admission.link")
    }
    let signature = try SignatureCheck(keys, hashing)
    try signature.checkSigner(word, field: "admission")
    let make = word.waits == true ? Transcript.waitingLink : Transcript.callLink
    try signature.check(word, of: make(id.text, word.fingerprint.bytes, link.bytes), field: "admission")
    return Admission(
      link: link, fingerprint: word.fingerprint, sigAlg: word.sigAlg, signature: word.signature,
      waits: word.waits == true ? true : nil)
  }

  private mutating func voidLinks(out: inout Outputs) {
    links = nil
    epochs.admissions.revokeLinks()
    endKnocks(out: &out)
    out.tell(.linksVoid)
  }

  /// The lasting link of the call is over: it would be of no use to delete it if those who have opened it could still come.
  mutating func closeLinks(now: Timestamp, out: inout Outputs) {
    voidLinks(out: &out)
    settle(now: now, out: &out)
  }

  /// `link` with `revoke`: voids all links.
  mutating func revokeLinks(by user: UserID, now: Timestamp, out: inout Outputs) throws(RequestError) {
    try checkMayInvite(user)
    voidLinks(out: &out)
    settle(now: now, out: &out)
  }

  /// `remove-guest`: a member puts a guest out (protocol section 4, "Guests"). All links become void with it: a guest has
  /// no identity but what it says, so nothing else keeps the same person from coming back at once under another name.
  mutating func removeGuest(
    _ guest: UserID, by user: UserID, now: Timestamp, out: inout Outputs
  ) throws(RequestError) {
    guard member(user)?.isJoined == true else {
      throw RequestError(.callNotJoined, "only who has joined the call may remove a guest")
    }
    guard guest.isGuest else {
      throw RequestError(.authForbidden, "only guests can be removed: a member leaves by itself", field: "guest")
    }
    guard let member = member(guest) else {
      throw RequestError(.userNotFound, "there is no such guest in this call", field: "guest")
    }
    voidLinks(out: &out)
    for participant in member.participants { go(participant.device, .removed, now: now, out: &out) }
    settle(now: now, out: &out)
    // The end of the call has the same effect.
    if !isEnded { out.tell(.guestRemoved(guest)) }
  }

  /// Whether a guest comes with different keys than the first time: its word does not apply to them.
  func isGuestWithOtherKeys(_ caller: Caller) -> Bool {
    guard caller.device.user.isGuest, let keys = caller.keys else { return false }
    return epochs.admissions.word(for: caller.device.user)?.fingerprint != keys.fingerprint
  }

  /// Non-members and cancelled members need a link; nobody else does.
  func needsLink(_ user: UserID) -> Bool {
    guard let member = member(user) else { return true }
    if case .cancelled = member.phase { return true }
    return false
  }
}
