import Calls
import LinuxIO
import Listening
import Logging
import MediaModel
import MediaPlane
import NIOCore
import NIOPosix

/// The threads of a server, and its clients of other servers: the app's back end, push services and a collector of traces.
struct ServerServices: Sendable {
  let media: MediaWorkers
  let group: MultiThreadedEventLoopGroup
  /// For reading SDPs.
  let reading = NIOThreadPool(numberOfThreads: 1)
  let webPush: WebPush?
  let backEnd: BackEnd?
  let spans: SpanExporter?
  /// nil if the server stores no recordings.
  let recordings: RecordingService?

  /// - Throws: `ConfigurationError`. Nothing runs then.
  init(_ configuration: Configuration, _ state: ServerState, _ links: ServerLinks) async throws {
    let log = state.log
    let clock = state.clock
    media = try Server.mediaPlane(
      configuration, node: state.incarnation, certificate: state.certificate,
      // The calls' clock, which never jumps.
      wallClock: {
        clock.now().milliseconds * 1_000 - Int64(clamping: MonotonicClock.now().nanoseconds / 1_000)
      },
      onReels: { links.recordings.value?.take($0) }
    ) { event in
      if case .tooMuch = event {
        return log.log(
          .mediaFlood, .warning, "participants send more media than media.publishing lets them; the rest is dropped")
      }
      if links.rooms.value?.submit(event) ?? false { return }
      links.control.value?.submit(.media(event))
    }
    recordings = configuration.recordings.flatMap { recordings in
      state.recordings.map { store in
        RecordingService(store, configuration: recordings, clock: state.clock) {
          links.control.value?.submit(.recording($0))
        }
      }
    }
    reading.start()
    group = MultiThreadedEventLoopGroup(numberOfThreads: max(1, availableProcessors().count / 2))
    let answerTime = configuration.calls(state.turn, state.clock).answerTime
    do {
      webPush = try Server.webPush(configuration.webPush, state.folder, clock: state.clock, group: group) {
        links.control.value?.submit(.pushGone($0, endpoint: $1))
      }
      backEnd = try BackEnd(configuration, answerTime: answerTime, clock: state.clock, group: group)
      spans = try configuration.telemetry.map { [group] telemetry throws(ConfigurationError) in
        try SpanExporter(telemetry, group: group)
      }
    } catch {
      await Self.stop(media, group, reading)
      throw error
    }
  }

  /// Sends the traces that wait, for at most a moment, and ends the threads.
  func stop() async {
    await spans?.stop()
    webPush?.stop()
    backEnd?.stop()
    await Self.stop(media, group, reading)
  }

  private static func stop(
    _ media: MediaWorkers, _ group: MultiThreadedEventLoopGroup, _ reading: NIOThreadPool
  ) async {
    media.stop()
    try? await group.shutdownGracefully()
    try? await reading.shutdownGracefully()
  }
}
