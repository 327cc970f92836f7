import Foundation
import LinuxIO
import Testing

/// A folder that goes with the test.
private final class Place {
  let path = NSTemporaryDirectory() + "files-\(UInt64.random(in: .min ... .max))"

  deinit { try? FileManager.default.removeItem(atPath: path) }
}

struct FilesTests {
  private let place = Place()

  @Test func aFileIsWrittenWholeAndReadInParts() throws {
    let folder = place.path + "/a/b"
    try Files.makeFolder(folder)
    try Files.makeFolder(folder)
    let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    try Files.write(bytes, to: folder + "/1")
    #expect(Files.byteCount(of: folder + "/1") == bytes.count)
    #expect(try Files.read(folder + "/1", from: 0, count: bytes.count) == bytes)
    #expect(try Files.read(folder + "/1", from: 299_990, count: 100) == Array(bytes.suffix(10)))
    #expect(try Files.read(folder + "/1", from: 300_000, count: 100).isEmpty)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["1"], "no part is left")
  }

  @Test func filesAreTheirOwnersAlone() throws {
    try Files.makeFolder(place.path)
    try Files.write([1], to: place.path + "/1")
    func mode(_ path: String) throws -> Int? {
      try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }
    #expect(try mode(place.path) == 0o700 && mode(place.path + "/1") == 0o600)
  }

  @Test func aFileIsReplacedWhole() throws {
    try Files.makeFolder(place.path)
    for bytes in [[UInt8](repeating: 1, count: 5_000), [2], []] {
      try Files.write(bytes, to: place.path + "/1")
      #expect(try Files.read(place.path + "/1", from: 0, count: 9_999) == bytes)
    }
  }

  @Test func whereNothingCanBeWrittenTheErrorSaysSo() throws {
    try Files.makeFolder(place.path)
    #expect(throws: SystemError.self) { try Files.write([1], to: place.path + "/missing/1") }
    #expect(throws: SystemError.self) { try Files.read(place.path + "/1", from: 0, count: 1) }
    #expect(Files.byteCount(of: place.path + "/1") == nil && Files.byteCount(of: place.path) == nil)
    try Files.write([1], to: place.path + "/1")
    #expect(throws: SystemError.self) { try Files.makeFolder(place.path + "/1/a") }
  }

  /// `/dev/full` refuses each write as a full disk does.
  @Test func aFullDiskIsTold() throws {
    try Files.makeFolder(place.path)
    // The file that is written first is the device.
    try FileManager.default.createSymbolicLink(
      atPath: place.path + "/1" + Files.partial, withDestinationPath: "/dev/full")
    let error = #expect(throws: SystemError.self) { try Files.write([1], to: place.path + "/1") }
    #expect(error?.isDiskFull == true && Files.byteCount(of: place.path + "/1") == nil)
    #expect(try FileManager.default.contentsOfDirectory(atPath: place.path).isEmpty)
  }

  @Test func theRoomOnTheDiskIsKnown() throws {
    #expect(try Files.freeBytes(at: NSTemporaryDirectory()) > 0)
    #expect(throws: SystemError.self) { try Files.freeBytes(at: place.path) }
  }
}
