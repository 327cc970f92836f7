import CongestionControl
import MediaModel
import RTP

/// How much of a slot's track there is room for, on the receiver's path or in the worker's time.
enum Allotment: Comparable {
  /// The slot pauses and resumes with a key frame.
  case nothing
  case upTo(spatial: Int, temporal: Int)
  /// Everything that the receiver wishes.
  case everything

  /// - Parameter step: a step of the stream's ladder; nil if paused.
  init(_ step: Int?, of stream: StreamWish) {
    guard let step else {
      self = .nothing
      return
    }
    let layer = stream.steps[step]
    self = step == stream.highest ? .everything : .upTo(spatial: Int(layer.spatial), temporal: Int(layer.temporal))
  }
}

extension DownTrack {
  /// The rate of the packets to the receiver now, in bit/s on the wire; 0 while the slot pauses.
  var sentRate: Int {
    guard let source, let encoding, !source.isSilent, !slot.pointee.state.isWithheld else { return 0 }
    return encoding.rate(of: slot.pointee.layers.target)
  }

  /// The allocator's view of the slot.
  /// - Parameter priority: as the receiver wishes.
  func wish(priority: Int) -> StreamWish {
    guard let source, !source.isSilent else { return StreamWish(priority: .min, height: 0, steps: []) }
    return StreamWish(
      isScreen: source.isScreen, priority: priority, height: slot.pointee.layers.maxHeight ?? .max,
      // The latest speaker comes first.
      speakerRank: -Int(clamping: source.peer.voice.spokeAt.nanoseconds), steps: source.ladder(within: ceiling))
  }

  /// The smaller of the two.
  var allotment: Allotment { min(rateAllotment, loadAllotment) }

  /// Sets what the receiver's rate or the worker's time has room for, or both; nil leaves that one unchanged.
  /// - Returns: the encoding whose key frame is needed now; nil if none is needed.
  func setAllotment(rate: Allotment? = nil, load: Allotment? = nil) -> Encoding? {
    let old = allotment
    rateAllotment = rate ?? rateAllotment
    loadAllotment = load ?? loadAllotment
    guard allotment != old else { return nil }
    guard allotment != .nothing else {
      expect(nil)
      forgetWaiting()
      slot.pointee.state.withhold()
      limitLayers()
      return nil
    }
    let wasWithheld = slot.pointee.state.isWithheld
    slot.pointee.state.admit()
    limitLayers()
    if let next = chooseLayer() { return next }
    guard wasWithheld || slot.pointee.layers.needsKeyFrame else { return nil }
    noteAwaiting()
    return encoding
  }

  /// The layer that the receiver gets of a track with several: the one that it wishes, or the one that its rate has room
  /// for.
  func allotted(_ wanted: Encoding, of source: UpTrack) -> Encoding {
    guard case .upTo(let spatial, _) = allotment, spatial < wanted.rank else { return wanted }
    return source.encodings[spatial]
  }

  /// Passes the limits on to the path of the packets. A layer below the allotted one is sent whole, up to the ceiling.
  func limitLayers() {
    var limits = LayerLimits(isSteppingDown: slot.pointee.state.isSteppingDown)
    if case .upTo(let spatial, let temporal) = allotment {
      let isLayered = source?.isLayered ?? false
      if !isLayered { limits.spatial = spatial }
      if !isLayered || slot.pointee.state.rank ?? 0 >= spatial { limits.temporal = temporal }
    }
    if let spatial = ceiling.spatial, source?.isLayered == false { limits.spatial = min(limits.spatial, spatial) }
    if let temporal = ceiling.temporal { limits.temporal = min(limits.temporal, temporal) }
    slot.pointee.layers.limit(to: limits)
  }
}

extension DownTrack {
  /// Sends something that the receiver does not need, on the slot's RTX stream: a copy of one of the last packets, else padding.
  /// - Parameter back: packets between the newest one and the copied one.
  /// - Returns: false when neither can be sent.
  func sendFiller(back: Int, now: Instant, into outbox: Outbox) -> Bool {
    if let source, let encoding,
      let index = slot.pointee.sourceIndex(slot.pointee.sourceSwitch.newest &- UInt16(back)),
      var packet = encoding.history?.packet(index), packet.length >= 300
    {
      if source.payload(packet.header.payloadType)?.codec == .vp8 { packet.readVP8() }
      if slot.pointee.retransmit(packet, as: .padding, now: now, into: outbox) { return true }
    }
    return slot.pointee.sendPadding(now: now, into: outbox)
  }

  /// It can carry fillers: on an RTX stream, with reports from the receiver.
  var takesFillers: Bool {
    slot.pointee.stream.numberExtension != 0 && description.rtxSSRC != 0 && slot.pointee.stream.paddingType != 255
  }
}
