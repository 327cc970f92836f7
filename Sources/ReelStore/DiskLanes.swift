import Dispatch
import LinuxIO
import MediaModel
import Recording
import Synchronization

/// Queues for work that waits for the disk, apart from every event loop. The callers bound the work that waits.
final class DiskLanes: Sendable {
  enum Lane: Int, CaseIterable {
    /// Segments are written here. A reel stays on one lane.
    case firstWriter, secondWriter
    case reader
    /// Rows of recordings that begin and end, one after the other.
    case rows
    /// Removes files.
    case removal
  }

  /// A write that takes longer means that the disk does not answer.
  static let patience = Duration.seconds(5)

  private let queues: [DispatchQueue]
  /// When the work began that is under way.
  private let begun = Mutex<[Lane: Instant]>([:])
  private let now: @Sendable () -> Instant

  /// - Parameter now: the monotonic clock.
  init(now: @escaping @Sendable () -> Instant) {
    self.now = now
    queues = Lane.allCases.map { DispatchQueue(label: "conclave.recordings.\($0)", qos: .utility) }
  }

  /// A write or a row waits for longer than `patience`.
  var isStuck: Bool {
    let since = begun.withLock { $0.filter { $0.key != .reader && $0.key != .removal }.values.min() }
    return since.map { $0.advanced(by: Self.patience) <= now() } ?? false
  }

  func run<Value: Sendable>(
    on lane: Lane, _ work: @escaping @Sendable () throws(RecordingRefusal) -> Value
  ) async throws(RecordingRefusal) -> Value {
    let result = await withCheckedContinuation { (done: CheckedContinuation<Result<Value, RecordingRefusal>, Never>) in
      start(on: lane, work) { done.resume(returning: $0) }
    }
    return try result.get()
  }

  /// Returns at once.
  func start<Value: Sendable>(
    on lane: Lane, _ work: @escaping @Sendable () throws(RecordingRefusal) -> Value,
    done: @escaping @Sendable (Result<Value, RecordingRefusal>) -> Void
  ) {
    queues[lane.rawValue].async { [self] in
      begun.withLock { $0[lane] = now() }
      let result: Result<Value, RecordingRefusal>
      do throws(RecordingRefusal) {
        result = .success(try work())
      } catch {
        result = .failure(error)
      }
      begun.withLock { $0[lane] = nil }
      done(result)
    }
  }
}
