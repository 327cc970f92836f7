/// Parses numbers with units from the command line. Each returns nil for anything else.
enum Quantity {
  /// `5%` or `0.05`, 0 to 1 or more.
  static func share(_ text: some StringProtocol) -> Double? {
    guard let (number, unit) = parts(text) else { return nil }
    return unit == "%" ? number / 100 : unit.isEmpty ? number : nil
  }

  /// `300us`, `50ms` or `1.5s`, in milliseconds. The unit is required.
  static func milliseconds(_ text: some StringProtocol) -> Double? {
    scaled(text, ["us": 0.001, "µs": 0.001, "ms": 1, "s": 1_000])
  }

  /// `400kbit/s`, in bit/s.
  static func bitrate(_ text: some StringProtocol) -> Double? {
    scaled(text, ["bit/s": 1, "kbit/s": 1_000, "mbit/s": 1_000_000, "gbit/s": 1_000_000_000])
  }

  /// `200MiB`, in bytes.
  static func bytes(_ text: some StringProtocol) -> Double? {
    scaled(
      text, ["b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 1_024, "mib": 1_048_576, "gib": 1_073_741_824])
  }

  /// `20` or `0.5`, without a unit.
  static func number(_ text: some StringProtocol) -> Double? {
    guard let (number, unit) = parts(text), unit.isEmpty else { return nil }
    return number
  }

  /// `5/s` or `5`, per second.
  static func perSecond(_ text: some StringProtocol) -> Double? {
    guard let (number, unit) = parts(text), unit.isEmpty || unit == "/s" else { return nil }
    return number
  }

  private static func scaled(_ text: some StringProtocol, _ units: [String: Double]) -> Double? {
    guard let (number, unit) = parts(text), let scale = units[unit] else { return nil }
    return number * scale
  }

  /// A non-negative number, and its unit in lower case.
  private static func parts(_ text: some StringProtocol) -> (number: Double, unit: String)? {
    let digits = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
    guard let number = Double(digits), number.isFinite else { return nil }
    return (number, text.dropFirst(digits.count).drop { $0 == " " }.lowercased())
  }
}
