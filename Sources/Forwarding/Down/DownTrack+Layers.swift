import MediaModel

/// The layer that a slot shows.
extension DownTrack {
  /// The receiver wishes pictures of this height in pixels; nil for the highest.
  /// - Returns: the encoding whose key frame is needed for it; nil if none is needed.
  func setMaxHeight(_ height: Int?) -> Encoding? {
    guard height != stream.pointee.maxHeight else { return nil }
    stream.pointee.maxHeight = height
    stream.pointee.chooseTarget()
    if let next = chooseLayer() { return next }
    guard stream.pointee.needsKeyFrame else { return nil }
    noteAwaiting()
    return encoding
  }

  /// Chooses the layer again, after a change of the wish or of the layers that flow.
  /// - Returns: the encoding whose key frame is needed now; nil if none is needed.
  func chooseLayer() -> Encoding? {
    guard let source, source.isLayered, let encoding else { return nil }
    guard let wanted = source.layer(for: stream.pointee.maxHeight) else { return nil }
    // If the path has no room for the wish, the lower layers must be sent, too, so that the best one that fits can be
    // found.
    let lowest = rateAllotment == .everything ? wanted.rank : 0
    claim(source.encodings[lowest...wanted.rank])
    guard !stream.pointee.isWithheld else { return nil }
    let best = source.liveEncoding(near: allotted(wanted, of: source))
    guard best !== encoding else {
      goOver(to: nil)
      return nil
    }
    if stream.pointee.sourceSwitch.isRunning {
      guard best !== next else { return nil }
      goOver(to: best)
    } else {
      goOver(to: nil)
      stream.pointee.sourceSwitch.changeLayer(source.timestampDifference(from: best, to: encoding))
      show(best)
      noteAwaiting()
    }
    return best
  }

  /// The key frame of the layer that it waits for has come.
  func takeNext() {
    guard let source, let old = encoding, let new = next else { return }
    next = nil
    setLimit(false)
    stream.pointee.sourceSwitch.changeLayer(source.timestampDifference(from: new, to: old))
    show(new)
  }

  /// Notes which layers the receiver should get.
  func claim(_ layers: ArraySlice<Encoding>) {
    guard !layers.elementsEqual(claimed, by: ===) else { return }
    for layer in claimed { layer.claims -= 1 }
    claimed = layers
    for layer in layers { layer.claims += 1 }
  }

  /// Switches to `layer` at its next key frame, or stays with the current layer. On the way down the lowest temporal layer is enough, so that the
  /// rate falls at once.
  func goOver(to layer: Encoding?) {
    guard layer !== next else { return }
    next?.forget(self)
    next = layer
    layer?.expect(self)
    setLimit(layer.map { $0.rank < encoding?.rank ?? 0 } ?? false)
  }

  func setLimit(_ isLimited: Bool) {
    guard isLimited != stream.pointee.isLimited else { return }
    stream.pointee.isLimited = isLimited
    stream.pointee.chooseTarget()
  }

  /// Shows `new` from now on: the slot gets its packets.
  func show(_ new: Encoding?) {
    forgetWaiting()
    encoding?.remove(self)
    encoding = new
    stream.pointee.frames = new?.frames
    stream.pointee.isKept = new?.history != nil
    stream.pointee.selector = nil
    limitTargets()
    new?.add(self)
  }
}
