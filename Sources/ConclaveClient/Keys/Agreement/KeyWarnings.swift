import Contract
import MediaModel

/// The warnings of a call, each given once for a device, its key and the problem.
struct KeyWarnings: Sendable {
  private var told: Set<KeyWarning> = []

  /// Notes a warning; false if the app has already had it.
  mutating func isNews(_ warning: KeyWarning) -> Bool { told.insert(warning).inserted }

  mutating func warn(_ problem: KeyWarning.Problem, _ entry: ListEntry, into effects: inout [KeyEffect]) {
    let warning = KeyWarning(problem, entry)
    if isNews(warning) { effects.append(.warn(warning)) }
  }

  /// The person has examined the device: any problem that it has from now on is news.
  mutating func forget(_ device: Device) {
    told = told.filter { $0.user != device.user.text || $0.device != device.device.text }
  }
}
