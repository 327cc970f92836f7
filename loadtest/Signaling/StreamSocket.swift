import Glibc
import LinuxIO

/// A TCP connection that never blocks.
struct StreamSocket: ~Copyable {
  enum Arrival {
    case bytes(Int)
    case nothing
    /// The other side has closed the connection, or it broke.
    case end
  }

  let descriptor: Int32

  /// Begins to connect; once the socket is writable, `connectError` tells the result.
  init(to address: UnsafePointer<addrinfo>) throws(SystemError) {
    let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    descriptor = socket(address.pointee.ai_family, type, 0)
    guard descriptor >= 0 else { throw SystemError("open a socket", code: errno) }
    var on: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    if connect(descriptor, address.pointee.ai_addr, address.pointee.ai_addrlen) < 0, errno != EINPROGRESS {
      let code = errno
      close(descriptor)
      throw SystemError("connect", code: code)
    }
  }

  deinit { close(descriptor) }

  /// Why connecting failed; nil while there is no failure.
  var connectError: SystemError? {
    var code: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length)
    return code == 0 ? nil : SystemError("connect", code: code)
  }

  /// Number of bytes taken; 0 when there is no room, or no connection yet.
  func send(_ bytes: UnsafeRawBufferPointer) -> Int {
    max(0, Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL)))
  }

  func receive(into buffer: UnsafeMutableRawBufferPointer) -> Arrival {
    let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
    if count > 0 { return .bytes(count) }
    return count < 0 && (errno == EAGAIN || errno == EINTR) ? .nothing : .end
  }
}

/// The limit of open files is often 1,024 by default.
func raiseOpenFileLimit(to wanted: Int) throws(SystemError) {
  let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
  var limit = rlimit()
  getrlimit(resource, &limit)
  guard limit.rlim_cur < wanted else { return }
  limit.rlim_cur = rlim_t(wanted)
  limit.rlim_max = max(limit.rlim_max, limit.rlim_cur)
  guard setrlimit(resource, &limit) == 0 else {
    throw SystemError("open \(wanted) files at a time; raise the limit with `ulimit -Hn \(wanted)`", code: errno)
  }
}
