import Foundation
import Synchronization

/// One line on standard error that is overwritten while the test runs; nothing without a terminal.
final class ProgressLine: Sendable {
  private let isTerminal = isatty(2) == 1
  private let shown = Mutex(0)

  func show(_ text: String) {
    guard isTerminal else { return }
    shown.withLock { shown in
      let text = String(text.prefix(Self.width - 1))
      let padding = String(repeating: " ", count: max(0, shown - text.count))
      FileHandle.standardError.write(Data("\r\(text)\(padding)".utf8))
      shown = text.count
    }
  }

  /// Clears the line.
  func finish() {
    guard isTerminal else { return }
    shown.withLock { shown in
      FileHandle.standardError.write(Data(("\r" + String(repeating: " ", count: shown) + "\r").utf8))
      shown = 0
    }
  }

  /// The terminal's columns: a longer line could not be overwritten.
  private static var width: Int {
    var size = winsize()
    return ioctl(2, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 20 ? Int(size.ws_col) : 80
  }
}
