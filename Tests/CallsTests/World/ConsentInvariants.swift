@testable import Calls
@testable import CallMachine
import Contract
import MediaModel
import Octets
import Recording
import Seeded

import CallMessages

/// The frames of a recorded call that may be stored (protocol section 13.7), derived from the requests that were answered: a frame only if its key was exported by the
/// participant, under a consent to its medium that was given before the epoch was announced.
struct ConsentInvariants {
  private struct Answer {
    /// The newest epoch when the participant agreed to each medium.
    var media: [RecordedMedium: UInt32] = [:]
    var exports: Set<RecordedPeer.Key> = []
  }

  /// A recorded call, as seen from outside.
  private struct Recorded {
    var id: RecordingID
    var answers: [ParticipantNumber: Answer] = [:]
    /// The last value that the media plane was told for each participant.
    var kept: [ParticipantNumber: RecordedPeer] = [:]
  }

  let verdict: Verdict
  private var calls: [CallID: Recorded] = [:]
  /// Participants of which something was to be stored.
  private(set) var recorded = 0

  init(_ verdict: Verdict) { self.verdict = verdict }

  /// All consents are gone.
  mutating func restart() { calls = [:] }

  /// - Parameter changes: what the store and the media plane were told in this step.
  mutating func check(_ step: WorldStep, _ changes: [CallRecordingChange]) {
    for id in step.gone { calls[id] = nil }
    for id in step.changed {
      noteRecording(id, step)
      forgetTheDeparted(id, step)
    }
    noteRequest(step)
    for change in changes { note(change) }
    for id in step.changed { check(id, step) }
  }

  private mutating func noteRecording(_ id: CallID, _ step: WorldStep) {
    let recording = step.after[id]?.recording
    if recording != calls[id]?.id { calls[id] = recording.map { Recorded(id: $0) } }
    guard let call = step.node.control.calls[id], let starter = call.recording?.starter else { return }
    verdict.require(
      .starterIsThere, call.member(starter.user)?.participant(on: starter) != nil,
      "a recording goes on without its starter"
    )
  }

  private mutating func forgetTheDeparted(_ id: CallID, _ step: WorldStep) {
    let present = Set(step.after[id]?.participants.values.map(\.participant) ?? [])
    guard var call = calls[id] else { return }
    call.answers = call.answers.filter { present.contains($0.key) }
    calls[id] = call
  }

  private mutating func noteRequest(_ step: WorldStep) {
    guard step.isOK, let asker = step.asker, case .calls(.inCall(let id, let request)) = step.request,
      let number = step.after[id]?.participants[asker]?.participant
    else { return }
    switch request {
    case .consentToRecording(let body):
      guard body.recording == calls[id]?.id else { return }
      let known = calls[id]?.answers[number]?.media ?? [:]
      let newest = step.before[id]?.newest ?? 0
      calls[id]?.answers[number, default: Answer()].media = Dictionary(
        uniqueKeysWithValues: body.media.map { ($0, known[$0] ?? newest) })
    case .exportTrackKeys(let body):
      guard body.recording == calls[id]?.id else { return }
      let keys = body.tracks.map { RecordedPeer.Key(epoch: body.epoch, track: $0) }
      calls[id]?.answers[number]?.exports.formUnion(keys)
    default: break
    }
  }

  private mutating func note(_ change: CallRecordingChange) {
    switch change {
    case .keeps(let peer):
      if !peer.keys.isEmpty { recorded += 1 }
      calls[peer.call]?.kept[peer.participant] = peer
    case .went(_, let peer):
      for (id, var call) in calls {
        call.kept = call.kept.filter { $0.value.peer != peer }
        calls[id] = call
      }
    case .began, .joined, .exported, .erased, .ended: break
    }
  }

  private func check(_ id: CallID, _ step: WorldStep) {
    guard let recorded = calls[id], let call = step.node.control.calls[id] else { return }
    for (number, peer) in recorded.kept {
      let sources = call.participant(number)?.tracks.tracks.map { ($0.id.index, $0.source) } ?? []
      let medium = Dictionary(sources) { first, _ in first }.mapValues(\.recordedMedium)
      let answer = recorded.answers[number] ?? Answer()
      let expected = answer.exports.filter { key in
        guard let agreed = medium[key.track].flatMap({ answer.media[$0] }) else { return false }
        return key.epoch > agreed && key.epoch + UInt32(RecordedPeer.epochs) > call.epochs.newest.number
      }
      verdict.require(
        .storedWithConsent, peer.keys == expected,
        "participant \(number) is stored under \(peer.keys), and agreed to \(expected)")
      verdict.require(
        .storedWithConsent,
        peer.awaited.allSatisfy { key in
          medium[key.track].flatMap { answer.media[$0] }.map { key.epoch > $0 } ?? false
        }, "frames wait for a key to which participant \(number) did not agree")
    }
    for (number, answer) in recorded.answers where !answer.media.isEmpty {
      verdict.require(.storedWithConsent, recorded.kept[number] != nil, "participant \(number) agreed in vain")
    }
  }
}

extension SimulatedWorld {
  /// A device acts on what it hears of a recording, or by itself; sometimes against the rules.
  func record(_ delivery: EventDelivery, _ place: Int) {
    guard isRecorded, !isHealing, let id = delivery.message.call, let call = node.control.calls[id] else { return }
    let device = devices[place].device
    guard let running = call.recording else {
      if consents.chance(10), let keyed = call.epochs.keyedDevices[device] {
        ask(place, .inCall(id, .startRecording(StartCallRecording(statement: statement(id, by: keyed)))))
      }
      return
    }
    switch delivery.message.body {
    case .recordingStarted: if consents.chance(80) { consent(place, id, running) }
    case .state: if consents.chance(50) { consent(place, id, running) }
    case .rotate(let rotate): export(place, id, running, rotate.epoch)
    default:
      guard consents.chance(5) else { return }
      switch consents.below(10) {
      case 0: ask(place, .inCall(id, .stopRecording(StopCallRecording(recording: running.id))))
      case 1...5: consent(place, id, running)
      default: export(place, id, running, call.epochs.newest.number)
      }
    }
  }

  private func statement(_ call: CallID, by keyed: KeyedDevice) -> RecordingStatement {
    let id = RecordingID((0..<16).map { _ in UInt8(truncatingIfNeeded: consents.next()) })!
    let all: [RecordedMedium] = consents.chance(80) ? RecordedMedium.allCases : [.audio]
    return RecordingStatement.signed(id, of: call, media: all, by: keyed.device, keyed.keys, digest: Stage.digest)
  }

  private func consent(_ place: Int, _ call: CallID, _ running: CallRecording) {
    let media = RecordedMedium.allCases.filter { _ in consents.chance(60) }
    let erases = media.isEmpty && consents.chance(50)
    ask(
      place,
      .inCall(
        call,
        .consentToRecording(ConsentToRecording(recording: running.id, media: media, erase: erases ? true : nil))))
  }

  private func export(_ place: Int, _ call: CallID, _ running: CallRecording, _ epoch: UInt32) {
    let all = (try? node.control.calls[call]?.participant(of: devices[place].device))?.tracks.tracks ?? []
    let tracks = all.map(\.id.index).filter { _ in consents.chance(60) }
    for track in tracks where consents.chance(70) {
      ask(place, .inCall(call, .exportTrackKeys(.of([track], running.id, epoch))))
    }
    if running.starter == devices[place].device, consents.chance(80) {
      ask(place, .inCall(call, .exportTrackKeys(.of([], running.id, epoch))))
    }
  }
}

extension RecordingStatement {
  /// - Parameter digest: makes the signatures that `SimulatedWords` verifies.
  static func signed(
    _ id: RecordingID, of call: CallID, media: [RecordedMedium], by device: Device, _ keys: DeviceEntry,
    digest: ([UInt8]) -> [UInt8]
  ) -> RecordingStatement {
    let key = keys.keys.first { $0.use == .sign }
    var statement = RecordingStatement(
      id: id, kind: .call, call: call, publicKey: Base64Bytes([UInt8](repeating: 4, count: 91)), media: media,
      readers: [device.user], at: Stage.start, by: device, sigAlg: key?.alg ?? "", signature: Base64Bytes([]))
    statement.sign(keys, digest: digest)
    return statement
  }

  mutating func sign(_ keys: DeviceEntry, digest: ([UInt8]) -> [UInt8]) {
    let key = keys.keys.first { $0.use == .sign }?.publicKey.bytes ?? []
    signature = Base64Bytes(digest(key + Transcript.recording(self, fingerprint: keys.fingerprint.bytes).bytes))
  }
}

extension ExportTrackKeys {
  static func of(_ tracks: [UInt8], _ recording: RecordingID, _ epoch: UInt32) -> ExportTrackKeys {
    ExportTrackKeys(
      recording: recording, epoch: epoch, tracks: tracks,
      ciphertext: Base64Bytes([UInt8](repeating: 5, count: 81 + 45 * tracks.count)), sigAlg: "ES256",
      signature: Base64Bytes([1]))
  }
}
