import CallMessages
import Contract
import MediaModel

/// Questions for the operator, the metrics and guests. An answer of another kind than its question's counts as unknown.
extension ControlPlane {
  /// Running calls, and devices in them.
  func counts() async -> (calls: Int, participants: Int) {
    guard case .counts(let calls, let participants) = await ask(.calls(.counts)) else { return (0, 0) }
    return (calls, participants)
  }

  func callSummaries() async -> [CallSummary] {
    guard case .summaries(let calls) = await ask(.calls(.summaries)) else { return [] }
    return calls
  }

  func inspection(of call: CallID) async -> CallInspection? {
    guard case .inspection(let call) = await ask(.calls(.inspection(call))) else { return nil }
    return call
  }

  func connectedUsers() async -> [ConnectedUser] {
    guard case .connectedUsers(let users) = await ask(.people(.connectedUsers)) else { return [] }
    return users
  }

  func isPresent(_ user: UserID) async -> Bool { await isTrue(.people(.isPresent(user))) }

  func admitsGuest(by link: String, to call: CallID) async -> Bool {
    await isTrue(.calls(.admitsGuest(link: link, call)))
  }

  /// nil if there is no such link.
  func opened(_ link: LinkID) async -> OpenedLink? {
    guard case .lastingLink(let opened) = await ask(.people(.lastingLink(link))) else { return nil }
    return opened
  }

  func lastingLinks() async -> Int {
    guard case .number(let count) = await ask(.people(.lastingLinks)) else { return 0 }
    return count
  }

  func lastingLinks(of user: UserID) async -> [LinkSummary] {
    guard case .linkSummaries(let links) = await ask(.people(.lastingLinksOf(user))) else { return [] }
    return links
  }

  func runs(_ call: CallID) async -> Bool { await isTrue(.calls(.runs(call))) }

  private func isTrue(_ inquiry: Inquiry) async -> Bool {
    guard case .truth(let isTrue) = await ask(inquiry) else { return false }
    return isTrue
  }
}
