import CallMessages
import Contract
import MediaModel
import StoreWriting
import Testing

/// Abuse reports on the disk.
struct ReportTests {
  private let test: TestStore
  private let call = CallID(unchecked: "6f0c8a4e-0000-4000-8000-000000000001")

  init() throws { test = try TestStore() }

  private func report(
    _ number: Int, by author: UserID = alice, about user: UserID = bob, at: Timestamp? = nil, _ text: String = "rude"
  ) -> StoredReport {
    StoredReport(
      id: ReportID(number: UInt64(number)), at: at ?? second(number), call: call,
      report: Report(by: author, user: user, participant: 2, text: text))
  }

  private func kept(
    _ store: any Storage, since: Timestamp = Timestamp(milliseconds: .min), limit: Int = 20_000
  ) throws -> [StoredReport] {
    try store.reports(since: since, limit: limit).reports
  }

  @Test(arguments: StoreKind.allCases) func reportsComeBackTheNewestFirst(kind: StoreKind) throws {
    let store = try test.open(kind)
    let hostile = report(2, "'); DROP TABLE report; --\u{1B}[2J\u{202E}\n👩‍👩‍👧")
    var other = report(3)
    other.report.participant = nil
    try store.write([.report(report(1)), .report(hostile)])
    try store.write([.report(other), .report(report(1))])
    #expect(try kept(store) == [other, hostile, report(1)], "writing it twice stores one")
    #expect(try kept(store, since: second(2)) == [other, hostile])
    #expect(try store.reports(since: second(1), limit: 1) == ([other], 3))
    #expect(try store.report(hostile.id) == hostile)
    #expect(try store.report(ReportID(number: 9)) == nil)
  }

  @Test(arguments: StoreKind.allCases) func aFullRewriteKeepsThem(kind: StoreKind) throws {
    let store = try test.open(kind)
    try store.write([.report(report(1))])
    try store.write([.reset])
    #expect(try kept(store) == [report(1)])
  }

  @Test(arguments: StoreKind.allCases) func oneUserAloneFillsNothing(kind: StoreKind) throws {
    let store = try test.open(kind)
    for number in 0..<StoredReport.capacityOfAuthor + 3 { try store.write([.report(report(number))]) }
    try store.write([.report(report(1_000, by: carol))])
    let of = try kept(store).filter { $0.report.by == alice }
    #expect(of.count == StoredReport.capacityOfAuthor && of.last == report(3), "the oldest was removed")
    #expect(try kept(store).contains(report(1_000, by: carol)))
  }

  @Test(arguments: StoreKind.allCases) func theAuthorOfMostReportsLosesTheOldestWhenThereAreTooMany(kind: StoreKind)
    throws
  {
    let store = try test.open(kind)
    let honest = report(0, by: carol)
    try store.write([.report(honest)])
    let authors = StoredReport.capacity / StoredReport.capacityOfAuthor + 1
    for author in 0..<authors {
      let user = UserID(unchecked: "mallory\(author)")
      try store.write(
        (0..<StoredReport.capacityOfAuthor).map {
          .report(report(1 + author * StoredReport.capacityOfAuthor + $0, by: user))
        })
    }
    #expect(try store.reports(since: second(-1), limit: 1).total == StoredReport.capacity)
    #expect(try store.report(honest.id) == honest)
  }

  @Test(arguments: StoreKind.allCases) func theyGoWithTheHistory(kind: StoreKind) throws {
    let store = try test.open(kind)
    let old = second(90 * 86_400 + 1)
    try store.write((0..<1_200).map { .report(report($0, by: UserID(unchecked: "u\($0)"), at: second(0))) })
    try store.write([.report(report(5_000, at: second(2)))])
    while try store.sweep(now: old, historyDays: 90) {}
    #expect(try kept(store) == [report(5_000, at: second(2))])
  }

  @Test(arguments: StoreKind.allCases) func theyAreForgottenWithEitherPerson(kind: StoreKind) throws {
    let store = try test.open(kind)
    for user in [alice, bob] {
      try store.write([.report(report(1)), .report(report(2, by: carol, about: carol))])
      try store.forget(user)
      #expect(try kept(store).map(\.report.by) == [carol])
      // A report that was waiting meanwhile.
      try store.write([.report(report(3)), .forgotten(user)])
      #expect(try kept(store).map(\.report.by) == [carol])
    }
  }

  @Test(arguments: StoreKind.allCases) func thoseAboutAGuestOutliveItsCallAndNotAnOrder(kind: StoreKind) throws {
    let store = try test.open(kind)
    let guest = UserID(unchecked: UserID.guestPrefix + "1")
    try store.write([.report(report(1, about: guest)), .report(report(2, by: guest)), .forgotten(guest)])
    #expect(try kept(store).count == 2)
    try store.forget(guest)
    #expect(try kept(store).isEmpty)
  }

  @Test(arguments: ["", "0", "00000000000000FF", "+000000000000001", "0000000000000001 ", "000000000000000g"])
  func anIdHasOneForm(text: String) { #expect(ReportID(text) == nil) }

  @Test func anIdIsSixteenDigits() {
    for number in [0, 255, UInt64.max] { #expect(ReportID(ReportID(number: number).text) == ReportID(number: number)) }
    #expect(ReportID(number: 255).text == "00000000000000ff")
  }
}
