import LinuxIO

/// One client of the broker, with its unsent bytes and its incomplete frame.
final class StompConnection {
  enum Phase { case connecting, greeting, connected, subscribed }

  enum Failure: Error {
    case notConnected(SystemError)
    case ended
    case frameTooLong
  }

  let socket: StreamSocket
  var phase = Phase.connecting
  private var scanner = FrameScanner()
  private var outgoing: [UInt8]

  /// `connectFrame` is sent once the connection is established.
  init(_ socket: consuming StreamSocket, connectFrame: [UInt8]) {
    self.socket = socket
    outgoing = connectFrame
  }

  func write(_ frame: [UInt8]) {
    outgoing += frame
    flush()
  }

  /// Writes the waiting bytes, as far as the socket has room.
  func flush() {
    guard !outgoing.isEmpty else { return }
    let count = outgoing.withUnsafeBytes { socket.send($0) }
    if count == outgoing.count { outgoing.removeAll(keepingCapacity: true) } else { outgoing.removeFirst(count) }
    if phase == .connecting, count > 0 { phase = .greeting }
  }

  /// Check this before writing: sending would clear the error.
  func checkConnecting() throws(Failure) {
    if phase == .connecting, let error = socket.connectError { throw .notConnected(error) }
  }

  /// Reads all that the socket holds.
  func read(into buffer: UnsafeMutableRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void) throws(Failure) {
    while true {
      switch socket.receive(into: buffer) {
      case .nothing: return
      case .end:
        // A socket that is not connected yet also reports this.
        if phase == .connecting { return }
        throw .ended
      case .bytes(let count):
        guard scanner.scan(UnsafeRawBufferPointer(rebasing: buffer[..<count]), body) else { throw .frameTooLong }
        // A short read: the socket is empty, and later bytes cause a new edge (epoll(7)).
        if count < buffer.count { return }
      }
    }
  }
}
