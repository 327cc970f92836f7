import CallMessages
import Contract
import Foundation
import Glibc
import JSON
import MediaModel
import Testing

@testable import ConclaveServer

private let call = "3f0c8a4e-0000-4000-8000-000000000001"

@Test func aRequestOnTheAdminSocketIsReadAsItWasWritten() throws {
  for request in [
    AdminRequest(.status), AdminRequest(.end, call: CallID(call)), AdminRequest(.disconnect, user: UserID("alice")),
    AdminRequest(.report, report: ReportID(number: 7)), AdminRequest(.reports, since: Timestamp(milliseconds: 7)),
    AdminRequest(.deleteLinks, user: UserID("alice"), link: "-AbCdEf_"),
  ] {
    #expect(try JSONDecoder().decode(AdminRequest.self, from: JSONEncoder().encode(request)) == request)
  }
}

@Test(arguments: [
  ("3f0c", "3f0c8a4e-0000-4000-8000-000000000001"), ("3f0", nil), ("", nil), ("4", nil), ("8a4e", nil),
  ("3f0d8a4e-", "3f0d8a4e-0000-4000-8000-000000000002"),
])
func aCallIsNamedByTheFirstCharactersThatNoOtherOneHas(text: String, named: String?) throws {
  func summary(_ id: String) -> CallSummary {
    CallSummary(
      call: CallID(unchecked: id), state: .active, media: .audio, startedAt: Timestamp(milliseconds: 0), epoch: 1,
      members: 2, ringing: 0, joined: 2, connected: 2)
  }
  let running = AdminCalls(calls: [summary(call), summary("3f0d8a4e-0000-4000-8000-000000000002")], total: 2)
  #expect((try? running.call(beginningWith: text))?.text == named)
  // Another call, which is not listed, may begin with the same characters.
  let newest = AdminCalls(calls: running.calls, total: 3)
  #expect(throws: ConfigurationError.self) { try newest.call(beginningWith: text) }
}

@Test(arguments: [
  ("90m", -5_400_000), ("24h", -86_400_000), ("7d", -604_800_000), ("0m", 0), ("2026-09-21", -1_800_000),
  ("2026-09-21T13:59:00Z", 48_540_000),
])
func aMomentIsADayATimeOrHowLongAgo(text: String, milliseconds: Int64) throws {
  // 2026-09-21T00:30:00Z
  let now = Timestamp(milliseconds: 1_789_950_600_000)
  #expect(try Commands.moment(text, now: now).milliseconds - now.milliseconds == milliseconds)
}

@Test(arguments: ["", "m", "-1h", "99999999999999999999d", "1w", "yesterday", "2026-13-01", "1000001d"])
func aMomentThatIsNoneIsRefused(text: String) {
  #expect(throws: ConfigurationError.self) { try Commands.moment(text, now: Timestamp(milliseconds: 0)) }
}

@Test func wordsOfAReportDoNothingToATerminal() throws {
  let words = "a\u{1B}[2J\u{9B}31m\u{7}\r\u{202E}\u{2028}b\nüñ👍"
  #expect(AdminTables.printable(words, keepingLines: true) == "a�[2J�31m����b\nüñ👍")
  #expect(AdminTables.printable(words, keepingLines: false) == "a�[2J�31m����b üñ👍")
  let report = StoredReport(
    id: ReportID(number: 7), at: Timestamp(milliseconds: 1_790_000_000_000), call: CallID(unchecked: call),
    report: Report(by: UserID(unchecked: "alice"), user: UserID(unchecked: "bob"), participant: 2, text: words))
  let one = try AdminTables.text(of: JSONCoding.encode(report), to: .report, now: Timestamp(milliseconds: 0))
  #expect(one.contains("about   bob (participant 2)") && !one.contains("\u{1B}"))
  let reply = AdminReports(reports: [report], total: 1)
  let rows = try AdminTables.text(of: JSONCoding.encode(reply), to: .reports, now: Timestamp(milliseconds: 0))
  #expect(rows.split(separator: "\n").count == 2 && rows.contains("0000000000000007") && !rows.contains("\u{1B}"))
}

@Test(arguments: [
  "", "{}", "[]", #"{"command":"reboot"}"#, #"{"command":"end","call":7}"#, #"{"command":"disconnect","user":"a b"}"#,
  #"{"command":"report","report":"../x"}"#,
])
func aRequestThatIsNoneIsRefused(text: String) {
  #expect(throws: DecodingError.self) { try JSONDecoder().decode(AdminRequest.self, from: Data(text.utf8)) }
}

@Test func onlyRootAndTheServersOwnUserAreAdmitted() {
  #expect(AdminServer.admits(0) && AdminServer.admits(geteuid()))
  #expect(!AdminServer.admits(geteuid() == 65_534 ? 65_533 : 65_534))
}

@Test func columnsAreAsWideAsTheirWidestCell() {
  #expect(AdminTables.table([["A", "BB", "C"], ["aaa", "b"], ["a", "b", "c"]]) == "A    BB  C\naaa  b\na    b   c")
}

@Test(arguments: [(0, "0s"), (59, "59s"), (60, "1m00s"), (3_725, "1h02m"), (90_000, "1d01h")])
func aPeriodIsShort(seconds: Int, text: String) { #expect(AdminTables.period(seconds) == text) }

@Test func aTableSaysHowManyRowsAreNotShown() throws {
  let now = Timestamp(milliseconds: 1_790_000_000_000)
  let row = CallSummary(
    call: CallID(unchecked: call), state: .active, media: .video, startedAt: now - .seconds(65), epoch: 3, members: 4,
    ringing: 1, joined: 3, connected: 2)
  let reply = Array(try JSONEncoder().encode(AdminCalls(calls: [row], total: 3)))
  let lines = try AdminTables.text(of: reply, to: .calls, now: now).split(separator: "\n")
  #expect(lines.count == 3 && lines.last == "2 more are not shown")
  #expect(
    lines[1].split(separator: " ") == [Substring(call), "active", "video", "1m05s", "4", "1", "3", "2", "3"])
}

@Test(
  arguments: [(0, "0.0 MiB"), (52_429, "0.1 MiB"), (10_432_000, "9.9 MiB"), (10_485_760, "10 MiB"), (.max, nil)]
    as [(Int64, String?)])
func aSizeIsShort(bytes: Int64, text: String?) {
  let size = AdminTables.size(bytes)
  #expect(text.map { $0 == size } ?? size.hasSuffix(" MiB"))
}

@Test func linksAreListedByTheBeginningsOfTheirIds() throws {
  let then = Timestamp(milliseconds: 1_790_000_000_000)
  let id = LinkID("YWxpY2UncyBsaW5rICMxIQ")!
  let device = Device(user: UserID(unchecked: "alice"), device: DeviceID(unchecked: "phone"))
  let stored = StoredLastingLink(
    id: id, device: device, fingerprint: Base64Bytes([]), madeAt: then, expiresAt: then + .seconds(86_400))
  let reply = try JSONCoding.encode(AdminLinks(links: [LinkSummary(stored)]))
  #expect(!String(decoding: reply, as: UTF8.self).contains(id.text.dropFirst(8)))
  let lines = try AdminTables.text(of: reply, to: .links, now: then).split(separator: "\n")
  #expect(lines.count == 2 && lines[1].hasPrefix("YWxpY2Un  phone  ") && lines[1].hasSuffix("  -"))
}

@Test func recordingsAreListedWithoutTheirReaders() throws {
  let then = Timestamp(milliseconds: 1_790_000_000_000)
  let id = RecordingID([UInt8](repeating: 1, count: 16))!
  let row = AdminRecordings.Row(
    recording: id, kind: .message, owner: UserID(unchecked: "alice"), state: .running, isDraft: true, startedAt: then,
    seconds: 65, bytes: 3 << 20, expiresAt: then)
  let reply = Array(try JSONEncoder().encode(AdminRecordings(recordings: [row], total: 7, bytes: 12 << 20)))
  let lines = try AdminTables.text(of: reply, to: .recordings, now: then).split(separator: "\n")
  #expect(lines[1].split(separator: " ").prefix(4) == [Substring(id.text), "message", "draft", "alice"])
  #expect(lines[1].contains("1m05s") && lines[1].contains("3.0 MiB"))
  #expect(lines.last == "7 recordings of all users, 12 MiB")
}
