import MediaModel
import SDP
import Testing

struct SubscriberAnswerTests {
  struct Fault: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var old: String
    var new: String
    /// Words in the message that tell the reader what to do.
    var words: String

    init(_ description: String, _ old: String, _ new: String, _ words: String) {
      testDescription = description
      self.old = old
      self.new = new
      self.words = words
    }
  }

  /// In Chromium's answer.
  static let faults = [
    Fault("the server would have to begin the handshake", "a=setup:active", "a=setup:passive", "answer a=setup:active"),
    Fault("undecided who begins it", "a=setup:active", "a=setup:actpass", "answer a=setup:active"),
    Fault("no BUNDLE", "a=group:BUNDLE 0 1 2\r\n", "", "bundlePolicy max-bundle"),
    Fault("a line outside of the BUNDLE", "BUNDLE 0 1 2", "BUNDLE 0 1", "bundle every m= line"),
    Fault("a mid twice", "a=mid:2", "a=mid:1", "each needs its own"),
    Fault("no mid", "a=mid:2\r\n", "", "no a=mid"),
    Fault("no rtcp-mux", "a=rtcp-mux\r\n", "", "rtcpMuxPolicy require"),
    Fault("no fragment", "a=ice-ufrag:/Ms8\r\n", "", "a=ice-ufrag"),
    Fault("a short password", "UmAOl/cuh10gyPqcuYUJ76jc", "short", "22 to 256"),
    Fault("a fragment with a colon", "ufrag:/Ms8", "ufrag:a:b:c", "4 to 256"),
    Fault("a weak fingerprint", "fingerprint:sha-256", "fingerprint:sha-1", "weaker hashes are not taken"),
    Fault("no fingerprint", "a=fingerprint:", "a=x:", "DTLS-SRTP"),
    Fault("everything is rejected", " 9 UDP", " 0 UDP", "accept one, or leave"),
    Fault("another protocol", "UDP/TLS/RTP/SAVPF", "UDP", "UDP/TLS/RTP/SAVPF"),
    Fault("a control character", "s=-", "s=\u{7}", "control character"),
  ]

  @Test(arguments: faults) func aFaultIsExplained(_ fault: Fault) throws {
    let text = try Vectors.text("chrome156-subscriber-answer").replacing("m=audio 58783", with: "m=audio 9")
    try #require(text.contains(fault.old))
    let error = #expect(throws: SDPError.self) {
      try SubscriberAnswer(parsing: text.replacing(fault.old, with: fault.new))
    }
    #expect(error?.reason.contains(fault.words) == true, "\(error?.description ?? "")")
  }

  @Test func anAnswerWithoutLinesIsRefused() {
    let error = #expect(throws: SDPError.self) { try SubscriberAnswer(parsing: "v=0\r\ns=-\r\n") }
    #expect(error?.reason.contains("one for each of the offer") == true)
  }

  /// RFC 8843: a=bundle-only makes port 0 acceptable only in offers.
  @Test func portZeroRejectsWhateverElseTheLineSays() throws {
    let text = try Vectors.text("chrome156-subscriber-answer")
      .replacing("m=video 9 UDP/TLS/RTP/SAVPF 102", with: "m=video 0 UDP/TLS/RTP/SAVPF 102")
      .replacing("a=mid:2", with: "a=mid:2\r\na=bundle-only")
    #expect(try SubscriberAnswer(parsing: text).sections.map(\.isRejected) == [false, false, true])
  }

  /// The bundle has the transport of the first line that is accepted.
  @Test func theFirstLineMayBeRejected() throws {
    let text = try Vectors.text("chrome156-subscriber-answer")
      .replacing("m=audio 58783", with: "m=audio 0").replacing("BUNDLE 0 1 2", with: "BUNDLE 1 2")
    let answer = try SubscriberAnswer(parsing: text)
    #expect(answer.sections.map(\.isRejected) == [true, false, false] && answer.credentials.fragment == "/Ms8")
  }

  /// RFC 5763 requires it, and it goes without saying.
  @Test func aMissingSetupIsActive() throws {
    let text = try Vectors.text("chrome156-subscriber-answer").replacing("a=setup:active\r\n", with: "")
    #expect(try SubscriberAnswer(parsing: text).sections.count == 3)
  }

  @Test func moreLinesThanAnOfferCanHaveAreRefusedUnread() throws {
    let text = try Vectors.text("chrome156-subscriber-answer")
    let line = "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:x\r\n"
    let error = #expect(throws: SDPError.self) {
      try SubscriberAnswer(parsing: text + String(repeating: line, count: 62))
    }
    #expect(error?.reason.contains("over 64 m= lines") == true)
    let long = #expect(throws: SDPError.self) {
      try SubscriberAnswer(parsing: text + String(repeating: "a=x\r\n", count: 60_000))
    }
    #expect(long?.reason.contains("over 262144 bytes") == true)
  }
}
