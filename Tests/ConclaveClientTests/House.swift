import ConclaveServer
import Foundation
import Logging
import MediaModel
import Testing

@testable import ConclaveClient

/// A server on free ports, and its clients.
final class House {
  struct Resident {
    let client: CallClient
    let identity: DeviceIdentity
    private let rings: AsyncStream<String>

    init(_ client: CallClient, identity: DeviceIdentity) {
      self.client = client
      self.identity = identity
      let (rings, sink) = AsyncStream<String>.makeStream()
      self.rings = rings
      Task { for await event in client.events { if case .ring(let ring) = event { sink.yield(ring.id) } } }
    }

    /// The next call that rings.
    func ring() async throws -> String {
      for await ring in rings { return ring }
      throw SignalingError.disconnected
    }
  }

  let address: ServerAddress
  private let webAddress: ServerAddress
  private var server: Server?
  private let configuration: Configuration
  private let tokens: TokenAuthority

  init() async throws {
    var configuration = Configuration()
    configuration.state = NSTemporaryDirectory() + "conclave-client-tests-\(UUID().uuidString)"
    configuration.listen.address = "127.0.0.1"
    configuration.listen.stomp = 0
    configuration.listen.stompTLS = 0
    configuration.listen.http = 0
    configuration.media.port = 0
    configuration.media.workers = 1
    configuration.guests = true
    configuration.recordings = Configuration.Recordings()
    let server = try await Self.run(configuration)
    configuration.listen.stomp = ListenAddress(port: server.stompPort)
    self.configuration = configuration
    self.server = server
    address = ServerAddress(host: "127.0.0.1", port: server.stompPort, usesTLS: false)
    webAddress = ServerAddress(host: "127.0.0.1", port: server.httpPort, usesTLS: false, webSocketPath: "/stomp")
    tokens = TokenAuthority(secret: try StateFolder(configuration.state).secret(file: nil).secret)
  }

  private static func run(_ configuration: Configuration) async throws -> Server {
    try await Server(configuration, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
  }

  /// To the clients this is another process of the server: it knows only what is on the disk.
  func restart() async throws {
    await server?.stop()
    server = nil
    server = try await Self.run(configuration)
  }

  /// The server's web side, for recordings' files.
  var files: RecordingHTTP { RecordingHTTP(webAddress) }

  /// - Parameter isWeb: whether the client uses the WebSocket.
  func client(_ user: String, identity: DeviceIdentity? = nil, isWeb: Bool = false) async throws -> Resident {
    let identity = try identity ?? #require(DeviceIdentity(user: user, device: "phone"))
    let token = try tokens.mint(
      user: #require(UserID(user)), device: DeviceID("phone"), name: nil,
      expiresAt: Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000) + 600_000))
    let client = CallClient(server: isWeb ? webAddress : address, identity: identity, token: { token })
    let resident = Resident(client, identity: identity)
    try await client.connect()
    return resident
  }

  /// A guest of a call, as somebody who has opened a link of it.
  func guest(_ user: String, of call: String) async throws -> Resident {
    let identity = try #require(DeviceIdentity(user: user, device: "guest"))
    let folder = try StateFolder(configuration.state)
    let tokens = TokenAuthority(guestSecret: try folder.secret(file: nil, default: "guest-secret").secret)
    let token = try tokens.mint(
      user: #require(UserID(user)), device: DeviceID("guest"), name: "Ana", guestOf: CallID(call),
      expiresAt: Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000) + 600_000))
    let client = CallClient(server: address, identity: identity, token: { UserID.guestPrefix + token })
    let resident = Resident(client, identity: identity)
    try await client.connect()
    return resident
  }

  func close() async {
    await server?.stop()
    try? FileManager.default.removeItem(atPath: configuration.state)
  }
}

/// Waits until everyone has the same code and sends under the same epoch.
func expectAgreement(_ calls: [JoinedCall]) async throws {
  try await eventually {
    var codes: Set<String?> = []
    for call in calls { codes.insert(await call.code) }
    let epochs = Set(calls.map(\.cipher.sendingEpoch))
    guard codes.count == 1, codes.first != .some(nil), epochs.count == 1, let epoch = epochs.first ?? nil else {
      return false
    }
    // Everyone has joined before this epoch, so all are on its list.
    for call in calls where await call.snapshot?.members.flatMap(\.participants).count ?? 0 < calls.count {
      return false
    }
    // A device never opens its own frames.
    for sender in calls {
      for receiver in calls
      where receiver.participant != sender.participant && (try? open(seal("?", by: sender), by: receiver)) == nil {
        return false
      }
    }
    return epoch >= 2
  }
}

func eventually(_ condition: () async throws -> Bool) async throws {
  // Bounded by the suite's time limit.
  while try await !condition() { try await Task.sleep(for: .milliseconds(10)) }
}

func seal(_ text: String, by call: JoinedCall) throws -> [UInt8] { try call.cipher.seal(Array(text.utf8), track: 1) }

func open(_ frame: [UInt8], by call: JoinedCall) throws -> String {
  String(decoding: try call.cipher.openWhereItBelongs(frame).0, as: UTF8.self)
}
