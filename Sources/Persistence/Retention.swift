/// How long and how much is kept, in every store.
enum Retention {
  /// How long ended calls are remembered (protocol section 6, `report`).
  static let endedTime = Duration.seconds(86_400)
  /// The most ended calls that are loaded, newest first.
  static let maximumEnded = 4_096
  /// The approximate number of rows that one step of a sweep may write, which is how long the next transaction has to wait.
  static let stepRows = 500
  static let stepEnded = 20
}
