@testable import PeopleMachine
@testable import CallMachine
@testable import Calls
import Contract
import MediaModel
import Testing

import CallMessages

/// `devices/remove` (protocol section 5).
struct RemovalRules {
  let stage = Stage()
  let alice: Client
  let phone: Client
  let tablet: Client

  init() {
    alice = stage.connect("alice")
    phone = stage.connect("bob", "phone")
    tablet = stage.connect("bob", "tablet")
  }

  private func remove(_ device: String, by client: Client) -> RequestError.Code? {
    client.code(.people(.removeDevice(RemoveDevice(device: DeviceID(unchecked: device)))))
  }

  @Test func theDeviceLosesItsPlaceAndTheKeysRotate() throws {
    let call = try alice.call(["bob", "nobody"])
    try phone.accept(call)
    stage.advance(.milliseconds(100))
    _ = try alice.handOut(call, 2, to: [phone])
    stage.advance(.milliseconds(100))
    for client in [alice, phone, tablet] { _ = client.events() }
    #expect(remove("phone", by: tablet) == nil)
    #expect(stage.closed == [phone.session])
    #expect(try alice.phase(of: "bob", in: call) == .left)
    #expect(tablet.events().causes == [.left])
    stage.advance(.milliseconds(100))
    let events = alice.events()
    #expect(events.causes == [.left] && events.contains(.keysDevicesChanged))
    #expect(events.rotations.first?.mode == .fresh)
    #expect(events.rotations.first?.removed == [2])
    let devices: Devices = try alice.get(.people(.listDevices(ListDevices(users: [phone.user]))))
    #expect(devices.devices.map(\.device.text) == ["tablet"])
    #expect(tablet.code(.call(call, .rejoin(tablet.join()))) == nil, "the user may come back")
  }

  @Test func onlyOnesOwn() throws {
    #expect(remove("tablet", by: alice) == .deviceNotFound)
    #expect(remove("watch", by: phone) == .deviceNotFound)
    #expect(stage.closed.isEmpty)
  }

  @Test func theDeviceThatAsksGetsItsReplyBeforeItIsClosed() throws {
    var kinds: [String] = []
    for effect in stage.node.handle(
      .request(phone.session, id: "r", .people(.removeDevice(RemoveDevice(device: phone.device.device)))),
      now: stage.now)
    {
      switch effect {
      case .client(.reply(_, _, .ok)): kinds.append("reply")
      case .client(.close(let session, let reason)):
        #expect(session == phone.session && reason == "this device was removed")
        kinds.append("close")
      case .store: break
      default: kinds.append("other")
      }
    }
    #expect(kinds == ["reply", "close"])
    #expect(stage.node.people.directory[phone.device] == nil)
    let again = stage.connect("bob", "phone")
    #expect(again.events().isEmpty)
  }

  @Test func messagesKeptForItAreForgotten() throws {
    phone.disconnect()
    let call = try alice.call(["bob"], envelopes: [alice.envelope(for: phone, epoch: 1)])
    #expect(remove("phone", by: tablet) == nil)
    #expect(stage.node.control.calls[call]?.epochs.ringEnvelopes.isEmpty == true)
    let again = stage.connect("bob", "phone", keys: false)
    #expect(again.events().rings.map { $0.envelope == nil } == [true], "it rings as for any device that connects")
    #expect(try tablet.accept(call).participant == 2)
  }

  @Test func inATransferTheOtherDeviceStays() throws {
    let call = try alice.call(["bob", "nobody"])
    try phone.accept(call)
    try tablet.transfer(call)
    #expect(remove("phone", by: tablet) == nil)
    #expect(try alice.participants(of: "bob", in: call) == [3])
    #expect(stage.node.people.isParticipant(tablet.device))
  }

  @Test func aDisconnectedOneIsLeft() throws {
    let call = try alice.call(["bob", "nobody"])
    try phone.accept(call)
    phone.disconnect()
    stage.advance(.seconds(15))
    #expect(try alice.phase(of: "bob", in: call) == .disconnected)
    #expect(remove("phone", by: tablet) == nil)
    #expect(try alice.phase(of: "bob", in: call) == .left)
  }
}
