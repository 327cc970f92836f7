package import MediaModel

// Presence, and events about people for the app's back end (protocol sections 6, 7 and 11).

package struct PresenceState: Codable, Sendable, Hashable {
  package enum State: String, Codable, Sendable, CaseIterable {
    case offline, unavailable, available, ringing
    case inCall = "in-call"
  }
  package var user: UserID
  package var state: State
  package init(user: UserID, state: State) {
    self.user = user
    self.state = state
  }
}

/// For the app's back end: these devices of a callee are not connected and must be woken.
package struct PushRing: Codable, Sendable, Hashable {
  package var user: UserID
  package var devices: [DeviceID]
  package var from: UserID
  package var media: CallMedia
  package var expiresAt: Timestamp
  package init(user: UserID, devices: [DeviceID], from: UserID, media: CallMedia, expiresAt: Timestamp) {
    self.user = user
    self.devices = devices
    self.from = from
    self.media = media
    self.expiresAt = expiresAt
  }
}

/// The ring that `push.ring` announced is answered or over.
package struct PushCancel: Codable, Sendable, Hashable {
  package var user: UserID
  package init(user: UserID) { self.user = user }
}

/// An abuse report; `by` made it.
package struct Report: Codable, Sendable, Hashable {
  package var by: UserID
  package var user: UserID
  package var participant: ParticipantNumber?
  package var text: String
  package init(by: UserID, user: UserID, participant: ParticipantNumber?, text: String) {
    self.by = by
    self.user = user
    self.participant = participant
    self.text = text
  }
}
