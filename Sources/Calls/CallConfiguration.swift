package import Contract
package import MediaModel

/// Limits and times of the state machines; the defaults are the protocol's (sections 3 to 6 and 10).
package struct CallConfiguration: Sendable {
  package var maximumParticipants = 1_000
  package var maximumRinging = 100
  /// Members of one call, including those who left, declined or missed it.
  package var maximumMembers = 2_000
  /// Guests among them.
  package var maximumGuests = 100
  package var maximumCalls = 100_000
  /// From this number of participants on, changes of members wait for others.
  package var crowd = 64
  /// Calls that one user may be in at once.
  package var maximumCallsOfUser = 32
  /// Devices with registered keys.
  package var maximumDevicesOfUser = 32
  /// How long an event is kept for a device that is away.
  package var eventLifetime = Duration.seconds(120)
  package var maximumKeptEvents = 1_000
  /// In bytes, estimated.
  package var maximumKeptBytes = 4 << 20
  /// Ended calls that are still answered with `call.ended`; the newest are kept.
  package var maximumEndedCalls = 4_096
  /// A participant whose signaling and media have both been gone for this time is `disconnected`.
  package var disconnectTime = Duration.seconds(15)
  /// The most that `receive` may ask for, and the default for a participant that does not specify it.
  package var lastN = 25
  package var defaultCodecs = ["VP8"]
  /// The value of `ice` for a device; called once per join.
  package var ice: @Sendable (Device) -> ICE = { _ in ICE() }

  /// Roles whose bearers may not start calls or invite (protocol section 7).
  package var neverStarts: Set<String> = []
  /// The app's back end decides which users a user may ring, watch or list: `Question.authorize`.
  package var asksBackEnd = false
  /// How long its answer may take, after which it counts as no.
  package var answerTime = Duration.seconds(1)

  /// The public key that push subscriptions are made for; nil without Web Push.
  package var pushKey: Base64Bytes?

  package init() {}
}
