import Contract

/// The rules of a call that its initiator sets when it starts (protocol section 4); what is nil is the server's default.
public struct CallPolicy: Sendable, Hashable, Codable {
  /// The members who may invite others and make links.
  public enum Invite: String, Sendable, Hashable, Codable { case members, initiator }
  /// The treatment of a callee who is in another call.
  public enum WhenBusy: String, Sendable, Hashable, Codable { case ring, reject }

  /// Whether all members invite, or the initiator alone; all by default.
  public var invite: Invite?
  /// Whether a callee in another call is rung; by default it is.
  public var whenBusy: WhenBusy?
  /// How long callees ring, in seconds.
  public var ringSeconds: Int?
  /// How many screens are shared at once.
  public var screens: Int?
  /// After how many seconds the call ends when one member is alone in it.
  public var aloneSeconds: Int?
  /// How many seconds a lost participant may take to come back.
  public var awaySeconds: Int?
  /// How many seconds a participant may take until its media connects.
  public var connectSeconds: Int?
  /// After how many hours the call ends.
  public var maxHours: Int?
  /// Minutes between epochs while the members stay the same, 1 to 1,440.
  public var rotateMinutes: Int?
  /// The video codecs that the call takes, the wanted first, such as `VP8`.
  public var codecs: [String]?

  /// The server's defaults.
  public init() {}

  /// As `start` says it: nothing where all is default.
  var told: Policy? {
    guard self != CallPolicy() else { return nil }
    var policy = Policy()
    policy.invite = invite.map { $0 == .members ? .members : .initiator }
    policy.whenBusy = whenBusy.map { $0 == .ring ? .ring : .reject }
    policy.ringSeconds = ringSeconds
    policy.screens = screens
    policy.aloneSeconds = aloneSeconds
    policy.awaySeconds = awaySeconds
    policy.connectSeconds = connectSeconds
    policy.maxHours = maxHours
    policy.rotateMinutes = rotateMinutes
    policy.codecs = codecs
    return policy
  }
}
