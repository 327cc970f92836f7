import Glibc
import Logging
import NIOPosix
import NIOSSL
import Synchronization

/// The TLS certificate, read anew when its files change: connections made from then on get the new one, others live on with theirs.
final class Certificates: Sendable {
  enum Purpose: Sendable { case stomp, http }

  private struct Contexts: Sendable {
    var stomp: NIOSSLContext
    var http: NIOSSLContext

    init(_ files: SignalingServer.Configuration.TLS) throws {
      stomp = try files.context(protocols: [])
      http = try files.context(protocols: ["http/1.1"])
    }
  }

  private let files: SignalingServer.Configuration.TLS
  private let logger: Logger
  private let state: Mutex<(contexts: Contexts, stamps: [FileStamp?])>

  /// - Throws: NIOSSL's error when the files can't be read.
  init(_ files: SignalingServer.Configuration.TLS, logger: Logger) throws {
    self.files = files
    self.logger = logger
    // First the stamps: files that change in between are read again.
    let stamps = files.stamps
    state = try Mutex((Contexts(files), stamps))
  }

  func context(for purpose: Purpose) -> NIOSSLContext {
    state.withLock { purpose == .stomp ? $0.contexts.stomp : $0.contexts.http }
  }

  /// Reads the files if they have changed. Unusable files are logged once, and the old certificate stays until they change again.
  func reload() {
    let stamps = files.stamps
    guard state.withLock({ $0.stamps != stamps }) else { return }
    do {
      let contexts = try Contexts(files)
      state.withLock { $0 = (contexts, stamps) }
      logger.notice("the TLS certificate was read anew")
    } catch {
      state.withLock { $0.stamps = stamps }
      logger.error(
        "the new TLS certificate can't be used, the old one stays: check tls.certificate and tls.key",
        metadata: ["error": "\(error)"])
    }
  }
}

extension SignalingServer.Configuration.TLS {
  fileprivate var stamps: [FileStamp?] { [FileStamp(path: certificateChain), FileStamp(path: privateKey)] }

  fileprivate func context(protocols: [String]) throws -> NIOSSLContext {
    var configuration = TLSConfiguration.makeServerConfiguration(
      certificateChain: try NIOSSLCertificate.fromPEMFile(certificateChain).map { .certificate($0) },
      privateKey: .privateKey(try NIOSSLPrivateKey(file: privateKey, format: .pem)))
    configuration.minimumTLSVersion = .tlsv12
    configuration.applicationProtocols = protocols
    return try NIOSSLContext(configuration: configuration)
  }
}

/// The attributes of a file that change when its contents do.
package struct FileStamp: Equatable, Sendable {
  private let inode: UInt
  private let size: Int
  private let seconds: Int
  private let nanoseconds: Int

  /// nil for a file that is not there.
  package init?(path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    inode = UInt(status.st_ino)
    size = Int(status.st_size)
    seconds = status.st_mtim.tv_sec
    nanoseconds = status.st_mtim.tv_nsec
  }
}
