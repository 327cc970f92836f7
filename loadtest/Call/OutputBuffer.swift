import LinuxIO
import MediaModel

/// Datagrams of one peer that wait to be sent; neighbours of the same length are sent as one run. Each thread has one.
final class OutputBuffer {
  private static let byteCapacity = 256 << 10
  private static let runCapacity = 256
  private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: byteCapacity, alignment: 64)
  private let runs = UnsafeMutablePointer<DatagramRun>.allocate(capacity: runCapacity)
  private var runCount = 0
  private(set) var byteCount = 0
  /// The longest message that UDP_SEGMENT accepts, and the highest number of segments.
  private static let longestRun = 60_000
  private static let segmentLimit = 60

  deinit {
    memory.deallocate()
    runs.deallocate()
  }

  var isEmpty: Bool { runCount == 0 }

  /// Room for one more datagram of up to 1,500 bytes; nil when the buffer has to be sent first.
  var room: UnsafeMutableRawBufferPointer? {
    guard byteCount + 1_500 <= Self.byteCapacity, runCount < Self.runCapacity else { return nil }
    return UnsafeMutableRawBufferPointer(rebasing: memory[byteCount..<byteCount + 1_500])
  }

  /// Appends the datagram that was written to `room`.
  func append(_ length: Int) {
    let base = memory.baseAddress! + byteCount
    byteCount += length
    if runCount > 0 {
      let last = runs + runCount - 1
      // Only a run of full segments can grow; a shorter datagram ends it.
      if last.pointee.length % last.pointee.segment == 0, length <= last.pointee.segment,
        last.pointee.length + length <= Self.longestRun, last.pointee.count < Self.segmentLimit
      {
        last.pointee.length += length
        return
      }
    }
    (runs + runCount).initialize(
      to: DatagramRun(
        base: base, length: length, segment: length, destination: SocketAddress(high: 0, low: 0, port: 0)))
    runCount += 1
  }

  func send(through socket: UDPSocket, to address: SocketAddress) {
    for i in 0..<runCount { runs[i].destination = address }
    socket.send(UnsafeBufferPointer(start: runs, count: runCount))
    removeAll()
  }

  /// Calls `body` with each datagram, in order.
  func forEach(_ body: (UnsafeRawBufferPointer) -> Void) {
    for run in UnsafeBufferPointer(start: runs, count: runCount) {
      for start in stride(from: 0, to: run.length, by: run.segment) {
        body(UnsafeRawBufferPointer(start: run.base + start, count: min(run.segment, run.length - start)))
      }
    }
  }

  func removeAll() {
    runCount = 0
    byteCount = 0
  }
}
