import ConclaveClient

/// A STOMP server under measurement.
struct MeasuredBroker {
  enum Credentials {
    /// Each connection has its own user and token.
    case each([TokenSource.Account])
    /// All connections have the same login.
    case same(BrokerAddress.Credentials)
  }

  var address: BrokerAddress
  /// nil: its CPU and memory are not measured.
  var process: Int32?
  var credentials: Credentials

  /// The CONNECT frame of the connection of this number.
  func connectFrame(_ number: Int) -> [UInt8] {
    // Heart-beats would add load. "/" is RabbitMQ's default virtual host; Conclave takes any.
    var text = "CONNECT\naccept-version:1.2\nhost:/\nheart-beat:0,0\n"
    switch credentials {
    case .each(let accounts): text += "passcode:\(accounts[number].token)\n"
    case .same(let one): text += "login:\(one.login)\npasscode:\(one.passcode)\n"
    }
    return Array((text + "\n\0").utf8)
  }
}

/// The address of a broker, without TLS, and its login if it has no tokens.
struct BrokerAddress: Hashable {
  struct Credentials: Hashable { var login, passcode: String }

  var host: String
  var port: UInt16
  var credentials: Credentials?

  /// Reads `stomp://[LOGIN:PASSCODE@]HOST[:61613]`.
  init?(_ url: String) {
    guard url.hasPrefix("stomp://") else { return nil }
    var rest = url.dropFirst("stomp://".count)
    if let at = rest.lastIndex(of: "@") {
      let parts = rest[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, !parts[0].isEmpty, !parts[1].contains(where: \.isNewline) else { return nil }
      credentials = Credentials(login: String(parts[0]), passcode: String(parts[1]))
      rest = rest[rest.index(after: at)...]
    }
    guard let address = ServerAddress("stomp://" + rest), let port = UInt16(exactly: address.port) else { return nil }
    host = address.host
    self.port = port
  }
}
