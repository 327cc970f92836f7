import MediaModel

/// A peer's microphone: when it speaks, and its place among its call's voices and speakers.
struct Voice {
  var loudness = Loudness()
  var speech = SpeechActivity()
  /// When its last level other than silence arrived; nil before that.
  var levelAt: Instant?
  /// Replaces levels where there are none.
  var guess = SoundGuess()
  /// It sends no levels, and the sizes of its packets do not tell when it speaks.
  var isPresumed = false
  /// It is among its call's loud peers.
  var isLoud = false
  /// When it was let in among the call's voices; nil while it is not among them.
  var since: Instant?
  /// How long its user had held a place when it last left the call.
  var credit = Duration.zero
  var wait = VoiceWait()
  var isSpeaker = false
  /// When it last became the dominant speaker.
  var dominantAt = Instant(nanoseconds: 0)
  /// When it last became a speaker, or the loudest speaker.
  var spokeAt = Instant(nanoseconds: 0)
}
