import CallMessages
import Contract
import MediaModel
import Octets

/// Public keys of devices (protocol section 5, "Device").
extension People {
  mutating func register(_ request: RegisterDevice, for identity: Identity) throws(RequestError) -> Response {
    guard identity.canRegister else {
      throw RequestError(.authForbidden, "a device without a name of its own can't register keys")
    }
    let keys = try checkedKeys(request.keys)
    guard request.name.map({ $0.utf8.count <= 256 && $0.isDisplayName }) ?? true else {
      throw RequestError(
        .requestInvalid, "a device's name has at most 256 bytes, a visible character and no control character",
        field: "name")
    }
    let device = identity.device
    let fingerprint = fingerprint(of: device, wrap: keys.wrap, sign: keys.sign)
    let old = directory[device]?.entry
    if old == nil { try makeRoom(for: device) }
    directory[device]?.entry = DeviceEntry(
      user: device.user, device: device.device, name: request.name, keys: [keys.wrap, keys.sign],
      fingerprint: fingerprint, registeredAt: old?.fingerprint == fingerprint ? old?.registeredAt ?? now : now,
      // They apply to a fingerprint.
      vouches: old?.fingerprint == fingerprint ? old?.vouches ?? [] : [])
    if directory[device]?.entry != old { journal.devices.insert(device) }
    var done = Response(.registered(Registered(fingerprint: fingerprint, pushKey: configuration.pushKey)))
    if old?.fingerprint != fingerprint {
      done.devicesChanged = device.user
      endLinks(of: device)
    }
    return done
  }

  func checkList(_ request: ListDevices) throws(RequestError) {
    guard request.users.count <= configuration.limits.participants else {
      throw RequestError(
        .requestTooLarge, "at most \(configuration.limits.participants) users at once", field: "users")
    }
  }

  /// The device is connected, or was until now. A day is exact enough to recognize a forgotten device, reveals no timetable, and costs one write a
  /// day.
  mutating func see(_ device: Device) {
    let day = now.day
    guard directory[device] != nil, directory[device]?.seenDay != day else { return }
    directory[device]?.seenDay = day
    if directory[device]?.entry != nil { journal.devices.insert(device) }
  }

  private func daysSeen(of user: UserID) -> [Devices.Seen] {
    directory.devices(of: user).compactMap { device in
      guard let record = directory[device], record.entry != nil else { return nil }
      let day = record.connection == nil ? record.seenDay : now.day
      return day.map { Devices.Seen(device: device.device, day: $0) }
    }
  }

  func list(_ request: ListDevices, by user: UserID, _ reach: Reach) throws(RequestError) -> Response {
    try checkList(request)
    var seen: Set<UserID> = []
    let users = request.users.filter { seen.insert($0).inserted && reach.includes($0) }
    return Response(
      .devices(
        Devices(
          devices: users.flatMap(directory.entries), revokes: users.flatMap { directory.revokes(of: $0) },
          seen: users.contains(user) ? daysSeen(of: user) : nil)))
  }

  /// Tells the joined members of each call of the user (rule 15).
  mutating func tellOfDevices(of user: UserID) {
    for call in calls(of: user) { send(.devicesChanged(user, in: call)) }
  }

  private func checkedKeys(_ keys: [DeviceKey]) throws(RequestError) -> (wrap: DeviceKey, sign: DeviceKey) {
    guard keys.count == 2, let wrap = keys.first(where: { $0.use == .wrap }),
      let sign = keys.first(where: { $0.use == .sign })
    else {
      throw RequestError(.requestInvalid, "one key for \"wrap\" and one for \"sign\" are needed", field: "keys")
    }
    for (place, key) in keys.enumerated() {
      guard (1...64).contains(key.alg.utf8.count) else {
        throw RequestError(
          .requestInvalid, "an algorithm's name has 1 to 64 bytes", field: "keys.\(place).alg")
      }
      guard (1...4_096).contains(key.publicKey.bytes.count) else {
        throw RequestError(
          .requestInvalid, "a public key (SPKI) has 1 to 4,096 bytes", field: "keys.\(place).publicKey")
      }
    }
    return (wrap, sign)
  }

  /// At the limit, forgets the oldest registration of a device that is neither connected nor in a call.
  private mutating func makeRoom(for device: Device) throws(RequestError) {
    let entries = directory.entries(of: device.user)
    guard entries.count >= configuration.maximumDevicesOfUser else { return }
    let idle = entries.filter {
      let other = Device(user: $0.user, device: $0.device)
      return !directory.isConnected(other) && !isParticipant(other)
    }
    guard let oldest = idle.min(by: { ($0.registeredAt, $0.device) < ($1.registeredAt, $1.device) }) else {
      throw RequestError(
        .serverBusy, "this user has \(configuration.maximumDevicesOfUser) devices, and all are connected")
    }
    forget(Device(user: oldest.user, device: oldest.device))
    dropVouches(by: Device(user: oldest.user, device: oldest.device))
  }

  private func fingerprint(of device: Device, wrap: DeviceKey, sign: DeviceKey) -> Base64Bytes {
    let transcript = Transcript.device(
      user: device.user.text, device: device.device.text, wrap: (wrap.alg, wrap.publicKey.bytes),
      sign: (sign.alg, sign.publicKey.bytes))
    return Base64Bytes(digest(transcript.bytes))
  }
}

extension Timestamp {
  private static let millisecondsOfDay: Int64 = 86_400_000

  /// The beginning of its day in UTC.
  fileprivate var day: Timestamp { Timestamp(milliseconds: milliseconds - milliseconds % Self.millisecondsOfDay) }
}
