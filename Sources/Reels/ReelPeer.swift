import MediaModel
import Octets
import RTP
import Recording

/// A recorded participant: its tracks, and the reel of its stay.
final class ReelPeer {
  /// How long frames wait for their key, and how many bytes of them.
  static let heldTime = Duration.seconds(3)
  static let heldBytes = 512 << 10

  private enum Admission {
    case stored(epoch: UInt32)
    case waits
    case none
  }

  private(set) var kept: RecordedPeer
  let worker: WorkerAddress
  private(set) var tracks: [ReelTrack] = []
  var reel: Reel
  private var extensions = HeaderExtensionIDs()
  private var isHeld = false
  /// Frames that wait for their keys.
  private var heldBytes = 0
  private var reminder: (due: Instant, interval: Duration)
  private let configuration: ReelTable.Configuration
  private let output: ReelSink

  init(
    _ kept: RecordedPeer, on worker: WorkerAddress, _ configuration: ReelTable.Configuration, _ output: ReelSink,
    now: Instant
  ) {
    self.kept = kept
    self.worker = worker
    self.configuration = configuration
    self.output = output
    reel = Reel(
      ReelName(recording: kept.recording, reel: kept.participant, peer: kept.peer), output)
    reminder = (now, Self.firstReminder)
  }

  private static let firstReminder = Duration.milliseconds(20)
  private static let longestReminder = Duration.seconds(1)

  /// The track is one to which its person agreed.
  private func isAgreed(_ track: ReelTrack) -> Bool { kept.covers(track.id.index) }

  // MARK: commands

  func describe(_ new: PeerConfiguration, now: Instant) {
    extensions = new.extensions
    for old in tracks where !new.tracks.contains(where: { $0.track == old.id && $0.rids == old.description.rids }) {
      reel.mark(Self.trackEnded, track: old.id.index, now: now)
    }
    tracks = new.tracks.map { description in
      guard let track = tracks.first(where: { $0.id == description.track && $0.description.rids == description.rids })
      else { return ReelTrack(description) }
      mute(track, description.muted, now: now)
      track.describe(description)
      return track
    }
    remind(now)
  }

  func mute(_ id: TrackID, _ isMuted: Bool, now: Instant) {
    guard let track = tracks.first(where: { $0.id == id }) else { return }
    mute(track, isMuted, now: now)
    var description = track.description
    description.muted = isMuted
    track.describe(description)
  }

  private func mute(_ track: ReelTrack, _ isMuted: Bool, now: Instant) {
    guard track.description.muted != isMuted else { return }
    reel.mark(isMuted ? Self.muted : Self.unmuted, track: track.id.index, now: now)
    // Frames that the sender sent meanwhile were not passed on, and are not missing.
    for layer in track.layers { layer.restart() }
  }

  func hold(_ isHeld: Bool, now: Instant) {
    guard self.isHeld != isHeld else { return }
    self.isHeld = isHeld
    reel.mark(isHeld ? Self.held : Self.resumed, track: nil, now: now)
    for layer in tracks.flatMap(\.layers) { layer.restart() }
    recountHeld()
  }

  func removeTrack(_ id: TrackID, now: Instant) {
    guard let place = tracks.firstIndex(where: { $0.id == id }) else { return }
    reel.mark(Self.trackEnded, track: id.index, now: now)
    tracks.remove(at: place)
    recountHeld()
  }

  func keep(_ new: RecordedPeer, now: Instant) {
    let before = tracks.filter(isAgreed)
    kept = new
    for track in before where !isAgreed(track) {
      reel.mark(Self.consentEnded, track: track.id.index, now: now)
      for layer in track.layers {
        layer.restart()
        layer.leave()
      }
      track.shown = nil
    }
    // So that what was stored can be read.
    if !before.isEmpty, !tracks.contains(where: isAgreed) { reel.close(.continued, now: now) }
    for track in tracks { for layer in track.layers { release(layer, of: track, now: now) } }
    recountHeld()
    remind(now)
  }

  private static let muted: UInt8 = 1
  private static let unmuted: UInt8 = 2
  private static let held: UInt8 = 3
  private static let resumed: UInt8 = 4
  private static let trackEnded: UInt8 = 5
  private static let consentEnded: UInt8 = 8

  /// The stay is over.
  func end(now: Instant) {
    for track in tracks {
      for layer in track.layers {
        var items: [FrameAssembler.Item] = []
        layer.assembler.finish(into: &items)
        take(items, layer, of: track, reason: .network, now: now)
      }
    }
    reel.end(now: now)
  }

  /// Deletes the stored reel; frames that follow begin a new one.
  func erase() {
    reel = Reel(reel.name, output)
    for layer in tracks.flatMap(\.layers) { layer.leave() }
  }

  // MARK: packets

  /// - Parameter reason: why packets are missing, if they are.
  func receive(
    _ packet: RawSpan, index: UInt64, restarts: UInt32, of id: TrackID, rank: UInt8, reason: GapReason, now: Instant
  ) {
    guard let track = tracks.first(where: { $0.id == id }), rank < track.layers.count, isAgreed(track),
      let header = RTPHeader(parsing: packet), let codec = track.codec(of: header.payloadType)
    else { return }
    let layer = track.layers[Int(rank)]
    if layer.restarts != restarts {
      if layer.restarts != nil { layer.restart() }
      layer.restarts = restarts
    }
    layer.lastPacket = now
    if layer.arrival == nil { layer.arrival = (header.timestamp, now) }
    var items: [FrameAssembler.Item] = []
    let extensionID = track.isVideo ? extensions.videoOrientation : 0
    layer.assembler.add(
      ReelPacket(header, packet, codec: codec, extensionID: extensionID), index: index, now: now, into: &items)
    take(items, layer, of: track, reason: reason, now: now)
  }

  func report(_ timestamp: UInt32, at instant: Instant, of id: TrackID, rank: UInt8, now: Instant) {
    guard let track = tracks.first(where: { $0.id == id }), rank < track.layers.count, isAgreed(track) else { return }
    track.layers[Int(rank)].report = (timestamp, instant)
    reel.note((timestamp, instant), track: id.index, rank: rank, now: now)
  }

  private func take(
    _ items: [FrameAssembler.Item], _ layer: ReelLayer, of track: ReelTrack, reason: GapReason, now: Instant
  ) {
    for item in items {
      switch item {
      case .frame(let frame): take(frame, layer, of: track, now: now)
      case .hole(let packets):
        layer.awaitsKeyFrame = track.isVideo
        layer.miss(reason, packets: packets)
      }
    }
  }

  private func take(_ frame: FrameAssembler.Frame, _ layer: ReelLayer, of track: ReelTrack, now: Instant) {
    let bytes = frame.bytes.span.bytes
    guard frame.clearBytes < bytes.byteCount,
      let header = try? SFrameHeader(parsing: bytes.extracting(frame.clearBytes..<bytes.byteCount)),
      let keyID = FrameKeyID(rawValue: header.keyID)
    else { return drop(frame, .unreadable, layer, of: track) }
    let admission = admission(of: keyID, track)
    if case .none = admission { return drop(frame, .notAdmitted, layer, of: track) }
    if layer.held.isEmpty, case .stored(let epoch) = admission {
      return store(frame, epoch, layer, of: track, now: now)
    }
    guard heldBytes + frame.bytes.count <= Self.heldBytes else {
      layer.miss(.noKey)
      return drop(frame, .expired, layer, of: track)
    }
    layer.held.append(ReelLayer.Held(frame: frame, keyID: keyID))
    heldBytes += frame.bytes.count
  }

  private func admission(of keyID: FrameKeyID, _ track: ReelTrack) -> Admission {
    guard keyID.participant == kept.participant, keyID.track == track.id.index else { return .none }
    func names(_ key: RecordedPeer.Key) -> Bool {
      key.track == keyID.track && UInt8(truncatingIfNeeded: key.epoch) == keyID.epochLow
    }
    if let key = kept.keys.first(where: names) { return .stored(epoch: key.epoch) }
    return kept.awaited.contains(where: names) ? .waits : .none
  }

  /// Frames whose keys have come, or will not.
  private func release(_ layer: ReelLayer, of track: ReelTrack, now: Instant) {
    var released = 0
    for held in layer.held {
      switch admission(of: held.keyID, track) {
      case .stored(let epoch): store(held.frame, epoch, layer, of: track, now: now)
      case .none: drop(held.frame, .notAdmitted, layer, of: track)
      case .waits:
        guard held.frame.arrival.advanced(by: Self.heldTime) <= now else {
          layer.held.removeFirst(released)
          return
        }
        layer.miss(.noKey)
        drop(held.frame, .expired, layer, of: track)
      }
      released += 1
    }
    layer.held = []
  }

  private func recountHeld() {
    heldBytes = tracks.reduce(0) { sum, track in
      track.layers.reduce(sum) { $0 + $1.held.reduce(0) { $0 + $1.frame.bytes.count } }
    }
  }

  private func drop(
    _ frame: FrameAssembler.Frame, _ reason: ReelCounts.Drop, _ layer: ReelLayer, of track: ReelTrack
  ) {
    output.counts.drops[reason, default: 0] &+= 1
    if track.isVideo, !frame.isDiscardable { layer.awaitsKeyFrame = true }
  }

  private func store(
    _ frame: FrameAssembler.Frame, _ epoch: UInt32, _ layer: ReelLayer, of track: ReelTrack, now: Instant
  ) {
    guard let codec = track.codecCode else { return }
    guard !isBehind(isVideo: track.isVideo) else {
      layer.miss(.disk)
      return drop(frame, .backlog, layer, of: track)
    }
    if track.isVideo, !shows(frame, layer, of: track, now: now) { return }
    let clock: (source: RecordedClock.Source, timestamp: UInt32, at: Instant) =
      layer.report.map { (.senderReport, $0.timestamp, $0.at) }
      ?? (.arrivals, layer.arrival?.timestamp ?? frame.timestamp, layer.arrival?.at ?? frame.arrival)
    let stream = Reel.Stream(
      track: track.id.index, rank: layer.rank, epoch: epoch, source: track.description.source, codec: codec,
      clockRate: track.clockRate, clock: clock)
    reel.write(frame, of: stream, gap: layer.gap, now: now)
    layer.gap = nil
    layer.stream = stream
    layer.lastStored = frame.arrival
  }

  /// Whether a picture is stored: of the layer that is, and not of one that refers to a missing one.
  private func shows(
    _ frame: FrameAssembler.Frame, _ layer: ReelLayer, of track: ReelTrack, now: Instant
  ) -> Bool {
    if track.shown !== layer {
      let isBest = track.best(bound: configuration.cameraHeight, now: now) === layer
      let isOver = track.shown?.isAlive(now) != true
      guard frame.isKeyFrame, isBest || isOver else {
        if isBest { layer.awaitsKeyFrame = true }
        output.counts.drops[.otherLayer, default: 0] &+= 1
        return false
      }
      // The new layer goes on with frames that were not stored before.
      layer.gap = track.shown?.gap
      track.shown?.leave()
      track.shown = layer
    }
    if frame.isKeyFrame {
      layer.awaitsKeyFrame = false
      layer.lastKeyFrame = now
    } else if layer.awaitsKeyFrame {
      layer.miss(.network)
      output.counts.drops[.awaitingKeyFrame, default: 0] &+= 1
      return false
    }
    return true
  }

  /// Whether the disk is too slow for more. Video goes first, then everything.
  private func isBehind(isVideo: Bool) -> Bool {
    let (reel, all) = (reel.backlog, output.backlog)
    if reel > ReelTable.Limits.reel * 5 / 4 || all > ReelTable.Limits.all * 5 / 4 { return true }
    guard isVideo else { return false }
    if reel > ReelTable.Limits.reel || all > ReelTable.Limits.all * 9 / 8 { return true }
    return all > ReelTable.Limits.all && reel > output.fairShare
  }

  // MARK: time

  /// - Parameter isShed: the worker has no time for video.
  func tick(now: Instant, isShed: Bool, reason: GapReason, into wishes: inout [ReelWish]) {
    for track in tracks {
      for layer in track.layers {
        var items: [FrameAssembler.Item] = []
        layer.assembler.expire(now: now, into: &items)
        take(items, layer, of: track, reason: reason, now: now)
        if !layer.held.isEmpty { release(layer, of: track, now: now) }
      }
      wish(for: track, isShed: isShed, now: now, into: &wishes)
      requestKeyFrame(of: track, now: now, into: &wishes)
    }
    recountHeld()
    if reminder.due <= now {
      reminder = (now.advanced(by: reminder.interval), min(reminder.interval * 2, Self.longestReminder))
    }
    reel.tick(now: now) {
      tracks.flatMap(\.layers).compactMap { layer in
        guard let stream = layer.stream, let gap = layer.gap else { return nil }
        return (stream, gap)
      }
    }
  }

  private func remind(_ now: Instant) { reminder = (now, Self.firstReminder) }

  private func wish(for track: ReelTrack, isShed: Bool, now: Instant, into wishes: inout [ReelWish]) {
    let isWished = isAgreed(track) && track.isStorable && !(track.isVideo && isShed)
    let wanted = track.wanted(minimum: configuration.cameraMinimum)
    for layer in track.layers {
      let isWanted = track.description.source != .camera || layer === wanted
      let kind: ReelWish.Kind = !isWished ? .nothing : isWanted ? .wanted : .packets
      if layer.wish != kind {
        if kind == .nothing, layer.wish != nil {
          if isAgreed(track) { layer.miss(.serverLate) }
          layer.restart()
        }
        layer.wish = kind
      } else if reminder.due > now {
        continue
      }
      wishes.append(ReelWish(peer: kept.peer, track: track.id, rank: layer.rank, worker: worker, kind: kind))
    }
  }

  /// One is wanted of the stored layer, or of the one that should be.
  private func requestKeyFrame(of track: ReelTrack, now: Instant, into wishes: inout [ReelWish]) {
    guard track.isVideo, isAgreed(track), track.isStorable,
      let layer = track.best(bound: configuration.cameraHeight, now: now), layer.isAlive(now)
    else { return }
    let isOld = layer.lastKeyFrame.map { $0.advanced(by: ReelLayer.keyFrameInterval) <= now } ?? true
    guard layer.awaitsKeyFrame || layer !== track.shown || isOld, layer.takeKeyFrameRequest(now) else { return }
    output.counts.keyFrameRequests &+= 1
    wishes.append(ReelWish(peer: kept.peer, track: track.id, rank: layer.rank, worker: worker, kind: .keyFrame))
  }

  /// Nothing of the peer is wanted any more.
  func endWishes(into wishes: inout [ReelWish]) {
    for track in tracks {
      for layer in track.layers where layer.wish != .nothing {
        wishes.append(ReelWish(peer: kept.peer, track: track.id, rank: layer.rank, worker: worker, kind: .nothing))
      }
    }
  }
}

extension RecordedPeer {
  /// Frames of the track may be stored, or wait for that.
  fileprivate func covers(_ track: UInt8) -> Bool {
    keys.contains { $0.track == track } || awaited.contains { $0.track == track }
  }
}
