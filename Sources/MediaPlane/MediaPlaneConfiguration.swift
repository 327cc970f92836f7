package import Forwarding
package import LinuxIO
package import Reels

/// How the media plane is laid out.
package struct MediaPlaneConfiguration: Sendable {
  /// Threads, at most one per call; one per processor is right for a server that does nothing else.
  package var workers = availableProcessors().count
  /// Whether each worker also accepts TCP connections, on the number of its UDP port.
  package var tcp = true
  /// The first worker's UDP port; the next worker has the next one. 0: each gets a free port chosen by the system.
  package var firstPort: UInt16 = 0
  /// Whether each worker is pinned to a processor. Only for machines that do nothing else.
  package var isPinned = false
  package var socket = UDPSocket.Options()
  package var forwarding = SFUConfiguration()
  /// How calls are recorded; nil: they are not.
  package var reels: ReelTable.Configuration?
  /// How many microphones are forwarded at most in a call that has more.
  package var voices: Int {
    get { forwarding.voices }
    set { forwarding.voices = newValue }
  }
  /// The most bytes that each worker keeps for retransmission.
  package var historyBudget: Int {
    get { forwarding.historyBudget }
    set { forwarding.historyBudget = newValue }
  }

  /// Sets the most that is accepted from a microphone, from a camera or screen, and from a participant: packets a second,
  /// and kbit/s.
  package mutating func setPublishing(
    audio: (packets: Int, kilobits: Int), video: (packets: Int, kilobits: Int),
    participant: (packets: Int, kilobits: Int)
  ) {
    forwarding.audioTrack = PublishingRate(packets: audio.packets, kilobits: audio.kilobits)
    forwarding.videoTrack = PublishingRate(packets: video.packets, kilobits: video.kilobits)
    forwarding.publisher = PublishingRate(packets: participant.packets, kilobits: participant.kilobits)
  }

  package init() {}
}

/// Why the media plane could not start; the description says what to do.
package enum MediaPlaneError: Error, CustomStringConvertible {
  /// Fewer than one worker, or more ports than there are above `firstPort`.
  case badLayout(workers: Int, firstPort: UInt16)
  case port(PortError)
  case system(SystemError)

  package var description: String {
    switch self {
    case .badLayout(let workers, let firstPort):
      "\(workers) workers from port \(firstPort) on: there must be at least one, and the last port must be below 65536"
    case .port(let error): error.description
    case .system(let error): error.description
    }
  }
}
