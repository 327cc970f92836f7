import CLinux

/// The processors that this process may run on (sched_getaffinity), at least one.
package func availableProcessors() -> [Int] {
  let numbers = [Int32](unsafeUninitializedCapacity: 1_024) { buffer, count in
    count = Int(clinux_processors(buffer.baseAddress, 1_024))
  }
  return numbers.isEmpty ? [0] : numbers.map(Int.init)
}
