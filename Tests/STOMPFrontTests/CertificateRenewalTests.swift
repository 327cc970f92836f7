import Foundation
import Listening
import Logging
import NIOCore
import NIOSSL
import STOMP
import Testing
import WireClients

/// The certificate's files change while clients are connected.
@Suite(.timeLimit(.minutes(5))) struct CertificateRenewalTests {
  private let vectors = URL(filePath: #filePath).deletingLastPathComponent()
    .appending(path: "../ListeningTests/Vectors")
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

  /// The certificate that the server presents on a port; nil when there is no handshake.
  private func shown(_ port: Int) async throws -> [UInt8]? {
    let client = try await TestClient.open(port: port, tls: true)
    // The handshake is only complete once data has passed.
    try await client.send("\n")
    let certificate = try await client.channel.nioSSL_peerCertificate().get()
    try await client.close()
    return try certificate?.toDERBytes()
  }

  private func until(_ port: Int, shows certificate: [UInt8]) async throws {
    try await until { try await shown(port) == certificate }
  }

  /// Waits until `count` pairs of files were refused.
  private func until(_ log: LogLines, hasRefused count: Int) async throws {
    try await until { log.refusals >= count }
  }

  private func until(_ isReached: () async throws -> Bool) async throws {
    let end = ContinuousClock.now + .seconds(30)
    while try await !isReached() {
      try #require(ContinuousClock.now < end)
      try await Task.sleep(for: .milliseconds(5))
    }
  }

  private func der(_ name: String) throws -> [UInt8] {
    try #require(try NIOSSLCertificate.fromPEMFile(vectors.appending(path: "\(name)-certificate.pem").path).first)
      .toDERBytes()
  }

  @Test func newConnectionsGetTheNewCertificateAndOldOnesLiveOn() async throws {
    try install("test")
    defer { try? FileManager.default.removeItem(at: folder) }
    let log = LogLines()
    try await withServer(
      {
        $0.tls = files
        $0.listening.choreInterval = .milliseconds(20)
      }, log: log
    ) { server, _ in
      let port = try #require(server.stompTLSPort)
      let old = try await TestClient.connected(to: port, token: "a", tls: true)
      let oldSocket = try await TestWebSocket.connected(server.httpPort, token: "b", tls: true)
      #expect(try await shown(port) == der("test"))
      // Neither a broken file nor a key that does not match is accepted.
      try Data("nonsense".utf8).write(to: folder.appending(path: "certificate.pem"), options: .atomic)
      try await until(log, hasRefused: 1)
      #expect(try await shown(port) == der("test"))
      let refused = log.refusals
      try install("other", key: "test")
      try await until(log, hasRefused: refused + 1)
      #expect(try await shown(port) == der("test"))
      try install("other")
      try await until(port, shows: der("other"))
      try await until(server.httpPort, shows: der("other"))
      for client in [old, try await TestClient.connected(to: port, token: "c", tls: true)] {
        try await client.send("SEND\ndestination:/app/calls/list\nrequest-id:1\nreceipt:r\n\n\0")
        #expect(try await client.frame()?.headers["receipt-id"] == "r")
        try await client.close()
      }
      for socket in [oldSocket, try await TestWebSocket.connected(server.httpPort, token: "d", tls: true)] {
        try await goThrough(socket)
      }
    }
  }

  /// A subscription, a request with its reply, and an orderly end.
  private func goThrough(_ socket: TestWebSocket) async throws {
    try await socket.send("SUBSCRIBE\nid:1\ndestination:/user/queue/replies\nreceipt:s\n\n\0")
    #expect(try await socket.next() == .text("RECEIPT\nreceipt-id:s\n\n\0"))
    try await socket.send("SEND\ndestination:/app/no/such\nrequest-id:7\n\n\0")
    guard case .text(let reply)? = try await socket.next() else { throw CancellationError() }
    #expect(reply.hasPrefix("MESSAGE\n") && reply.contains("\nrequest-id:7\n"))
    try await socket.send("DISCONNECT\nreceipt:d\n\n\0")
    #expect(try await socket.next() == .text("RECEIPT\nreceipt-id:d\n\n\0"))
    #expect(try await socket.next() == .close(1_000))
  }
}

extension LogLines {
  fileprivate var refusals: Int { levels.count { $0 == .error } }
}
