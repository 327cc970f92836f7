/// Bounds of one call. The defaults are those of the protocol (sections 4 and 10).
package struct CallLimits: Sendable {
  package var participants = 1_000
  /// Members that ring at once.
  package var ringing = 100
  /// Members, including those who left, declined or missed it.
  package var members = 2_000
  /// Guests among them.
  package var guests = 100
  /// A participant whose signaling and media have both been gone for this time is `disconnected`.
  package var disconnectTime = Duration.seconds(15)
  /// The number of videos that a participant may see at once: the most that `receive` may ask for, and the default for a participant that does not specify it.
  package var lastN = 25
  /// From this number of participants on, changes of members wait for others.
  package var crowd = 64

  package init() {}
}
