import CallMessages
import Contract
import MediaModel

/// A user's devices vouch for each other, revoke each other, and pair (protocol section 5, "Vouching"). The server
/// stores and forwards their signed statements; the clients that read them check the signatures.
extension People {
  static let maximumVouches = 8
  static let maximumPairingBytes = 4_096

  /// `devices/vouch`.
  mutating func vouch(_ request: DeviceStatement, by device: Device) throws(RequestError) -> Response {
    let signer = try signer(device)
    try request.check()
    let subject = Device(user: device.user, device: request.device)
    guard var entry = directory[subject]?.entry else {
      throw RequestError(.deviceNotFound, "this user has no such device with keys", field: "device")
    }
    guard subject != device else {
      throw RequestError(.requestInvalid, "a device can't vouch for itself", field: "device")
    }
    guard entry.fingerprint == request.fingerprint else {
      throw RequestError(.requestInvalid, "the device has another fingerprint now", field: "fingerprint")
    }
    let vouch = Vouch(
      device: request.device, fingerprint: request.fingerprint, by: device.device, byFingerprint: signer.fingerprint,
      at: request.at, sigAlg: request.sigAlg, signature: request.signature)
    guard !entry.vouches.contains(vouch) else { return Response(.nothing) }
    try directory.takeStatement(device.user, now: now)
    entry.vouches.removeAll { $0.by == vouch.by }
    entry.vouches.append(vouch)
    if entry.vouches.count > Self.maximumVouches { entry.vouches.removeFirst() }
    directory[subject]?.entry = entry
    journal.devices.insert(subject)
    return changed(device.user)
  }

  /// `devices/revoke`: also for a device that is gone.
  mutating func revoke(_ request: DeviceStatement, by device: Device) throws(RequestError) -> Response {
    let signer = try signer(device)
    try request.check()
    let revoke = Revoke(
      user: device.user, device: request.device, fingerprint: request.fingerprint, by: device.device,
      byFingerprint: signer.fingerprint, at: request.at, sigAlg: request.sigAlg, signature: request.signature)
    guard !directory.revokes(of: device.user).contains(revoke) else { return Response(.nothing) }
    try directory.takeStatement(device.user, now: now)
    directory.add(revoke)
    journal.revokes.insert(device.user)
    return changed(device.user)
  }

  private func changed(_ user: UserID) -> Response {
    var done = Response(.nothing)
    done.devicesChanged = user
    return done
  }

  /// `devices/pair`: to one other connected device of the user.
  mutating func pair(_ request: PairDevice, from device: Device) throws(RequestError) -> Response {
    guard request.body.bytes.count <= Self.maximumPairingBytes else {
      throw RequestError(.requestTooLarge, "a step of pairing has at most 4 KiB", field: "body")
    }
    let other = Device(user: device.user, device: request.to)
    guard other != device, directory[other]?.connection?.events != nil else {
      throw RequestError(.deviceNotFound, "this user has no other device of that name that is connected", field: "to")
    }
    try directory.takePairing(device.user, now: now)
    var done = Response(.nothing)
    done.pairing = (other, PairingMessage(from: device.device, body: request.body))
    return done
  }

  /// The keys of a device that makes a statement.
  private func signer(_ device: Device) throws(RequestError) -> DeviceEntry {
    guard let entry = directory[device]?.entry else {
      throw RequestError(.keysNotAllowed, "only a device with registered keys vouches for others, or revokes them")
    }
    return entry
  }
}

extension DeviceStatement {
  /// - Throws: `request.invalid`. The server does not examine signatures.
  fileprivate func check() throws(RequestError) {
    guard fingerprint.bytes.count == 32 else {
      throw RequestError(.requestInvalid, "a fingerprint has 32 bytes", field: "fingerprint")
    }
    guard at.isSignable else {
      throw RequestError(.requestInvalid, "at is milliseconds since 1970", field: "at")
    }
    guard (1...64).contains(sigAlg.utf8.count) else {
      throw RequestError(.requestInvalid, "an algorithm's name has 1 to 64 bytes", field: "sigAlg")
    }
    guard (1...1_024).contains(signature.bytes.count) else {
      throw RequestError(.requestInvalid, "a signature has 1 to 1,024 bytes", field: "signature")
    }
  }
}
