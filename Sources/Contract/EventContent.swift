import MediaModel

/// The body of one event, without the members that all events have.
package protocol EventContent: Codable, Sendable, Hashable {
  /// As `EventBody.cost`. A content whose texts, bytes or lists a user may make long counts them.
  var cost: Int { get }
}

/// The cost of contents without anything that may be long.
private let shortCost = 384

extension By: EventContent { package var cost: Int { shortCost } }
extension Ended: EventContent { package var cost: Int { shortCost } }
extension TrackChange: EventContent { package var cost: Int { shortCost } }
extension SwitchKeys: EventContent { package var cost: Int { shortCost } }
extension KeysWaiting: EventContent { package var cost: Int { shortCost } }
extension DevicesChanged: EventContent { package var cost: Int { shortCost } }
extension Need: EventContent { package var cost: Int { shortCost } }
extension Quality: EventContent { package var cost: Int { shortCost } }
extension PresenceState: EventContent { package var cost: Int { shortCost } }
extension LinkChanged: EventContent { package var cost: Int { shortCost } }
extension LinkWaiting: EventContent { package var cost: Int { shortCost } }
extension PushCancel: EventContent { package var cost: Int { shortCost } }
extension KnockOver: EventContent { package var cost: Int { shortCost } }
extension GuestKnock: EventContent {
  package var cost: Int {
    384 + user.text.utf8.count + 2 * (name?.utf8.count ?? 0) + admissions.length + (signers?.length ?? 0)
  }
}

extension CallState: EventContent {
  package var cost: Int { 1_024 + (metadata?.length ?? 0) + members.length + (recording?.length ?? 0) }
}
extension Ring: EventContent {
  package var cost: Int {
    512 + members.length + (list?.length ?? 0) + (envelope?.length ?? 0) + (metadata?.length ?? 0)
      + (admissions?.length ?? 0) + (signers?.length ?? 0)
  }
}

extension Envelope: EventContent { package var cost: Int { 256 + length } }
extension Rotate: EventContent {
  package var cost: Int {
    512 + (list?.length ?? 0) + (added?.length ?? 0) + (deliver?.length ?? 0) + 16 * (removed?.count ?? 0)
      + (admissions?.length ?? 0) + (signers?.length ?? 0)
  }
}

extension Wanted: EventContent { package var cost: Int { 256 + 64 * layers.count } }
extension Slots: EventContent { package var cost: Int { 256 + 64 * receive.count } }
extension KeysConfirmed: EventContent { package var cost: Int { 256 + 128 * buckets.count } }
extension PairingMessage: EventContent { package var cost: Int { 512 + body.length } }
extension RecordingShared: EventContent {
  package var cost: Int {
    guard let grant else { return 640 }
    return 1_280 + grant.alg.utf8.count + grant.ciphertext.length + grant.signature.length
  }
}
extension RecordingChanged: EventContent { package var cost: Int { 256 + 128 * reels.count } }
extension RecordingMention: EventContent { package var cost: Int { 448 } }
extension RecordingRemoved: EventContent { package var cost: Int { 448 } }
extension PushRecording: EventContent { package var cost: Int { 512 + 192 * devices.count } }
extension RecordingStarted: EventContent { package var cost: Int { 256 + statement.length } }
extension RecordingConsent: EventContent { package var cost: Int { shortCost } }
extension RecordingRuns: EventContent { package var cost: Int { 256 + length } }
extension RecordingStopped: EventContent { package var cost: Int { shortCost } }
extension CallMessage: EventContent { package var cost: Int { 256 + body.length } }
extension PushRing: EventContent { package var cost: Int { 512 + 192 * devices.count } }
extension Report: EventContent { package var cost: Int { 512 + 2 * text.utf8.count } }
extension MemberChange: EventContent { package var cost: Int { 128 + member.length } }
extension MemberChanges: EventContent {
  package var cost: Int { 128 + members.reduce(0) { $0 + 32 + $1.member.length } }
}
extension KeyRequest: EventContent { package var cost: Int { 256 + to.length } }
extension Speakers: EventContent { package var cost: Int { 256 + 12 * participants.count } }

// MARK: the approximate bytes of their parts, as JSON

extension Base64Bytes {
  fileprivate var length: Int { bytes.count * 4 / 3 + 8 }
}

extension Envelope {
  /// The ciphertext is sent under two names.
  fileprivate var length: Int { 768 + 2 * ciphertext.length + (signature?.length ?? 0) }
}

extension RecordingStatement {
  fileprivate var length: Int {
    768 + publicKey.length + signature.length + sigAlg.utf8.count + readers.reduce(0) { $0 + 4 + $1.text.utf8.count }
  }
}

extension RecordingRuns {
  fileprivate var length: Int {
    160 + 4 * tracks.count + ciphertext.length + sigAlg.utf8.count + signature.length
  }
}

extension CallRecordingState {
  fileprivate var length: Int { 128 + statement.length + 72 * consents.count + (running?.length ?? 0) }
}

extension MemberState {
  fileprivate var length: Int {
    192 + user.text.utf8.count + 2 * (name?.utf8.count ?? 0)
      + participants.reduce(0) { $0 + 256 + 128 * $1.tracks.count }
  }
}

extension [MemberState] {
  fileprivate var length: Int { reduce(0) { $0 + $1.length } }
}

extension JoinKey {
  fileprivate var length: Int { 160 + publicKey.length + signature.length }
}

extension ListEntry {
  fileprivate var length: Int {
    72 + user.text.utf8.count + device.text.utf8.count + fingerprint.length + (joinId == nil ? 0 : 48)
      + (joinKey?.length ?? 0) + (refresh?.length ?? 0)
      + (keys ?? []).reduce(0) { $0 + 96 + $1.publicKey.length }
  }
}

extension [ListEntry] {
  fileprivate var length: Int { reduce(0) { $0 + $1.length } }
}

extension [Admission] {
  fileprivate var length: Int {
    reduce(0) {
      $0 + 112 + ($1.user?.text.utf8.count ?? 0) + ($1.link?.length ?? 0) + $1.fingerprint.length + $1.signature.length
        + ($1.admittedBy.map { 96 + $0.fingerprint.length + $0.signature.length } ?? 0)
    }
  }
}

extension [Signer] {
  fileprivate var length: Int {
    reduce(0) { length, signer in
      length + 96 + signer.user.text.utf8.count + signer.device.text.utf8.count + signer.fingerprint.length
        + signer.keys.reduce(0) { $0 + 96 + $1.publicKey.length }
    }
  }
}
