import Glibc
import MediaModel
import NIOCore

/// Accepts nothing for a moment when the system has no file or memory for another connection. Otherwise the listener stays readable and accept(2)
/// fails over and over, because NIO continues after these errors.
final class AcceptPause: ChannelInboundHandler {
  typealias InboundIn = any Channel

  private let listeners: Listeners
  private var end: Scheduled<Void>?

  init(listeners: Listeners) { self.listeners = listeners }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // Other errors belong to one connection, which is gone.
    guard let error = error as? IOError, [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(error.errnoCode), end == nil else {
      return
    }
    listeners.counters.drop(.acceptPaused)
    listeners.admission.evictOldest()
    let channel = context.channel
    setReading(false, channel)
    end = context.eventLoop.assumeIsolated().scheduleTask(
      in: .nanoseconds(listeners.configuration.acceptPause.nanoseconds)
    ) { [weak self] in
      self?.end = nil
      self?.setReading(true, channel)
    }
  }

  func handlerRemoved(context: ChannelHandlerContext) { end?.cancel() }

  private func setReading(_ reads: Bool, _ channel: any Channel) {
    try? channel.syncOptions?.setOption(.autoRead, value: reads)
  }
}
