import ConclaveClient

/// The calls to make, from the command line.
struct CallPlan: Sendable {
  var address: ServerAddress
  var calls: Int
  /// The participants of each call.
  var participants: Int
  /// The number of participants in each call that send, counted from the first.
  var publishers: Int
  var duration: Duration
  var joinTimeout: Duration
  /// nil without video.
  var videoKbps: Int?
  /// Users of other clients that are rung into the call.
  var guests: [String]
  /// Whether participants may lose the server, and come back.
  var outages: Bool
  /// The time between epochs while the members stay the same; nil for the server's own.
  var rotateMinutes: Int?
  /// How long the cost of a change is watched; nil: it is not measured.
  var costWindow: Duration?
  /// Between the last change and the measurement.
  var settleTime: Duration
  var threads: Int
  var serverProcess: Int32?

  var total: Int { calls * participants }
}
