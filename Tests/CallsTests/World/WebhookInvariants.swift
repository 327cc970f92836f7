import Contract
import MediaModel

@testable import Calls

/// The app's back end is told all that the service's topics carry, in order for a call (protocol section 11).
struct WebhookInvariants {
  let verdict: Verdict
  private var begun: Set<CallID> = []
  private var ended: Set<CallID> = []
  /// The users whose devices are to be woken.
  private var pushed: [CallID: Set<UserID>] = [:]

  init(_ verdict: Verdict) { self.verdict = verdict }

  mutating func check(_ step: WorldStep, _ told: [EventInvariants.Told], service: SessionID?) {
    var posted: [EventMessage] = []
    var published: [EventMessage] = []
    for effect in step.effects {
      switch effect {
      case .webhook(let channel, let event):
        posted.append(event)
        if channel == .serviceCalls { follow(event) }
        if channel == .servicePush { followPush(event) }
      case .publish(let session, .serviceCalls, _, let event), .publish(let session, .servicePush, _, let event),
        .publish(let session, .serviceReports, _, let event):
        if session == service { published.append(event) }
      default: break
      }
    }
    if service != nil {
      verdict.require(.webhooksTell, posted == published, "the service's topics and the webhooks differ")
    }
    for event in told where event.message.body.isForServices && event.message.at == step.now {
      // The rings of several may end alike.
      verdict.require(.webhooksTell, posted.contains(event.message), "\(event.message.body.name) was not posted")
    }
    for id in step.gone {
      verdict.require(.webhooksTell, ended.contains(id), "the end of a call was not posted")
      verdict.require(.webhooksTell, pushed.removeValue(forKey: id)?.isEmpty ?? true, "a push is not cancelled")
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
