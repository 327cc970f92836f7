import ConclaveClient
import MediaModel
import Octets
import RTP

/// One stream from the server: puts packets in order, asks for missing ones, assembles frames and opens them.
final class ReceivingSlot {
  let slot: RemoteMedia.Slot
  /// One entry for each track. There are few, since a slot seldom changes its track.
  private var counts: [(key: TrackKey, traffic: Traffic)] = []
  private(set) var stay = StayCount()
  /// Frames that wait for their key or for the event about their slot: up to 64, for a second (protocol section 5,
  /// epochs, rule 5).
  private var held: [(bytes: [UInt8], arrived: Instant)] = []
  /// The revision of the cipher's keys and slots at the last try of the held frames.
  private var triedRevision = 0
  private var nextTry = Instant(nanoseconds: 0)

  private var unwrapper = SequenceUnwrapper()
  /// The index of the next packet in order; nil before the first.
  private var next: UInt64?
  /// Packets after a hole.
  private var waiting: [UInt64: HeldPacket] = [:]
  private var holes: [Hole] = []
  private var frame: [UInt8] = []
  private var isInFrame = false
  private let plain: UnsafeMutableRawBufferPointer
  private var decodable = DecodableFrames()
  /// The last frame of a layered track that could be decoded.
  private var lastShown: (track: TrackKey, rank: UInt8, at: Instant)?
  /// The last frame that this participant opened itself.
  private var last: FrameCipher.Opened?

  /// For receiver reports (RFC 3550 section 6.4.1).
  private var first: UInt64?
  private var count: UInt64 = 0
  private var lastSenderReport: (compact: UInt32, at: Instant)?

  private struct HeldPacket {
    var payload: [UInt8]
    var marker: Bool
  }

  private struct Hole {
    var index: UInt64
    let since: Instant
    var due: Instant
  }

  private static let holdLimit = 64
  private static let holdTime = Duration.seconds(1)
  private static let tryInterval = Duration.milliseconds(10)
  /// A packet that does not arrive in this time is lost. Only video has a retransmission stream, by which it may be
  /// sent again.
  private var patience: Duration { slot.rtxSSRC == nil ? .milliseconds(100) : .seconds(1) }
  /// How late a reordered packet may be before it is asked for.
  private static let reorderTime = Duration.milliseconds(5)
  private static let nackInterval = Duration.milliseconds(20)
  private static let holeLimit = 256
  private static let largestFrame = 128 << 10
  private static let ownShare: UInt64 = 16

  init(_ slot: RemoteMedia.Slot) {
    self.slot = slot
    plain = .allocate(byteCount: Self.largestFrame, alignment: 16)
  }

  deinit { plain.deallocate() }

  /// The objects that a slot uses: the call's keys and the thread's counts.
  final class Surroundings {
    let cipher: FrameCipher
    let progress: PeerProgress
    let statistics: Statistics
    let opened: OpenedFrames
    let hasGuests: Bool

    init(
      cipher: FrameCipher, progress: PeerProgress, statistics: Statistics, opened: OpenedFrames, hasGuests: Bool
    ) {
      self.cipher = cipher
      self.progress = progress
      self.statistics = statistics
      self.opened = opened
      self.hasGuests = hasGuests
    }

    /// Whether a frame may belong to an epoch from before this participant's stay.
    func isEarly(_ now: Instant) -> Bool {
      !statistics.wasMeasuring(at: now) || progress.state.arrivedAt > now
    }

    /// Counts a frame that no key of the call opens.
    func refuse() {
      if hasGuests { statistics.tally.guestFrames += 1 } else { statistics.tally.decryptFailures += 1 }
    }
  }

  /// Takes a packet of the stream, without its padding; `sequence` and the rest are the original's if it came by RTX.
  func receive(
    _ payload: UnsafeRawBufferPointer, sequence: UInt16, marker: Bool, now: Instant, _ surroundings: Surroundings
  ) {
    let index = unwrapper.unwrap(sequence)
    if first == nil { first = index }
    count += 1
    let expected = next ?? index
    if next == nil { next = index }
    if index == expected {
      take(payload, marker: marker, now: now, surroundings)
      next = index + 1
      if !waiting.isEmpty || !holes.isEmpty { drain(now, surroundings) }
    } else if index > expected, waiting[index] == nil {
      waiting[index] = HeldPacket(payload: Array(payload), marker: marker)
      if holes.isEmpty || index > holes[holes.count - 1].index { noteHoles(before: index, now) }
      holes.removeAll { $0.index == index }
    }
  }

  private func noteHoles(before index: UInt64, _ now: Instant) {
    let start = max(next ?? index, (holes.last?.index ?? 0) + 1)
    for missing in start..<index where waiting[missing] == nil && holes.count < Self.holeLimit {
      holes.append(
        Hole(
          index: missing, since: now,
          due: now.advanced(by: slot.rtxSSRC == nil ? patience : Self.reorderTime)))
    }
  }

  private func drain(_ now: Instant, _ surroundings: Surroundings) {
    while let index = next, let packet = waiting.removeValue(forKey: index) {
      packet.payload.withUnsafeBytes { take($0, marker: packet.marker, now: now, surroundings) }
      next = index + 1
    }
    if let next { holes.removeAll { $0.index < next } }
  }

  /// The next packet in order.
  private func take(
    _ payload: UnsafeRawBufferPointer, marker: Bool, now: Instant, _ surroundings: Surroundings
  ) {
    guard slot.isVideo else { return open(payload, now: now, surroundings, mayHold: true) }
    guard let descriptor = VP8Descriptor(parsing: payload.bytes) else { return }
    if descriptor.startsFrame {
      frame.removeAll(keepingCapacity: true)
      isInFrame = true
    }
    guard isInFrame, frame.count + payload.count <= Self.largestFrame else { return }
    frame.append(contentsOf: payload.part(descriptor.length..<payload.count))
    guard marker else { return }
    isInFrame = false
    frame.withUnsafeBytes { open($0, now: now, surroundings, mayHold: true) }
  }

  private func open(_ frame: UnsafeRawBufferPointer, now: Instant, _ surroundings: Surroundings, mayHold: Bool) {
    // VP8's clear bytes: 10 of a key frame, 3 of another (protocol section 5, "Clear bytes").
    let clear = slot.isVideo ? (frame.first.map { $0 & 1 == 0 } ?? false ? 10 : 3) : 0
    guard frame.count > clear else { return refuse(surroundings) }
    if let content = known(frame, surroundings) { return note(content, now: now, surroundings) }
    do {
      let opened = try surroundings.cipher.decrypt(
        frame.part(clear..<frame.count), slot: slot.mid, metadata: frame.part(0..<clear), into: plain)
      let content = OpenedFrames.Content(
        opened: opened, frame: TestFrame(UnsafeRawBufferPointer(rebasing: plain[..<opened.byteCount])))
      last = opened
      surroundings.opened.keep(content, of: frame)
      note(content, now: now, surroundings)
    } catch  where error.mayPass && mayHold && held.count < Self.holdLimit {
      held.append((Array(frame), now))
    } catch  where error.mayPass && surroundings.isEarly(now) {
      // It was sent under an epoch from before this participant joined, whose key it must not have.
      surroundings.statistics.tally.beforeJoining += 1
    } catch {
      refuse(surroundings)
    }
  }

  /// The content of the frame, if another participant has opened it. This one opens the first frame of each key itself,
  /// and then one in `ownShare`.
  private func known(_ frame: UnsafeRawBufferPointer, _ surroundings: Surroundings) -> OpenedFrames.Content? {
    guard let last, stay.opened % Self.ownShare != 0, let content = surroundings.opened.content(of: frame),
      content.opened.participant == last.participant, content.opened.track == last.track,
      content.opened.epoch == last.epoch
    else { return nil }
    return content
  }

  private func refuse(_ surroundings: Surroundings) {
    stay.refused += 1
    surroundings.refuse()
  }

  private func note(_ content: OpenedFrames.Content, now: Instant, _ surroundings: Surroundings) {
    let key = TrackKey(participant: content.opened.participant, track: content.opened.track)
    guard let frame = content.frame else { return surroundings.statistics.tally.decryptFailures += 1 }
    let place: Int
    if let known = counts.firstIndex(where: { $0.key == key }) {
      place = known
    } else {
      place = counts.count
      counts.append((key, Traffic(isVideo: slot.isVideo)))
      surroundings.progress.heard(key)
    }
    stay.open(under: content.opened.epoch)
    if let layered = frame.layered {
      note(layered, of: key, isMeasured: frame.isMeasured, now: now, surroundings.statistics)
    }
    guard frame.isMeasured else { return }
    counts[place].traffic.frames += 1
    counts[place].traffic.packets += UInt64(frame.packets)
    surroundings.statistics.count(frame, isVideo: slot.isVideo, at: now)
  }

  private func note(
    _ frame: LayeredFrame, of key: TrackKey, isMeasured: Bool, now: Instant, _ statistics: Statistics
  ) {
    let before = lastShown
    let isDecodable = decodable.take(frame, of: key)
    if isDecodable { lastShown = (key, frame.rank, now) }
    guard isMeasured else { return }
    guard isDecodable else { return statistics.tally.layers.undecodable += 1 }
    statistics.tally.layers.decodable[Int(frame.rank)] += 1
    guard let before, before.track == key else { return }
    if before.rank != frame.rank { statistics.tally.layers.switches += 1 }
    let gap = UInt64(max(0, before.at.duration(to: now).nanoseconds))
    statistics.tally.layers.longestGap = max(statistics.tally.layers.longestGap, gap)
  }

  // MARK: - Time

  /// Read after each packet, and mostly nil.
  var nextTimeout: Instant? {
    var next = held.isEmpty ? nil : nextTry
    for hole in holes { next = min(next ?? hole.due, hole.due) }
    return next
  }

  /// Gives up what is too old, and returns the sequence numbers to ask for again.
  func handleTimeout(_ now: Instant, _ surroundings: Surroundings) -> [UInt16] {
    if !held.isEmpty, nextTry <= now { retryHeld(now, surroundings) }
    guard !holes.isEmpty else { return [] }
    if let lost = holes.last(where: { $0.since.duration(to: now) >= patience })?.index {
      surroundings.statistics.tally.abandoned += UInt64(holes.count { $0.index <= lost })
      isInFrame = false
      next = lost + 1
      drain(now, surroundings)
    }
    guard slot.rtxSSRC != nil else { return [] }
    var missing: [UInt16] = []
    for i in holes.indices where holes[i].due <= now {
      missing.append(UInt16(truncatingIfNeeded: holes[i].index))
      holes[i].due = now.advanced(by: Self.nackInterval)
    }
    surroundings.statistics.tally.nacked += UInt64(missing.count)
    return missing
  }

  private func retryHeld(_ now: Instant, _ surroundings: Surroundings) {
    nextTry = now.advanced(by: Self.tryInterval)
    let revision = surroundings.cipher.openingRevision
    guard revision != triedRevision || held[0].arrived.duration(to: now) >= Self.holdTime else { return }
    triedRevision = revision
    let frames = held
    held = []
    for frame in frames {
      let isLate = frame.arrived.duration(to: now) >= Self.holdTime
      let before = held.count
      frame.bytes.withUnsafeBytes { open($0, now: frame.arrived, surroundings, mayHold: !isLate) }
      if held.count > before { held[before].arrived = frame.arrived }
    }
  }

  // MARK: - Reports

  var received: [TrackKey: Traffic] { Dictionary(uniqueKeysWithValues: counts) }

  func note(_ report: SenderReport, now: Instant) { lastSenderReport = (report.ntp.compact, now) }

  /// nil before the first packet.
  func reportBlock(_ now: Instant) -> ReportBlock? {
    guard let first, let highest = unwrapper.highest else { return nil }
    let lost = Int64(highest - first + 1) - Int64(count)
    return ReportBlock(
      ssrc: slot.ssrc, fractionLost: 0, cumulativeLost: Int32(clamping: lost),
      highestSequence: UInt32(truncatingIfNeeded: highest), jitter: 0,
      lastSenderReport: lastSenderReport?.compact ?? 0,
      delaySinceLastSenderReport: lastSenderReport.map {
        NTPTimestamp.compact(ofNanoseconds: UInt64(max(0, $0.at.duration(to: now).nanoseconds)))
      } ?? 0)
  }
}

extension FrameCipherError {
  /// Whether the error may be resolved by an event that has not arrived yet.
  fileprivate var mayPass: Bool { self == .unknownKey || self == .otherTrack }
}
