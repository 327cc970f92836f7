import CallMessages
import Contract
import MediaModel
import MediaPlane
import Recording
import ReelStore
import Reels

/// Carries out what calls say about their recordings, in order: rows for the store, and keys for the thread that makes reels.
///
/// The calls do not wait for it. A recording that cannot be stored is told to its call, which ends it.
final class CallRecordings: Sendable {
  enum Event: Sendable {
    case change(CallRecordingChange)
    /// The tracks of a recorded peer, and the worker that has it.
    case described(PeerConfiguration, WorkerAddress)
    /// A recorded peer changed, as its worker was told.
    case media(MediaCommand)
    /// All of an ended recording is stored.
    case finished(RecordingID)
    /// The store takes no more of it.
    case failed(RecordingID, RecordingRefusal)
  }

  private let events: AsyncStream<Event>.Continuation
  private let work: Task<Void, Never>
  private let reels: CallReels

  /// - Parameters:
  ///   - running: the recordings of calls that go on after a restart. Others that the last run left are finished.
  ///   - submit: passes a command to the thread that makes reels.
  ///   - tell: passes a command to the control plane.
  init(
    _ service: RecordingService, days: Int, running: [RecordingID: CallID], clock: WallClock,
    submit: @escaping @Sendable (ReelCommand) -> Void, tell: @escaping @Sendable (NodeCommand) -> Void
  ) {
    let (stream, events) = AsyncStream.makeStream(of: Event.self)
    self.events = events
    let reels = CallReels(
      service.store,
      CallReels.Listener(
        written: { submit(.written($0, $1)) }, failed: { events.yield(.failed($0, $1)) },
        finished: { events.yield(.finished($0)) }))
    self.reels = reels
    work = Task {
      var ledger = RecordedCalls(
        service: service, reels: reels, days: days, running: running, clock: clock, submit: submit, tell: tell)
      await ledger.finishOthers()
      for await event in stream { await ledger.take(event) }
    }
  }

  /// Any thread; returns at once.
  func take(_ event: Event) { events.yield(event) }

  /// Takes the outputs of the thread that makes reels; returns at once.
  func take(_ outputs: [ReelOutput]) { reels.take(outputs) }

  /// Waits until what was made is on the disk. The thread that makes reels has ended.
  func stop() async {
    events.finish()
    await work.value
    await reels.drain()
  }
}

/// The recordings of running calls, and whose reels are written.
private struct RecordedCalls {
  /// A participant who agreed to something.
  private struct Recorded {
    var name: ReelName
    var person: RecordedPerson
    var kept: RecordedPeer
    /// The thread that makes reels knows it.
    var isPassedOn = false
  }

  let service: RecordingService
  let reels: CallReels
  let days: Int
  /// The recordings that the store has taken.
  var running: [RecordingID: CallID]
  let clock: WallClock
  let submit: @Sendable (ReelCommand) -> Void
  let tell: @Sendable (NodeCommand) -> Void
  private var peers: [PeerID: Recorded] = [:]
  /// The same, by the number of the reel.
  private var writers: [RecordingID: [ParticipantNumber: PeerID]] = [:]
  /// Persons whose peers are named by the next change.
  private var people: [RecordingID: [ParticipantNumber: RecordedPerson]] = [:]
  private var described: [PeerID: (configuration: PeerConfiguration, worker: WorkerAddress)] = [:]

  init(
    service: RecordingService, reels: CallReels, days: Int, running: [RecordingID: CallID], clock: WallClock,
    submit: @escaping @Sendable (ReelCommand) -> Void, tell: @escaping @Sendable (NodeCommand) -> Void
  ) {
    self.service = service
    self.reels = reels
    self.days = days
    self.running = running
    self.clock = clock
    self.submit = submit
    self.tell = tell
  }

  /// The calls of these ended while the server was down.
  func finishOthers() async {
    for id in service.store.runningCalls where running[id] == nil { reels.end(id) }
  }

  mutating func take(_ event: CallRecordings.Event) async {
    switch event {
    case .change(.began(let body, let author)):
      if let call = body.statement.call { await begin(body, author, call) }
    case .change(let change): await take(change)
    case .described(let configuration, let worker):
      described[configuration.peer] = (configuration, worker)
      guard let known = peers[configuration.peer] else { return }
      if known.isPassedOn {
        submit(.media(.configure(configuration, request: 0)))
      } else {
        passOn(configuration.peer)
      }
    case .media(let command):
      if let peer = command.peer, peers[peer]?.isPassedOn == true { submit(.media(command)) }
    case .finished(let id):
      running[id] = nil
      people[id] = nil
      writers[id] = nil
      await service.announceGrants(of: id)
    case .failed(let id, let refusal):
      guard let call = running[id] else { return }
      tell(.recordingFailed(call, id, RecordingStopped.Reason(refusal)))
    }
  }

  private mutating func begin(_ body: StartCallRecording, _ author: RecordedPerson, _ call: CallID) async {
    let id = body.statement.id
    do throws(RecordingRefusal) {
      try await service.begin(body, author, expiresAt: clock.now() + .seconds(86_400 * days), now: clock.now())
      running[id] = call
    } catch {
      tell(.recordingFailed(call, id, RecordingStopped.Reason(error)))
    }
  }

  private mutating func take(_ change: CallRecordingChange) async {
    switch change {
    case .began: break
    case .joined(let person, let id): if running[id] != nil { people[id, default: [:]][person.participant] = person }
    case .keeps(let kept): keep(kept)
    case .exported(let keys, let id):
      guard let peer = writers[id]?[keys.participant], let known = peers[peer] else { return }
      reels.add(keys, known.name)
    case .went(_, let peer): forget(peer)
    case .erased(let id, let user): await erase(id, user)
    case .ended(let id):
      for (peer, known) in peers where known.name.recording == id { forget(peer) }
      if running[id] != nil { reels.end(id) }
    }
  }

  private mutating func keep(_ kept: RecordedPeer) {
    guard running[kept.recording] != nil else { return }
    if peers[kept.peer] == nil {
      guard let person = people[kept.recording]?[kept.participant] else { return }
      let name = ReelName(recording: kept.recording, reel: kept.participant, peer: kept.peer)
      peers[kept.peer] = Recorded(name: name, person: person, kept: kept)
      writers[kept.recording, default: [:]][kept.participant] = kept.peer
      reels.join(person, name)
    }
    peers[kept.peer]?.kept = kept
    passOn(kept.peer)
  }

  /// Once the peer's tracks are known.
  private mutating func passOn(_ peer: PeerID) {
    guard let known = peers[peer], let (configuration, worker) = described[peer] else { return }
    peers[peer]?.isPassedOn = true
    submit(.keep(known.kept, configuration, worker: worker))
  }

  private mutating func forget(_ peer: PeerID) {
    described[peer] = nil
    guard let known = peers.removeValue(forKey: peer) else { return }
    writers[known.name.recording]?[known.name.reel] = nil
    if known.isPassedOn {
      submit(.end(peer))
    } else {
      // The thread that makes reels does not know the peer, so it reports no end.
      reels.take([.end(known.name)])
    }
  }

  /// Everything that was recorded of the user.
  private func erase(_ id: RecordingID, _ user: UserID) async {
    let written = peers.values.filter { $0.isPassedOn && $0.name.recording == id && $0.person.user == user }
    for known in written { submit(.erase(known.name.peer)) }
    // The store has reels of earlier stays, and of the time before a restart.
    let names = Set(written.map(\.name.reel))
    guard running[id] != nil, let recording = try? await service.store.recording(id) else { return }
    for reel in recording.reels where reel.user == user && !names.contains(reel.number) {
      // A failing disk is told by its counts; the person may ask again.
      _ = try? await service.store.erase(id, reel: reel.number)
    }
  }
}

extension RecordingStopped.Reason {
  init(_ refusal: RecordingRefusal) {
    self =
      switch refusal {
      case .quota: .quota
      case .diskFull: .diskFull
      case .unsigned, .notFound, .taken, .invalid, .conflict, .tooLarge, .tooLong, .drafts, .grants, .unopened, .busy,
        .unavailable:
        .unavailable
      }
  }
}
