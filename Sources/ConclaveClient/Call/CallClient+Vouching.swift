import Contract
import Foundation
import MediaModel

/// A user's devices vouch for each other (protocol section 5, "Vouching").
extension CallClient {
  /// Pairing sessions that one device may begin or answer within an hour.
  private static let pairingLimit = 5

  /// Declares to everybody that a device of this user, with exactly this fingerprint, is the user's: the person has compared it on both screens, or
  /// scanned it.
  public func vouch(for device: RegisteredDevice) async throws(SignalingError) {
    guard device.user == identity.user else { throw .invalidIdentifier }
    trust(PinnedDevice(user: device.user, device: device.device, fingerprint: device.fingerprint, isVerified: true))
    let statement = TrustStatement(
      .vouch, device: device.device, fingerprint: device.fingerprint, at: Self.clock, by: identity)
    try await perform(.people(.vouchForDevice(try body(statement))))
  }

  /// Declares to everybody that a device of this user must no longer be trusted. This is permanent. The device may
  /// already be removed.
  public func revoke(_ device: RegisteredDevice) async throws(SignalingError) {
    try checkSubject(device)
    let statement = TrustStatement(
      .revoke, device: device.device, fingerprint: device.fingerprint, at: Self.clock, by: identity)
    try await perform(.people(.revokeDevice(try body(statement))))
  }

  /// Removes one of this user's devices and declares that it must no longer be trusted.
  public func removeDevice(revoking device: RegisteredDevice) async throws(SignalingError) {
    try checkSubject(device)
    let statement = TrustStatement(
      .revoke, device: device.device, fingerprint: device.fingerprint, at: Self.clock, by: identity)
    let body = try body(statement)
    try await perform(
      .people(
        .removeDevice(
          RemoveDevice(
            device: body.device,
            revoke: RemoveDevice.Revoke(
              fingerprint: body.fingerprint, at: body.at, sigAlg: body.sigAlg, signature: body.signature)))))
  }

  /// A statement against a device names the fingerprint of that device's own keys, and this device's fingerprint only if this device is
  /// meant.
  private func checkSubject(_ device: RegisteredDevice) throws(SignalingError) {
    guard device.user == identity.user,
      (device.fingerprint == identity.fingerprint) == (device.device == identity.device)
    else { throw .invalidIdentifier }
  }

  private func body(_ statement: TrustStatement) throws(SignalingError) -> DeviceStatement {
    guard let device = DeviceID(statement.device) else { throw .invalidIdentifier }
    return DeviceStatement(
      device: device, fingerprint: Base64Bytes(statement.fingerprint), at: Timestamp(milliseconds: statement.at),
      sigAlg: statement.algorithm, signature: Base64Bytes(statement.signature))
  }

  // MARK: pairing

  /// The text that this device shows as a picture: another device of the user scans it, and vouches without digits.
  public nonisolated var scannableDevice: String { PairingCode.scanned(identity.fingerprint) }

  /// Vouches for the device of this user whose `scannableDevice` was scanned from its screen. Throws if the server does not list such a
  /// device.
  public func vouch(scanned text: String) async throws(SignalingError) {
    guard let fingerprint = PairingCode.fingerprint(scanned: text) else { throw .invalidIdentifier }
    let own = try await devices(of: [identity.user])
    guard let device = own.first(where: { $0.fingerprint == fingerprint }) else { throw .notUnderstood }
    try await vouch(for: device)
  }

  /// Begins pairing on the new device: `ClientEvent.pairing(.show)` brings the digits that the person types into `device`.
  public func beginPairing(with device: String) async throws(SignalingError) {
    guard let other = DeviceID(device) else { throw .invalidIdentifier }
    try countPairing()
    let (session, actions) = PairingSession.beginning(identity, with: other, now: Self.now, using: &generator)
    pairing = session
    await carryOut(actions)
  }

  /// Lets the new device `device` of this user pair with this one, at the person's request: `ClientEvent.pairing(.typeDigits)` asks for the digits that the
  /// new device shows.
  public func awaitPairing(with device: String) throws(SignalingError) {
    guard let other = DeviceID(device) else { throw .invalidIdentifier }
    try countPairing()
    pairing = PairingSession.waiting(identity, for: other, now: Self.now, using: &generator)
  }

  /// The six digits that the person read on the new device. If they are right, this device vouches for it. There is only one try.
  public func typePairing(_ digits: String) async throws(SignalingError) {
    guard let other = pairing?.other else { throw .notInCall }
    let own = try await devices(of: [identity.user])
    let registered = own.first { $0.device == other.text }?.fingerprint
    let actions = pairing?.type(digits, registered: registered, now: Self.now) ?? []
    await carryOut(actions)
  }

  /// On the new device: the person has seen that the other device is confirmed. This device then trusts it and vouches for it.
  public func confirmPairing(_ device: PinnedDevice) async throws(SignalingError) {
    let own = try await devices(of: [identity.user])
    guard let other = own.first(where: { $0.device == device.device && $0.fingerprint == device.fingerprint }) else {
      throw .notUnderstood
    }
    try await vouch(for: other)
  }

  /// Ends pairing.
  public func cancelPairing() async { await carryOut(pairing?.cancel() ?? []) }

  func receive(_ message: PairingMessage) {
    guard pairing != nil, message.from != identity.address.device,
      let content = try? JSONDecoder().decode(PairingSession.Message.self, from: Data(message.body.bytes))
    else { return }
    let actions = pairing?.handle(content, from: message.from, now: Self.now) ?? []
    if !actions.isEmpty { Task { await carryOut(actions) } }
  }

  private func countPairing() throws(SignalingError) {
    let now = Self.now
    pairings.removeAll { $0.duration(to: now) > .seconds(3_600) }
    guard pairings.count < Self.pairingLimit else {
      throw .refused(code: "rate.limited", message: "five pairings an hour; wait before the next")
    }
    pairings.append(now)
  }

  private func carryOut(_ actions: [PairingSession.Action]) async {
    guard let other = pairing?.other else { return }
    if pairing?.isOver == true { pairing = nil }
    for action in actions {
      switch action {
      case .send(let message):
        guard let body = try? JSONEncoder().encode(message) else { continue }
        try? await perform(.people(.pairDevice(PairDevice(to: other, body: Base64Bytes(Array(body))))))
      case .show(let digits): tell(.pairing(.showDigits(digits)))
      case .ask: tell(.pairing(.typeDigits(device: other.text)))
      case .trust(let fingerprint):
        let device = try? await devices(of: [identity.user]).first { $0.fingerprint == fingerprint }
        guard let device, (try? await vouch(for: device)) != nil else {
          tell(.pairing(.ended))
          continue
        }
        tell(.pairing(.vouched(device: other.text)))
      case .confirmed(let fingerprint):
        tell(
          .pairing(
            .confirmed(PinnedDevice(user: identity.user, device: other.text, fingerprint: fingerprint))))
      case .end: tell(.pairing(.ended))
      }
    }
  }
}

/// A step of pairing that involves the person.
public enum PairingStep: Sendable, Hashable {
  /// On the new device: show these six digits; the person types them into the other device.
  case showDigits(String)
  /// On the existing device: ask the person for the six digits that the new device shows. This device shows none.
  case typeDigits(device: String)
  /// On the existing device: it has vouched for the new one.
  case vouched(device: String)
  /// On the new device: ask "Does your other device say it is confirmed?", and if so call `CallClient.confirmPairing`.
  case confirmed(PinnedDevice)
  /// It ended without trust: the digits were wrong, it took too long, or somebody interfered.
  case ended
}
