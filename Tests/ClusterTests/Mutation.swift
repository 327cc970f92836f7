/// A mistake that the worlds have to notice.
enum Mutation: String, CaseIterable, Sendable {
  // In the store's functions.
  case fenceLeftOut, fenceWithoutDead, fenceWithoutNumber, claimWithoutKey, claimFromTheLiving
  // In the shell of a node.
  case answerBeforeCommit, unclearIsCommitted, incarnationForgotten, closeForgotten
  case loadedBehind, adoptedEmpty, lastChangesLeftOut, nothingReplayed
  case oldStreamAccepted, gapIgnored, numberIgnored
  // In the times.
  case deadlineForgotten
  // In the machines.
  case meetingIgnored, noJump
}
