import Glibc

/// Decides whether runs leave as one message (UDP_SEGMENT).
///
/// A kernel or a route can refuse such messages: old kernels on interfaces without checksum offload, or a path MTU below the segment. One refused run
/// costs a system call; if all attempts are refused, they pause.
struct SegmentationGate {
  private let isKnown: Bool
  private var refusalsInRow = 0
  private var pause = 0

  private static let patience = 16
  /// Counted in runs, so that a changed route is noticed after some seconds of video.
  private static let pauseLength = 4_096

  /// Whether the errno of a run of several datagrams can be due to sending them as one message.
  static func isRefusal(_ code: Int32) -> Bool {
    switch code {
    case EINVAL, EIO, EMSGSIZE, EOPNOTSUPP: true
    default: false
    }
  }

  init(isKnown: Bool) { self.isKnown = isKnown }

  /// Asked once for each run of several datagrams.
  mutating func allows() -> Bool {
    guard isKnown else { return false }
    guard pause > 0 else { return true }
    pause -= 1
    return false
  }

  mutating func accepted() { refusalsInRow = 0 }

  mutating func refused() {
    refusalsInRow += 1
    guard refusalsInRow >= Self.patience else { return }
    pause = Self.pauseLength
    // The first attempt after the pause decides.
    refusalsInRow = Self.patience - 1
  }
}
