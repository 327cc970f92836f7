import Testing

@testable import ConclaveClient

struct ServerAddressTests {
  static let good: [(String, ServerAddress)] = [
    ("stomp://127.0.0.1:61613", ServerAddress(host: "127.0.0.1", port: 61613, usesTLS: false)),
    ("stomp://calls.example.org", ServerAddress(host: "calls.example.org", port: 61613, usesTLS: false)),
    ("stomps://calls.example.org/", ServerAddress(host: "calls.example.org", port: 61614, usesTLS: true)),
    ("stomp://[::1]:7", ServerAddress(host: "::1", port: 7, usesTLS: false)),
    ("stomp://[::1]", ServerAddress(host: "::1", port: 61613, usesTLS: false)),
  ]

  @Test(arguments: good) func isRead(_ url: String, _ address: ServerAddress) {
    #expect(ServerAddress(url) == address)
  }

  @Test(arguments: ["", "stomp://", "http://a", "127.0.0.1", "stomp://a:b", "stomp://a:70000", "stomp://[::1]7"])
  func isRefused(_ url: String) { #expect(ServerAddress(url) == nil) }
}
