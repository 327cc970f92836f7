import Logging
import UnixSignals

/// The life of a started server until its end: handles the requests of signals and operators one after the other.
struct Lifetime: Sendable {
  private enum Step { case signal(UnixSignal), operatorDrains, drained }

  let server: Server
  let logger: Logger
  /// Reads the configuration again.
  let load: @Sendable () throws -> Configuration

  /// SIGTERM drains first; SIGINT, and a second one of either, ends immediately. `conclave drain` waits as long as calls run, and a SIGTERM limits it. SIGHUP ends
  /// nothing.
  func run(until signals: UnixSignalsSequence) async {
    let (steps, continuation) = AsyncStream.makeStream(of: Step.self)
    let watch = Task { for await signal in signals { continuation.yield(.signal(signal)) } }
    defer { watch.cancel() }
    let orders = Task { for await _ in server.drainOrders { continuation.yield(.operatorDrains) } }
    defer { orders.cancel() }
    var unlimited: Task<Void, Never>?
    defer { unlimited?.cancel() }
    var drain: Task<Void, Never>?
    defer { drain?.cancel() }
    for await step in steps {
      switch step {
      case .signal(.sighup): await reload()
      case .signal(.sigterm) where drain == nil && server.drainSeconds > 0:
        let seconds = server.drainSeconds
        logger.notice("draining", metadata: ["signal": "SIGTERM", "seconds": "\(seconds)"])
        drain = Task {
          await server.drain(seconds: seconds)
          continuation.yield(.drained)
        }
      case .operatorDrains:
        guard unlimited == nil, drain == nil else { continue }
        unlimited = Task {
          await server.drain(seconds: nil)
          continuation.yield(.drained)
        }
      case .signal(let signal):
        logger.notice("ending", metadata: ["signal": "\(signal)"])
        return
      case .drained: return
      }
    }
  }

  /// An unusable configuration changes nothing.
  private func reload() async {
    do {
      let configuration = try load()
      do throws(ConfigurationError) {
        try configuration.validate()
        try await server.reload(configuration)
      } catch {
        throw configuration.located(error)
      }
    } catch {
      logger.error(
        "the configuration cannot be used; the one before stays", metadata: ["reason": "\(error)", "signal": "SIGHUP"])
    }
  }
}
