import Crypto
import MediaModel
import Octets
import SFrame

/// The sealing half of a `FrameCipher`: a context for each own track, of one epoch of one stay. It opens nothing.
struct FrameSealer: ~Copyable {
  private var key: SendingKey?
  private var tracks: [UInt8: TrackSealer] = [:]
  /// Previous stays in which something was sent. Their keys never return, or their counters would start again.
  private var formerStays: Set<[UInt8]> = []
  private var isSending = false
  /// Own tracks that the person has muted, and whether the call is on hold. The server is asked to forward nothing of these; here nothing is sealed.
  private var muted: Set<UInt8> = []
  private var isHeld = false
  /// Tracks of which nothing is sealed under this epoch's key any longer: readers of a recording have it, and the person has withdrawn.
  private var withheld: Set<UInt8> = []

  /// Holds a sending context, which cannot be copied, in a dictionary.
  private final class TrackSealer {
    var context: SenderContext
    init(_ context: consuming SenderContext) { self.context = context }
  }

  /// nil while this participant must not send.
  var sendingEpoch: UInt32? { isSending ? key?.epoch : nil }

  func isOwn(_ participant: ParticipantNumber) -> Bool { key?.participant == participant }

  /// Sends under `next` from now on. Within a stay epochs only rise, and an epoch that is named again continues counting; anything else is
  /// ignored.
  mutating func send(_ next: SendingKey) {
    guard !formerStays.contains(next.joinId) else { return }
    guard let key else { return take(next) }
    if key.joinId != next.joinId {
      formerStays.insert(key.joinId)
      take(next)
    } else if next.epoch > key.epoch {
      take(next)
    } else if next.epoch == key.epoch {
      isSending = true
    }
  }

  private mutating func take(_ next: SendingKey) {
    key = next
    tracks = [:]
    withheld = []
    isSending = true
  }

  mutating func stop() { isSending = false }

  mutating func setMuted(_ isMuted: Bool, track: UInt8) {
    if isMuted { muted.insert(track) } else { muted.remove(track) }
  }

  mutating func withhold(_ tracks: Set<UInt8>) { withheld = tracks }

  mutating func hold(_ isHeld: Bool) { self.isHeld = isHeld }

  mutating func wipe() {
    if let key { formerStays.insert(key.joinId) }
    key = nil
    tracks = [:]
    isSending = false
  }

  mutating func encrypt(
    _ frame: UnsafeRawBufferPointer, track: UInt8, metadata: UnsafeRawBufferPointer,
    into output: UnsafeMutableRawBufferPointer
  ) throws(FrameCipherError) -> Int {
    guard isSending, let key else { throw .noKey }
    guard track == 0 || !isHeld && !muted.contains(track) && !withheld.contains(track) else { throw .muted }
    let sealer: TrackSealer
    if let known = tracks[track] {
      sealer = known
    } else {
      let keyID = FrameKeyID(participant: key.participant, track: track, epoch: key.epoch).rawValue
      sealer = TrackSealer(SenderContext(suite: Epoch.suite, keyID: keyID, baseKey: key.baseKey))
      tracks[track] = sealer
    }
    do {
      return try sealer.context.encrypt(frame, metadata: metadata, into: output)
    } catch {
      throw FrameCipherError(error)
    }
  }
}
