import LinuxIO

/// One client of the broker: what waits to be written, and what has come in part.
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

  /// `connectFrame` leaves once there is a connection.
  init(_ socket: consuming StreamSocket, connectFrame: [UInt8]) {
    self.socket = socket
    outgoing = connectFrame
  }

  func write(_ frame: [UInt8]) {
    outgoing += frame
    flush()
  }

  /// Writes what waits, as far as there is room.
  func flush() {
    guard !outgoing.isEmpty else { return }
    let count = outgoing.withUnsafeBytes { socket.send($0) }
    if count == outgoing.count { outgoing.removeAll(keepingCapacity: true) } else { outgoing.removeFirst(count) }
    if phase == .connecting, count > 0 { phase = .greeting }
  }

  /// To be called before anything is written: sending would take the error away.
  func checkConnecting() throws(Failure) {
    if phase == .connecting, let error = socket.connectError { throw .notConnected(error) }
  }

  /// Takes all that the socket holds.
  func read(into buffer: UnsafeMutableRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void) throws(Failure) {
    while true {
      switch socket.receive(into: buffer) {
      case .nothing: return
      case .end:
        // A socket that is not connected yet says so too.
        if phase == .connecting { return }
        throw .ended
      case .bytes(let count):
        guard scanner.scan(UnsafeRawBufferPointer(rebasing: buffer[..<count]), body) else { throw .frameTooLong }
        // Less than there was room for: it is empty, and what comes later is a new edge (epoll(7)).
        if count < buffer.count { return }
      }
    }
  }
}
