import CallMessages
import Contract
import MediaModel
import Testing

/// The day on which a device was last connected (protocol section 5), for its own user.
struct SeenRules {
  private static let day = Duration.seconds(86_400)
  private let stage = Stage()

  private func seen(by client: Client, of users: [String]? = nil) throws -> [Devices.Seen]? {
    let users = users?.map(UserID.init(unchecked:)) ?? [client.user]
    return try client.get(.people(.listDevices(ListDevices(users: users))), as: Devices.self).seen
  }

  private func today(_ days: Int64 = 0) -> Timestamp {
    let milliseconds = Stage.start.milliseconds
    return Timestamp(milliseconds: milliseconds - milliseconds % 86_400_000 + days * 86_400_000)
  }

  @Test func itIsTheDayAndNothingFiner() throws {
    let phone = stage.connect("alice", "phone")
    let tablet = stage.connect("alice", "tablet")
    #expect(try seen(by: phone)?.map(\.day) == [today(), today()])
    tablet.disconnect()
    stage.advance(Self.day * 3)
    #expect(
      try seen(by: phone) == [
        Devices.Seen(device: phone.device.device, day: today(3)),
        Devices.Seen(device: tablet.device.device, day: today()),
      ])
  }

  @Test func aConnectionThatLastedCountsUntilItsEnd() throws {
    let phone = stage.connect("alice", "phone")
    let tablet = stage.connect("alice", "tablet")
    stage.advance(Self.day * 2)
    tablet.disconnect()
    stage.advance(Self.day)
    #expect(try seen(by: phone)?.last?.day == today(2))
  }

  @Test func onlyItsOwnUserHearsIt() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    #expect(try seen(by: bob, of: ["alice"]) == nil)
    #expect(try seen(by: bob, of: ["alice", "bob"])?.map(\.device) == [bob.device.device])
    #expect(try seen(by: alice)?.count == 1)
  }

  @Test func itSurvivesARestart() throws {
    let tablet = stage.connect("alice", "tablet")
    tablet.disconnect()
    stage.restart(after: Self.day * 5)
    let phone = stage.connect("alice", "phone")
    #expect(try seen(by: phone)?.map(\.day) == [today(5), today()])
  }

  @Test func aDeviceIsWrittenOnceADay() {
    let writes = { stage.writes }
    let phone = stage.connect("alice", "phone")
    phone.disconnect()
    let first = writes()
    for _ in 0..<5 { stage.connect("alice", "phone", keys: false).disconnect() }
    #expect(writes() == first)
    stage.advance(Self.day)
    stage.connect("alice", "phone", keys: false).disconnect()
    #expect(writes() == first + 1)
  }
}
