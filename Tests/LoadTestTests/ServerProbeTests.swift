import Testing

@testable import loadtest

/// The messages about a server that does not accept the load test's connection.
struct ServerProbeTests {
  private let probe = ServerProbe(host: "localhost", port: 8080, usesTLS: false)

  private func problem(_ text: String) -> String? { probe.problem(with: .bytes(Array(text.utf8))) }

  @Test func aServerThatConnectsIsNoProblem() {
    #expect(problem("CONNECTED\nversion:1.2\n\n\0") == nil)
    #expect(problem("\n\nCONNECTED\nversion:1.2\n\n\0") == nil)
  }

  @Test(arguments: [
    ("ERROR\nmessage:Bad CONNECT: authentication failed\n\n\0", "--state"), ("HTTP/1.1 400 Bad Request\r\n", "HTTP"),
    ("ERROR\nmessage:too many connections\n\n\0", "too many connections"),
    ("\u{15}\u{3}\u{1}\0\u{2}\u{2}F", "stomps://"),
    ("SSH-2.0-OpenSSH_9.2\r\n", "\"SSH-2.0-OpenSSH_9.2\""), ("\u{0}\u{1}\u{2}", "another protocol"),
  ])
  func everyOtherAnswerSaysWhatToDo(_ answer: String, _ words: String) throws {
    let text = try #require(problem(answer))
    #expect(text.contains(words) && text.contains("localhost:8080"), "\(text)")
  }

  @Test func soDoesTheLackOfOne() throws {
    for (answer, words) in [
      (ServerProbe.Answer.closed, "listen.stomp"), (.silence(.seconds(5)), "did not answer"),
      (.notConnected("connection refused"), "start the server"), (.tlsFailed("WRONG_VERSION_NUMBER"), "stomp://"),
      (.tlsFailed("CERTIFICATE_VERIFY_FAILED"), "not trusted"),
    ] { #expect(try #require(probe.problem(with: answer)).contains(words)) }
  }
}
