package import Contract
package import MediaModel

/// Limits and times of the state machines; the defaults are the protocol's (sections 3 to 6 and 10).
package struct CallConfiguration: Sendable {
  package var limits = CallLimits()
  package var maximumCalls = 100_000
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
  package var links = LastingLinkBounds()
  package var defaultCodecs = ["VP8"]
  /// The value of `ice` for a device; called once per join.
  package var ice: @Sendable (Device) -> ICE = { _ in ICE() }

  /// Roles whose bearers may not start calls or invite (protocol section 7).
  package var neverStarts: Set<String> = []
  /// The app's back end decides which users a user may ring, watch or list: `Question.authorize`.
  package var asksBackEnd = false
  /// How long its answer may take, after which it counts as no.
  package var answerTime = Duration.seconds(1)

  /// The people who may record calls; nil if the server stores no recordings.
  package var records: Policy.Record?
  /// The public key that push subscriptions are made for; nil without Web Push.
  package var pushKey: Base64Bytes?

  package init() {}
}

/// Bounds of lasting links.
package struct LastingLinkBounds: Sendable, Hashable {
  /// The longest life; 0: there are none.
  package var days = 30
  /// How many a user may have.
  package var ofUser = 20

  package init() {}
}
