import Foundation
import Glibc
import Synchronization

/// A PostgreSQL server of Debian's package in a temporary folder, run by an unprivileged user; it and its folder go with this process, however that ends.
/// Clients reach it by a socket in the folder.
package final class PostgresServer: Sendable {
  /// For tests that do not stop it.
  package static let shared = Result { try PostgresServer() }

  /// The role that owns everything.
  package static let role = "conclave"

  package struct Failure: Error, CustomStringConvertible {
    package var description: String
  }

  /// The folder of the socket.
  package let folder: String
  private let commands: FileHandle
  private let answers: Mutex<FileHandle>
  private let process: Process

  /// Starts it, with further settings as `name=value`.
  package init(settings: [String] = []) throws {
    let (process, commands, answers) = (Process(), Pipe(), Pipe())
    let shell = ["/bin/sh", "-c", Self.script, "sh"] + settings
    let unprivileged = ["/usr/bin/setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
    let words = geteuid() == 0 ? unprivileged + shell : shell
    process.executableURL = URL(fileURLWithPath: words[0])
    process.arguments = Array(words.dropFirst())
    process.environment = ["PATH": "/usr/lib/postgresql/15/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8"]
    process.standardInput = commands
    process.standardOutput = answers
    try process.run()
    self.process = process
    self.commands = commands.fileHandleForWriting
    self.answers = Mutex(answers.fileHandleForReading)
    folder = try Self.line(answers.fileHandleForReading)
    guard folder.hasPrefix("/") else { throw Failure(description: "no PostgreSQL server (postgresql-15): \(folder)") }
  }

  deinit {
    // It ends when its input does.
    try? commands.close()
    process.waitUntilExit()
  }

  package func stop() throws { try ask("stop") }
  package func start() throws { try ask("start") }

  /// A URL for the server's configuration.
  package func url(_ database: String) -> String { "postgresql://\(Self.role)@/\(database)?host=\(folder)" }

  /// The rows as psql prints them, with `|` between the columns.
  /// - Throws: `Failure` with what the server said.
  @discardableResult package func sql(_ text: String, in database: String = "postgres") throws -> String {
    let (psql, output, errors) = (Process(), Pipe(), Pipe())
    psql.executableURL = URL(fileURLWithPath: "/usr/lib/postgresql/15/bin/psql")
    psql.arguments = [
      "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", folder, "-U", Self.role, "-d", database, "-c", text,
    ]
    psql.standardInput = FileHandle.nullDevice
    psql.standardOutput = output
    psql.standardError = errors
    try psql.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    let complaint = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    psql.waitUntilExit()
    guard psql.terminationStatus == 0 else { throw Failure(description: complaint) }
    return text.trimmingCharacters(in: .newlines)
  }

  private func ask(_ command: String) throws {
    try answers.withLock { answers in
      try commands.write(contentsOf: Data((command + "\n").utf8))
      let answer = try Self.line(answers)
      guard answer == "done" else { throw Failure(description: "PostgreSQL cannot \(command): \(answer)") }
    }
  }

  private static func line(_ file: FileHandle) throws -> String {
    var line: [UInt8] = []
    while let byte = try file.read(upToCount: 1)?.first, byte != UInt8(ascii: "\n") { line.append(byte) }
    return String(decoding: line, as: UTF8.self)
  }

  /// Reads commands until its input ends.
  private static let script = """
    trap '' INT TERM HUP
    folder=$(mktemp -d /tmp/postgres.XXXXXX) || exit
    log=$folder/log
    settings="-k $folder -c listen_addresses= -c fsync=off -c max_connections=300"
    for setting; do settings="$settings -c $setting"; done
    start() { pg_ctl -D "$folder/data" -w -l "$log" -o "$settings" start >>"$log" 2>&1; }
    stop() { pg_ctl -D "$folder/data" -w -m "$1" stop >>"$log" 2>&1; }
    if initdb -D "$folder/data" -U \(role) -A trust -E UTF8 --locale=C.UTF-8 -N >"$log" 2>&1 && start; then
      echo "$folder"
      while read -r command; do
        case $command in
          stop) stop fast ;;
          start) start ;;
        esac && echo done || tail -n 1 "$log"
      done
    else
      tail -n 1 "$log"
    fi
    stop immediate
    rm -rf "$folder"
    """
}
