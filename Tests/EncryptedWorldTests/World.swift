import CallMessages
import Contract
import Crypto
import MediaModel
import Seeded
import Simulation

@testable import CallMachine
@testable import Calls
import struct CallMessages.EventDelivery
@testable import ConclaveClient

/// Devices with real keys and real SFrame, and the real `Node` value as their server, in virtual time. Signaling has a
/// delay with jitter for each device, but stays in order; media is fast. `Audit` checks the invariants at each frame.
final class World {
  /// Milliseconds of virtual time.
  private(set) var now: Int64 = 0
  var random: SeededGenerator
  var calls: Node
  var devices: [SimDevice] = []
  let audit = Audit()
  /// A lying server's version of an event for a device; nil withholds the event.
  var lie: ((EventMessage, Device) -> EventMessage?)?
  /// A lying server's version of a reply to a device.
  var lieInReply: ((CallMessages.Reply, Device) -> CallMessages.Reply)?
  /// A lying server's version of a request, which it handles instead.
  var alter: ((Request, Device) -> Request)?
  /// Whether no device sends media: used before the part that a test is about.
  var isSilent = false
  /// Checks each stay after each input; nil where `Audit` is enough.
  var oracles: Oracles?
  /// Events and replies are up to this many ms late, independently, so in any order.
  var disorder = 0
  /// The delay of a frame, in ms.
  var mediaDelay = 20...60
  /// The server dies at random, at one in this many commands: after storing the result, and before telling anybody.
  var mortality: Int?
  /// The fault of the clients or of the server.
  let weakness: Weakness?
  private(set) var isDown = false
  private(set) var deaths = 0

  private var agenda = Agenda()
  private var sessions: [SessionID: SimDevice] = [:]
  private var lastSession: UInt64 = 0
  private var disk = Disk()
  private var ids: SeededGenerator
  private var timeoutAt: Int64 = .max
  private static let frameInterval: Int64 = 40
  private static let beginning: Int64 = 1_790_000_000_000

  init(seed: UInt64, weakness: Weakness? = nil) {
    self.weakness = weakness
    random = SeededGenerator(seed: seed)
    ids = SeededGenerator(seed: ~seed)
    calls = Node(configuration: CallConfiguration(), hashing: Self.hashing, random: Self.numbers(ids.next()))
    tickMedia()
  }

  private static let hashing = Hashing(
    digest: { Array(SHA256.hash(data: $0)) },
    authenticationCode: { Array(HMAC<SHA256>.authenticationCode(for: $0, using: SymmetricKey(data: $1))) },
    isValid: { HMAC<SHA256>.isValidAuthenticationCode($0, authenticating: $1, using: SymmetricKey(data: $2)) },
    verifies: { signature, message, algorithm, key in
      SignAlgorithm(rawValue: algorithm)?.verifies(signature, of: message, by: key) ?? false
    })

  private static func numbers(_ seed: UInt64) -> () -> UInt64 {
    var numbers = SeededGenerator(seed: seed)
    return { numbers.next() }
  }

  /// A random UUID, version 4.
  func uuid() -> String {
    let digits = Array("0123456789abcdef")
    let text = (0..<32).map { index -> Character in
      index == 12 ? "4" : index == 16 ? digits[8 + random.below(4)] : digits[random.below(16)]
    }
    return [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(text[$0]) }.joined(separator: "-")
  }

  var timestamp: Timestamp { Timestamp(milliseconds: Self.beginning + now) }
  var instant: Instant { Instant(nanoseconds: UInt64(now + 1_000) * 1_000_000) }

  /// Adds a device, connected and registered once the world has run a little.
  @discardableResult
  func add(_ user: String, _ device: String = "phone", delay: ClosedRange<Int> = 10...50, response: Int? = 20)
    -> SimDevice
  {
    let device = SimDevice(user, device, in: self, delay: delay, response: response)
    devices.append(device)
    device.connect()
    return device
  }

  func device(_ address: Device) -> SimDevice? { devices.first { $0.address == address } }

  // MARK: time

  func at(_ delay: Int64, _ action: @escaping () -> Void) { agenda.add(at: now + max(0, delay), action) }

  func run(_ milliseconds: Int64) {
    let end = now + milliseconds
    while let next = agenda.nextTime, next <= end {
      now = max(now, next)
      agenda.popFirst()()
    }
    now = end
  }

  /// Runs until the condition holds; returns the milliseconds it took, or nil after `limit`.
  func run(until condition: () -> Bool, limit: Int64) -> Int64? {
    let start = now
    while !condition() {
      guard now - start < limit else { return nil }
      run(10)
    }
    return now - start
  }

  // MARK: the server

  func newSession(for device: SimDevice) -> SessionID {
    lastSession += 1
    let session = SessionID(rawValue: lastSession)
    sessions[session] = device
    return session
  }

  func serve(_ command: NodeCommand) {
    guard !isDown else { return }
    var command = command
    if case .request(let session, let id, let request) = command, let alter, let device = sessions[session] {
      command = .request(session, id: id, alter(request, device.address))
    }
    let keyedDevices = weakness == .keepsThoseWhoLeft ? calls.control.calls.mapValues(\.epochs.keyedDevices) : [:]
    let effects = calls.handle(command, now: timestamp)
    disk.write(effects)
    for (id, old) in keyedDevices { calls.control.calls[id]?.epochs.keyedDevices.merge(old) { new, _ in new } }
    noteGone(command)
    for (id, call) in calls.control.calls {
      audit.note(call.epochs.newest.list, epoch: call.epochs.newest.number, of: id)
    }
    if let mortality, random.below(mortality) == 0 { return killServer(for: 50 + random.below(1_500)) }
    for effect in effects {
      switch effect {
      case .client(.reply(let session, let id, let reply)):
        guard let device = sessions[session] else { continue }
        let said = lieInReply.map { $0(reply, device.address) } ?? reply
        device.sendDown(session) { $0.receive(said, to: id) }
      case .client(.event(let session, let delivery)): deliver(delivery.message, delivery.seq, session)
      case .client(.close(let session, _)): sessions[session]?.lose(session)
      default: break
      }
    }
    watchTheClock()
  }

  /// Kills the server, with all connections and media, and restarts it from its stored state.
  func killServer(for time: Int) {
    guard !isDown else { return }
    isDown = true
    deaths += 1
    sessions = [:]
    timeoutAt = .max
    for device in devices { device.loseServer() }
    at(Int64(time)) { [unowned self] in
      isDown = false
      calls = Node(
        configuration: CallConfiguration(), hashing: Self.hashing, random: Self.numbers(ids.next()),
        restoring: disk.read(), now: timestamp)
      serve(.timeout)
    }
  }

  /// Records the stays that are over: a device that left or was removed is on no list announced from now on.
  private func noteGone(_ command: NodeCommand) {
    guard case .request(let session, _, let request) = command, let asker = sessions[session] else { return }
    switch request {
    case .calls(.call(let call, .leave)): for stay in asker.stays where stay.call == call { audit.isOver(stay.joinId) }
    case .people(.removeDevice(let body)):
      let removed = device(Device(user: asker.address.user, device: body.device))
      for stay in removed?.stays ?? [] { audit.isOver(stay.joinId) }
    default: break
    }
  }

  private func deliver(_ message: EventMessage, _ seq: UInt64, _ session: SessionID) {
    guard let device = sessions[session] else { return }
    guard let message = lie.map({ $0(message, device.address) }) ?? message else { return }
    device.sendDown(session) { $0.receive(message, seq) }
  }

  private func watchTheClock() {
    guard let next = calls.nextDeadline?.milliseconds, next - Self.beginning < timeoutAt else { return }
    let due = max(next - Self.beginning, now)
    timeoutAt = due
    agenda.add(at: due) { [unowned self] in
      guard timeoutAt == due else { return }
      timeoutAt = .max
      serve(.timeout)
    }
  }

  /// Starts or stops the media of a joined device.
  func setMedia(_ isUp: Bool, of device: SimDevice, in call: CallID) {
    // A new server does not know the old one's paths.
    guard !isUp || device.stay?.isCut != true else { return }
    let own = calls.control.calls[call]?.member(device.address.user)?.participants ?? []
    guard let participant = own.first(where: { $0.device == device.address }) else { return }
    serve(.media(isUp ? .connected(participant.peer) : .disconnected(participant.peer, silence: .zero)))
  }

  // MARK: media

  private func tickMedia() {
    at(Self.frameInterval) { [unowned self] in
      oracles?.elapse(Self.frameInterval)
      for stay in isSilent ? [] : devices.compactMap(\.stay) {
        if let frame = stay.makeFrame(audit) { forward(frame, from: stay) }
      }
      tickMedia()
    }
  }

  /// Everybody, including those who have left, gets every frame of the call, and may try all keys.
  private func forward(_ frame: Sent, from sender: Stay) {
    audit.sent(frame)
    for device in devices where device !== sender.device {
      for stay in device.stays where stay.call == frame.call && (stay.isOver || !stay.isCut) {
        let delay = mediaDelay.lowerBound + random.below(mediaDelay.count)
        at(Int64(delay)) { [unowned self] in stay.open(frame, audit) }
      }
    }
  }

  // MARK: questions

  /// The joined devices, from the server's view.
  func joined(_ call: CallID) -> [SimDevice] {
    (calls.control.calls[call]?.members ?? []).compactMap { member in
      member.isJoined ? member.participant.flatMap { device($0.device) } : nil
    }
  }

  /// Whether the device in a warning has been in the call, in the stay on `viewer`'s list, for as long as signaling may
  /// be late.
  func isThere(_ warning: KeyWarning, for viewer: SimDevice) -> Bool {
    let listed = viewer.stay?.keys.listed.first { $0.fingerprint.bytes == warning.fingerprint }
    guard let listed, let joinId = listed.joinId, let device = device(listed.address) else { return false }
    return device.isConnected && device.connectedAt + 5_000 < now && device.stay?.joinId == joinId
      && !audit.hasGone(joinId)
  }

  /// Whether the device's stay is on the newest list. A device that was cut off for long is removed from it, and is
  /// told when it comes back.
  func isListed(_ device: SimDevice) -> Bool {
    calls.control.calls.values.contains { $0.epochs.newest.entry(of: device.address)?.joinId == device.stay?.joinId }
  }

  /// Whether all joined devices send under the newest key and show the same code.
  func hasConverged(_ call: CallID) -> Bool {
    guard let epochs = calls.control.calls[call]?.epochs, epochs.current == epochs.newest.number, epochs.pending == nil
    else {
      return false
    }
    let stays = joined(call).map(\.stay)
    return Set(stays.map { $0?.keys.code }).count <= 1
      && stays.allSatisfy { $0?.call == call && $0?.cipher.sendingEpoch == epochs.current }
  }
}
