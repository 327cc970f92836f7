import MediaModel

/// The layer that a slot shows.
extension DownTrack {
  /// The receiver wishes pictures of this height in pixels; nil for the highest.
  /// - Returns: the encoding whose key frame is needed for it; nil if none is needed.
  func setMaxHeight(_ height: Int?) -> Encoding? {
    guard height != slot.pointee.layers.maxHeight else { return nil }
    slot.pointee.layers.wish(height)
    return wishChanged()
  }

  /// The receiver gets no more than this of the source.
  /// - Returns: as `setMaxHeight`.
  func setCeiling(_ new: LayerCeiling) -> Encoding? {
    guard new != ceiling else { return nil }
    ceiling = new
    limitLayers()
    return wishChanged()
  }

  private func wishChanged() -> Encoding? {
    if let next = chooseLayer() { return next }
    guard slot.pointee.layers.needsKeyFrame else { return nil }
    noteAwaiting()
    return encoding
  }

  /// Chooses the layer again, after a change of the wish or of the layers that flow.
  /// - Returns: the encoding whose key frame is needed now; nil if none is needed.
  func chooseLayer() -> Encoding? {
    guard let source, source.isLayered, let encoding else { return nil }
    guard let wanted = source.layer(for: slot.pointee.layers.maxHeight, within: ceiling) else { return nil }
    // If the path has no room for the wish, the lower layers must be sent, too, so that the best one that fits can be
    // found.
    let lowest = rateAllotment == .everything ? wanted.rank : 0
    claim(source.encodings[lowest...wanted.rank])
    guard !slot.pointee.state.isWithheld else { return nil }
    let best = source.liveEncoding(near: allotted(wanted, of: source))
    guard best !== encoding else {
      expect(nil)
      return nil
    }
    if slot.pointee.state.isRunning {
      guard best !== next else { return nil }
      expect(best)
    } else {
      expect(nil)
      show(best, insteadOf: encoding, of: source)
      noteAwaiting()
    }
    return best
  }

  /// The key frame of the layer that it waits for has come.
  func takeNext() {
    guard let source, let encoding, let next else { return }
    show(next, insteadOf: encoding, of: source)
  }

  /// Notes which layers the receiver should get.
  func claim(_ layers: ArraySlice<Encoding>) {
    guard !layers.elementsEqual(claimed, by: ===) else { return }
    for layer in claimed { layer.claims -= 1 }
    claimed = layers
    for layer in layers { layer.claims += 1 }
  }

  /// Switches to `layer` at its next key frame, or stays with the current layer.
  func expect(_ layer: Encoding?) {
    let old = next
    guard layer !== old else { return }
    old?.forget(self)
    slot.pointee.state.expect(layer?.rank)
    layer?.expect(self)
    limitLayers()
  }

  private func show(_ new: Encoding, insteadOf old: Encoding, of source: UpTrack) {
    let difference = source.timestampDifference(from: new, to: old)
    detach()
    slot.pointee.state.show(rank: new.rank, difference: difference)
    attach(to: new)
  }

  /// The slot gets the packets of `encoding` from now on.
  func attach(to encoding: Encoding) {
    slot.pointee.layers.read(by: encoding.frames)
    slot.pointee.source.isKept = encoding.history != nil
    limitLayers()
    encoding.add(self)
  }

  /// The slot gets no more packets of its encoding.
  func detach() {
    forgetWaiting()
    encoding?.remove(self)
    slot.pointee.layers.read(by: nil)
  }
}
