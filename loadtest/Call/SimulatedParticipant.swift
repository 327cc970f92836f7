import ConclaveClient
import Foundation
import LinuxIO
import MediaModel
import NIOPosix
import Synchronization
import Transport

/// One participant: signs in, starts or accepts the call, offers its media, and records when it had everything it
/// needs.
final class SimulatedParticipant: Sendable {
  let index: Int
  let call: Int
  /// nil on a server without sign-in, which is not Conclave. `JanusRooms` joins for it there.
  let client: CallClient?
  let account: TokenSource.Account?
  let plan: CallPlan
  let isPublisher: Bool
  let moments: Mutex<Moments>
  private let rings: AsyncStream<String>
  private let ringSink: AsyncStream<String>.Continuation

  /// When joining began, when the first key was available, and when the last.
  struct Moments: Sendable {
    /// The join times of past stays.
    var joinTimes: [Duration] = []
    /// It is leaving and joining again.
    var isChanging = false
    var began: Instant?
    var keyed: Instant?
    var rekeyed: Instant?
    var number: UInt32?
    var tracks: Set<TrackKey> = []
    var failure: String?
    /// The progress of each stay; the last one is the current stay's.
    var progress: PeerProgress
    var stays: [PeerProgress]
    /// Whether the server was lost and there is no new media connection yet.
    var isAway = true
    /// The number of losses, and whether a new stay followed the last one: the server may also have kept the old stay.
    var losses = 0
    var isRejoining = false
    var absences = Absences()

    init(_ progress: PeerProgress) {
      self.progress = progress
      stays = [progress]
    }

    /// The join time of the current stay, kept after its media connection was replaced.
    private var firstJoinTime: Duration?

    mutating func move(to progress: PeerProgress) {
      firstJoinTime = joinTime
      self.progress = progress
      stays.append(progress)
    }

    /// nil while it is joining.
    var joinTime: Duration? {
      if let firstJoinTime { return firstJoinTime }
      guard let began, let keyed, let connected = progress.state.connectedAt else { return nil }
      return began.duration(to: max(keyed, connected))
    }

    /// Ends the stay; `next` follows it.
    mutating func leave(for next: PeerProgress) {
      if let joinTime { joinTimes.append(joinTime) }
      (began, keyed, number, tracks, isAway, firstJoinTime) = (nil, nil, nil, [], true, nil)
      move(to: next)
    }
  }

  /// - Parameter account: nil for a server without sign-in.
  init(
    _ account: TokenSource.Account?, index: Int, plan: CallPlan, group: MultiThreadedEventLoopGroup, work: PublicWork
  ) throws {
    if let account, case .conclave(let address) = plan.target {
      guard let identity = DeviceIdentity(user: account.user, device: account.device) else {
        throw TokenSource.Failure(description: "a token's user or device is no id of the protocol")
      }
      client = CallClient(server: address, identity: identity, group: group, work: work, token: { account.token })
    } else {
      client = nil
    }
    self.index = index
    self.plan = plan
    moments = Mutex(Moments(PeerProgress(isArriving: plan.outages || plan.isRamp)))
    self.account = account
    call = index / plan.participants
    isPublisher = index % plan.participants < plan.publishers
    (rings, ringSink) = AsyncStream.makeStream()
  }

  var progress: PeerProgress { moments.withLock(\.progress) }

  /// The tracks that it sends; empty before it has joined.
  var tracks: Set<TrackKey> { moments.withLock(\.tracks) }

  /// The time from the first request to the call until media flowed and could be encrypted; nil before.
  var joinTime: Duration? { moments.withLock(\.joinTime) }

  /// The join time of each stay.
  var joinTimes: [Duration] { moments.withLock { $0.joinTimes + ($0.joinTime.map { [$0] } ?? []) } }

  var lastKey: Instant? { moments.withLock(\.rekeyed) }

  var isAway: Bool { moments.withLock(\.isAway) }

  var failure: String? { moments.withLock(\.failure) ?? progress.state.failure }

  func fail(_ reason: String) { moments.withLock { $0.failure = $0.failure ?? reason } }

  private var signedIn: CallClient {
    get throws {
      guard let client else { throw TokenSource.Failure(description: "nobody signs in to this server") }
      return client
    }
  }

  /// Signs in. Afterwards rings are answered by `joinWhenRung`.
  func connect() async throws {
    let client = try signedIn
    let events = client.events
    let sink = ringSink
    Task {
      for await event in events {
        switch event {
        case .ring(let ring): sink.yield(ring.id)
        case .disconnected: noteLoss()
        case .connected: noteReconnection()
        default: break
        }
      }
      sink.finish()
    }
    try await client.connect()
  }

  func start(ringing callees: [String], on loop: MediaLoop, certificate: DTLSCertificate) async throws -> JoinedCall {
    begin()
    var policy = CallPolicy()
    policy.rotateMinutes = plan.rotateMinutes
    let call = try await signedIn.start(
      callees: callees, media: plan.videoKbps == nil ? .audio : .video, policy: policy)
    try await bringMedia(to: call, on: loop, certificate)
    return call
  }

  func joinWhenRung(on loop: MediaLoop, certificate: DTLSCertificate) async throws {
    for await ring in rings {
      begin()
      try await bringMedia(to: try await signedIn.accept(ring), on: loop, certificate)
      return
    }
  }

  func join(
    _ call: String, link: JoinedCall.Invitation?, on loop: MediaLoop, certificate: DTLSCertificate
  ) async throws {
    begin()
    let joined =
      if let link {
        try await signedIn.join(call, link: link.link, secret: link.secret)
      } else {
        try await signedIn.join(call)
      }
    try await bringMedia(to: joined, on: loop, certificate)
  }

  func rejoin(_ call: String, on loop: MediaLoop, certificate: DTLSCertificate) async throws {
    begin()
    try await bringMedia(to: try await signedIn.rejoin(call), on: loop, certificate)
  }

  /// Leaves the call. The end of its connection concerns only the past stay.
  func leave(_ call: String) async throws {
    try await signedIn.leave(call)
    moments.withLock { $0.leave(for: PeerProgress(isArriving: plan.churns(index))) }
  }

  func begin() { moments.withLock { $0.began = MonotonicClock.now() } }

  /// Records a join without key agreement, whose connections are being set up.
  func joined(as number: UInt32, sending tracks: Set<TrackKey>) {
    let now = MonotonicClock.now()
    moments.withLock {
      ($0.number, $0.tracks, $0.isAway) = (number, tracks, false)
      ($0.keyed, $0.rekeyed) = (now, now)
    }
  }

  private func bringMedia(to call: JoinedCall, on loop: MediaLoop, _ certificate: DTLSCertificate) async throws {
    follow(call, on: loop, certificate)
    do {
      try await connectMedia(of: call, on: loop, certificate)
    } catch SignalingError.disconnected where plan.outages {
      // Rejoins after the loss of its server.
    }
  }

  private func connectMedia(of call: JoinedCall, on loop: MediaLoop, _ certificate: DTLSCertificate) async throws {
    let participant = call.participant
    let others = plan.publishers - (isPublisher ? 1 : 0) + plan.guests.count
    let local = LocalMedia(
      sendsAudio: isPublisher, sendsVideo: isPublisher && plan.videoKbps != nil, audioSlots: others,
      videoSlots: plan.videoKbps == nil ? 0 : others, isReporting: plan.isReporting, isLayered: plan.isLayered)
    let answer = try await call.offer(
      local.offer(fingerprint: certificate.fingerprint),
      tracks: local.tracks.map { OfferedTrack(mid: $0.mid, source: $0.source) })
    var tracks: [String: TrackKey] = [:]
    for (mid, track) in answer.tracks { tracks[mid] = TrackKey(track) }
    // It has rejoined meanwhile: this answer was for the former participant.
    guard call.participant == participant else { return }
    let progress = moments.withLock {
      $0.number = participant
      $0.tracks = Set(tracks.values)
      $0.isAway = false
      return $0.progress
    }
    loop.submit(
      .add(
        PeerSetup(
          index: index, call: self.call, local: local, remote: try RemoteMedia(answer: answer.sdp),
          certificate: certificate, cipher: call.cipher, tracks: tracks, videoKbps: plan.videoKbps ?? 0,
          impairment: plan.isImpaired(index) ? plan.impairment : nil, seed: plan.seed &+ UInt64(index) << 32,
          hasGuests: !plan.guests.isEmpty, progress: progress)))
  }

  /// A new participant in the old one's place: with a new connection, since the server no longer knows the old one.
  private func comeBack(to call: JoinedCall, on loop: MediaLoop, _ certificate: DTLSCertificate) async {
    noteRejoin()
    moments.withLock { $0.move(to: PeerProgress(isArriving: true)) }
    do {
      try await connectMedia(of: call, on: loop, certificate)
    } catch SignalingError.disconnected {
      // It was lost again: another rejoin follows.
    } catch SignalingError.refused("call.not-joined", _) {
      // The request was made on the next connection: the same applies.
    } catch {
      fail("could not bring media back: \(error)")
    }
  }

  private func noteKey() {
    let now = MonotonicClock.now()
    moments.withLock {
      $0.keyed = $0.keyed ?? now
      $0.rekeyed = now
    }
  }

  /// Records keys and problems.
  private func follow(_ call: JoinedCall, on loop: MediaLoop, _ certificate: DTLSCertificate) {
    Task {
      for await update in call.updates {
        switch update {
        case .keyChanged: noteKey()
        case .warning(let refusal): fail("refused in key agreement: \(refusal)")
        case .keyWarning(let warning) where warning.problem != .mayStillHear:
          fail("warned of a key: \(warning.problem)")
        case .rejoining:
          if !plan.outages { fail("the server has given it up") }
          moments.withLock { ($0.isAway, $0.isRejoining) = (true, true) }
        case .wanted(let track, let layers):
          if let key = TrackKey(track) { loop.submit(.want(index, key, layers)) }
        case .rejoined: await comeBack(to: call, on: loop, certificate)
        case .ended(let reason): fail("the call is over: \(reason)")
        default: break
        }
      }
    }
  }
}
