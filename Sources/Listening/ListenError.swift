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
      case EACCES: "ports below 1024 need root or CAP_NET_BIND_SERVICE; listen.* sets the ports"
      case EADDRNOTAVAIL: "listen.address is to be one of this machine's own"
      default: "check listen.*"
      }
    description = "port \(port) of \(host ?? "all addresses") cannot be opened: \(reason); \(advice)"
  }

  /// A certificate that cannot be used.
  init(_ error: any Error, _ files: TLSFiles) {
    description =
      Self.fault("tls.certificate", files.certificateChain, wants: "a certificate", "CERTIFICATE-----")
      ?? Self.fault("tls.key", files.privateKey, wants: "a private key", "PRIVATE KEY-----")
      ?? "tls: \(files.certificateChain) and \(files.privateKey) cannot be used (\(error)); take PEM files, the certificate's chain and the key that fits it"
  }

  /// Tells why a file cannot be used by itself: it cannot be read, or holds something else, as when the two are swapped.
  /// - Parameter mark: ends the first line of what is wanted (RFC 7468).
  private static func fault(_ member: String, _ name: String, wants kind: String, _ mark: String) -> String? {
    guard let file = fopen(name, "r") else {
      return "\(member): \(name) cannot be read: \(String(cString: strerror(errno))); check its name and mode"
    }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 1 << 16)
    bytes.removeLast(bytes.count - fread(&bytes, 1, bytes.count, file))
    guard !String(decoding: bytes, as: UTF8.self).contains(mark) else { return nil }
    return "\(member): \(name) has not \(kind) in PEM; are tls.certificate and tls.key swapped?"
  }
}
