import CallMessages
import Contract
import LinuxIO
import MediaModel
import NIOCore
import OutboundHTTP

/// The app's back end, as the server reaches it over HTTP: webhooks and the `authorize` hook.
final class BackEnd: Sendable {
  let webhooks: Webhooks?
  let authorizer: Authorizer?
  private let client: HTTPClient

  /// nil if the configuration names no back end.
  /// - Throws: `ConfigurationError` if a secret cannot be read, or there is no thread.
  init?(
    _ configuration: Configuration, answerTime: Duration, clock: WallClock, group: any EventLoopGroup
  ) throws(ConfigurationError) {
    guard configuration.webhooks != nil || configuration.authorize != nil else { return nil }
    let hook = try configuration.webhooks?.secret?.bytes("webhooks", minimum: 32)
    let own = try configuration.authorize?.secret?.bytes("authorize", minimum: 32)
    let client: HTTPClient
    do throws(SystemError) {
      // Webhooks to a server that hangs leave as many connections to the questions.
      client = try HTTPClient(hostConnections: 2 * WebhookQueue.parallel)
    } catch {
      throw ConfigurationError("webhooks, authorize: \(error)")
    }
    self.client = client
    webhooks = configuration.webhooks.map {
      Webhooks(
        SignedRequests(client: client, url: $0.url, secret: hook ?? [], clock: clock), events: $0.events,
        loop: group.next())
    }
    authorizer = configuration.authorize.map {
      Authorizer(SignedRequests(client: client, url: $0.url, secret: own ?? hook ?? [], clock: clock), time: answerTime)
    }
  }

  /// Asks, and passes the answer to `done`.
  /// - Parameter traceparent: the header of this name.
  func ask(
    _ action: Question.Action, from: UserID, to: [UserID], traceparent: String?,
    done: @escaping @Sendable (Authorizer.Answer) -> Void
  ) {
    guard let authorizer else { return done(.init(allowed: [], source: .failure)) }
    Task { done(await authorizer.allowed(action, from: from, to: to, traceparent: traceparent)) }
  }

  /// Stops the client; pending posts are lost.
  func stop() { client.stop() }
}
