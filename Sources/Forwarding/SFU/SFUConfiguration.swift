/// The SFU's sizes and times. The defaults suit browsers. Tests shorten nothing, because they run in virtual time.
package struct SFUConfiguration: Sendable, Hashable {
  /// Silence after which a peer is reported as disconnected (RFC 7675: consent expires).
  package var consentTimeout: Duration = .seconds(10)
  /// How long a mute waits before it may change which tracks have slots.
  package var allocationDelay: Duration = .milliseconds(100)
  /// How long the slots of a call wait at least when there are more commands than a pass has time for. The passes in between fill some.
  package var burstDelay: Duration = .milliseconds(10)
  /// How long a packet is kept for retransmission if its track's memory suffices: two round trips of a second, and some time to notice a loss.
  package var historySpan: Duration = .milliseconds(2500)
  /// Bytes that a track keeps for retransmission at most, powers of two: 2.5 s of video at 25 Mbit/s, of audio at 700 kbit/s.
  package var videoHistory = 8 << 20
  package var audioHistory = 256 << 10
  /// Bytes for retransmission of all tracks of a worker. Above this the largest histories lose half.
  package var historyBudget = 256 << 20
  /// A call gets at most one speakers event in this time.
  package var speakersInterval: Duration = .milliseconds(300)
  /// Between two compound reports to one peer.
  package var reportInterval: Duration = .seconds(1)
  /// How many microphones are forwarded at most in a call that has more. A peer is never told to need more slots for audio
  /// (`MediaEvent.need`).
  package var voices = 8
  /// The most slots for video that a peer is told to need.
  package var videoNeed = 25

  /// The most that is accepted of a microphone or screen audio, of a camera or screen with all its layers, and of all tracks of one peer.
  package var audioTrack = PublishingRate(packets: 200, kilobits: 512)
  package var videoTrack = PublishingRate(packets: 3_000, kilobits: 12_000)
  package var publisher = PublishingRate(packets: 6_400, kilobits: 25_000)
  /// The most RTCP that is accepted of one peer. Reports on 25 videos are a tenth of it.
  package var control = PublishingRate(packets: 1_000, kilobits: 800)
  /// RTP and RTCP that the kernel has held for longer is not used, because nobody waits for it any longer.
  package var longestAge: Duration = .seconds(2)

  package init() {}
}
