import Contract
import LinuxIO
import MediaModel
import NIOCore
import NIOPosix

/// Tries each server that clients are told, as a client would, with its own credentials.
struct TURNCheck {
  /// The user in the credentials' name; coturn's log shows it.
  private static let user = UserID("check-turn")
  private static let limit = TimeAmount.seconds(8)

  private let urls: [String]
  private let credentials: TURNConversation.Credentials?
  private let peers: [MediaModel.SocketAddress]
  private let trust: String?

  /// - Parameter trust: a PEM file of authorities to trust in addition to the system's.
  /// - Throws: `ConfigurationError` if the configuration names no server, or one whose secret cannot be read.
  init(_ configuration: Configuration, trust: String?, now: Timestamp) throws(ConfigurationError) {
    guard let turn = configuration.turn, let user = Self.user else {
      throw ConfigurationError("turn: the configuration names no TURN server; docs/deploy.md has a recipe")
    }
    urls = turn.urls
    let told = try TURNCredentials(turn).ice(for: user, now: now).servers.first { $0.username != nil }
    credentials = told.flatMap { server in
      guard let name = server.username, let password = server.credential else { return nil }
      return TURNConversation.Credentials(name: name, password: password)
    }
    let announced = try AnnouncedAddresses(configuration.media.announce).configured
    peers = announced.isEmpty ? hostAddresses().filter { !$0.isLinkLocal && !$0.isLoopback } : announced
    self.trust = trust
  }

  /// - Returns: a line for each URL, in order, and whether it works.
  func run() async -> [(line: String, isGood: Bool)] {
    let group = MultiThreadedEventLoopGroup.singleton
    let words = await withTaskGroup(of: (Int, TURNWords).self) { tasks in
      for (index, text) in urls.enumerated() {
        tasks.addTask {
          guard let url = TURNServerURL(text) else { return (index, .untried(text)) }
          let connection = TURNConnection(url: url, trust: trust, limit: Self.limit)
          let conversation = TURNConversation(url.isTURN ? credentials : nil, peers: peers)
          return (index, TURNWords(url, await connection.converse(conversation, on: group.next())))
        }
      }
      var found: [Int: TURNWords] = [:]
      for await (index, words) in tasks { found[index] = words }
      return found.sorted { $0.key < $1.key }.map(\.value)
    }
    return words.map { ($0.line, $0.isGood) }
  }
}
