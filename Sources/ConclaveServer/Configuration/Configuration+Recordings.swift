package import Contract
import Foundation
import Glibc
import LinuxIO
import Recording
import ReelStore

extension Configuration {
  /// The store of recordings. Without it there are none.
  package struct Recordings: Sendable {
    /// Where segments are stored; nil: `recordings` in the state folder.
    package var folder: String?
    package var days = Days()
    /// The most of one user, in MiB.
    package var userMiB = 10_240
    /// The most of all users, in MiB; 0: a quarter of the file system.
    package var totalMiB = 0
    /// Left free on the file system, in MiB.
    package var reserveMiB = 1_024
    /// How long a message may be.
    package var messageSeconds = 180
    /// How long a recording takes uploads after it was begun.
    package var ownHours = 12
    /// The people who may record calls, unless a call's policy allows less.
    package var start = Policy.Record.members
    /// A camera is stored in at most this height.
    package var cameraHeight = 720
    /// A sender encodes a layer of this height for a recording.
    package var cameraMinimum = 360

    package init() {}

    /// How long recordings are kept, by kind.
    package struct Days: Sendable {
      package var call = 90
      package var message = 30
      package var own = 365

      package init() {}
    }
  }
}

extension Configuration.Recordings: ConfigurationSection {
  static var members: [ConfigurationMember<Self>] {
    [
      .text("folder", \.folder, "Folder for recordings' segments; recordings in state by default."),
      .section("days", \.days, "How many days recordings are kept, by kind."),
      .integer("userMiB", \.userMiB, 1...1_000_000_000, "The most of one user, in MiB."),
      .integer(
        "totalMiB", \.totalMiB, 0...1_000_000_000, "The most of all users, in MiB; 0 is a quarter of the file system."),
      .integer("reserveMiB", \.reserveMiB, 0...1_000_000_000, "Left free on the file system, in MiB."),
      .integer("messageSeconds", \.messageSeconds, 1...3_600, "How long a message may be."),
      .integer("ownHours", \.ownHours, 1...720, "How long a recording takes uploads after it was begun."),
      .choice("start", \.start, "The people who may record calls; a call's policy may allow less."),
      .integer("cameraHeight", \.cameraHeight, 90...4_320, "The most lines of a camera in a call's recording."),
      .integer(
        "cameraMinimum", \.cameraMinimum, 90...4_320,
        "A sender encodes a layer of so many lines for a call's recording, and more only for others."),
    ]
  }
}

extension Configuration.Recordings.Days: ConfigurationSection {
  static var members: [ConfigurationMember<Self>] {
    [
      .integer("call", \.call, 1...3_650, "Recordings of calls."),
      .integer("message", \.message, 1...3_650, "Messages for somebody who was not reached."),
      .integer("own", \.own, 1...3_650, "Recordings of one's own."),
    ]
  }
}

extension Configuration.Recordings {
  /// - Parameter state: the state folder.
  func path(in state: String) -> String { folder ?? state + "/recordings" }

  /// - Parameter state: the state folder.
  func store(in state: String) -> RecordingStore.Configuration {
    var store = RecordingStore.Configuration(folder: path(in: state))
    store.limits.userBytes = Int64(userMiB) << 20
    store.totalBytes = totalMiB == 0 ? nil : Int64(totalMiB) << 20
    store.limits.messageSeconds = messageSeconds
    store.limits.hours = ownHours
    store.reserve = Int64(reserveMiB) << 20
    return store
  }

  /// Whether a start could use the folder; it is not made.
  /// - Returns: a remark for the operator, if any.
  /// - Throws: `ConfigurationError` if a start would fail.
  func check(in state: String) throws(ConfigurationError) -> String? {
    var path = path(in: state)
    var status = stat()
    if stat(path, &status) == 0, status.st_mode & S_IFMT != S_IFDIR {
      throw ConfigurationError("recordings.folder: \(path) is no folder; name another one")
    }
    // A start makes what is missing.
    while access(path, F_OK) != 0, path.contains("/"), path != "/" {
      path = URL(fileURLWithPath: path).deletingLastPathComponent().path
    }
    guard access(path, W_OK | X_OK) == 0 else {
      throw ConfigurationError("recordings.folder: \(path) cannot be written by this user; check its owner and mode")
    }
    guard let free = try? Files.freeBytes(at: path), free >> 20 <= Int64(reserveMiB) else { return nil }
    return
      "Nothing is recorded: \(path) has \(free >> 20) MiB free, and recordings.reserveMiB keeps \(reserveMiB). Make room, or lower it."
  }
}
