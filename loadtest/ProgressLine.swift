import Foundation

/// One line on standard error that is written over while the test runs; without a terminal it says nothing.
final class ProgressLine {
  private let isTerminal = isatty(2) == 1
  private var shown = 0

  func show(_ text: String) {
    guard isTerminal else { return }
    let padding = String(repeating: " ", count: max(0, shown - text.count))
    FileHandle.standardError.write(Data("\r\(text)\(padding)".utf8))
    shown = text.count
  }

  /// Clears the line.
  func finish() {
    guard isTerminal else { return }
    FileHandle.standardError.write(Data(("\r" + String(repeating: " ", count: shown) + "\r").utf8))
  }
}
