package import LinuxIO

/// Why the media plane could not start; the description says what to do.
package enum MediaPlaneError: Error, CustomStringConvertible {
  /// Fewer than one worker, or more ports than there are above `firstPort`.
  case badLayout(workers: Int, firstPort: UInt16)
  case port(PortError)
  case system(SystemError)

  package var description: String {
    switch self {
    case .badLayout(let workers, let firstPort):
      "\(workers) workers from port \(firstPort) on: there must be at least one, and the last port must be below 65536"
    case .port(let error): error.description
    case .system(let error): error.description
    }
  }
}
