import CLinux
import MediaModel

/// The messages of one `sendmmsg` and the runs they were made of, allocated once.
final class SendWindow {
  static let capacity = 64

  private(set) var count = 0
  private let runs: UnsafeMutablePointer<DatagramRun>
  private let messages: OpaquePointer

  init(ipv6: Bool) {
    runs = .allocate(capacity: Self.capacity)
    guard let messages = clinux_messages_create(UInt32(Self.capacity), ipv6) else { fatalError("out of memory") }
    self.messages = messages
  }

  deinit {
    clinux_messages_destroy(messages)
    runs.deallocate()
  }

  var isFull: Bool { count == Self.capacity }

  subscript(index: Int) -> DatagramRun { runs[index] }

  /// - Parameter local: the address from which to send; nil for the kernel's choice.
  func append(_ run: DatagramRun, from local: SocketAddress?) {
    let segment = run.length > run.segment ? UInt16(truncatingIfNeeded: run.segment) : 0
    if var local = local?.clinux {
      clinux_messages_set(messages, UInt32(count), run.base, run.length, segment, run.destination.clinux, &local)
    } else {
      clinux_messages_set(messages, UInt32(count), run.base, run.length, segment, run.destination.clinux, nil)
    }
    runs[count] = run
    count += 1
  }

  func removeAll() { count = 0 }

  /// One system call for everything from `first` on: the number of messages sent, or -errno of the first.
  func send(from first: Int, to descriptor: Int32) -> Int32 {
    clinux_messages_send(messages, descriptor, UInt32(first), UInt32(count - first))
  }
}
