import Contract
import Foundation
import Glibc
import MediaModel
import Testing

@testable import Calls
@testable import ConclaveServer

private let call = "3f0c8a4e-0000-4000-8000-000000000001"

@Test func aRequestOnTheAdminSocketIsReadAsItWasWritten() throws {
  for request in [
    AdminRequest(.status), AdminRequest(.end, call: CallID(call)), AdminRequest(.disconnect, user: UserID("alice")),
  ] {
    #expect(try JSONDecoder().decode(AdminRequest.self, from: JSONEncoder().encode(request)) == request)
  }
}

@Test(arguments: [
  "", "{}", "[]", #"{"command":"reboot"}"#, #"{"command":"end","call":7}"#, #"{"command":"disconnect","user":"a b"}"#,
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
