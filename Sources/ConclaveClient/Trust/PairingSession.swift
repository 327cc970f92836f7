import Contract
import MediaModel

/// One pairing of a new device with an existing device of its user, on either side: a value that takes the other's messages in their only order, and ends
/// at anything else.
struct PairingSession: Sendable {
  static let time: Duration = .seconds(120)

  /// Which of the two this device is.
  enum Side: Sendable { case new, existing }

  /// A message between the two, as JSON in `devices/pair`.
  struct Message: Codable, Sendable, Equatable {
    enum Step: String, Codable, Sendable { case commit, open, reveal, done, cancel }
    var session: Base64Bytes
    var step: Step
    var commit: Base64Bytes?
    var fingerprint: Base64Bytes?
    var nonce: Base64Bytes?
  }

  /// An action for the owner of the session.
  enum Action: Sendable, Equatable {
    case send(Message)
    /// The new device shows these digits, to be typed into the other one.
    case show(String)
    /// The existing device asks for the digits that the new one shows.
    case ask
    /// The typed digits are right: the device with this fingerprint is the user's.
    case trust([UInt8])
    /// The existing device has confirmed; the person is asked whether it says so, before the new device trusts this fingerprint.
    case confirmed([UInt8])
    case end
  }

  private enum Phase: Sendable { case waiting, committed, opened, typing, shown, over }

  let side: Side
  let other: DeviceID
  let due: Instant
  private let user: UserID
  private let fingerprint: [UInt8]
  private let nonce: [UInt8]
  private var session: [UInt8]
  private var phase: Phase
  private var commitment: [UInt8] = []
  private var code: PairingCode?

  /// The new device begins, towards one of its user's devices.
  static func beginning(
    _ identity: DeviceIdentity, with other: DeviceID, now: Instant, using generator: inout some RandomNumberGenerator
  ) -> (PairingSession, [Action]) {
    let session = random(16, &generator)
    var pairing = PairingSession(.new, identity, other, session, now: now, using: &generator)
    pairing.phase = .committed
    let commitment = PairingCode.commitment(
      session: session, fingerprint: identity.fingerprint, nonce: pairing.nonce)
    return (
      pairing,
      [.send(Message(session: Base64Bytes(session), step: .commit, commit: Base64Bytes(commitment)))]
    )
  }

  /// The existing device waits for `other`, at its person's request.
  static func waiting(
    _ identity: DeviceIdentity, for other: DeviceID, now: Instant, using generator: inout some RandomNumberGenerator
  ) -> PairingSession {
    PairingSession(.existing, identity, other, [], now: now, using: &generator)
  }

  private init(
    _ side: Side, _ identity: DeviceIdentity, _ other: DeviceID, _ session: [UInt8], now: Instant,
    using generator: inout some RandomNumberGenerator
  ) {
    self.side = side
    self.other = other
    due = now.advanced(by: Self.time)
    user = identity.address.user
    fingerprint = identity.fingerprint
    nonce = Self.random(32, &generator)
    self.session = session
    phase = .waiting
  }

  var isOver: Bool { phase == .over }

  /// A message of the other device. A message that is not the next step ends the session: a man in the middle must not get a second guess.
  mutating func handle(_ message: Message, from device: DeviceID, now: Instant) -> [Action] {
    guard phase != .over, device == other else { return [] }
    guard now < due, phase == .waiting || message.session.bytes == session else { return cancel() }
    switch (side, phase, message.step) {
    case (.existing, .waiting, .commit):
      guard message.session.bytes.count == 16, let commit = message.commit?.bytes, commit.count == 32 else {
        return cancel()
      }
      session = message.session.bytes
      commitment = commit
      phase = .opened
      return [.send(self.message(.open, fingerprint: fingerprint, nonce: nonce))]
    case (.new, .committed, .open):
      guard let code = code(new: (fingerprint, nonce), existing: (message.fingerprint?.bytes, message.nonce?.bytes))
      else { return cancel() }
      self.code = code
      phase = .shown
      return [.send(self.message(.reveal, fingerprint: fingerprint, nonce: nonce)), .show(code.digits)]
    case (.existing, .opened, .reveal):
      guard let code = code(new: (message.fingerprint?.bytes, message.nonce?.bytes), existing: (fingerprint, nonce)),
        code.commitment == commitment
      else { return cancel() }
      self.code = code
      phase = .typing
      return [.ask]
    case (.new, .shown, .done):
      phase = .over
      return code.map { [.confirmed($0.existingFingerprint)] } ?? [.end]
    case (_, _, .cancel):
      phase = .over
      return [.end]
    default: return cancel()
    }
  }

  /// The person typed the digits that the new device shows. `registered` is the fingerprint of that device's keys as `devices/list` has them. One try.
  mutating func type(_ digits: String, registered: [UInt8]?, now: Instant) -> [Action] {
    guard side == .existing, phase == .typing, let code, now < due, digits == code.digits,
      registered == code.newFingerprint
    else { return cancel() }
    phase = .over
    return [.send(message(.done)), .trust(code.newFingerprint)]
  }

  mutating func cancel() -> [Action] {
    guard phase != .over else { return [] }
    phase = .over
    return session.isEmpty ? [.end] : [.send(message(.cancel)), .end]
  }

  private func message(_ step: Message.Step, fingerprint: [UInt8]? = nil, nonce: [UInt8]? = nil) -> Message {
    Message(
      session: Base64Bytes(session), step: step, fingerprint: fingerprint.map { Base64Bytes($0) },
      nonce: nonce.map { Base64Bytes($0) })
  }

  private func code(
    new: (fingerprint: [UInt8]?, nonce: [UInt8]?), existing: (fingerprint: [UInt8]?, nonce: [UInt8]?)
  ) -> PairingCode? {
    guard let newFingerprint = new.fingerprint, let newNonce = new.nonce,
      let existingFingerprint = existing.fingerprint, let existingNonce = existing.nonce,
      [newFingerprint, newNonce, existingFingerprint, existingNonce].allSatisfy({ $0.count == 32 }),
      newFingerprint != existingFingerprint
    else { return nil }
    return PairingCode(
      user: user, session: session, newFingerprint: newFingerprint, existingFingerprint: existingFingerprint,
      newNonce: newNonce, existingNonce: existingNonce)
  }

  private static func random(_ count: Int, _ generator: inout some RandomNumberGenerator) -> [UInt8] {
    (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
  }
}
