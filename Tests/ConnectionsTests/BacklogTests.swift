import CallMessages
import Listening
import MediaModel
import Testing

@testable import Connections

/// The backlog of slow readers, without connections.
struct BacklogTests {
  private func user(_ text: String) throws -> UserID { try #require(UserID(text)) }

  private func session(_ number: UInt64) -> SessionID { SessionID(rawValue: number) }

  @Test func theSlowestIsCutFirst() throws {
    var backlog = Backlog(limits: Backlog.Limits(bytes: 1_000, bytesOfUser: 1_000))
    #expect(backlog.report(session(1), of: try user("a"), bytes: 300).isEmpty)
    #expect(backlog.report(session(2), of: try user("b"), bytes: 500).isEmpty)
    let cut = backlog.report(session(3), of: try user("c"), bytes: 201)
    #expect(cut.map(\.0) == [session(2)] && cut.map(\.1) == [.backlogFull])
    #expect(backlog.bytes == 501)
    #expect(backlog.report(session(3), of: try user("c"), bytes: 700).isEmpty, "1,000 may wait")
  }

  @Test func aUserIsCutBeforeAnybodyElse() throws {
    var backlog = Backlog(limits: Backlog.Limits(bytes: 1_000, bytesOfUser: 400))
    #expect(backlog.report(session(1), of: try user("b"), bytes: 399).isEmpty)
    for number in UInt64(2)...5 { #expect(backlog.report(session(number), of: try user("a"), bytes: 100).isEmpty) }
    let cut = backlog.report(session(3), of: try user("a"), bytes: 150)
    #expect(cut.map(\.0) == [session(3)] && cut.map(\.1) == [.userBacklogFull], "b has more, and is not a")
    #expect(backlog.report(session(9), of: nil, bytes: 300).isEmpty, "a service has no bound of its own")
  }

  @Test func readBytesAreForgotten() throws {
    var backlog = Backlog(limits: Backlog.Limits(bytes: 1_000, bytesOfUser: 500))
    for _ in 0..<10 {
      #expect(backlog.report(session(1), of: try user("a"), bytes: 400).isEmpty)
      // A connection that ends no longer knows its user.
      #expect(backlog.report(session(1), of: nil, bytes: 0).isEmpty)
    }
    #expect(backlog.bytes == 0 && backlog.counts == (0, 0))
  }
}
