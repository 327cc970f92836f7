import Foundation
import Logging
import MediaModel
import Testing
import WireClients

@testable import Listening

/// The certificate files may change while the server runs.
struct CertificateTests {
  private let vectors = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Vectors")
  private let folder = FileManager.default.temporaryDirectory.appending(path: "certificates-\(UUID())")

  /// Replaces the certificate and key files, as a renewal would.
  private func install(_ name: String, key: String? = nil) throws {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    for (kind, from) in [("certificate", name), ("key", key ?? name)] {
      try Data(contentsOf: vectors.appending(path: "\(from)-\(kind).pem"))
        .write(to: folder.appending(path: "\(kind).pem"), options: .atomic)
    }
  }

  private var files: TLSFiles {
    TLSFiles(
      certificateChain: folder.appending(path: "certificate.pem").path,
      privateKey: folder.appending(path: "key.pem").path)
  }

  /// The operator is warned each day from two weeks before, and about an expired certificate, which no client accepts.
  @Test func anEndThatIsNearIsWarnedOfOnceADay() throws {
    try install("test")
    defer { try? FileManager.default.removeItem(at: folder) }
    let log = LogLines()
    let certificates = try Certificates(files, logger: Logger(label: "test") { _ in log })
    // `openssl x509 -enddate` says Oct 28 04:08:11 2126 GMT.
    let expiry = Timestamp(milliseconds: 4_948_834_091_000)
    #expect(certificates.expiry == expiry)
    certificates.watch(now: expiry - .seconds(15 * 86_400))
    #expect(log.levels == [])
    for hour in 0..<48 { certificates.watch(now: expiry + .seconds(3_600 * (hour - 240))) }
    #expect(log.levels == [.warning, .warning])
    certificates.watch(now: expiry)
    #expect(log.texts.last?.contains("has expired") == true)
    // The machine's clock was set back: the next warning does not wait for the old time.
    let before = log.levels.count
    certificates.watch(now: expiry - .seconds(300_000))
    #expect(log.levels.count == before + 1)
  }

  @Test func otherFilesAreTakenIfTheyCanBeUsed() throws {
    try install("other")
    defer { try? FileManager.default.removeItem(at: folder) }
    let certificates = try Certificates(files, logger: Logger(label: "test") { _ in LogLines() })
    let before = certificates.expiry
    var others = files
    others.privateKey += ".absent"
    let error = #expect(throws: ListenError.self) { try certificates.use(others) }
    #expect(error?.description.contains(".absent") == true && certificates.expiry == before)
    try install("test")
    try certificates.use(files)
    #expect(certificates.expiry == Timestamp(milliseconds: 4_948_834_091_000) && before != certificates.expiry)
  }

  @Test func unusableFilesAreLoggedOnceAndTriedAgainWhenTheyChange() throws {
    try install("test")
    defer { try? FileManager.default.removeItem(at: folder) }
    let log = LogLines()
    let certificates = try Certificates(files, logger: Logger(label: "test") { _ in log })
    try FileManager.default.removeItem(at: folder.appending(path: "key.pem"))
    for _ in 0..<3 { certificates.reload() }
    #expect(log.levels == [.error])
    try install("other")
    for _ in 0..<3 { certificates.reload() }
    #expect(log.levels == [.error, .notice])
  }
}
