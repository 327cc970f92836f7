package import MediaModel

// Bodies of the events `call.*` (protocol section 4).

package struct Ring: Codable, Sendable, Hashable {
  package var from: UserID
  package var media: CallMedia
  package var members: [MemberState]
  package var waiting: Bool
  package var expiresAt: Timestamp
  package var metadata: Base64Bytes?
  package var envelope: Envelope?
  package var list: [ListEntry]?
  /// The words that the callee needs, and the devices that signed them.
  package var admissions: [Admission]?
  package var signers: [Signer]?
  package init(
    from: UserID, media: CallMedia, members: [MemberState], waiting: Bool, expiresAt: Timestamp,
    metadata: Base64Bytes?, envelope: Envelope?, list: [ListEntry]?, admissions: [Admission]? = nil,
    signers: [Signer]? = nil
  ) {
    self.from = from
    self.media = media
    self.members = members
    self.waiting = waiting
    self.expiresAt = expiresAt
    self.metadata = metadata
    self.envelope = envelope
    self.list = list
    self.admissions = admissions
    self.signers = signers
  }
}

package struct By: Codable, Sendable, Hashable {
  package var by: UserID?
  package init(by: UserID? = nil) { self.by = by }
}

package enum MemberCause: String, Codable, Sendable, CaseIterable {
  case invited, accepted, declined, missed, cancelled, left, joined, rejoined, disconnected, connected, transferred,
    held, failed, removed
}

/// The member as in the state, `cause` beside its members.
package struct MemberChange: Codable, Sendable, Hashable {
  package var member: MemberState
  package var cause: MemberCause
  package init(member: MemberState, cause: MemberCause) {
    self.member = member
    self.cause = cause
  }

  private enum CodingKeys: String, CodingKey { case cause }

  package init(from decoder: any Decoder) throws {
    member = try MemberState(from: decoder)
    cause = try decoder.container(keyedBy: CodingKeys.self).decode(MemberCause.self, forKey: .cause)
  }

  package func encode(to encoder: any Encoder) throws {
    try member.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(cause, forKey: .cause)
  }
}

/// Changes of members of a large call that waited for each other, in order (protocol section 3).
package struct MemberChanges: Codable, Sendable, Hashable {
  package var members: [MemberChange]
  package init(members: [MemberChange]) { self.members = members }
}

/// A guest waits to be admitted.
package struct GuestKnock: Codable, Sendable, Hashable {
  package var user: UserID
  /// As the guest says.
  package var name: String?
  package var expiresAt: Timestamp
  /// The guest's own word and the words that its link needs, and the devices that signed them.
  package var admissions: [Admission]
  package var signers: [Signer]?
  package init(user: UserID, name: String?, expiresAt: Timestamp, admissions: [Admission], signers: [Signer]?) {
    self.user = user
    self.name = name
    self.expiresAt = expiresAt
    self.admissions = admissions
    self.signers = signers
  }
}

/// A guest waits no longer.
package struct KnockOver: Codable, Sendable, Hashable {
  package enum Outcome: String, Codable, Sendable, CaseIterable {
    /// It may join.
    case admitted
    case refused
    /// It has left, its time is over, or the link is void.
    case over
  }
  package var user: UserID
  package var outcome: Outcome
  package init(user: UserID, outcome: Outcome) {
    self.user = user
    self.outcome = outcome
  }
}

package enum EndReason: String, Codable, Sendable, CaseIterable {
  case endedByInitiator = "ended-by-initiator"
  case endedByService = "ended-by-service"
  case endedByOperator = "ended-by-operator"
  case allLeft = "all-left"
  case declined
  case noAnswer = "no-answer"
  case cancelled
  case expired
}

package struct Ended: Codable, Sendable, Hashable {
  package var reason: EndReason
  package var by: UserID?
  package var seconds: Int
  package init(reason: EndReason, by: UserID?, seconds: Int) {
    self.reason = reason
    self.by = by
    self.seconds = seconds
  }
}
