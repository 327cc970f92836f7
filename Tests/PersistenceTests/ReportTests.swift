import Calls
import Contract
import MediaModel
import StoreWriting
import Testing

@testable import Persistence

/// Abuse reports on the disk.
struct ReportTests {
  private let test: TestStore
  private let store: Store
  private let call = CallID(unchecked: "6f0c8a4e-0000-4000-8000-000000000001")

  init() throws {
    test = try TestStore()
    store = try test.open()
  }

  private func report(
    _ number: Int, by author: UserID = alice, about user: UserID = bob, at: Timestamp? = nil, _ text: String = "rude"
  ) -> StoredReport {
    StoredReport(
      id: ReportID(number: UInt64(number)), at: at ?? second(number), call: call,
      report: Report(by: author, user: user, participant: 2, text: text))
  }

  private func kept(since: Timestamp = Timestamp(milliseconds: .min), limit: Int = 20_000) throws -> [StoredReport] {
    try store.reports(since: since, limit: limit).reports
  }

  @Test func reportsComeBackTheNewestFirst() throws {
    let hostile = report(2, "'); DROP TABLE report; --\u{1B}[2J\u{202E}\n👩‍👩‍👧")
    var other = report(3)
    other.report.participant = nil
    try store.write([.report(report(1)), .report(hostile)])
    try store.write([.report(other), .report(report(1))])
    #expect(try kept() == [other, hostile, report(1)], "one that is written twice is one")
    #expect(try kept(since: second(2)) == [other, hostile])
    #expect(try store.reports(since: second(1), limit: 1) == ([other], 3))
    #expect(try store.report(hostile.id) == hostile)
    #expect(try store.report(ReportID(number: 9)) == nil)
  }

  @Test func aFullRewriteKeepsThem() throws {
    try store.write([.report(report(1))])
    try store.write([.reset])
    #expect(try kept() == [report(1)])
  }

  @Test func oneUserAloneFillsNothing() throws {
    for number in 0..<Store.maximumReportsOfAuthor + 3 { try store.write([.report(report(number))]) }
    try store.write([.report(report(1_000, by: carol))])
    let of = try kept().filter { $0.report.by == alice }
    #expect(of.count == Store.maximumReportsOfAuthor && of.last == report(3), "the oldest went")
    #expect(try kept().contains(report(1_000, by: carol)))
  }

  @Test func theAuthorOfMostReportsLosesTheOldestWhenThereAreTooMany() throws {
    let honest = report(0, by: carol)
    try store.write([.report(honest)])
    let authors = Store.maximumReports / Store.maximumReportsOfAuthor + 1
    for author in 0..<authors {
      let user = UserID(unchecked: "mallory\(author)")
      try store.write(
        (0..<Store.maximumReportsOfAuthor).map {
          .report(report(1 + author * Store.maximumReportsOfAuthor + $0, by: user))
        })
    }
    #expect(try store.reports(since: second(-1), limit: 1).total == Store.maximumReports)
    #expect(try store.report(honest.id) == honest)
  }

  @Test func theyGoWithTheHistory() throws {
    let old = second(90 * 86_400 + 1)
    try store.write((0..<1_200).map { .report(report($0, by: UserID(unchecked: "u\($0)"), at: second(0))) })
    try store.write([.report(report(5_000, at: second(2)))])
    while try store.sweep(now: old, historyDays: 90) {}
    #expect(try kept() == [report(5_000, at: second(2))])
  }

  @Test func theyAreForgottenWithEitherPerson() throws {
    for user in [alice, bob] {
      try store.write([.report(report(1)), .report(report(2, by: carol, about: carol))])
      try store.forget(user)
      #expect(try kept().map(\.report.by) == [carol])
      // A report that was pending meanwhile.
      try store.write([.report(report(3)), .forgotten(user)])
      #expect(try kept().map(\.report.by) == [carol])
    }
  }

  @Test func thoseAboutAGuestOutliveItsCallAndNotAnOrder() throws {
    let guest = UserID(unchecked: UserID.guestPrefix + "1")
    try store.write([.report(report(1, about: guest)), .report(report(2, by: guest)), .forgotten(guest)])
    #expect(try kept().count == 2)
    try store.forget(guest)
    #expect(try kept().isEmpty)
  }

  @Test(arguments: ["", "0", "00000000000000FF", "+000000000000001", "0000000000000001 ", "000000000000000g"])
  func anIdHasOneForm(text: String) { #expect(ReportID(text) == nil) }

  @Test func anIdIsSixteenDigits() {
    for number in [0, 255, UInt64.max] { #expect(ReportID(ReportID(number: number).text) == ReportID(number: number)) }
    #expect(ReportID(number: 255).text == "00000000000000ff")
  }
}
