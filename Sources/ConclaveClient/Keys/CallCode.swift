import MediaModel
import Octets

/// 40 digits that are the same on all honest screens that were shown the same roster (protocol section 5, "Call code").
enum CallCode {
  static func digits(call: CallID, rosterHash: [UInt8]) -> String {
    var transcript = Transcript("conclave-code-v2")
    transcript.appendPrefixed(call.text)
    transcript.append(rosterHash)
    return digits(of: transcript.sha256, count: 40)
  }

  /// A big-endian number mod 10^count: its lowest decimal digits, by long division.
  static func digits(of bytes: [UInt8], count: Int) -> String {
    var number = bytes
    var digits: [UInt8] = []
    for _ in 0..<count {
      var remainder = 0
      for i in number.indices {
        let value = remainder << 8 | Int(number[i])
        number[i] = UInt8(value / 10)
        remainder = value % 10
      }
      digits.append(UInt8(ascii: "0") + UInt8(remainder))
    }
    return String(decoding: digits.reversed(), as: UTF8.self)
  }
}
