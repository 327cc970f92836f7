import Crypto
package import MediaModel
import Octets
import SFrame

/// The opening half of a `FrameCipher`: the other senders' keys of at most 3 epochs, and the tracks of each slot. It seals nothing.
struct FrameOpener: ~Copyable {
  static let maximumEpochs = 3

  /// At most one of each low byte.
  private var epochs: [ReceivingEpoch] = []
  private var slots: [String: SlotTracks] = [:]
  /// The slots in which this device offered to receive sound.
  private var soundSlots: Set<String> = []
  /// How far a sound frame may arrive behind the newest of its track, 1.3 s of Opus: within this a server chooses the order of words, and jitter buffers wait
  /// for no more.
  static let soundReach: UInt64 = 64

  private struct ReceivingEpoch {
    let number: UInt32
    /// Equivalent to the epoch's secret, because the ratchet and the confirmations come from the same HKDF-Extract. It is dropped with the base keys when the
    /// overlap is over: which senders still have frames in flight is not known before.
    let derivation: SenderDerivation
    var senders: Senders
    /// Created when a sender's first frame arrives.
    var baseKeys: [ParticipantNumber: SymmetricKey] = [:]
    /// The contexts of the KIDs for which a frame has opened.
    var contexts: [UInt64: ReceiverContext] = [:]
  }

  var heldEpochs: [UInt32] { epochs.map(\.number) }

  /// Adds an epoch, or new senders to it; known senders stay. An epoch with the same low byte is evicted first, then the
  /// lowest.
  mutating func install(_ keys: EpochKeys) {
    if let place = epochs.firstIndex(where: { $0.number == keys.epoch }) {
      epochs[place].senders.update(keys.senders)
    } else {
      epochs.removeAll { $0.number & 0xff == keys.epoch & 0xff }
      while epochs.count >= Self.maximumEpochs, let lowest = heldEpochs.min() { retire(lowest) }
      epochs.append(ReceivingEpoch(number: keys.epoch, derivation: keys.derivation, senders: keys.senders))
    }
  }

  mutating func retire(_ epoch: UInt32) { epochs.removeAll { $0.number == epoch } }

  /// Forgets a device's keys in all epochs. Its frames open again only in epochs in which it is installed again.
  mutating func exclude(_ fingerprint: [UInt8]) {
    for place in epochs.indices {
      let excluded = epochs[place].senders.exclude(fingerprint)
      for participant in excluded { epochs[place].baseKeys[participant] = nil }
      let contexts = epochs[place].contexts.keys.filter { excluded.contains(ParticipantNumber($0 >> 16)) }
      for keyID in contexts { epochs[place].contexts[keyID] = nil }
    }
  }

  mutating func wipe() {
    epochs = []
    slots = [:]
    soundSlots = []
  }

  /// The mids come from this device's own offer: a server that calls a sound slot a video slot changes nothing.
  mutating func receiveSound(in mids: Set<String>) { soundSlots = mids }

  /// The whole slot map, as last sent by the server.
  mutating func assign(_ map: [String: TrackID], now: Instant) {
    for mid in slots.keys where map[mid] == nil { slots[mid]?.assign(nil, now: now) }
    for (mid, track) in map { slots[mid, default: SlotTracks()].assign(track, now: now) }
    slots = slots.filter { !$0.value.isSpent(now: now) }
  }

  /// Opens a frame whose KID matches its slot, or the sender that the server names. Key and replay window are touched only then.
  mutating func decrypt(
    _ frame: UnsafeRawBufferPointer, from source: FrameSource, metadata: UnsafeRawBufferPointer,
    into output: UnsafeMutableRawBufferPointer
  ) throws(FrameCipherError) -> FrameCipher.Opened {
    do {
      let header = try SFrameHeader(parsing: frame.bytes)
      guard let id = FrameKeyID(rawValue: header.keyID) else { throw FrameCipherError.notAuthentic }
      let (limit, reach) = try windowLimits(id, source)
      guard let place = place(of: id) else { throw FrameCipherError.unknownKey }
      let count: Int
      if let known = epochs[place].contexts.index(forKey: header.keyID) {
        count = try epochs[place].contexts.values[known].decrypt(
          frame, metadata: metadata, movingWindowAtMost: limit, reachingBackAtMost: reach, into: output)
      } else {
        guard let baseKey = baseKey(of: id.participant, in: place) else { throw FrameCipherError.unknownKey }
        // Kept once a frame has opened, so that forged KIDs do not fill the memory.
        var context = ReceiverContext(suite: Epoch.suite, keyID: header.keyID, baseKey: baseKey)
        count = try context.decrypt(
          frame, metadata: metadata, movingWindowAtMost: limit, reachingBackAtMost: reach, into: output)
        epochs[place].contexts[header.keyID] = context
      }
      return FrameCipher.Opened(
        participant: id.participant, track: id.track, byteCount: count, counter: header.counter,
        epoch: epochs[place].number)
    } catch let error as SFrameError {
      throw FrameCipherError(error)
    } catch let error as FrameCipherError {
      throw error
    } catch {
      throw .notAuthentic
    }
  }

  /// How far the frame may move its KID's replay window, and how far it may be behind the newest.
  private func windowLimits(
    _ id: FrameKeyID, _ source: FrameSource
  ) throws(FrameCipherError) -> (limit: UInt64, reach: UInt64) {
    switch source {
    case .slot(let mid, let now):
      let reach = soundSlots.contains(mid) ? Self.soundReach : ReplayWindow.size
      switch slots[mid]?.verdict(on: id, now: now) ?? .foreign {
      case .current: return (.max, reach)
      case .former: return (SlotTracks.formerWindow, reach)
      case .foreign: throw .otherTrack
      }
    case .message(let from):
      guard id.participant == from, id.track == 0 else { throw .notAuthentic }
      return (.max, ReplayWindow.size)
    }
  }

  private mutating func baseKey(of participant: ParticipantNumber, in place: Int) -> SymmetricKey? {
    if let key = epochs[place].baseKeys[participant] { return key }
    guard let identity = epochs[place].senders[participant] else { return nil }
    let key = epochs[place].derivation.baseKey(of: participant, identity)
    epochs[place].baseKeys[participant] = key
    return key
  }

  /// The index of the KID's epoch. A search by closure would retain everything that each epoch has, for every frame.
  private func place(of id: FrameKeyID) -> Int? {
    for place in epochs.indices where UInt8(truncatingIfNeeded: epochs[place].number) == id.epochLow { return place }
    return nil
  }
}

/// Where a frame came from, according to the server.
package enum FrameSource: Sendable {
  /// The m-line's mid, and the time.
  case slot(String, now: Instant)
  case message(from: ParticipantNumber)
}

extension FrameCipherError {
  init(_ error: SFrameError) {
    switch error {
    case .replayed: self = .replayed
    case .noSpace: self = .noSpace
    case .counterExhausted: self = .noKey
    case .header, .truncated, .wrongKeyID, .authenticationFailed: self = .notAuthentic
    }
  }
}
