import Crypto
import MediaModel

/// 40 digits that are the same on all honest screens and other ones if the server put a device in between (protocol section 5).
enum CallCode {
  static func digits(call: CallID, list: EpochList) -> String {
    var transcript = Transcript("conclave-code-v1")
    transcript.appendPrefixed(call.text)
    transcript.append(list.bytes)
    var number = Array(SHA256.hash(data: transcript.bytes))
    // The hash as a number mod 10^40: its 40 lowest decimal digits, by long division.
    var digits: [UInt8] = []
    for _ in 0..<40 {
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
