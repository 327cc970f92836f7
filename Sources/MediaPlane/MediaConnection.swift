import Forwarding
import LinuxIO
import MediaModel
import Transport

/// A TCP connection that is a path for datagrams.
final class MediaConnection {
  let tcp: TCPConnection
  /// Its remote end and its number: the path as the SFU knows it.
  let address: SocketAddress
  let input = FramedInput(maximum: SFU.maximumDatagram)
  let output = FramedOutput()
  /// When it was accepted, or last belonged to a participant.
  var provenAt: Instant
  var isProven = false
  /// It accepted less than was sent: nothing more is sent until it is writable.
  var isBlocked = false

  init(_ tcp: TCPConnection, number: UInt16, now: Instant) {
    self.tcp = tcp
    var address = tcp.remote
    address.connection = number
    self.address = address
    provenAt = now
  }
}

/// A queue of distinct numbers from 1 on. Removing one from the middle is as fast as from the end.
struct NumberQueue {
  /// The neighbors of each number; 0 stands for both ends.
  private var next: [UInt16]
  private var previous: [UInt16]

  init(greatest: Int) {
    next = Array(repeating: 0, count: greatest + 1)
    previous = next
  }

  var first: UInt16? { next[0] == 0 ? nil : next[0] }

  /// - Parameter number: not in the queue.
  mutating func append(_ number: UInt16) {
    let last = previous[0]
    link(last, number)
    link(number, 0)
  }

  /// - Parameter number: in the queue.
  mutating func remove(_ number: UInt16) { link(previous[Int(number)], next[Int(number)]) }

  private mutating func link(_ number: UInt16, _ follower: UInt16) {
    next[Int(number)] = follower
    previous[Int(follower)] = number
  }
}
