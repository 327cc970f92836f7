import Contract
import MediaModel

/// The warnings of a call, each told once for a device, its key and the problem.
struct KeyWarnings: Sendable {
  private var told: Set<KeyWarning> = []

  /// Notes a warning; false when the app has had it.
  mutating func isNews(_ warning: KeyWarning) -> Bool { told.insert(warning).inserted }

  mutating func warn(_ problem: KeyWarning.Problem, _ entry: ListEntry, into effects: inout [KeyEffect]) {
    let warning = KeyWarning(problem, entry)
    if isNews(warning) { effects.append(.warn(warning)) }
  }

  /// The person has looked at the device: a problem that it has from now on is news.
  mutating func forget(_ device: Device) {
    told = told.filter { $0.user != device.user.text || $0.device != device.device.text }
  }
}
