/// An event from a `CallClient` to its app, outside its calls.
public enum ClientEvent: Sendable, Hashable {
  /// The server can be reached; requests work.
  case connected
  /// The connection broke and is being retried. Calls go on, because media does not need it.
  case disconnected
  /// The connection is over permanently, for the reason given in the server's words: another connection of the device replaced it, or the token was refused.
  case ended(String)
  /// Somebody calls.
  case ring(IncomingCall)
  /// A ring is over and was not answered here.
  case ringStopped(call: String, RingEnd)
  /// This guest has knocked at a call's door (`CallClient.join(_:link:secret:)`) and waits until a member admits it.
  case waitingForAdmission(call: String)
  /// This device waits for a call of a lasting link (`CallClient.join(lasting:)`). `owner` is the owner's name, as the server says.
  case waitingForStart(link: String, owner: String?)
  /// Somebody waits at a lasting link of this user: start its call, on the device that made it.
  case somebodyWaits(link: String)
  /// This device is in a call for which the app has no `JoinedCall`, because it was restarted meanwhile. Use `CallClient.rejoin` or `leave`: the others see
  /// this device in the call.
  case interrupted(CallSnapshot)
  /// A device was seen for the first time, or trusted. Store it, and pass it to the next `CallClient`: this is how a stranger under its name is
  /// noticed.
  case pinned(PinnedDevice)
  /// A device has signed a statement about another device of its user. Store it, and pass it to the next `CallClient`: a server may hide it
  /// later.
  case statement(TrustStatement)
  /// A ring's key was used. Store it for 30 days, and pass it to the next `CallClient`: a replayed ring must not bring the key back.
  case ringUsed(UsedRing)
  /// Something about a device's keys, outside of a call.
  case keyWarning(KeyWarning)
  /// Two devices of this user are being paired.
  case pairing(PairingStep)
  /// Something has happened to a recording that this user made or may open.
  case recording(RecordingEvent)
  /// The presence of a watched user.
  case presence(Presence)

  /// Why a ring stopped.
  public enum RingEnd: Sendable, Hashable {
    /// Another device of the user took the call.
    case answeredElsewhere
    /// Another device of the user declined.
    case declinedElsewhere
    /// The caller gave up, or the call ended.
    case cancelled
    /// The ring was not answered in time.
    case missed
  }
}

/// A call that rings.
public struct IncomingCall: Sendable, Hashable {
  /// The call's id.
  public var id: String
  /// The user who calls.
  public var from: String
  /// Whether it is a call with video.
  public var media: CallSnapshot.Media
  /// The users in the call.
  public var members: [CallSnapshot.Member]
  /// Whether this user is already in another call.
  public var isWaiting: Bool
  /// When the ring ends, in milliseconds since 1970.
  public var expiresAt: Int64
  /// The calling app's metadata of the call, encrypted by the app itself.
  public var metadata: [UInt8]?
}
