import MediaModel
import SDP
import Testing

struct SDPErrorTests {
  struct Fault: Sendable, CustomTestStringConvertible {
    var testDescription: String
    /// The text to replace in `Vectors.small`.
    var old: String
    var new: String
    var line: Int
    /// Words in the message that tell the reader what to do.
    var words: String

    init(_ description: String, _ old: String, _ new: String, line: Int, _ words: String) {
      testDescription = description
      self.old = old
      self.new = new
      self.line = line
      self.words = words
    }
  }

  static let faults = [
    Fault("no v=0", "v=0\n", "v=1\n", line: 1, "begin with v=0"),
    Fault("not a line of SDP", "s=-\n", "secret\n", line: 3, "one letter, ="),
    Fault("an empty line between", "s=-\n", "\n", line: 3, "no empty line"),
    Fault("a control character", "s=-\n", "s=-\u{1}\n", line: 3, "control character"),
    Fault("a carriage return inside", "a=mid:cam", "a=mid:c\ra=x", line: 18, "control character"),
    Fault("no BUNDLE", "a=group:BUNDLE mic cam slot\n", "", line: 6, "bundlePolicy max-bundle"),
    Fault("a section outside of the BUNDLE", "cam slot\n", "cam\n", line: 24, "bundle every m= line"),
    Fault("no m= line for a port", "m=audio 9 ", "m=audio nine ", line: 7, "media, port, protocol"),
    Fault("a medium that is not known", "m=audio 9", "m=text 9", line: 7, "only audio, video and application"),
    Fault("a protocol that is not known", "m=audio 9 UDP/TLS/RTP/SAVPF", "m=audio 9 UDP", line: 7, "UDP/TLS/RTP/SAVPF"),
    Fault("no mid", "a=mid:cam\n", "", line: 16, "no a=mid"),
    Fault("an empty mid", "a=mid:cam\n", "a=mid:\n", line: 18, "1 to 255"),
    Fault("a mid that is no token", "a=mid:cam\n", "a=mid:c m\n", line: 18, "token"),
    Fault("a mid twice", "a=mid:cam\n", "a=mid:mic\n", line: 16, "each needs its own"),
    Fault("no ufrag", "a=ice-ufrag:abcd\n", "", line: 7, "a=ice-ufrag"),
    Fault("no password", "a=ice-pwd:0123456789012345678901\n", "", line: 7, "a=ice-pwd"),
    Fault("a short ufrag", "a=ice-ufrag:abcd\n", "a=ice-ufrag:abc\n", line: 9, "4 to 256"),
    Fault("a ufrag with a colon", "a=ice-ufrag:abcd\n", "a=ice-ufrag:ab:cd\n", line: 9, "letters, digits"),
    Fault("a short password", "a=ice-pwd:0", "a=ice-pwd:", line: 10, "22 to 256"),
    Fault("no fingerprint", "a=fingerprint:", "a=x-", line: 7, "DTLS-SRTP"),
    Fault("sha-1 only", "a=fingerprint:sha-256", "a=fingerprint:sha-1", line: 11, "sha-256"),
    Fault("a short fingerprint", "sha-256 0F:", "sha-256 ", line: 11, "32 bytes"),
    Fault("a fingerprint that is not hex", "sha-256 0F:", "sha-256 +F:", line: 11, "in hex"),
    Fault("DTLS passive", "a=setup:actpass", "a=setup:passive", line: 12, "a=setup:actpass"),
    Fault("no rtcp-mux", "a=rtcp-mux\n", "", line: 7, "rtcpMuxPolicy require"),
    Fault("a source that is no number", "a=mid:cam\n", "a=mid:cam\na=ssrc:4294967296 cname:x\n", line: 19, "32 bits"),
    Fault("half an FID group", "a=mid:cam\n", "a=mid:cam\na=ssrc-group:FID 1\n", line: 19, "RTX source"),
  ]

  @Test(arguments: faults)
  func names(_ fault: Fault) throws {
    let text = Vectors.small.replacing(fault.old, with: fault.new, maxReplacements: 1)
    #expect(text != Vectors.small)
    let error = #expect(throws: SDPError.self) { try MediaOffer(parsing: text) }
    #expect(error?.line == fault.line)
    #expect(error?.reason.contains(fault.words) == true)
  }

  @Test func smallOfferItselfIsTaken() throws {
    #expect(try MediaOffer(parsing: Vectors.small).sections.count == 3)
  }

  @Test(arguments: ["", "\r\n", "v=0\r\n", "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n"])
  func textWithoutAnOffer(_ text: String) {
    #expect(throws: SDPError.self) { try MediaOffer(parsing: text) }
  }

  @Test func everyMLineRejected() {
    let text = Vectors.small.replacing("m=audio 9", with: "m=audio 0").replacing("a=bundle-only\n", with: "")
    let error = #expect(throws: SDPError.self) { try MediaOffer(parsing: text) }
    #expect(error?.reason.contains("every m= line is rejected") == true)
  }

  static let oversized: [(String, String, Int)] = [
    ("a long line", "a=x:" + String(repeating: "y", count: 4_093) + "\n", 25),
    ("many lines", String(repeating: "a=x\n", count: 17_000), SessionDescription.maximumLines),
    ("many bytes", String(repeating: "a=x:" + String(repeating: "y", count: 4_000) + "\n", count: 70), 1),
    ("many sections", String(repeating: "m=audio 0 RTP/AVP 0\n", count: 62), 29 + 61),
    ("many sources", (1...33).map { "a=ssrc:\($0) cname:x\n" }.joined(), 29 + 32),
  ]

  @Test(arguments: oversized)
  func bounds(_ what: String, _ tail: String, _ line: Int) {
    let error = #expect(throws: SDPError.self) { try MediaOffer(parsing: Vectors.small + tail) }
    #expect(error.map { abs($0.line - line) <= 4 } == true, "line \(error?.line ?? 0)")
  }

  @Test func wordsHoldNothingOfTheOffer() throws {
    let text = Vectors.small.replacing("a=ice-ufrag:abcd", with: "a=ice-ufrag:SECRET SECRET")
    let error = try #require(throws: SDPError.self) { try MediaOffer(parsing: text) }
    #expect(!"\(error)".contains("SECRET"))
    #expect("\(error)".hasPrefix("line 9: "))
  }
}
