package import Contract

/// How long an event matters (protocol section 3): some are never kept, others become void with their ring, epoch or participant.
extension EventBody {
  /// Kept for a device that is away, or has not acknowledged it. A fresh `call.state` begins each connection, so an old one is
  /// not kept.
  package var isKept: Bool { declaration.keeping != .dropped }

  /// Only the newest one of a call waits for the device.
  package var replacesOlder: Bool { declaration.keeping == .newest }

  /// Sent to a device as a participant: not kept once it is not a participant.
  package var isForParticipants: Bool { declaration.recipients.contains(.participants) }

  /// May only be sent after the changes of members that came before it.
  package var followsChanges: Bool { declaration.traits.contains(.followsMembers) }

  /// Sent on the call's topic as devices get it.
  package var isPublic: Bool { declaration.recipients.contains(.topic) && !declaration.traits.contains(.hasTopicForm) }

  /// Sent on `/topic/service/calls` as devices get it.
  package var isForServices: Bool { isPublic && declaration.recipients.contains(.services) }

  package var isRing: Bool { if case .ring = self { true } else { false } }
  package var isEnvelope: Bool { if case .envelope = self { true } else { false } }
}
