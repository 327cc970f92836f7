import CallMessages
import Contract
import MediaModel

/// The app's back end gets everything that the service's topics carry, in order for each call (protocol section 11).
struct WebhookInvariants {
  let verdict: Verdict
  private var begun: Set<CallID> = []
  private var ended: Set<CallID> = []
  /// The users whose devices should be woken.
  private var pushed: [CallID: Set<UserID>] = [:]
  /// The number of participants from which on changes of members may wait.
  private let crowd: Int
  private var changes: [CallID: ChangeQueue] = [:]
  private var number = 0

  init(_ verdict: Verdict, crowd: Int) {
    self.verdict = verdict
    self.crowd = crowd
  }

  /// Waiting changes are never told.
  mutating func restart() { changes = [:] }

  mutating func check(_ step: WorldStep, _ told: [EventInvariants.Told], service: SessionID?) {
    var posted: [EventMessage] = []
    var published: [EventMessage] = []
    for effect in step.effects {
      switch effect {
      case .webhook(let channel, let event):
        posted.append(event)
        if channel == .serviceCalls { follow(event) }
        if channel == .servicePush { followPush(event) }
      case .client(.publish(let session, .serviceCalls, _, let event)),
        .client(.publish(let session, .servicePush, _, let event)),
        .client(.publish(let session, .serviceReports, _, let event)):
        if session == service { published.append(event) }
      default: break
      }
    }
    if service != nil {
      verdict.require(.webhooksTell, posted == published, "the service's topics and the webhooks differ")
    }
    checkChanges(posted, step)
    for event in told where event.message.body.isForServices && event.message.at == step.now {
      // Each device has its own part of the waiting changes.
      guard event.message.body.memberChanges.isEmpty else { continue }
      // The rings of several users may end in the same way.
      verdict.require(.webhooksTell, posted.contains(event.message), "\(event.message.body.name) was not posted")
    }
    for id in step.gone {
      verdict.require(.webhooksTell, ended.contains(id), "the end of a call was not posted")
      verdict.require(.webhooksTell, pushed.removeValue(forKey: id)?.isEmpty ?? true, "a push is not cancelled")
    }
  }

  /// Each change of a member is posted once and in order.
  private mutating func checkChanges(_ posted: [EventMessage], _ step: WorldStep) {
    number += 1
    for id in step.gone { changes[id] = nil }
    for id in Set(step.changed).union(changes.keys) {
      var queue = changes[id] ?? ChangeQueue()
      queue.add(step.memberChanges(of: id), step: number, at: step.now)
      for event in posted where event.call == id {
        for change in event.body.memberChanges {
          verdict.require(.webhooksTell, queue.hear(change.member), "a change is posted in the wrong place, or again")
        }
      }
      verdict.require(
        .webhooksTell, step.mayWait(id, crowd: crowd) ? !queue.isLate(now: step.now) : !queue.isOwed,
        "a change of \(id.text) was not posted")
      changes[id] = queue
    }
  }

  private mutating func follow(_ event: EventMessage) {
    guard let id = event.call else { return }
    switch event.body {
    case .state(let state):
      verdict.require(.webhooksTell, begun.insert(id).inserted && state.metadata == nil, "a call begins twice")
    case .ended: verdict.require(.webhooksTell, ended.insert(id).inserted, "a call ends twice")
    case .ring(let ring):
      verdict.require(.webhooksTell, ring.metadata == nil && ring.envelope == nil, "a ring says too much")
      fallthrough
    default:
      verdict.require(
        .webhooksTell, begun.contains(id) && !ended.contains(id), "\(event.body.name) before a call or after it")
    }
  }

  private mutating func followPush(_ event: EventMessage) {
    guard let id = event.call else { return }
    switch event.body {
    case .pushRing(let ring):
      verdict.require(.webhooksTell, pushed[id, default: []].insert(ring.user).inserted, "a ring is pushed twice")
    case .pushCancel(let cancel):
      verdict.require(.webhooksTell, pushed[id]?.remove(cancel.user) != nil, "a push is cancelled that was not sent")
    default: break
    }
  }
}
