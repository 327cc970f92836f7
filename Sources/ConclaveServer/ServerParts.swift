import Calls
import Connections
import Contract
import LinuxIO
import Logging
import MediaModel
import MediaPlane
import NIOPosix
import Listening
import ReelStore
import Transport

/// The parts of a server that exist before its ports are open, and the construction of the others.
struct ServerParts: Sendable {
  /// As at the start.
  let configuration: Configuration
  let logger: Logger
  let state: ServerState
  let services: ServerServices
  let links: ServerLinks
  let measurements = Measurements()

  func controlPlane(restoring stored: Stored) -> ControlPlane {
    var rules = configuration.calls(state.turn, state.clock)
    rules.pushKey = services.webPush?.publicKey
    let node = Node(
      configuration: rules, hashing: .sha256,
      random: { UInt64.random(in: .min ... .max) }, restoring: stored, now: state.clock.now())
    if let recordings = callRecordings(node.recordings) { links.recordings.set(recordings) }
    return ControlPlane(
      node: node,
      ControlPlane.Parts(
        clock: state.clock, loop: services.group.next(), disk: disk(stored.token), media: media, clients: clients,
        backEnd: services.backEnd, webPush: services.webPush, measurements: measurements, log: CallLog(logger),
        telemetry: services.spans.map(Telemetry.init)))
  }

  private func disk(_ token: FencingToken) -> ControlPlane.Disk {
    ControlPlane.Disk(
      store: state.store, token: token,
      recorder: Recorder(place: state.store.place, logger: logger, health: state.health), archive: state.archive,
      housekeeping: Housekeeping(
        store: state.store, health: state.health, clock: state.clock, historyDays: configuration.history.days,
        log: state.log), recordings: services.recordings, callRecordings: links.recordings.value)
  }

  /// - Parameter running: the recordings of calls that go on.
  private func callRecordings(_ running: [RecordingID: CallID]) -> CallRecordings? {
    guard let service = services.recordings, let days = configuration.recordings?.days.call else { return nil }
    let (media, links) = (services.media, links)
    return CallRecordings(
      service, days: days, running: running, clock: state.clock, submit: { media.submit($0) },
      tell: { links.control.value?.submit($0) })
  }

  private var media: ControlPlane.Media {
    ControlPlane.Media(
      workers: services.media, callShare: configuration.media.callShare, announced: state.announced,
      fingerprint: state.certificate.fingerprint, reading: services.reading)
  }

  private var clients: ControlPlane.Clients {
    let signaling = links.signaling
    return ControlPlane.Clients(
      deliver: { signaling.value?.clients.deliver($0) }, charge: { signaling.value?.clients.charge($0, $1) },
      refusal: { signaling.value?.clients.refusal($0) })
  }

  /// nil if the configuration lets no guests in.
  func guestEntry(_ control: ControlPlane) -> GuestEntry? {
    state.authenticator.guests.map { tokens in
      GuestEntry(
        tokens: tokens, clock: state.clock, proxies: AddressList(configuration.listen.proxies) ?? .loopback,
        calls: GuestEntry.CallLookup(
          admits: { await control.admitsGuest(by: $0, to: $1) }, runs: { await control.runs($0) },
          opened: { await control.opened($0) }, waits: { control.submit(.waitsAtLink($0)) }),
        origins: configuration.listen.originPolicy)
    }
  }

  /// nil if the configuration has none.
  func rooms() throws(ConfigurationError) -> RoomService? {
    guard let settings = configuration.janus else { return nil }
    let rooms = try RoomService(settings, state, services)
    links.rooms.set(rooms.plane)
    return rooms
  }

  /// nil if the server stores no recordings.
  func recordingFiles() -> RecordingFiles? {
    state.recordings.map {
      RecordingFiles($0, authenticator: state.authenticator, origins: configuration.listen.originPolicy)
    }
  }

  func statusPages(_ control: ControlPlane, _ guests: GuestEntry?) -> StatusPages {
    // Not the whole state, with the lock on its folder: that ends with the server.
    let (authenticator, health) = (state.authenticator, state.health)
    let (services, links, measurements) = (services, links, measurements)
    let recordings = state.recordings
    return StatusPages(
      unready: { links.unready ?? authenticator.failure ?? health.statistics.failure },
      metrics: {
        let alerts = await control.alertCounts
        let recorded = recordings.map { ($0.statistics, alerts) }
        return Metrics.text(
          media: services.media.statistics(), signaling: links.signaling.value?.statistics,
          calls: await control.counts(), lastingLinks: await control.lastingLinks(),
          outcomes: await control.callCounts,
          waitingForDisk: await control.waitingForDisk,
          backlog: control.backlog, guests: guests?.counts,
          store: health.statistics, recordings: recorded, reels: services.media.reelStatistics,
          backEnd: services.backEnd,
          webPush: services.webPush, spans: services.spans,
          measured: measurements.values, rooms: await links.rooms.value?.counts, process: ProcessFacts())
      })
  }

  /// - Parameter drain: an operator wants the server to drain.
  func adminCommands(
    _ control: ControlPlane, unready: @escaping @Sendable () -> String?, drain: @escaping @Sendable () -> Void
  ) -> AdminCommands {
    let links = links
    return AdminCommands(
      control: control, archive: state.archive, health: state.health, recordings: services.recordings,
      media: services.media, logger: logger,
      startedAt: MonotonicClock.now(),
      signaling: { links.signaling.value?.statistics }, unready: unready,
      isDraining: { links.isDraining.value != nil }, drain: drain, rooms: { links.rooms.value })
  }

  /// - Parameter configuration: that of the start, or as last read.
  func signaling(_ configuration: Configuration) -> Signaling.Configuration {
    configuration.signaling(state.files, mediaWorkers: services.media.workers, logger)
  }
}
