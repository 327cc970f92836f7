package import MediaModel

/// What a client asks for by a SEND to `/app/…` (protocol sections 4 to 6).
package enum Request: Sendable {
  case registerDevice(RegisterDevice)
  case listDevices(ListDevices)
  case start(StartCall)
  case accept(CallID, Join)
  case decline(CallID, Decline)
  case invite(CallID, Invite)
  case cancel(CallID, Cancel)
  case join(CallID, Join)
  case rejoin(CallID, Join)
  case leave(CallID)
  case end(CallID)
  case state(CallID)
  case listCalls
  case media(CallID, MediaRequest)
  case track(CallID, TrackID, ChangeTrack)
  case keys(CallID, HandOutKeys)
  case requestKey(CallID, RequestKey)
  case listKeys(CallID)
}

package struct RegisterDevice: Codable, Sendable {
  package var name: String?
  package var keys: [DeviceKey]
  package init(name: String?, keys: [DeviceKey]) {
    self.name = name
    self.keys = keys
  }
}

package struct ListDevices: Codable, Sendable {
  package var users: [UserID]
  package init(users: [UserID]) { self.users = users }
}

package struct StartCall: Codable, Sendable {
  package var callees: [UserID]
  package var media: CallMedia
  package var policy: Policy?
  package var metadata: Base64Bytes?
  package var joinId: Base64Bytes?
  package var joinKey: JoinKey?
  package var envelopes: [Envelope]?
  package init(
    callees: [UserID], media: CallMedia, policy: Policy? = nil, metadata: Base64Bytes? = nil,
    joinId: Base64Bytes? = nil, joinKey: JoinKey? = nil, envelopes: [Envelope]? = nil
  ) {
    self.callees = callees
    self.media = media
    self.policy = policy
    self.metadata = metadata
    self.joinId = joinId
    self.joinKey = joinKey
    self.envelopes = envelopes
  }
}

/// The body of `accept`, `join` and `rejoin`.
package struct Join: Codable, Sendable {
  package var joinId: Base64Bytes?
  package var joinKey: JoinKey?
  package init(joinId: Base64Bytes? = nil, joinKey: JoinKey? = nil) {
    self.joinId = joinId
    self.joinKey = joinKey
  }
}

package struct Decline: Codable, Sendable {
  package var reason: String?
  package init(reason: String? = nil) { self.reason = reason }
}

package struct Invite: Codable, Sendable {
  package var callees: [UserID]
  package var metadata: Base64Bytes?
  package init(callees: [UserID], metadata: Base64Bytes? = nil) {
    self.callees = callees
    self.metadata = metadata
  }
}

package struct Cancel: Codable, Sendable {
  package var callees: [UserID]?
  package init(callees: [UserID]? = nil) { self.callees = callees }
}

package struct MediaRequest: Codable, Sendable {
  package struct Track: Codable, Sendable {
    package var mid: String
    package var source: TrackSource
    package var replace: Bool?
    package init(mid: String, source: TrackSource, replace: Bool? = nil) {
      self.mid = mid
      self.source = source
      self.replace = replace
    }
  }
  package var sdp: String
  package var tracks: [Track]
  package init(sdp: String, tracks: [Track]) {
    self.sdp = sdp
    self.tracks = tracks
  }
}

package struct ChangeTrack: Codable, Sendable {
  package var muted: Bool
  package init(muted: Bool) { self.muted = muted }
}

package struct HandOutKeys: Codable, Sendable {
  package var epoch: UInt32
  package var envelopes: [Envelope]
  package init(epoch: UInt32, envelopes: [Envelope]) {
    self.epoch = epoch
    self.envelopes = envelopes
  }
}

package struct RequestKey: Codable, Sendable {
  package var epoch: UInt32?
  package init(epoch: UInt32? = nil) { self.epoch = epoch }
}

/// A body of no members: `{}` or an empty SEND.
package struct NoBody: Codable, Sendable { package init() {} }
