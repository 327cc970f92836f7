import MediaModel

/// The simulcast layers that a track's sender should encode: those that some receiver gets or waits for, and for a while those that a receiver
/// has left.
struct LayerDemand {
  /// Demand for a layer is reported at once, the end of demand only after this time, because restarting an encoder costs a
  /// key frame.
  static let patience = Duration.seconds(5)

  /// A sender begins with all layers.
  private(set) var active: [Bool]
  private var unwantedSince: [Instant?]

  init(layers: Int) {
    active = .init(repeating: true, count: layers)
    unwantedSince = .init(repeating: nil, count: layers)
  }

  /// When an unwanted layer will be dropped; nil if none is due.
  var deadline: Instant? {
    zip(active, unwantedSince).compactMap { isActive, since in
      isActive ? since?.advanced(by: Self.patience) : nil
    }.min()
  }

  /// Whether `active` changed.
  /// - Parameter wanted: for each layer, the lowest first.
  mutating func update(_ wanted: [Bool], now: Instant) -> Bool {
    let before = active
    for layer in active.indices {
      if wanted[layer] {
        active[layer] = true
        unwantedSince[layer] = nil
      } else if active[layer] {
        let since = unwantedSince[layer] ?? now
        unwantedSince[layer] = since
        if since.duration(to: now) >= Self.patience { active[layer] = false }
      }
    }
    return active != before
  }
}
