import CFuzzer
import Glibc

// fuzz TARGET [libFuzzer's flags] CORPUS...: feeds a parser until it traps or the time is over. `deploy/fuzz` builds and starts it.

guard CommandLine.arguments.count > 1, let chosen = targets[CommandLine.arguments[1]] else {
  print("Name a target: \(targets.keys.sorted().joined(separator: " "))")
  exit(2)
}
run = chosen

var count = CommandLine.argc - 1
var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv + 1
exit(
  LLVMFuzzerRunDriver(&count, &arguments) { data, size in
    // A copy of exactly this size: AddressSanitizer sees a read of one byte more, and parsers that write in place may.
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 1)
    defer { copy.deallocate() }
    copy.copyMemory(from: UnsafeRawBufferPointer(start: data, count: size))
    run(copy)
    return 0
  })
