import Contract
import LinuxIO
import OutboundHTTP

/// POSTs to push services, each over a separate connection to an address that was looked up and checked just before. Redirects are not followed, and only the status
/// of an answer is used.
final class PushPost: Sendable {
  enum Failure: String, Error, CaseIterable {
    /// The push service no longer knows the subscription.
    case gone
    /// It will not accept the push, however often it is sent.
    case refused
    /// It asked to retry later, or failed itself.
    case busy
    /// The name resolves to an address to which the server does not connect.
    case address
    /// No address, no connection, no TLS, or no readable answer.
    case unreachable
    case timeout
    /// The content cannot be encrypted for the subscription.
    case key

    var mayPass: Bool { [.busy, .unreachable, .timeout].contains(self) }
  }

  private static let timeout = Duration.seconds(10)

  private let addresses: PushAddresses
  private let client: HTTPClient

  /// - Parameter trust: a PEM file of authorities that are trusted in addition to the system's.
  /// - Throws: `SystemError` if it cannot be read, or there is no thread.
  init(addresses: PushAddresses, trust: String?) throws(SystemError) {
    self.addresses = addresses
    client = try HTTPClient(hostConnections: PushQueue.parallel, trust: trust)
  }

  func stop() { client.stop() }

  func post(_ body: [UInt8], to endpoint: PushEndpoint, headers: [(String, String)]) async throws(Failure) {
    let request = HTTPClient.Request(
      url: endpoint.origin + endpoint.target, body: body, headers: headers, timeout: Self.timeout, maximumBody: 0,
      connection: .own { [addresses] in addresses.includes($0) })
    let status: Int
    do throws(HTTPClient.Failure) {
      status = try await client.send(request).status
    } catch {
      switch error {
      case .address: throw .address
      case .timeout: throw .timeout
      case .tooLong, .unreachable, .full, .cancelled, .stopped: throw .unreachable
      }
    }
    try Self.check(status)
  }

  static func check(_ status: Int) throws(Failure) {
    switch status {
    case 200..<300: return
    case 404, 410: throw .gone
    case 408, 425, 429, 500...: throw .busy
    default: throw .refused
    }
  }
}
