import Forwarding
import LinuxIO
import MediaModel
import Transport

/// A TCP connection that is a path for datagrams.
final class Connection {
  let tcp: TCPConnection
  /// Its far end, with its number: the path as the SFU knows it.
  let address: SocketAddress
  let input = FramedInput(maximum: SFU.maximumDatagram)
  let output = FramedOutput()
  /// When it was accepted, or last belonged to a participant.
  var provenAt: Instant
  var isProven = false
  /// It took less than was sent: nothing more is sent until it is writable.
  var isBlocked = false

  init(_ tcp: TCPConnection, number: UInt16, now: Instant) {
    self.tcp = tcp
    var address = tcp.remote
    address.connection = number
    self.address = address
    provenAt = now
  }
}
