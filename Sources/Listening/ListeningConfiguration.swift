import MediaModel

/// Where and how the server listens, for whatever front. The defaults are the protocol's (sections 1, 2 and 10).
package struct ListeningConfiguration: Sendable {
  /// The address on which to listen; nil for all of them, IPv4 and IPv6.
  package var host: String?
  /// The address of the HTTP port; nil is `host`.
  package var httpHost: String?
  /// 0 lets the system choose.
  package var httpPort = 8_080
  package var tls: TLSFiles?
  /// Whether the HTTP port speaks TLS if there is a certificate.
  package var httpUsesTLS = true

  package var origins = OriginPolicy.sameHost(also: [])
  /// How long a connection is kept after its last answer, so that the answer arrives.
  package var linger = Duration.seconds(5)
  /// How long an HTTP client may take for a request, or between two; if parts of a body are handed on as they come, for each part.
  package var httpTimeout = Duration.seconds(15)
  /// How often the certificate's files are checked for a change.
  package var choreInterval = Duration.seconds(5)

  package var limits = ListeningLimits()
  /// Addresses that many users share: reverse proxies.
  package var proxies = AddressList.loopback
  /// How long nothing is accepted when the system has no file for another connection.
  package var acceptPause = Duration.milliseconds(100)

  package init() {}
}

/// PEM files.
package struct TLSFiles: Sendable, Hashable {
  package var certificateChain: String
  package var privateKey: String

  package init(certificateChain: String, privateKey: String) {
    self.certificateChain = certificateChain
    self.privateKey = privateKey
  }
}

/// Limits of an address, and of all connections together (protocol section 10), in counts and bytes. The operator's `limits` have the same names.
package struct ListeningLimits: Sendable {
  package var connections = 20_000
  /// The connections from one address (an IPv6 /64), logged in or not. It does not apply to `proxies`.
  package var addressConnections = 10_000
  package var addressConnectionsBeforeLogin = 500
  /// HTTP requests from one address; the blocks of IPv6 count as in `AddressRates`. It does not apply to `proxies`.
  package var addressRequestsPerSecond = 100
  package var addressRequestBurst = 2_000
  /// Bodies of HTTP requests that a route gets as a whole.
  package var httpBody = 16 << 10

  package init() {}

  var admission: AdmissionTable.Limits {
    AdmissionTable.Limits(
      connections: connections, fromAddress: addressConnections, fromAddressBeforeLogin: addressConnectionsBeforeLogin)
  }
}
