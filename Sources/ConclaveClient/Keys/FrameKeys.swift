import Crypto
import MediaModel
import SFrame

/// The SFrame contexts behind a `FrameCipher`: base keys an epoch, and a context for each KID that was met.
struct FrameKeys: ~Copyable {
  private var epochs: [UInt32: ReceivingEpoch] = [:]
  /// One context a track, of the epoch `lastSent` alone.
  private var senders: [UInt8: TrackSender] = [:]
  private var participant: ParticipantNumber = 0
  /// The highest epoch that was ever sent under.
  private var lastSent: UInt32 = 0
  /// nil while this participant must not send.
  var sendingEpoch: UInt32?

  private struct ReceivingEpoch {
    var baseKeys: [ParticipantNumber: SymmetricKey]
    var contexts: [UInt64: ReceiverContext] = [:]
  }

  /// Holds a sending context, which cannot be copied, in a dictionary.
  private final class TrackSender {
    var context: SenderContext
    init(_ context: consuming SenderContext) { self.context = context }
  }

  /// Takes up an epoch's keys, or those of senders that have come to it. A key that is there stays.
  mutating func install(_ keys: EpochKeys) {
    epochs[keys.epoch, default: ReceivingEpoch(baseKeys: [:])].baseKeys.merge(keys.baseKeys) { known, _ in known }
  }

  var heldEpochs: [UInt32] { Array(epochs.keys) }

  mutating func retire(_ epoch: UInt32) { epochs[epoch] = nil }

  /// Going back to an epoch, or on as somebody else in the same, would start its counters anew and is ignored.
  mutating func send(_ epoch: UInt32, as participant: ParticipantNumber) {
    if epoch > lastSent {
      senders = [:]
      lastSent = epoch
      self.participant = participant
    }
    if epoch == lastSent, participant == self.participant { sendingEpoch = epoch }
  }

  mutating func encrypt(
    _ frame: UnsafeRawBufferPointer, track: UInt8, metadata: UnsafeRawBufferPointer,
    into output: UnsafeMutableRawBufferPointer
  ) throws(FrameCipherError) -> Int {
    guard let epoch = sendingEpoch, let baseKey = epochs[epoch]?.baseKeys[participant] else { throw .noKey }
    let sender: TrackSender
    if let known = senders[track] {
      sender = known
    } else {
      let keyID = FrameKeyID(participant: participant, track: track, epoch: epoch).rawValue
      sender = TrackSender(SenderContext(suite: Epoch.suite, keyID: keyID, baseKey: baseKey))
      senders[track] = sender
    }
    do {
      return try sender.context.encrypt(frame, metadata: metadata, into: output)
    } catch {
      throw FrameCipherError(error)
    }
  }

  mutating func decrypt(
    _ frame: UnsafeRawBufferPointer, metadata: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) throws(FrameCipherError) -> FrameCipher.Opened {
    do {
      let header = try SFrameHeader(parsing: frame)
      guard let id = FrameKeyID(rawValue: header.keyID) else { throw FrameCipherError.notAuthentic }
      guard let epoch = epoch(of: id), let baseKey = epochs[epoch]?.baseKeys[id.participant] else {
        throw FrameCipherError.unknownKey
      }
      let count: Int
      if epochs[epoch]!.contexts[header.keyID] != nil {
        count = try epochs[epoch]!.contexts[header.keyID]!.decrypt(frame, metadata: metadata, into: output)
      } else {
        // Kept once a frame has opened, so that forged KIDs fill no memory.
        var context = ReceiverContext(suite: Epoch.suite, keyID: header.keyID, baseKey: baseKey)
        count = try context.decrypt(frame, metadata: metadata, into: output)
        epochs[epoch]!.contexts[header.keyID] = context
      }
      return FrameCipher.Opened(
        participant: id.participant, track: id.track, byteCount: count, counter: header.counter)
    } catch let error as SFrameError {
      throw FrameCipherError(error)
    } catch let error as FrameCipherError {
      throw error
    } catch {
      throw .notAuthentic
    }
  }

  /// The newest epoch held with these low bits that has the participant on its list.
  private func epoch(of id: FrameKeyID) -> UInt32? {
    var found: UInt32?
    for (number, epoch) in epochs
    where UInt8(truncatingIfNeeded: number) == id.epochLow && number > found ?? 0
      && epoch.baseKeys[id.participant] != nil
    {
      found = number
    }
    return found
  }
}

extension FrameCipherError {
  init(_ error: SFrameError) {
    switch error {
    case .replayed: self = .replayed
    case .noSpace: self = .noSpace
    case .counterExhausted: self = .noKey
    case .truncated, .notMinimal, .wrongKeyID, .authenticationFailed: self = .notAuthentic
    }
  }
}
