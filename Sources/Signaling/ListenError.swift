import Glibc
import NIOCore

/// Why the server cannot listen, in words for the operator.
package struct ListenError: Error, CustomStringConvertible {
  package var description: String

  /// A port that cannot be opened.
  init(_ error: any Error, host: String?, port: Int) {
    let code = (error as? IOError)?.errnoCode
    let reason = code.map { String(cString: strerror($0)) } ?? "\(error)"
    let advice =
      switch code {
      case EADDRINUSE: "is another server running? listen.* sets the ports"
      case EACCES: "ports below 1024 are for root or who has CAP_NET_BIND_SERVICE; listen.* sets the ports"
      case EADDRNOTAVAIL: "listen.address is to be one of this machine's own"
      default: "check listen.*"
      }
    description = "port \(port) of \(host ?? "all addresses") cannot be opened: \(reason); \(advice)"
  }

  /// A certificate that cannot be used.
  init(_ error: any Error, _ files: SignalingServer.Configuration.TLS) {
    description =
      "tls: \(files.certificateChain) and \(files.privateKey) cannot be used (\(error)); take PEM files that this user may "
      + "read, the certificate's chain and the key that fits it"
  }
}
