import CallMessages
import Contract
import MediaModel
import MediaPlane
import Persistence
import Recording
import Reels
import Synchronization
import Testing

@testable import ConclaveServer

/// Recordings of calls, between the calls, the store and the thread that makes reels (protocol section 13.7).
@Suite(.timeLimit(.minutes(5))) struct CallRecordingsTests {
  private static let call = CallID(unchecked: "c1")
  private static let peer = PeerID(rawValue: 9)
  private static let worker = WorkerAddress(node: Incarnation(1), worker: 0)
  private static let start: Int64 = 1_800_000_000_000_000

  private let house: RecordingHouse
  private let recording: TestRecording
  private let said = Said()

  init() async throws {
    house = try await RecordingHouse()
    recording = TestRecording(house.alice) { $0.kind = .call }
    try house.acquaint(house.alice, house.bob)
  }

  /// The words to the other threads.
  private final class Said: Sendable {
    private let state = Mutex((commands: [ReelCommand](), failures: [RecordingStopped.Reason]()))

    var commands: [ReelCommand] { state.withLock { $0.commands } }
    var failures: [RecordingStopped.Reason] { state.withLock { $0.failures } }

    func add(_ command: ReelCommand) { state.withLock { $0.commands.append(command) } }

    func add(_ command: NodeCommand) {
      if case .recordingFailed(_, _, let reason) = command { state.withLock { $0.failures.append(reason) } }
    }

    var kept: [RecordedPeer] {
      commands.compactMap { if case .keep(let kept, _, CallRecordingsTests.worker) = $0 { kept } else { nil } }
    }
    var hasEnd: Bool { commands.contains { if case .end(CallRecordingsTests.peer) = $0 { true } else { false } } }
    var hasErase: Bool { commands.contains { if case .erase(CallRecordingsTests.peer) = $0 { true } else { false } } }
    var hasMute: Bool { commands.contains { if case .media(.mute) = $0 { true } else { false } } }
    var written: Int { commands.reduce(0) { if case .written(_, let count) = $1 { $0 + count } else { $0 } } }
  }

  private func makeRecordings(running: [RecordingID: CallID] = [:]) -> CallRecordings {
    CallRecordings(
      house.service, days: 90, running: running, clock: WallClock(), submit: { [said] in said.add($0) },
      tell: { [said] in said.add($0) })
  }

  private func person(_ participant: ParticipantNumber, _ device: RecordingDevice) -> RecordedPerson {
    RecordedPerson(
      participant: participant, user: device.user, device: device.device, name: nil,
      fingerprint: Base64Bytes(device.fingerprint), keys: device.entry.keys)
  }

  private var configuration: PeerConfiguration {
    PeerConfiguration(
      peer: Self.peer, call: Self.call, participant: 2, isOnKeyList: true,
      local: ICECredentials(fragment: "a", password: "b"), remote: ICECredentials(fragment: "c", password: "d"),
      fingerprint: CertificateFingerprint(hash: "sha-256", digest: []), extensions: HeaderExtensionIDs(), tracks: [],
      slots: [])
  }

  private func kept(_ epoch: UInt32) -> RecordedPeer {
    RecordedPeer(
      recording: recording.id, call: Self.call, peer: Self.peer, participant: 2,
      keys: [RecordedPeer.Key(epoch: epoch, track: 1)])
  }

  private var trackKeys: TrackKeys {
    let keys = ExportTrackKeys(
      recording: recording.id, epoch: 7, tracks: [1], ciphertext: Base64Bytes([1]), sigAlg: "ES256",
      signature: Base64Bytes([2]))
    return TrackKeys(keys, of: 2, listHash: Base64Bytes([3]))
  }

  /// Begins the recording, to which bob agrees.
  private func begin(_ recordings: CallRecordings, grants: [RecordingGrant]? = nil) async throws {
    let body = StartCallRecording(statement: recording.statement, grants: grants, notes: nil)
    recordings.take(.change(.began(body, author: person(1, house.alice))))
    recordings.take(.change(.joined(person(2, house.bob), recording.id)))
    recordings.take(.described(configuration, Self.worker))
    recordings.take(.change(.keeps(kept(7))))
    try #require(await eventually { said.kept == [kept(7)] })
  }

  private var name: ReelName { ReelName(recording: recording.id, reel: 2, peer: Self.peer) }

  /// A whole segment, as the thread that makes reels hands it on.
  private var segment: [ReelOutput] {
    var writer = SegmentWriter()
    writer.append(RecordedStream(index: 0, n: 1, source: 1, codec: 1, layer: 0, clockRate: 48_000, epoch: 7))
    writer.append(SegmentEnd(reason: .continued, time: Self.start + 1_000))
    return [.begin(name, start: Self.start), .write(name, writer.take()), .close(name)]
  }

  private func manifest(for device: RecordingDevice) async -> RecordingManifest? {
    let request = RecordingsRequest.get(GetRecording(id: recording.id))
    guard case .success(.recording(let manifest)) = await house.ask(request, by: device) else { return nil }
    return manifest
  }

  @Test func aRecordedCallReachesItsReaders() async throws {
    let recordings = makeRecordings()
    let grant = recording.grant(to: house.bob)
    try await begin(recordings, grants: [grant])
    recordings.take(.change(.exported(trackKeys, recording.id)))
    recordings.take(.media(.mute(Self.peer, TrackID(participant: 2, index: 1), true)))
    #expect(await eventually { said.hasMute })
    recordings.take(segment)
    let byteCount = segment.reduce(0) { if case .write(_, let bytes) = $1 { $0 + bytes.count } else { $0 } }
    #expect(await eventually { said.written == byteCount })

    // While the call is recorded, only its owner sees the recording.
    let get = RecordingsRequest.get(GetRecording(id: recording.id))
    #expect(await house.error(of: get, by: house.bob)?.code == .recordingNotFound)
    #expect(house.announcements.take().isEmpty)
    #expect(await manifest(for: house.alice)?.state == .running)
    let segmentPath = "/recordings/\(recording.id.text)/2/0"
    #expect(try await house.request("GET", segmentPath, bearer: house.bob.token).status == 404)
    let delete = RecordingsRequest.delete(DeleteRecordings(ids: [recording.id]))
    #expect(await house.error(of: delete, by: house.alice)?.code == .recordingNotAllowed)
    let finish = RecordingsRequest.finish(FinishRecording(id: recording.id, reels: []))
    #expect(await house.error(of: finish, by: house.alice)?.code == .recordingNotAllowed)
    try await expectNothingElse(grant)

    recordings.take(.change(.went(recording.id, Self.peer)))
    recordings.take(.change(.ended(recording.id)))
    #expect(await eventually { said.hasEnd })
    recordings.take([.end(name)])
    var announced: [RecordingShared] = []
    #expect(
      await eventually {
        announced += house.announcements.takeShared()
        return !announced.isEmpty
      })
    let shared = RecordingShared(recording: recording.id, kind: .call, by: house.alice.address, grant: grant)
    #expect(announced == [shared])
    let seen = try #require(await manifest(for: house.bob))
    #expect(seen.state == .finished && seen.statement == recording.statement)
    #expect(seen.people == [person(1, house.alice), person(2, house.bob)] && seen.reelKeys.isEmpty)
    #expect(seen.trackKeys == [trackKeys] && seen.grants == [grant])
    #expect(seen.reels.map(\.participant) == [2] && seen.reels.first?.segments.count == 1)
    #expect(try await house.request("GET", segmentPath, bearer: house.bob.token).status == 200)
    await recordings.stop()
  }

  /// The requests of others while the call is recorded, and those that would end the recording.
  private func expectNothingElse(_ grant: RecordingGrant) async throws {
    let (id, alice, bob) = (recording.id, house.alice, house.bob)
    func code(_ request: RecordingsRequest, by device: RecordingDevice) async -> RequestError.Code? {
      await house.error(of: request, by: device)?.code
    }
    func listed(by device: RecordingDevice) async throws -> [RecordingID]? {
      guard case .recordings(let list) = try await house.ask(.list(ListRecordings()), by: device).get() else {
        return nil
      }
      return list.recordings.map(\.id)
    }
    #expect(try await listed(by: alice) == [id])
    #expect(try await listed(by: bob) == [])
    #expect(await code(.seen(SeenRecording(id: id)), by: bob) == .recordingNotFound)
    #expect(await code(.share(ShareRecording(id: id, grants: [grant])), by: alice) == .recordingNotFound)
    // Bob's is the only reel: without it the recording would be gone.
    for device in [alice, bob] {
      #expect(await code(.erase(EraseReel(id: id, participant: 2)), by: device) == .recordingNotAllowed)
    }
    #expect(await code(.erase(EraseReel(id: id)), by: house.carol) == .recordingNotFound)
    let other = TestRecording(alice, seed: 2)
    _ = try await house.start(other)
    let both = RecordingsRequest.delete(DeleteRecordings(ids: [other.id, id]))
    #expect(await code(both, by: alice) == .recordingNotAllowed)
    #expect(try house.storage.recording(other.id) != nil, "all are deleted, or none")
    #expect(house.service.followers.withLock { $0.recordings }.isEmpty, "nobody is told that it grows")
    #expect(try house.storage.recording(id)?.state == .running)
  }

  @Test func aRecordingThatIsRefusedIsToldToItsCall() async throws {
    let recordings = makeRecordings()
    var grant = recording.grant(to: house.bob)
    grant.signature = Base64Bytes([UInt8](repeating: 1, count: 64))
    let body = StartCallRecording(statement: recording.statement, grants: [grant], notes: nil)
    recordings.take(.change(.began(body, author: person(1, house.alice))))
    // Nothing of it is stored, then.
    recordings.take(.change(.joined(person(2, house.bob), recording.id)))
    recordings.take(.described(configuration, Self.worker))
    recordings.take(.change(.keeps(kept(7))))
    #expect(await eventually { said.failures == [.unavailable] })
    await recordings.stop()
    #expect(said.kept.isEmpty)
    #expect(try house.storage.recording(recording.id) == nil)
  }

  @Test func aReelThatIsErasedLeavesNothing() async throws {
    let recordings = makeRecordings()
    try await begin(recordings)
    recordings.take(segment)
    recordings.take(.change(.erased(recording.id, house.bob.user)))
    #expect(await eventually { said.hasErase })
    recordings.take([.erase(name)])
    recordings.take(.change(.ended(recording.id)))
    #expect(await eventually { said.hasEnd })
    recordings.take([.end(name)])
    await recordings.stop()
    #expect(try house.storage.recording(recording.id)?.reels.isEmpty == true)
  }

  @Test func anEarlierStayIsErasedFromTheStore() async throws {
    let recordings = makeRecordings()
    try await begin(recordings)
    recordings.take(segment)
    recordings.take(.change(.went(recording.id, Self.peer)))
    #expect(await eventually { said.hasEnd })
    recordings.take([.end(name)])
    #expect(await eventually { (try? house.storage.recording(recording.id))?.byteCount ?? 0 > 0 })
    recordings.take(.change(.erased(recording.id, house.bob.user)))
    #expect(await eventually { (try? house.storage.recording(recording.id))?.reels.isEmpty == true })
    #expect(!said.hasErase)
    await recordings.stop()
  }

  @Test func aReelFromBeforeARestartIsErasedBeforeItsParticipantSendsAgain() async throws {
    let first = makeRecordings()
    try await begin(first)
    first.take(segment)
    await first.stop()
    #expect(try house.storage.recording(recording.id)?.byteCount ?? 0 > 0)
    let second = makeRecordings(running: [recording.id: Self.call])
    second.take(.change(.joined(person(2, house.bob), recording.id)))
    second.take(.change(.keeps(kept(8))))
    second.take(.change(.erased(recording.id, house.bob.user)))
    #expect(await eventually { (try? house.storage.recording(recording.id))?.reels.isEmpty == true })
    #expect(!said.hasErase, "the thread that makes reels does not know this peer")
    await second.stop()
  }

  @Test func aStartFinishesTheRecordingsOfCallsThatAreGone() async throws {
    let first = makeRecordings()
    try await begin(first)
    await first.stop()
    #expect(try house.storage.recording(recording.id)?.state == .running)
    let second = makeRecordings(running: [recording.id: Self.call])
    await second.stop()
    #expect(try house.storage.recording(recording.id)?.state == .running, "its call goes on")
    let third = makeRecordings()
    #expect(await eventually { (try? house.storage.recording(recording.id))?.state == .finished })
    await third.stop()
  }
}
