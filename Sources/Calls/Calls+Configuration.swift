package import Contract
package import MediaModel

extension Calls {
  /// Limits and times of the state machine; the defaults are the protocol's (sections 3 to 6 and 10).
  package struct Configuration: Sendable {
    package var maximumParticipants = 1_000
    package var maximumRinging = 100
    /// Of one call, those who left, declined or missed counted.
    package var maximumMembers = 2_000
    package var maximumCalls = 100_000
    /// That one user may be in at once.
    package var maximumCallsOfUser = 32
    /// With registered keys.
    package var maximumDevicesOfUser = 32
    /// How long an event is kept for a device that is away.
    package var eventLifetime = Duration.seconds(120)
    package var maximumKeptEvents = 1_000
    /// In bytes, estimated.
    package var maximumKeptBytes = 4 << 20
    /// Ended calls of which is remembered that they were.
    package var maximumEndedCalls = 4_096
    /// Both signaling and media gone for so long is `disconnected`.
    package var disconnectTime = Duration.seconds(15)
    /// The most that `receive` may ask for, and what a participant sees that asks for nothing.
    package var lastN = 25
    package var defaultCodecs = ["VP8"]
    /// What stands in `ice` for this user; called once a join.
    package var ice: @Sendable (Device) -> ICE = { _ in ICE() }

    /// Roles whose bearers may not start calls or invite (protocol section 7).
    package var neverStarts: Set<String> = []
    /// Whom one may ring, watch or list is asked of the app's back end: `Question.authorize`.
    package var asksBackEnd = false
    /// How long an answer to it is awaited; then it is no.
    package var answerTime = Duration.seconds(1)
    /// `.webhook` is wanted.
    package var hasWebhooks = false

    package init() {}
  }
}
