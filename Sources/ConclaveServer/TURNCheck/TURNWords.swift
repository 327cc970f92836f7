import MediaModel

/// The result of one server's check as a line for the operator: the failure and its remedy.
struct TURNWords: Sendable {
  let line: String
  let isGood: Bool

  /// A URL that no client of ours uses: DTLS.
  static func untried(_ url: String) -> TURNWords {
    TURNWords(
      line: "\(url): not tried: browsers take turn: over UDP or TCP, and turns: over TCP; change or remove it",
      isGood: false)
  }

  private init(line: String, isGood: Bool) {
    self.line = line
    self.isGood = isGood
  }

  init(_ url: TURNServerURL, _ result: TURNConnection.Result) {
    if case .ended(.answers) = result {
      self.init(line: "\(url.text): good: it tells clients their address", isGood: true)
    } else if case .ended(.relays(let address, let refused)) = result, refused.isEmpty {
      self.init(line: "\(url.text): good: it relays from \(address.candidateAddress)", isGood: true)
    } else {
      self.init(line: "\(url.text): \(Self.problem(result, url))", isGood: false)
    }
  }

  private static func problem(_ result: TURNConnection.Result, _ url: TURNServerURL) -> String {
    switch result {
    case .silence:
      "no answer: open \(url.portName) to everybody in the firewall and the NAT, and see that coturn runs and listens there"
    case .closed: "closed without an answer: see coturn's log, and its limits (user-quota, total-quota)"
    case .refused:
      "connection refused: nothing listens on \(url.portName); start coturn, or correct the port in turn.urls"
    case .noHost: "there is no host \(url.host): correct turn.urls, or the name in the DNS"
    case .other(isHTTP: true):
      "a web server answers there: let the proxy pass the name \(url.host) on to coturn (by SNI), or give coturn an address of its own"
    case .other: "what answers there is no TURN server: correct turn.urls, or what the proxy passes on"
    case .tlsFailed(let words): problem(ofTLS: words, url)
    case .failed(let words): words
    case .ended(let outcome): problem(outcome, url)
    }
  }

  private static func problem(ofTLS words: String, _ url: TURNServerURL) -> String {
    let isUntrusted = ["CERTIFICATE_VERIFY", "failedToValidateHostname", "unableToValidateCertificate"].contains {
      words.contains($0)
    }
    guard isUntrusted else {
      return "TLS failed (\(words)): set cert, pkey and tls-listening-port of coturn, and remove no-tls"
    }
    return
      "its certificate is not trusted for \(url.host): it has expired, is for another name, or lacks its chain (cert is fullchain.pem); renew it and restart coturn"
  }

  private static func problem(_ outcome: TURNConversation.Outcome, _ url: TURNServerURL) -> String {
    switch outcome {
    case .answers: "it tells addresses and does not relay"
    case .isOther: "what answers there is no TURN server: correct turn.urls"
    case .relays(_, let refused): refusal(of: refused)
    case .refuses(let code, let knowsCredentials): refusal(code, knowsCredentials: knowsCredentials)
    }
  }

  /// Errors of a permission (RFC 8656 section 9).
  private static func refusal(of peers: [TURNConversation.Refusal]) -> String {
    let addresses = peers.map(\.peer.candidateAddress).joined(separator: ", ")
    let codes = Set(peers.map(\.code)).sorted().map(String.init).joined(separator: ", ")
    let remedy = peers.map { "allowed-peer-ip=\($0.peer.candidateAddress)" }.joined(separator: " and ")
    return
      "it does not relay to the media ports on \(addresses) (\(codes)): add \(remedy) to coturn, or name the right addresses in media.announce"
  }

  /// Errors of an allocation (RFC 8656 section 7.2, RFC 8489 section 14.8).
  private static func refusal(_ code: Int, knowsCredentials: Bool) -> String {
    switch code {
    case 401 where knowsCredentials:
      "it refuses the credentials (401): turn.secretFile and coturn's static-auth-secret differ, or the machines' clocks do"
    case 401, 400: "it asks for no credentials that it could check (\(code)): set use-auth-secret and realm of coturn"
    case 403: "it forbids allocations (403): see its allowed and denied addresses"
    case 437, 486: "it has no allocation left for this user (\(code)): raise user-quota of coturn"
    case 442: "it does not relay UDP (442): remove no-udp-relay of coturn"
    case 508:
      "it has no relay port left (508): widen min-port to max-port, and see that relay-ip is an address of its machine"
    default: "it refuses an allocation (\(code)): see coturn's log"
    }
  }
}
