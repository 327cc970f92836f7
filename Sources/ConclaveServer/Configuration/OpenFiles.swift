import Glibc

/// Files that this process may have open, and how many of them are for clients' signaling connections.
struct OpenFiles {
  /// The database and its log, listeners, epoll, the back end's connections, and some spare ones.
  private static let others = 128
  /// Files of a media worker in addition to its TCP connections.
  private static let ofWorker = 10
  private static let tcpOfWorker = 2_048

  let limit: Int

  init(limit: Int) { self.limit = limit }

  /// Raises the limit as far as the system allows, because each client is a file.
  static func raised() -> OpenFiles {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return OpenFiles(limit: 1_024) }
    limit.rlim_cur = limit.rlim_max
    _ = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return OpenFiles(limit: 1_024) }
    return OpenFiles(limit: Int(clamping: limit.rlim_cur))
  }

  /// How many of the `wanted` signaling connections are possible beside media. Media over TCP gets a quarter if there are too few for all.
  func connections(wanted: Int, workers: Int, tcp: Bool) -> Int {
    let rest = max(0, limit - Self.others - Self.ofWorker * workers)
    let media = tcp ? min(Self.tcpOfWorker * workers, rest / 4) : 0
    return max(1, min(wanted, rest - media))
  }
}
