import Contract
import Foundation
import MediaModel
package import NIOCore
import NIOPosix

// Many properties: the actor is where a device's connection, calls, rings, pins and pairings meet. The rules of most are in types of their own, of which it
// holds one each.

/// A device's client for calls: it keeps one connection to the server, registers the device's keys, rings and is rung, and agrees on media keys
/// automatically.
///
/// The app handles media: a WebRTC library makes the offers, and its frames go through the call's `cipher`.
public actor CallClient {
  /// Events outside the calls, to be read by one task. While they are not read, only the newest of each call, user and kind of state waits, and beyond a
  /// limit the oldest are dropped. Pins, statements, used rings and warnings about keys are never dropped: when `securityLimit` of them wait, the client
  /// closes permanently.
  public nonisolated let events: AsyncStream<ClientEvent>

  let identity: DeviceIdentity
  let connection: SignalingConnection
  private let unread = UnreadQueue<ClientEvent>()
  /// Events that the app must keep and has not read: many more than one call causes.
  static let securityLimit = 16_384
  var generator: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
  let trust: KeyTrust
  let work: PublicWork
  var pins: Pins
  /// Public keys of other devices, learnt for any call.
  var directory = KnownKeys()
  var calls: [CallID: Ongoing] = [:]
  /// Rings that brought a key, until they are answered or over.
  var rings: [CallID: Ring] = [:]
  /// The people of the current rings.
  var rung: [CallID: RungPeople] = [:]
  var usedRecordings = UsedRecordings()
  var ringers = Ringers()
  var usedRings: UsedRings
  /// The current pairing, and when the last ones began.
  var pairing: PairingSession?
  var pairings: [Instant] = []
  /// Events of envelopes whose opening waits for other devices' public keys, by seq.
  var deliveries: [UInt64: ReceivedEvent] = [:]
  /// Joins whose reply is awaited, by call. While there are any, the call's events are kept.
  var joining: [CallID: Int] = [:]
  var early = EarlyEvents()
  var linkWaits = LinkWaits()
  /// The calls at whose door this guest waits.
  var doors: [CallID: AsyncStream<DoorAnswer>.Continuation] = [:]
  /// Calls whose state was requested. Its reply comes after everything that is requested meanwhile.
  var askedStates: Set<CallID> = []
  /// Rings whose devices are being looked up.
  var ringLookUps = 0
  /// The wake-up timer for the calls, and when it fires.
  var timer: (task: Task<Void, Never>, due: Instant)?
  private(set) var isConnected = false
  /// Counts the connections on which the device was registered.
  private var registrations = 0
  private(set) var isOver = false
  private var waitingForConnection: [Int: CheckedContinuation<Void, Never>] = [:]
  private var waiters = 0
  private var loops: [Task<Void, Never>] = []
  /// The pause before a request for which the server had no room is repeated. Each further pause is longer.
  private let pause: Duration
  private static let attempts = 3

  /// A call that this device is in. A class, because copying these values while one of them changes would copy the tables of a large call at
  /// each event.
  final class Ongoing {
    /// The state of this device in the call.
    enum Phase: Hashable {
      /// Its events belong to this participant.
      case present
      /// Rejoined, but the event that begins the new stay has not arrived: events still belong to the former participant. `keepsState`: the rejoin brought no
      /// state, so the previous state is still valid.
      case beginning(keepsState: Bool)
      /// The app leaves it: the end of this participant is not news, and nothing is sealed, opened or posted for it.
      case leaving
    }

    /// Whether the list of keys is being requested to make up for lost events.
    enum CatchUp {
      case none
      case asking
      /// More events have been lost since.
      case askingAgain
    }

    /// Whether the devices of a member are being examined.
    enum Examination {
      case none
      /// These members are next.
      case running(waiting: Set<UserID>)
    }

    var session: CallSession
    var keys: KeyAgreement
    var recovery = Recovery()
    /// The session has followed the call on this connection since its state, and no event was lost.
    var isCurrent = true
    var phase = Phase.present
    /// It has returned by itself from a broken history of lists, which it does only once.
    var hasBegunAnew = false
    /// Messages whose key has not arrived, and how many did not come from their sender or were not for this device.
    var messages = WaitingFrames<CallMessage>()
    var droppedMessages = 0
    /// Requests of the key agreement whose reply is awaited.
    var requests = 0
    var catchUp = CatchUp.none
    var examination = Examination.none
    /// Envelopes' events that have neither been acknowledged nor refused.
    var deliveries: Set<UInt64> = []
    /// Epochs of the previous participant, and when they are forgotten.
    var leftovers: (epochs: [UInt32], due: Instant)?
    var tracks = OwnTracks()
    var consent = CallConsent()
    /// The recording as the app was told last.
    var toldRecording: CallRecordingInfo?
    let stay: CurrentStay
    let cipher: FrameCipher
    let updates: UnreadQueue<CallUpdate>

    var isLeaving: Bool { phase == .leaving }

    /// The next member whose devices must be examined; nil if there is none, and the examination is over.
    func takeUnexamined() -> UserID? {
      guard case .running(var waiting) = examination else { return nil }
      // So that no copy of the set remains.
      examination = .none
      guard let user = waiting.popFirst() else { return nil }
      examination = .running(waiting: waiting)
      return user
    }

    /// `keys` without the client's knowledge of other devices.
    init(
      _ session: CallSession, _ keys: KeyAgreement, stay: CurrentStay, cipher: FrameCipher,
      updates: UnreadQueue<CallUpdate>
    ) {
      self.session = session
      self.keys = keys
      self.stay = stay
      self.cipher = cipher
      self.updates = updates
    }
  }

  /// A client for the device of `identity`. `pins`, `statements` and `usedRings` come from earlier `ClientEvent.pinned`, `.statement` and `.ringUsed`; of
  /// each device the last pin counts. `token` is asked for a JWT whenever the client connects.
  public init(
    server: ServerAddress, identity: DeviceIdentity, pins: [PinnedDevice] = [], statements: [TrustStatement] = [],
    usedRings: [UsedRing] = [], trust: KeyTrust = .firstUse, token: @escaping @Sendable () async throws -> String
  ) {
    self.init(
      server: server, identity: identity, pins: pins, statements: statements, usedRings: usedRings, trust: trust,
      group: .singletonMultiThreadedEventLoopGroup, work: PublicWork(capacity: 0), token: token)
  }

  /// As above, with its connection on the caller's event loops, and work that it shares with other clients of the process.
  package init(
    server: ServerAddress, identity: DeviceIdentity, pins: [PinnedDevice] = [], statements: [TrustStatement] = [],
    usedRings: [UsedRing] = [], trust: KeyTrust = .firstUse, group: any EventLoopGroup,
    work: PublicWork = PublicWork(capacity: 0), pause: Duration = .seconds(1),
    token: @escaping @Sendable () async throws -> String
  ) {
    self.identity = identity
    self.pause = pause
    self.trust = trust
    self.pins = Pins(pins, statements: statements)
    self.usedRings = UsedRings(usedRings)
    self.work = work
    connection = SignalingConnection(
      address: server, user: identity.user, device: identity.device, group: group, work: work, token: token)
    events = unread.stream
  }

  /// Connects, and keeps the connection until `close`. Returns once the device's keys are registered. Cancelling it ends only the waiting.
  public func connect() async throws(SignalingError) {
    if loops.isEmpty {
      loops = [
        Task { for await status in connection.statuses { await follow(status) } },
        Task { for await arrival in connection.arrivals { receive(arrival) } },
      ]
      await connection.open()
    }
    await waitForConnection()
    guard isConnected else { throw .disconnected }
  }

  /// Closes the connection and forgets all keys: nothing is received or sent any longer. `JoinedCall.leave` tells the
  /// others.
  public func close() async {
    await connection.close()
    timer?.task.cancel()
    for id in calls.keys { forget(id) }
  }

  /// Drops a call and breaks the connection without notifying the server, like an app that is killed. The client reconnects automatically, and `rejoin`
  /// returns to the call.
  package func lose(_ call: String) async {
    if let id = CallID(call) { forget(id) }
    await connection.restart()
  }

  /// Notifies the app. A server that invents devices without end must not grow the memory of an app that does not read the
  /// events.
  func tell(_ event: ClientEvent) { closeIfUnread(unread.yield(event)) }

  /// Notifies the call's app, with the same bound.
  func tell(_ warning: KeyWarning, in call: Ongoing) { closeIfUnread(call.updates.yield(.keyWarning(warning))) }

  /// - Parameter waiting: the number of elements of a queue that must not be lost.
  private func closeIfUnread(_ waiting: Int) {
    guard waiting == Self.securityLimit, !isOver else { return }
    Task { await connection.close(reason: "the app does not read the client's events") }
  }

  private func follow(_ status: SignalingConnection.Status) async {
    switch status {
    case .connected:
      guard await register() else { return }
      isConnected = true
      registrations += 1
      resumeWaiting()
      tell(.connected)
      for id in calls.keys {
        feed(.signaling(isConnected: true), to: id)
        recover(id, .signalingBack)
      }
    case .disconnected:
      isConnected = false
      tell(.disconnected)
      for id in calls.keys {
        calls[id]?.isCurrent = false
        feed(.signaling(isConnected: false), to: id)
        recover(id, .signalingLost)
      }
    case .ended(let reason):
      isConnected = false
      isOver = true
      resumeWaiting()
      tell(.ended(reason))
      unread.finish()
      timer?.task.cancel()
      for id in calls.keys { forget(id) }
    }
  }

  /// Without its keys the device is of no use: if the server refuses, the connection is over; if it does not answer, this is tried
  /// again.
  private func register() async -> Bool {
    do {
      let registration = RegisterDevice(name: nil, keys: identity.registration)
      _ = try await connection.request(.people(.registerDevice(registration)), reply: Registered.self)
      return true
    } catch .refused(let code, let message) where code != "rate.limited" {
      await connection.close(reason: "\(code): \(message)")
    } catch {
      await connection.restart()
    }
    return false
  }

  func waitForConnection() async {
    guard !isConnected, !isOver else { return }
    waiters += 1
    let waiter = waiters
    await withTaskCancellationHandler {
      await withCheckedContinuation { waitingForConnection[waiter] = $0 }
    } onCancel: {
      Task { await stopWaiting(waiter) }
    }
  }

  private func stopWaiting(_ waiter: Int) { waitingForConnection.removeValue(forKey: waiter)?.resume() }

  private func resumeWaiting() {
    for continuation in waitingForConnection.values { continuation.resume() }
    waitingForConnection = [:]
  }

  /// A request that may be repeated, because the server treats a repetition like the first one (protocol section 4, rule 14): it survives a lost
  /// connection, and a server that has no room for it at the moment.
  func requestAgain<Reply: Decodable & Sendable>(
    _ request: Request, reply: Reply.Type
  ) async throws(SignalingError) -> Reply {
    for attempt in 1...Self.attempts {
      let registration = registrations
      do {
        return try await connection.request(request, reply: reply)
      } catch .disconnected {
        // The loss of the connection may be known here before its status is.
        if registrations == registration { isConnected = false }
        await waitForConnection()
      } catch .refused(let code, let message) {
        // A newcomer of a large call requests more than its units at once.
        guard ["rate.limited", "server.busy"].contains(code), attempt < Self.attempts,
          (try? await Task.sleep(for: pause * (attempt * Int.random(in: 100...200)) / 100)) != nil
        else { throw .refused(code: code, message: message) }
      }
    }
    throw .disconnected
  }

  func perform(_ request: Request) async throws(SignalingError) {
    _ = try await connection.request(request, reply: NoBody.self)
  }

  static func identifiers(_ users: [String]) throws(SignalingError) -> [UserID] {
    let ids = users.compactMap { UserID($0) }
    guard ids.count == users.count else { throw .invalidIdentifier }
    return ids
  }

  static var now: Instant { Instant(nanoseconds: NIODeadline.now().uptimeNanoseconds) }

  /// The wall clock.
  static var clock: Timestamp { Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1_000)) }
}
