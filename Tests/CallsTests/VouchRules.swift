import CallMessages
import Contract
import MediaModel
import Testing

/// Vouches, revokes and pairing (protocol section 5, "Vouching").
struct VouchRules {
  let stage = Stage()
  let alice: Client
  let phone: Client
  let tablet: Client

  init() {
    alice = stage.connect("alice")
    phone = stage.connect("bob", "phone")
    tablet = stage.connect("bob", "tablet")
  }

  private func devices(_ client: Client? = nil, of user: String = "bob") throws -> Devices {
    try (client ?? alice).get(.people(.listDevices(ListDevices(users: [UserID(unchecked: user)]))))
  }

  private func fingerprint(_ device: String) throws -> Base64Bytes {
    try #require(try devices().devices.first { $0.device.text == device }).fingerprint
  }

  private func statement(_ device: String, _ fingerprint: Base64Bytes, _ byte: UInt8 = 1) -> DeviceStatement {
    DeviceStatement(
      device: DeviceID(unchecked: device), fingerprint: fingerprint, at: stage.now, sigAlg: "ES256",
      signature: Base64Bytes([byte]))
  }

  private func register(_ client: Client, _ byte: UInt8) {
    var keys = client.keys
    keys[1].publicKey.bytes.append(byte)
    _ = client.ask(.people(.registerDevice(RegisterDevice(name: nil, keys: keys))))
  }

  @Test func aVouchIsListedWithItsSignerAndToldToTheCall() throws {
    let call = try alice.call(["bob"])
    try phone.accept(call)
    _ = alice.events()
    let subject = try fingerprint("tablet")
    #expect(phone.code(.people(.vouchForDevice(statement("tablet", subject)))) == nil)
    #expect(alice.names() == [.keysDevicesChanged])
    let entry = try #require(try devices().devices.first { $0.device.text == "tablet" })
    #expect(
      entry.vouches == [
        Vouch(
          device: tablet.device.device, fingerprint: subject, by: phone.device.device,
          byFingerprint: try fingerprint("phone"), at: stage.now, sigAlg: "ES256", signature: Base64Bytes([1]))
      ])
    #expect(phone.code(.people(.vouchForDevice(statement("tablet", subject)))) == nil)
    #expect(alice.events().isEmpty, "the same again changes nothing")
    #expect(phone.code(.people(.vouchForDevice(statement("tablet", subject, 2)))) == nil)
    #expect(try devices().devices[1].vouches.map(\.signature.bytes) == [[2]], "a newer one takes its place")
  }

  @Test func onlyOnesOwnDevicesAsTheyAreAreVouchedFor() throws {
    let subject = try fingerprint("tablet")
    func code(_ client: Client, _ statement: DeviceStatement) -> String? {
      guard case .failed(let error) = client.ask(.people(.vouchForDevice(statement))) else { return nil }
      return "\(error.code.rawValue) \(error.field ?? "")"
    }
    #expect(code(alice, statement("tablet", subject)) == "device.not-found device")
    #expect(code(phone, statement("watch", subject)) == "device.not-found device")
    #expect(code(phone, statement("phone", try fingerprint("phone"))) == "request.invalid device")
    #expect(code(phone, statement("tablet", try fingerprint("phone"))) == "request.invalid fingerprint")
    #expect(code(phone, statement("tablet", Base64Bytes([1]))) == "request.invalid fingerprint")
    let keyless = stage.connect("bob", "watch", keys: false)
    #expect(code(keyless, statement("tablet", subject)) == "keys.not-allowed ")
    var odd = statement("tablet", subject)
    odd.at = Timestamp(milliseconds: -1)
    #expect(code(phone, odd) == "request.invalid at")
    odd = statement("tablet", subject)
    odd.signature = Base64Bytes([])
    #expect(code(phone, odd) == "request.invalid signature")
    odd = statement("tablet", subject)
    odd.sigAlg = String(repeating: "a", count: 65)
    #expect(code(phone, odd) == "request.invalid sigAlg")
    #expect(try devices().devices.allSatisfy { $0.vouches.isEmpty })
  }

  @Test func aVouchGoesWithTheKeysThatItIsForAndWithTheDeviceThatMadeIt() throws {
    #expect(phone.code(.people(.vouchForDevice(statement("tablet", try fingerprint("tablet"))))) == nil)
    register(tablet, 5)
    #expect(try devices().devices.allSatisfy { $0.vouches.isEmpty })
    #expect(phone.code(.people(.vouchForDevice(statement("tablet", try fingerprint("tablet"))))) == nil)
    #expect(tablet.code(.people(.removeDevice(RemoveDevice(device: phone.device.device)))) == nil)
    #expect(try devices().devices.map(\.vouches) == [[]])
  }

  @Test func aDeviceHasEightVouches() throws {
    let subject = try fingerprint("tablet")
    for number in 0..<10 {
      #expect(stage.connect("bob", "d\(number)").code(.people(.vouchForDevice(statement("tablet", subject)))) == nil)
    }
    let entry = try #require(try devices().devices.first { $0.device.text == "tablet" })
    #expect(entry.vouches.map(\.by.text) == (2..<10).map { "d\($0)" })
  }

  @Test func aRevokeOutlivesTheDeviceAndARestart() throws {
    let subject = try fingerprint("tablet")
    let signed = RemoveDevice.Revoke(
      fingerprint: subject, at: stage.now, sigAlg: "ES256", signature: Base64Bytes([7]))
    let call = try alice.call(["bob"])
    try phone.accept(call)
    _ = alice.events()
    #expect(phone.code(.people(.removeDevice(RemoveDevice(device: tablet.device.device, revoke: signed)))) == nil)
    #expect(alice.names() == [.keysDevicesChanged], "told once")
    let listed = try devices()
    #expect(listed.devices.map(\.device.text) == ["phone"])
    #expect(listed.revokes.map(\.device.text) == ["tablet"] && listed.revokes.map(\.by.text) == ["phone"])
    #expect(phone.code(.people(.revokeDevice(statement("old", Base64Bytes([UInt8](repeating: 5, count: 32)))))) == nil)
    stage.restart()
    #expect(try devices(stage.connect("alice")).revokes.map(\.device.text) == ["tablet", "old"])
    stage.handle(.forget(phone.user))
    #expect(try devices(stage.connect("carol")).revokes.isEmpty)
    stage.restart()
    #expect(try devices(stage.connect("carol")).revokes.isEmpty)
  }

  /// A thief with a device may sign anything: the owner's revokes stay.
  @Test func aThiefsRevokesPushOutNoOthers() throws {
    #expect(phone.code(.people(.revokeDevice(statement("tablet", try fingerprint("tablet"))))) == nil)
    for number in 0..<100 {
      stage.advance(.seconds(2))
      let fingerprint = Base64Bytes([UInt8](repeating: UInt8(number), count: 32))
      #expect(tablet.code(.people(.revokeDevice(statement("x", fingerprint)))) == nil)
    }
    let revokes = try devices().revokes
    #expect(revokes.count == 64 && revokes.contains { $0.by == phone.device.device })
  }

  @Test func statementsAreLimited() throws {
    let codes = (0..<70).map { number in
      tablet.code(.people(.revokeDevice(statement("x", Base64Bytes([UInt8](repeating: UInt8(number), count: 32))))))
    }
    #expect(codes.prefix(60).allSatisfy { $0 == nil } && codes.suffix(10).allSatisfy { $0 == .rateLimited })
  }

  // MARK: pairing

  private func pair(_ client: Client, _ device: String, _ bytes: Int = 1) -> RequestError.Code? {
    let body = Base64Bytes([UInt8](repeating: 3, count: bytes))
    return client.code(.people(.pairDevice(PairDevice(to: DeviceID(unchecked: device), body: body))))
  }

  @Test func aStepReachesTheOneDeviceAlone() throws {
    #expect(pair(phone, "tablet") == nil)
    let delivery = try #require(tablet.deliveries().first)
    #expect(delivery.message.call == nil)
    #expect([delivery.message.body].pairings == [PairingMessage(from: phone.device.device, body: Base64Bytes([3]))])
    #expect(phone.events().isEmpty && alice.events().isEmpty)
    #expect(pair(phone, "tablet", 4_096) == nil && pair(phone, "tablet", 4_097) == .requestTooLarge)
  }

  @Test func onlyADeviceThatIsThereIsReachedAndNothingIsKept() throws {
    #expect(pair(phone, "phone") == .deviceNotFound)
    #expect(pair(phone, "watch") == .deviceNotFound)
    #expect(pair(alice, "tablet") == .deviceNotFound)
    tablet.disconnect()
    #expect(pair(phone, "tablet") == .deviceNotFound)
    #expect(stage.connect("bob", "tablet").events().isEmpty)
  }

  @Test func tenStepsAMinute() throws {
    let codes = (0..<12).map { pair($0 % 2 == 0 ? phone : tablet, $0 % 2 == 0 ? "tablet" : "phone") }
    #expect(codes.prefix(10).allSatisfy { $0 == nil } && codes.suffix(2).allSatisfy { $0 == .rateLimited })
    stage.advance(.seconds(6))
    #expect(pair(phone, "tablet") == nil && pair(phone, "tablet") == .rateLimited)
  }
}
