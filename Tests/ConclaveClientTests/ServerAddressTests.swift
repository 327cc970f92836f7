import Testing

@testable import ConclaveClient

struct ServerAddressTests {
  private static func web(_ host: String, _ port: Int, _ path: String, usesTLS: Bool = true) -> ServerAddress {
    ServerAddress(host: host, port: port, usesTLS: usesTLS, webSocketPath: path)
  }

  static let good: [(String, ServerAddress)] = [
    ("stomp://127.0.0.1:61613", ServerAddress(host: "127.0.0.1", port: 61613, usesTLS: false)),
    ("stomp://calls.example.org", ServerAddress(host: "calls.example.org", port: 61613, usesTLS: false)),
    ("stomps://calls.example.org/", ServerAddress(host: "calls.example.org", port: 61614, usesTLS: true)),
    ("stomp://[::1]:7", ServerAddress(host: "::1", port: 7, usesTLS: false)),
    ("stomp://[::1]", ServerAddress(host: "::1", port: 61613, usesTLS: false)),
    ("wss://calls.example.org", web("calls.example.org", 443, "/stomp")),
    ("wss://calls.example.org/", web("calls.example.org", 443, "/stomp")),
    ("wss://calls.example.org:8443/calls/stomp", web("calls.example.org", 8443, "/calls/stomp")),
    ("wss://[::1]/ws?a=b:c", web("::1", 443, "/ws?a=b:c")),
    ("ws://127.0.0.1:8080/stomp", web("127.0.0.1", 8080, "/stomp", usesTLS: false)),
    ("ws://localhost", web("localhost", 80, "/stomp", usesTLS: false)),
  ]

  @Test(arguments: good) func isRead(_ url: String, _ address: ServerAddress) {
    #expect(ServerAddress(url) == address)
  }

  @Test(arguments: [
    "", "stomp://", "http://a", "127.0.0.1", "stomp://a:b", "stomp://a:70000", "stomp://[::1]7", "stomp://[::1",
    "stomp://a/stomp",
    "wss://", "wss:///stomp",
    "wss://user:word@a/stomp", "wss://a?b", "wss://a/stomp#b", "wss://a/st omp", "wss://a/st\r\nomp", "wss://a b/stomp",
    "wss://a:0x1/stomp",
  ])
  func isRefused(_ url: String) { #expect(ServerAddress(url) == nil) }

  @Test func hostNamesThePortOnlyWhereItIsAnother() {
    #expect(ServerAddress("wss://a")?.authority == "a")
    #expect(ServerAddress("wss://a:80")?.authority == "a:80")
    #expect(ServerAddress("ws://[::1]:8080")?.authority == "[::1]:8080")
  }
}
