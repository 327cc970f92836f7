import Contract

/// The rules of a call, set by its initiator at the start (protocol section 4). nil is the server's default.
public struct CallPolicy: Sendable, Hashable, Codable {
  /// The members who may invite others and make links.
  public enum Invite: String, Sendable, Hashable, Codable { case members, initiator }
  /// The treatment of a callee who is in another call.
  public enum WhenBusy: String, Sendable, Hashable, Codable { case ring, reject }

  /// Whether all members may invite, or only the initiator; all by default.
  public var invite: Invite?
  /// Whether a callee in another call is rung; yes by default.
  public var whenBusy: WhenBusy?
  /// How long callees ring, in seconds.
  public var ringSeconds: Int?
  /// How many screens are shared at once.
  public var screens: Int?
  /// How many seconds one member may be alone in the call before it ends.
  public var aloneSeconds: Int?
  /// How many seconds a lost participant may take to return.
  public var awaySeconds: Int?
  /// How many seconds a participant may take to connect its media.
  public var connectSeconds: Int?
  /// After how many hours the call ends.
  public var maxHours: Int?
  /// Minutes between epochs while the members stay the same, 1 to 1,440.
  public var rotateMinutes: Int?
  /// The video codecs that the call accepts, in order of preference, such as `VP8`.
  public var codecs: [String]?

  /// The server's defaults.
  public init() {}

  /// As sent in `start`: nil if everything is default.
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
