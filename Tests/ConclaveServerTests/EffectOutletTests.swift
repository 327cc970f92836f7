import CallMessages
import Contract
import Foundation
import Logging
import MediaModel
import MediaPlane
import NIOPosix
import SDP
import Listening
import Synchronization
import Testing

@testable import ConclaveServer
@testable import Persistence

/// Where each effect goes, without workers and clients.
struct EffectOutletTests {
  /// Everything that was sent, in order.
  private final class Record: Sendable {
    private let words = Mutex<[String]>([])
    func add(_ word: String) { words.withLock { $0.append(word) } }
    func take() -> [String] { words.withLock { exchange(&$0, with: []) } }
  }

  private let folder = FileManager.default.temporaryDirectory.path + "/outlet-\(UUID().uuidString)"
  private let record = Record()
  private let inbox = CommandInbox()
  private let threads = NIOThreadPool(numberOfThreads: 1)
  private let measurements = Measurements()
  private let outlet: EffectOutlet
  private let session = SessionID(rawValue: 1)
  private let call = CallID(unchecked: "c")

  init() throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    outlet = try Self.makeOutlet(
      folder, record, measurements, OfferReader(threads: threads, inbox: inbox), callRecordings: nil)
  }

  private static func makeOutlet(
    _ folder: String, _ record: Record, _ measurements: Measurements, _ reader: OfferReader,
    callRecordings: CallRecordings?
  ) throws -> EffectOutlet {
    let clock = WallClock()
    return EffectOutlet(
      parts: EffectOutlet.Parts(
        clients: ControlPlane.Clients(
          deliver: { deliveries in record.add(deliveries.map(Self.word).joined(separator: ",")) },
          charge: { _, _ in }, refusal: { _ in nil }),
        media: EffectOutlet.MediaOutlet(
          submit: { command, worker in record.add("\(Self.word(command)) \(worker.worker)") }, candidates: { _ in [] }),
        archive: Archive(
          store: try SQLiteStore(path: folder + "/conclave.sqlite"), clock: clock,
          log: LimitedLog(Logger(label: "test"))),
        callRecordings: callRecordings, backEnd: nil, webPush: nil, measurements: measurements,
        answer: { command in
          if case .answer(let id, let allowed) = command { record.add("\(id.rawValue) \(allowed.count)") }
        }),
      peers: MediaPeers(
        workers: addresses(2), callShare: 40,
        fingerprint: CertificateFingerprint(hash: "sha-256", digest: Array(repeating: 7, count: 32)),
        hasTCP: false),
      reader: reader, log: CallLog(Logger(label: "test")), telemetry: nil,
      clock: clock, loop: MultiThreadedEventLoopGroup.singleton.any())
  }

  private static func word(_ delivery: Delivery) -> String {
    switch delivery {
    case .reply(_, let id, .ok): "\(id) ok"
    case .reply(_, let id, .failed(let error)): "\(id) \(error.code.rawValue)"
    case .close: "close"
    case .event, .admission, .publish: "other"
    }
  }

  private static func word(_ command: MediaCommand) -> String {
    switch command {
    case .configure: "configure"
    case .remove: "remove"
    default: "other"
    }
  }

  private func negotiate(_ peer: UInt64, id: String) -> CallMessages.Effect {
    let offer = MediaOffer(
      credentials: ICECredentials(fragment: "abcd", password: "secret"),
      fingerprint: CertificateFingerprint(hash: "sha-256", digest: Array(repeating: 1, count: 32)),
      extensions: HeaderExtensionIDs(), allowsMixedExtensions: false, sections: [])
    return .negotiate(
      session, id: id,
      Negotiate(
        peer: PeerID(rawValue: peer), call: call, participant: 1, isOnKeyList: true, member: 0, offer: offer,
        tracks: [],
        codecs: ["VP8"]))
  }

  @Test func deliveriesGoOutTogetherAndInOrder() {
    outlet.carryOut([
      .client(.reply(session, id: "a", .ok(.nothing))), .measured(QualityNumbers(rtt: 10)),
      .client(.close(session, reason: "")),
    ])
    #expect(record.take() == ["a ok,close"])
    #expect(measurements.values.roundTrip.counts.reduce(0, +) == 1)
  }

  @Test func aWorkersConfirmationAnswersTheOfferAndARemovalTheOthers() {
    outlet.carryOut([negotiate(1, id: "a"), negotiate(1, id: "b")])
    #expect(record.take() == ["configure 0", "configure 0"])
    let none = SlotMap(revision: 0, slots: [], unsupported: [])
    let reply = outlet.configured(PeerID(rawValue: 1), request: 1, slots: none)
    outlet.carryOut([reply].compactMap { $0 })
    #expect(record.take() == ["a ok"])
    outlet.carryOut([.media(.remove(PeerID(rawValue: 1))), .media(.remove(PeerID(rawValue: 1)))])
    #expect(record.take() == ["remove 0", "b call.not-joined"], "a peer that is gone has no worker")
  }

  private static func word(_ command: ReelCommand) -> String {
    switch command {
    case .keep(let kept, _, let worker): "keep \(kept.keys.count) \(worker.worker)"
    case .media(let command): word(command)
    case .end: "end"
    case .erase, .written: "other"
    }
  }

  @Test func theChangesOfARecordedPeerGoToTheThreadThatMakesReels() async throws {
    let house = try await RecordingHouse()
    let recording = TestRecording(house.alice) { $0.kind = .call }
    let words = Record()
    let recordings = CallRecordings(
      house.service, days: 90, running: [:], clock: WallClock(), submit: { words.add(Self.word($0)) }, tell: { _ in })
    let outlet = try Self.makeOutlet(
      folder, record, measurements, OfferReader(threads: threads, inbox: inbox), callRecordings: recordings)
    let peer = PeerID(rawValue: 1)
    let person = RecordedPerson(
      participant: 1, user: house.alice.user, device: house.alice.device, name: nil,
      fingerprint: Base64Bytes(house.alice.fingerprint), keys: house.alice.entry.keys)
    let kept = RecordedPeer(
      recording: recording.id, call: call, peer: peer, participant: 1,
      keys: [RecordedPeer.Key(epoch: 7, track: 1)])
    outlet.carryOut([
      .recorded(.began(StartCallRecording(statement: recording.statement, grants: nil, notes: nil), author: person)),
      .recorded(.joined(person, recording.id)), negotiate(1, id: "a"), .media(.hold(peer, true)),
      .recorded(.keeps(kept)), .media(.mute(peer, TrackID(participant: 1, index: 1), true)), negotiate(1, id: "b"),
      .recorded(.went(recording.id, peer)), .media(.hold(peer, false)),
    ])
    await recordings.stop()
    // The hold was before the peer was recorded, and the last one is after.
    #expect(words.take() == ["keep 1 0", "other", "other", "configure", "end"])
  }

  @Test func withoutABackEndNobodyIsWithinReach() {
    let alice = UserID(unchecked: "alice")
    outlet.carryOut([.ask(QuestionID(rawValue: 7), .authorize(.devices, from: alice, to: [alice]))])
    #expect(record.take() == ["7 0"])
  }
}
