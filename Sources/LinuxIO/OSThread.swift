import CLinux
import Glibc
import Synchronization

/// An operating-system thread with a name, and optionally pinned to a processor.
package final class OSThread: Sendable {
  private let handle: pthread_t
  private let isJoined = Mutex(false)

  private final class Start {
    let name: String
    let processor: Int?
    let isBackground: Bool
    let body: () -> Void
    init(name: String, processor: Int?, isBackground: Bool, body: @escaping () -> Void) {
      self.name = name
      self.processor = processor
      self.isBackground = isBackground
      self.body = body
    }
  }

  /// Starts `body` immediately.
  /// - Parameters:
  ///   - name: at most 15 bytes are shown by top and perf.
  ///   - processor: pins the thread; a processor that is not available is ignored.
  ///   - isBackground: other threads have priority.
  package init(
    name: String, processor: Int? = nil, isBackground: Bool = false, _ body: sending @escaping () -> Void
  ) throws(SystemError) {
    let start = Unmanaged.passRetained(
      Start(name: String(name.prefix(15)), processor: processor, isBackground: isBackground, body: body))
    var thread = pthread_t()
    let code = pthread_create(
      &thread, nil,
      { context in
        guard let context else { return nil }
        let start = Unmanaged<Start>.fromOpaque(context).takeRetainedValue()
        clinux_name_thread(start.name)
        if let processor = start.processor { _ = clinux_pin_thread(Int32(processor)) }
        if start.isBackground { clinux_lower_thread() }
        start.body()
        return nil
      }, start.toOpaque())
    guard code == 0 else {
      start.release()
      throw SystemError("start a thread", code: code)
    }
    handle = thread
  }

  /// Waits until the body has returned; may be called repeatedly, but not from the thread itself.
  package func join() {
    isJoined.withLock { isJoined in
      if !isJoined { pthread_join(handle, nil) }
      isJoined = true
    }
  }

  deinit {
    isJoined.withLock { if !$0 { pthread_detach(handle) } }
  }
}

/// The processors that this process may run on (sched_getaffinity), at least one.
package func availableProcessors() -> [Int] {
  let numbers = [Int32](unsafeUninitializedCapacity: 1_024) { buffer, count in
    count = Int(clinux_processors(buffer.baseAddress, 1_024))
  }
  return numbers.isEmpty ? [0] : numbers.map(Int.init)
}
