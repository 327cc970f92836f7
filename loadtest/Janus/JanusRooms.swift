import ConclaveClient
import LinuxIO
import MediaModel
import Synchronization
import Transport

/// The calls of a test as rooms of Janus's VideoRoom plugin. A participant has one connection to send and another to
/// receive.
struct JanusRooms: Sendable {
  let plan: CallPlan
  let certificate: DTLSCertificate
  private let session: JanusSession
  /// The first room's number, chosen so that rooms of an earlier run do not collide.
  private let first = UInt64.random(in: 1...1 << 40)
  /// The participants that send, by call.
  private let senders = Senders()

  private final class Senders: Sendable {
    private let numbers = Mutex<[Int: [ParticipantNumber]]>([:])
    func add(_ number: ParticipantNumber, to call: Int) { numbers.withLock { $0[call, default: []].append(number) } }
    func all(of call: Int) -> [ParticipantNumber] { numbers.withLock { $0[call] ?? [] } }
  }

  // MARK: The plugin's requests (https://janus.conf.meetecho.com/docs/videoroom)

  private struct Room: Encodable {
    var request = "create"
    var room: UInt64
    var publishers: Int
    /// The number of publishers is not limited.
    var bitrate = 0
    var audiocodec = "opus"
    var videocodec = "vp8"
    var hasTransportFeedback = false

    enum CodingKeys: String, CodingKey {
      case request, room, publishers, bitrate, audiocodec, videocodec
      case hasTransportFeedback = "transport_wide_cc_ext"
    }
  }

  private struct Publication: Encodable {
    var request = "joinandconfigure"
    var ptype = "publisher"
    var room: UInt64
    var id: ParticipantNumber
  }

  private struct Subscription: Encodable {
    struct Stream: Encodable { var feed: ParticipantNumber }
    var request = "join"
    var ptype = "subscriber"
    var room: UInt64
    var streams: [Stream]
  }

  private struct Start: Encodable { var request = "start" }

  /// Participants that join at a time.
  private static let joinWindow = 16
  private static let pollInterval = Duration.milliseconds(10)

  /// - Parameter url: of the API.
  init(_ plan: CallPlan, url: String, certificate: DTLSCertificate) async throws {
    self.plan = plan
    self.certificate = certificate
    session = try await JanusSession.open(url)
    do {
      let handle = try await session.attach()
      for call in 0..<plan.calls {
        _ = try await session.ask(handle, Room(room: first + UInt64(call), publishers: plan.publishers))
      }
    } catch {
      await session.close()
      throw error
    }
  }

  func close() async { await session.close() }

  /// Participants that send join first, so that everybody can subscribe to their streams.
  func join(_ participants: [SimulatedParticipant], on loops: [MediaLoop], _ pace: JoinPace?) async {
    await forEach(participants.filter(\.isPublisher), nil) { participant in
      participant.begin()
      try await publish(participant, on: loops[participant.index % loops.count])
    }
    await forEach(participants, pace) { participant in
      if !participant.isPublisher { participant.begin() }
      try await subscribe(participant, on: loops[participant.index % loops.count])
    }
  }

  private func forEach(
    _ participants: [SimulatedParticipant], _ pace: JoinPace?,
    _ body: @escaping @Sendable (SimulatedParticipant) async throws -> Void
  ) async {
    await withTaskGroup(of: Void.self) { group in
      for (place, participant) in participants.enumerated() where participant.failure == nil && !Interrupt.hasCome {
        if place >= Self.joinWindow { await group.next() }
        await pace?.wait()
        group.addTask {
          do {
            try await body(participant)
          } catch {
            participant.fail("could not join: \(error)")
          }
        }
      }
    }
  }

  private func room(of participant: SimulatedParticipant) -> UInt64 { first + UInt64(participant.call) }

  private func number(of participant: SimulatedParticipant) -> ParticipantNumber {
    ParticipantNumber(participant.index + 1)
  }

  /// The track of a sender's m-line.
  private func track(_ mid: String, of participant: ParticipantNumber) -> TrackKey? {
    UInt8(mid).map { TrackKey(participant: participant, track: $0 + 1) }
  }

  private func publish(_ participant: SimulatedParticipant, on loop: MediaLoop) async throws {
    let number = number(of: participant)
    let local = LocalMedia(sendsAudio: true, sendsVideo: plan.videoKbps != nil, audioSlots: 0, videoSlots: 0)
    let handle = try await session.attach()
    // Janus is the DTLS server, like Conclave.
    let offer = local.offer(fingerprint: certificate.fingerprint, setup: "active")
    let answer = try await session.ask(
      handle, Publication(room: room(of: participant), id: number), .init(type: "offer", sdp: offer))
    guard let answer = answer.jsep else { throw JanusSession.Failure(description: "Janus answered no offer") }
    try await session.endCandidates(handle)
    let tracks = Dictionary(
      uniqueKeysWithValues: local.tracks.compactMap { sent in
        track(sent.mid, of: number).map { (sent.mid, $0) }
      })
    let cipher = FrameCipher(withoutSecrecy: number, others: [])
    let progress = PeerProgress()
    loop.submit(
      .add(try setup(participant, local, answer.sdp, cipher: cipher, tracks: tracks, isSecond: false, progress)))
    try await waitUntilConnected(progress)
    participant.joined(as: number, sending: Set(tracks.values))
    senders.add(number, to: participant.call)
  }

  private func subscribe(_ participant: SimulatedParticipant, on loop: MediaLoop) async throws {
    let number = number(of: participant)
    let others = senders.all(of: participant.call).filter { $0 != number }
    if !participant.isPublisher { participant.joined(as: number, sending: []) }
    guard !others.isEmpty else { return participant.progress.connected(at: MonotonicClock.now()) }
    let handle = try await session.attach()
    let answer = try await session.ask(
      handle, Subscription(room: room(of: participant), streams: others.map { .init(feed: $0) }))
    guard let offer = answer.jsep, let streams = answer.plugindata?.data.streams else {
      throw JanusSession.Failure(description: "Janus offered no streams")
    }
    let local = LocalMedia(sendsAudio: false, sendsVideo: false, audioSlots: others.count, videoSlots: others.count)
    let cipher = FrameCipher(withoutSecrecy: number, others: others)
    var slots: [String: TrackID] = [:]
    for stream in streams {
      guard let feed = stream.feed, let mid = stream.feedMid,
        let key = track(mid, of: ParticipantNumber(truncatingIfNeeded: feed))
      else { continue }
      slots[stream.mid] = TrackID(participant: key.participant, index: key.track)
    }
    cipher.assign(slots, now: MonotonicClock.now())
    loop.submit(
      .add(
        try setup(
          participant, local, offer.sdp, cipher: cipher, tracks: [:], isSecond: true, participant.progress)))
    let description = local.answer(offer.sdp, fingerprint: certificate.fingerprint)
    _ = try await session.ask(handle, Start(), .init(type: "answer", sdp: description))
    try await session.endCandidates(handle)
  }

  private func setup(
    _ participant: SimulatedParticipant, _ local: LocalMedia, _ remote: String, cipher: FrameCipher,
    tracks: [String: TrackKey], isSecond: Bool, _ progress: PeerProgress
  ) throws -> PeerSetup {
    PeerSetup(
      index: participant.index, call: participant.call, isSecond: isSecond, local: local,
      remote: try RemoteMedia(answer: remote), certificate: certificate, cipher: cipher, tracks: tracks,
      videoKbps: plan.videoKbps ?? 0, impairment: plan.isImpaired(participant.index) ? plan.impairment : nil,
      seed: plan.seed &+ UInt64(participant.index) << 32, hasGuests: false, progress: progress)
  }

  private func waitUntilConnected(_ progress: PeerProgress) async throws {
    let deadline = MonotonicClock.now().advanced(by: plan.joinTimeout)
    while progress.state.connectedAt == nil {
      if let failure = progress.state.failure { throw JanusSession.Failure(description: failure) }
      guard MonotonicClock.now() < deadline else {
        throw JanusSession.Failure(description: "no connection to send over within \(plan.joinTimeout)")
      }
      try await Task.sleep(for: Self.pollInterval)
    }
  }
}
