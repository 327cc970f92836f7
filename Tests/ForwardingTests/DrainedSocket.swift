import Glibc
import LinuxIO
import MediaModel
import Synchronization

/// A socket on loopback that a thread drains, so that the kernel delivers everything that is sent to it.
final class DrainedSocket {
  private let socket: UDPSocket
  private let thread: OSThread
  private let isOver = Flag()

  private final class Flag: Sendable {
    let value = Atomic(false)
  }

  init() throws {
    socket = try UDPSocket(port: 0)
    thread = try OSThread(name: "drain") { [descriptor = socket.descriptor, isOver] in
      let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 64)
      defer { room.deallocate() }
      while !isOver.value.load(ordering: .relaxed) {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        poll(&entry, 1, 100)
        while recv(descriptor, room.baseAddress, room.count, 0) > 0 {}
      }
    }
  }

  deinit {
    isOver.value.store(true, ordering: .relaxed)
    thread.join()
  }

  var address: SocketAddress { SocketAddress(ipv4: 0x7f00_0001, port: socket.port) }
}
