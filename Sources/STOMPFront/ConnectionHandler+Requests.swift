import CallMessages
import Connections
import Contract
import Listening
import MediaModel
import NIOCore
import Octets
import STOMP

/// Requests in.
extension ConnectionHandler {
  /// The client wants to subscribe to a topic of the control plane, which answers. Once for each: a second answer would be taken for the next question's.
  func ask(_ subscription: Subscription, _ destination: Destination?) {
    guard maySubscribe() else { return }
    if case .channel(let channel) = destination {
      submit(.subscribe(id, channel, as: subscription.mode))
    }
  }

  /// - Parameter destination: nil for a topic of the control plane, which has known the subscription since it was
  ///   asked.
  func subscribed(_ subscription: Subscription, _ destination: Destination?) {
    switch destination {
    case .channel(let channel):
      guard channel.isOwn, maySubscribe() else { return }
      submit(.subscribe(id, channel, as: subscription.mode))
    case .ownQueue(let name):
      guard maySubscribe(), let user else { return }
      subscribe(subscription, to: .user(user, name))
    case .app(let address):
      guard maySubscribe() else { return }
      subscribe(subscription, to: address)
    case .request, .userQueue, nil: break
    }
  }

  /// Kept events are delivered to each new subscription, so repeated subscribing costs as much as requests do.
  private func maySubscribe() -> Bool {
    guard rate.take(now: now) == nil else {
      perform(session.fail(Violation(.limit, "too many subscriptions in a short time")))
      return false
    }
    guard let share else { return true }
    guard share.debt(now: now) == nil else {
      services.counters.drop(.userEventsFull)
      perform(session.fail(Violation(.limit, "this user's requests caused too much: wait some seconds")))
      return false
    }
    share.owe(1, now: now)
    guard shareUse.subscribe() else {
      services.counters.drop(.userSubscriptionsFull)
      perform(session.fail(Violation(.limit, "this user has too many subscriptions: end some on another connection")))
      return false
    }
    return true
  }

  func unsubscribed(_ subscription: Subscription) {
    shareUse.unsubscribe()
    guard case .channel(let channel) = Destination(subscription.destination) else {
      return unsubscribe(subscription.key)
    }
    // The control plane knows one subscription to each channel.
    if !session.subscriptions.contains(where: { $0.destination == subscription.destination }) {
      submit(.unsubscribe(id, channel))
    }
  }

  /// A SEND to `/app/…`: the sink gets the request, or the client an error reply.
  func request(_ frame: Frame, _ path: ArraySlice<Substring>) {
    services.counters.update { $0.requests += 1 }
    if let wait = rate.take(now: now) { return refuse(frame, .rateLimited, wait) }
    if let wait = share?.debt(now: now) { return refuse(frame, .userEventsFull, wait) }
    // A body costs its parsing, whatever its contents.
    if let wait = share?.take(1 + frame.body.readableBytes >> 12, now: now) {
      return refuse(frame, .userRateLimited, wait)
    }
    do throws(RequestError) {
      guard let requestID = requestID(of: frame) else {
        throw RequestError(.requestInvalid, "the header request-id must have 1 to 64 bytes", field: "request-id")
      }
      let reader = RequestReader(
        keysBody: configuration.limits.keysBody, body: configuration.limits.body)
      let request = try reader.request(path, frame.body)
      if request.weight > 0, let wait = share?.take(request.weight, now: now) {
        return refuse(frame, .userRateLimited, wait)
      }
      submit(.request(id, id: requestID, request))
    } catch {
      services.counters.drop(.invalidRequest)
      refuse(frame, error)
    }
  }

  /// One request too many. A client that continues regardless is read more slowly, because each refusal costs something,
  /// too.
  private func refuse(_ frame: Frame, _ reason: SignalingStatistics.Drop, _ wait: UInt64) {
    services.counters.drop(reason)
    refuse(frame, .tooManyRequests(wait))
    if let wait = share?.refuse(now: now) { pause(for: wait) }
  }

  private func refuse(_ frame: Frame, _ error: RequestError) {
    reply(to: requestID(of: frame), EncodedReply(.failed(error), to: id, services.log))
  }

  private func requestID(of frame: Frame) -> String? {
    guard let text = frame.headers["request-id"], (1...64).contains(text.utf8.count) else { return nil }
    return text
  }
}
