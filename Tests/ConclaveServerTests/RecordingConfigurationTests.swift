import Contract
import Foundation
import Recording
import ReelStore
import Testing

@testable import ConclaveServer

/// `recordings` in the configuration.
struct RecordingConfigurationTests {
  private func recordings(_ json: String) throws -> Configuration.Recordings? {
    try Configuration(json: Array(json.utf8)).recordings
  }

  @Test func withoutTheMemberThereAreNone() throws {
    #expect(try recordings("{}") == nil)
    #expect(try recordings(#"{"recordings":null}"#) == nil)
  }

  @Test func anEmptyObjectHasTheDefaults() throws {
    let store = try #require(try recordings(#"{"recordings":{}}"#)).store(in: "/state")
    #expect(store.folder == "/state/recordings" && store.totalBytes == nil)
    #expect(store.limits.userBytes == 10 << 30 && store.reserve == 1 << 30)
    #expect(store.limits.messageSeconds == 180 && store.limits.hours == 12)
    let read = Configuration.Recordings()
    #expect(read.start == .members && read.days.call == 90 && read.cameraHeight == 720 && read.cameraMinimum == 360)
  }

  @Test func eachMemberCounts() throws {
    let json = #"""
      {"recordings":{"folder":"/mnt/r","days":{"call":6,"message":7,"own":8},"userMiB":3,"totalMiB":4,"reserveMiB":5,
       "messageSeconds":60,"ownHours":2,"start":"initiator","cameraHeight":360,"cameraMinimum":180}}
      """#
    let read = try #require(try recordings(json))
    let store = read.store(in: "/state")
    #expect(store.folder == "/mnt/r" && store.totalBytes == 4 << 20 && store.reserve == 5 << 20)
    #expect(store.limits.userBytes == 3 << 20 && store.limits.messageSeconds == 60 && store.limits.hours == 2)
    #expect(read.days.call == 6 && read.days.message == 7 && read.days.own == 8)
    #expect(read.start == .initiator && read.cameraHeight == 360 && read.cameraMinimum == 180)
  }

  @Test(arguments: ["userMiB", "messageSeconds", "ownHours", "cameraHeight", "cameraMinimum", "days"])
  func aValueOutOfRangeIsNamed(member: String) {
    let value = member == "days" ? #"{"own":0}"# : "0"
    let error = #expect(throws: ConfigurationError.self) { try recordings("{\"recordings\":{\"\(member)\":\(value)}}") }
    #expect(error?.description.contains("recordings.\(member)") == true)
  }

  // MARK: check-config

  private func withFolder(_ body: (String) throws -> Void) throws {
    let path = NSTemporaryDirectory() + "recordings-\(UInt64.random(in: .min ... .max))"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: path) }
    try body(path)
  }

  @Test func aFolderThatAStartMakesIsRight() throws {
    try withFolder { path throws in
      var recordings = Configuration.Recordings()
      recordings.reserveMiB = 0
      #expect(try recordings.check(in: path + "/state/deeper") == nil)
      #expect(try FileManager.default.contentsOfDirectory(atPath: path).isEmpty, "nothing is made")
    }
  }

  @Test func aFileInItsPlaceIsAFault() throws {
    try withFolder { path throws in
      try Data().write(to: URL(fileURLWithPath: path + "/recordings"))
      let error = #expect(throws: ConfigurationError.self) { try Configuration.Recordings().check(in: path) }
      #expect(error?.description.contains("recordings.folder: \(path)/recordings is no folder") == true)
    }
  }

  @Test func aDiskWithTooLittleRoomIsRemarked() throws {
    try withFolder { path throws in
      var recordings = Configuration.Recordings()
      recordings.reserveMiB = 1_000_000_000
      let remark = try recordings.check(in: path)
      #expect(remark?.contains("recordings.reserveMiB") == true && remark?.contains("Nothing is recorded") == true)
    }
  }
}
