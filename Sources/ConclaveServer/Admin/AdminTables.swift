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
    case .end, .disconnect, .drain: return try JSONCoding.decode(AdminDone.self, from: reply).done
    }
  }

  private static func text(_ status: AdminStatus) -> String {
    let media = status.workers.map { "\($0.connected) of \($0.peers)" }.joined(separator: ", ")
    return table([
      ["version", status.version], ["process", "\(status.process)"], ["up", period(status.seconds)],
      ["ready", status.notReady.map { "no: \($0)" } ?? "yes"], ["draining", status.isDraining ? "yes" : "no"],
      ["calls", "\(status.calls)"], ["participants", "\(status.participants)"],
      ["connections", "\(status.connections), \(status.sessions) signed in"],
      ["media connected", "\(media) (by worker)"],
    ])
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

  private static func text(_ reply: AdminUsers) -> String {
    let rows = reply.users.map { user in
      [
        user.user.text, user.devices.map(\.text).joined(separator: " "),
        user.calls.map(\.text).joined(separator: " "),
      ]
    }
    return table([["USER", "DEVICES", "CALLS"]] + rows) + rest(of: reply.total, shown: rows.count)
  }

  private static func text(_ call: CallInspection, now: Timestamp) -> String {
    guard let summary = call.summary else {
      let end = call.ended.map { "\($0.reason.rawValue), after \(period($0.seconds)) of talk" } ?? ""
      return "ended \(call.endedAt.map(time) ?? ""): \(end)"
    }
    let head = [
      "USER", "STATE", "DEVICE", "NUMBER", "FOR", "SIGNALING", "MEDIA", "KEY", "HELD", "TRACKS",
    ]
    var rows = [head]
    for member in call.members {
      let parts = member.participants
      if parts.isEmpty { rows.append([member.user.text, member.state.rawValue]) }
      for part in parts {
        rows.append([
          member.user.text, member.state.rawValue, part.device.text, "\(part.participant)", since(part.joinedAt, now),
          part.signaling ? "up" : "gone", part.media.rawValue, part.key.rawValue, part.held ? "yes" : "no",
          part.tracks.map { $0.source.rawValue + ($0.muted ? " (muted)" : "") }.joined(separator: " "),
        ])
      }
    }
    return
      "\(summary.call.text): \(summary.media.rawValue), \(summary.state.rawValue) since \(time(summary.startedAt)), "
      + "epoch \(summary.epoch)\n" + table(rows)
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
