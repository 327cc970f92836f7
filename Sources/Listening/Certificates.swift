import Glibc
import Logging
package import MediaModel
import NIOPosix
import NIOSSL
import Synchronization

/// The TLS certificate, read again when its files change: new connections get the new one, existing ones keep theirs.
final class Certificates: Sendable {
  enum Purpose: Sendable { case tcp, http }

  private struct Contexts: Sendable {
    var tcp: NIOSSLContext
    var http: NIOSSLContext
    /// nil for a chain without a certificate.
    var expiry: Timestamp?

    init(_ files: TLSFiles) throws {
      expiry = files.expiry
      tcp = try files.context(protocols: [])
      http = try files.context(protocols: ["http/1.1"])
    }
  }

  private struct State: Sendable {
    var files: TLSFiles
    var contexts: Contexts
    var stamps: [FileStamp?]

    mutating func replace(_ old: TLSFiles, by new: State) -> Bool {
      guard files == old else { return false }
      self = new
      return true
    }

    /// First the stamps, so that files that change in between are read again.
    init(_ files: TLSFiles) throws {
      self.files = files
      stamps = files.stamps
      contexts = try Contexts(files)
    }
  }

  private let logger: Logger
  private let state: Mutex<State>
  private let warnedAt = Mutex<Timestamp?>(nil)

  /// How long before its expiry the operator is warned about a certificate, each day. Renewals come 30 days before.
  private static let notice = Duration.seconds(14 * 86_400)
  private static let warningPause = Duration.seconds(86_400)

  /// - Throws: NIOSSL's error if the files cannot be read.
  init(_ files: TLSFiles, logger: Logger) throws {
    self.logger = logger
    state = try Mutex(State(files))
  }

  func context(for purpose: Purpose) -> NIOSSLContext {
    state.withLock { purpose == .tcp ? $0.contexts.tcp : $0.contexts.http }
  }

  /// When the certificate in use expires.
  var expiry: Timestamp? { state.withLock { $0.contexts.expiry } }

  /// Warns about a certificate that has expired or will soon, once a day.
  /// - Parameter now: of the machine's clock, because clients use theirs.
  func watch(now: Timestamp) {
    guard let expiry, expiry - now < Self.notice else { return }
    let isDue = warnedAt.withLock { warnedAt in
      if let last = warnedAt, now < last + Self.warningPause, last <= now { return false }
      warnedAt = now
      return true
    }
    guard isDue else { return }
    let hours = (expiry - now).components.seconds / 3_600
    logger.warning(
      expiry > now
        ? "the TLS certificate expires soon: renew tls.certificate"
        : "the TLS certificate has expired and clients refuse it: renew tls.certificate",
      metadata: ["hours": "\(hours)"])
  }

  /// Reads other files, or the same ones again.
  /// - Throws: `ListenError` if they cannot be used; the old certificate stays.
  func use(_ files: TLSFiles) throws(ListenError) {
    do {
      let new = try State(files)
      state.withLock { $0 = new }
    } catch {
      throw ListenError(error, files)
    }
  }

  /// Reads the files if they have changed. Unusable files are logged once, and the old certificate stays until they change again.
  func reload() {
    let files = state.withLock { $0.files }
    let stamps = files.stamps
    guard state.withLock({ $0.stamps != stamps }) else { return }
    do {
      let new = try State(files)
      // Other files may have been configured meanwhile.
      guard state.withLock({ $0.replace(files, by: new) }) else { return }
      logger.notice("the TLS certificate was read anew")
    } catch {
      state.withLock { if $0.files == files { $0.stamps = stamps } }
      logger.error(
        "the new TLS certificate can't be used, the old one stays: check tls.certificate and tls.key",
        metadata: ["error": "\(error)"])
    }
  }
}

extension TLSFiles {
  /// When the certificate in the file expires; nil for an unreadable file, which is reported when the ports are opened.
  package var expiry: Timestamp? {
    guard let certificate = try? NIOSSLCertificate.fromPEMFile(certificateChain).first else { return nil }
    // A certificate may be valid for longer than our times reach.
    return Timestamp(milliseconds: Int64(certificate.notValidAfter).multipliedReportingOverflow(by: 1_000).partialValue)
  }

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

  /// nil for a file that does not exist.
  package init?(path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    inode = UInt(status.st_ino)
    size = Int(status.st_size)
    seconds = status.st_mtim.tv_sec
    nanoseconds = status.st_mtim.tv_nsec
  }
}
