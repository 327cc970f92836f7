import ConclaveClient
import Paths

/// The calls to make, from the command line.
struct CallPlan: Sendable {
  /// The events of the calls while media flows.
  enum Course: Sendable {
    case steady
    /// Participants of the last half leave and join again, at this rate.
    case churn(perSecond: Double)
    /// Participants join in groups of this size, until a condition holds.
    case ramp(step: Int, until: [Condition])
    /// All lose their connections at the same time.
    case storm
  }

  enum Target: Sendable {
    case conclave(ServerAddress)
    /// The address of Janus's HTTP API.
    case janus(String)
  }

  var scenario = Scenario.meeting
  var target: Target
  var calls: Int
  /// The participants of each call; for a ramp, the most.
  var participants: Int
  /// The number of participants in each call that send, counted from the first.
  var publishers: Int
  var course = Course.steady
  /// The duration of the measurement, or of each step.
  var duration: Duration
  var joinTimeout: Duration
  /// Joins per second; nil: all at once.
  var joinRate: Double?
  /// nil without video.
  var videoKbps: Int?
  /// Cameras send layers; `videoKbps` is the highest one's rate.
  var isLayered = false
  /// The impairment of `impairedShare` of the participants' paths, in both directions.
  var impairment: Impairment?
  var impairedShare = 1.0
  /// Whether participants report what arrives.
  var isReporting = false
  /// Seeds the random numbers of the impairments.
  var seed: UInt64 = 0
  /// Users of other clients that are rung into the call.
  var guests: [String] = []
  /// Whether participants may lose the server, and come back.
  var outages = false
  /// The time between epochs while the members stay the same; nil for the server's default.
  var rotateMinutes: Int?
  /// How long the cost of a change is measured; nil: not at all.
  var costWindow: Duration?
  /// The time between the last change and the measurement.
  var settleTime = Duration.zero
  var threads = 1
  var serverProcess: Int32?

  var total: Int { calls * participants }

  var isRamp: Bool { if case .ramp = course { true } else { false } }

  /// Whether the participant of this index, over all calls, has a bad path. They are spread evenly.
  func isImpaired(_ index: Int) -> Bool {
    impairment != nil && Int(Double(index + 1) * impairedShare) > Int(Double(index) * impairedShare)
  }

  /// Whether the participant of this index leaves and joins again. The first of a call stays.
  func churns(_ index: Int) -> Bool {
    guard case .churn = course else { return false }
    return index % participants >= participants - participants / 2
  }
}
