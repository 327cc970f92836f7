import Foundation
import Glibc
import JSON

/// The client's end of the admin socket, for the program's commands.
struct AdminClient {
  private static let timeout = 10
  private static let maximumReply = 64 << 20

  let folder: String

  /// - Returns: the reply's JSON.
  /// - Throws: `ConfigurationError` in words for the operator: no server, no access, or the server's refusal.
  func ask(_ request: AdminRequest) throws(ConfigurationError) -> [UInt8] {
    let socket = try connected()
    defer { close(socket) }
    let line = ((try? JSONCoding.encode(request)) ?? []) + [UInt8(ascii: "\n")]
    guard send(socket, line, line.count, Int32(MSG_NOSIGNAL)) == line.count else { throw gone }
    var reply: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let count = recv(socket, &chunk, chunk.count, 0)
      guard count >= 0, reply.count <= Self.maximumReply else { throw gone }
      guard count > 0 else { break }
      reply += chunk[..<count]
    }
    guard reply.popLast() == UInt8(ascii: "\n") else { throw gone }
    if let failure = try? JSONCoding.decode(AdminFailure.self, from: reply) { throw ConfigurationError(failure.error) }
    return reply
  }

  private var gone: ConfigurationError {
    ConfigurationError("the server on \(folder) gave no answer within \(Self.timeout) s")
  }

  private func connected() throws(ConfigurationError) -> Int32 {
    let path = StateFolder.adminSocket(in: folder)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else {
      throw ConfigurationError(StateFolder.tooLong(path))
    }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let socket = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var time = timeval(tv_sec: Self.timeout, tv_usec: 0)
    for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
      setsockopt(socket, SOL_SOCKET, option, &time, socklen_t(MemoryLayout<timeval>.size))
    }
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(socket, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard result != 0 else { return socket }
    let code = errno
    close(socket)
    let reason =
      switch code {
      case ENOENT, ECONNREFUSED: "no server runs on \(folder); name its state folder by --state or --config"
      case EACCES: "\(path): only root and the server's own user have access; use sudo"
      default: "\(path): \(String(cString: strerror(code)))"
      }
    throw ConfigurationError(reason)
  }
}
