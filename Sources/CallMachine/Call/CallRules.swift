import CallMessages
import Contract
import MediaModel

/// A call's policy with its defaults filled in and its limits checked (protocol section 4).
struct CallRules {
  var invite: Policy.Invite
  var whenBusy: Policy.WhenBusy
  var ringTime: Duration
  var screens: Int
  /// nil: the default, which depends on who was invited (rule 9).
  var aloneTime: Duration?
  var awayTime: Duration
  /// nil: no limit.
  var connectTime: Duration?
  var lifetime: Duration
  var rotationTime: Duration
  var codecs: [String]
  /// nil: as the server allows it.
  var record: Policy.Record?
  /// As in the call's state: the first four always, the others if `start` named them.
  var shown: Policy

  init(_ policy: Policy, defaultCodecs: [String]) throws(RequestError) {
    func checked(_ value: Int?, _ name: String, _ range: ClosedRange<Int>) throws(RequestError) -> Int? {
      guard let value, !range.contains(value) else { return value }
      throw RequestError(
        .requestInvalid, "\(name) is \(range.lowerBound) to \(range.upperBound)", field: "policy.\(name)")
    }
    invite = policy.invite ?? .members
    whenBusy = policy.whenBusy ?? .ring
    let ringSeconds = try checked(policy.ringSeconds, "ringSeconds", 5...120) ?? 30
    ringTime = .seconds(ringSeconds)
    screens = try checked(policy.screens, "screens", 0...16) ?? 1
    aloneTime = try checked(policy.aloneSeconds, "aloneSeconds", 0...86_400).map { .seconds($0) }
    awayTime = .seconds(try checked(policy.awaySeconds, "awaySeconds", 0...86_400) ?? 300)
    let connectSeconds = try checked(policy.connectSeconds, "connectSeconds", 0...3_600) ?? 0
    connectTime = connectSeconds == 0 ? nil : .seconds(connectSeconds)
    lifetime = .seconds(3_600 * (try checked(policy.maxHours, "maxHours", 1...168) ?? 24))
    rotationTime = .seconds(60 * (try checked(policy.rotateMinutes, "rotateMinutes", 1...1_440) ?? 10))
    codecs = policy.codecs ?? defaultCodecs
    record = policy.record
    guard (1...16).contains(codecs.count), codecs.allSatisfy({ (1...32).contains($0.utf8.count) }) else {
      throw RequestError(.requestInvalid, "codecs is a list of 1 to 16 codec names", field: "policy.codecs")
    }
    shown = policy
    shown.invite = invite
    shown.whenBusy = whenBusy
    shown.ringSeconds = ringSeconds
    shown.screens = screens
  }
}
