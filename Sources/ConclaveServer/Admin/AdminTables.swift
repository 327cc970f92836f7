import Calls
import Contract
import Foundation
import JSON
import MediaModel

/// The replies of the admin socket as text for people.
enum AdminTables {
  /// - Throws: `JSONError` for a reply of another version.
  static func text(of reply: [UInt8], to command: AdminRequest.Command, now: Timestamp) throws(JSONError) -> String {
    switch command {
    case .status: return text(try JSONCoding.decode(AdminStatus.self, from: reply))
    case .calls: return text(try JSONCoding.decode(AdminCalls.self, from: reply), now: now)
    case .call: return text(try JSONCoding.decode(CallInspection.self, from: reply), now: now)
    case .users: return text(try JSONCoding.decode(AdminUsers.self, from: reply))
    case .reports: return text(try JSONCoding.decode(AdminReports.self, from: reply))
    case .report: return text(try JSONCoding.decode(StoredReport.self, from: reply))
    case .recordings: return text(try JSONCoding.decode(AdminRecordings.self, from: reply))
    case .rooms: return text(try JSONCoding.decode(AdminRooms.self, from: reply))
    case .end, .disconnect, .drain, .deleteRecording: return try JSONCoding.decode(AdminDone.self, from: reply).done
    }
  }

  private static func text(_ status: AdminStatus) -> String {
    let media = status.workers.map { "\($0.connected) of \($0.peers)" }.joined(separator: ", ")
    let warnings = (status.warnings ?? []).map { ["database", $0] }
    return table(
      [
        ["version", status.version], ["process", "\(status.process)"], ["up", period(status.seconds)],
        ["ready", status.notReady.map { "no: \($0)" } ?? "yes"], ["draining", status.isDraining ? "yes" : "no"],
        ["calls", "\(status.calls)"], ["participants", "\(status.participants)"],
        ["connections", "\(status.connections), \(status.sessions) signed in"],
        ["media connected", "\(media) (by worker)"],
      ] + warnings)
  }

  private static func text(_ reply: AdminCalls, now: Timestamp) -> String {
    let rows = reply.calls.map { call in
      [
        call.call.text, call.state.rawValue, call.media.rawValue, since(call.startedAt, now), "\(call.members)",
        "\(call.ringing)", "\(call.joined)", "\(call.connected)", "\(call.epoch)",
      ]
    }
    let head = ["CALL", "STATE", "MEDIA", "FOR", "MEMBERS", "RINGING", "JOINED", "CONNECTED", "EPOCH"]
    return table([head] + rows) + rest(of: reply.total, shown: rows.count)
  }

  private static func text(_ reply: AdminRooms) -> String {
    let rows = reply.rooms.map { room in
      [
        room.room, room.isPreset ? "configuration" : "client", "\(room.participants)", "\(room.publishers)",
        "\(room.subscribers)", "\(room.peers)",
      ]
    }
    let head = ["ROOM", "MADE BY", "PARTICIPANTS", "PUBLISHERS", "SUBSCRIBERS", "CONNECTIONS"]
    return table([head] + rows) + rest(of: reply.total, shown: rows.count)
  }

  private static func text(_ reply: AdminUsers) -> String {
    let rows = reply.users.map { user in
      [
        user.user.text, user.devices.map(\.text).joined(separator: " "),
        user.calls.map(\.text).joined(separator: " "),
      ]
    }
    return table([["USER", "DEVICES", "CALLS"]] + rows) + rest(of: reply.total, shown: rows.count)
  }

  private static func text(_ reply: AdminRecordings) -> String {
    let rows = reply.recordings.map { row in
      [
        row.recording.text, row.kind.rawValue, row.isDraft ? "draft" : row.state.rawValue, row.owner.text,
        time(row.startedAt), period(row.seconds), size(row.bytes), time(row.expiresAt),
      ]
    }
    let head = ["RECORDING", "KIND", "STATE", "OWNER", "STARTED", "LENGTH", "SIZE", "EXPIRES"]
    let total = "\(reply.total) recordings of all users, \(size(reply.bytes))"
    return table([head] + rows) + "\n" + total
  }

  /// In MiB, with one digit below 10.
  static func size(_ bytes: Int64) -> String {
    let mebibytes = Double(bytes) / 1_048_576
    return String(format: mebibytes < 9.95 ? "%.1f MiB" : "%.0f MiB", mebibytes)
  }

  private static func text(_ reply: AdminReports) -> String {
    let rows = reply.reports.map { report in
      let words = printable(report.report.text, keepingLines: false)
      return [
        report.id.text, time(report.at), report.call.text, report.report.by.text, report.report.user.text,
        words.count > 60 ? words.prefix(59) + "…" : words,
      ]
    }
    return table([["REPORT", "AT", "CALL", "BY", "ABOUT", "TEXT"]] + rows) + rest(of: reply.total, shown: rows.count)
  }

  private static func text(_ report: StoredReport) -> String {
    table([
      ["report", report.id.text], ["at", time(report.at)], ["call", report.call.text], ["by", report.report.by.text],
      ["about", report.report.user.text + (report.report.participant.map { " (participant \($0))" } ?? "")],
    ]) + "\n\n" + printable(report.report.text, keepingLines: true)
  }

  /// A stranger's text, for a terminal: characters that move the cursor, change colours, or change the direction of text are shown as U+FFFD.
  static func printable(_ text: String, keepingLines: Bool) -> String {
    String(
      String.UnicodeScalarView(
        text.unicodeScalars.map { scalar in
          if scalar == "\n" { return keepingLines ? scalar : " " }
          switch scalar.properties.generalCategory {
          case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned:
            return "\u{FFFD}"
          default: return scalar
          }
        }))
  }

  private static func text(_ call: CallInspection, now: Timestamp) -> String {
    guard let summary = call.summary else {
      let end = call.ended.map { "\($0.reason.rawValue), after \(period($0.seconds)) of talk" } ?? ""
      return "ended \(call.endedAt.map(time) ?? ""): \(end)"
    }
    let head = [
      "USER", "STATE", "DEVICE", "NUMBER", "FOR", "SIGNALING", "MEDIA", "SINCE", "KEY", "HELD", "RECEIVES", "LEVEL",
      "KBIT/S", "RTT", "LOSS", "JITTER", "FREEZES", "FIRST", "TOLD", "TRACKS",
    ]
    var rows = [head]
    for member in call.members {
      let parts = member.participants
      if parts.isEmpty { rows.append([member.user.text, member.state.rawValue]) }
      for part in parts {
        rows.append(
          [
            member.user.text, member.state.rawValue, part.device.text, "\(part.participant)", since(part.joinedAt, now),
            part.signaling ? "up" : "gone", part.media.rawValue, part.mediaSince.map { since($0, now) } ?? "-",
            part.key.rawValue, part.held ? "yes" : "no",
          ] + cells(part.quality, now) + [
            part.tracks.map { $0.source.rawValue + ($0.muted ? " (muted)" : "") }.joined(separator: " ")
          ])
      }
    }
    return
      "\(summary.call.text): \(summary.media.rawValue), \(summary.state.rawValue) since \(time(summary.startedAt)), "
      + "epoch \(summary.epoch)\n" + table(rows)
  }

  /// An unknown number is `-`.
  private static func cells(_ quality: ParticipantQuality, _ now: Timestamp) -> [String] {
    func cell(_ value: Double?, _ unit: String) -> String { value.map { rounded($0) + unit } ?? "-" }
    let numbers = quality.numbers
    return [
      quality.receives.map { "\($0)" } ?? "-", quality.level.map { "\($0)" } ?? "-",
      quality.bitrate.map { "\($0 / 1_000)" } ?? "-", cell(numbers?.rtt, "ms"),
      cell(numbers?.loss.map { $0 * 100 }, "%"), cell(numbers?.jitter, "ms"), cell(numbers?.freezes, ""),
      cell(numbers?.firstFrameMs, "ms"), quality.toldAt.map { since($0, now) } ?? "-",
    ]
  }

  /// With one decimal below ten, and without decimals from there on.
  private static func rounded(_ value: Double) -> String {
    guard value < 9.95 else { return "\(Int(value.rounded()))" }
    let tenths = Int((value * 10).rounded())
    return tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\(tenths % 10)"
  }

  /// Columns as wide as their widest cell.
  static func table(_ rows: [[String]]) -> String {
    let columns = rows.map(\.count).max() ?? 0
    let widths = (0..<columns).map { column in
      rows.map { $0.indices.contains(column) ? $0[column].count : 0 }.max() ?? 0
    }
    return rows.map { row in
      let cells = row.enumerated().map { $1.padding(toLength: widths[$0], withPad: " ", startingAt: 0) }
      var line = cells.joined(separator: "  ")
      while line.last == " " { line.removeLast() }
      return line
    }.joined(separator: "\n")
  }

  private static func rest(of total: Int, shown: Int) -> String {
    total > shown ? "\n\(total - shown) more are not shown" : ""
  }

  private static func time(_ time: Timestamp) -> String {
    Date(timeIntervalSince1970: Double(time.milliseconds) / 1_000).formatted(.iso8601)
  }

  private static func since(_ time: Timestamp, _ now: Timestamp) -> String {
    period(Int(max(0, now.milliseconds - time.milliseconds) / 1_000))
  }

  /// As `2h05m`.
  static func period(_ seconds: Int) -> String {
    func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return switch seconds {
    case ..<60: "\(seconds)s"
    case ..<3_600: "\(seconds / 60)m\(two(seconds % 60))s"
    case ..<86_400: "\(seconds / 3_600)h\(two(seconds / 60 % 60))m"
    default: "\(seconds / 86_400)d\(two(seconds / 3_600 % 24))h"
    }
  }
}
