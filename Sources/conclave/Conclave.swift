import ArgumentParser
import CCommit
import ConclaveServer

@main
struct Conclave: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "A server for end-to-end encrypted group calls.",
    version: Server.version,
    subcommands: [
      Serve.self, Token.self, Forget.self, Migrate.self, CheckConfig.self, ConfigSchema.self, CheckTURN.self,
      Status.self,
      ListCalls.self, ShowCall.self, ListRooms.self, Users.self,
      Reports.self, ShowReport.self, RecordingCommands.self, End.self, Disconnect.self, Drain.self, ShowVersion.self,
    ])

  static func main() async {
    let commands = configuration.subcommands.map { $0._commandName } + ["help"]
    if let word = CommandLine.arguments.dropFirst().first, !word.hasPrefix("-"), !commands.contains(word) {
      let likely = commands.filter { $0.hasPrefix(word) || editDistance($0, word) <= 2 }
      let question = likely.isEmpty ? "" : " Did you mean \(likely.joined(separator: ", "))?"
      exit(withError: ValidationError("There is no command '\(word)'.\(question) `conclave help` lists all commands."))
    }
    await main(nil)
  }

  /// How many characters must be inserted, deleted or replaced to make one word of the other (Levenshtein's distance).
  private static func editDistance(_ word: String, _ other: String) -> Int {
    let letters = Array(other)
    var row = Array(0...letters.count)
    for (index, letter) in word.enumerated() {
      var diagonal = row[0]
      row[0] = index + 1
      for column in letters.indices {
        let replaced = diagonal + (letters[column] == letter ? 0 : 1)
        diagonal = row[column + 1]
        row[column + 1] = min(replaced, diagonal + 1, row[column] + 1)
      }
    }
    return row[letters.count]
  }
}

/// Where the configuration comes from. The command line takes precedence over the file.
struct ConfigurationOptions: ParsableArguments {
  @Option(
    help:
      "JSON file with the configuration (default \(Configuration.installed), if there is one); docs/deploy.md lists its members."
  )
  var config: String?

  @Option(help: "Folder of what survives a restart (default /var/lib/conclave).")
  var state: String?

  /// The file to read; nil for only the defaults.
  var file: String? { config ?? Configuration.installedFile() }

  /// - Parameter isValidated: contradicting values, and values out of range, are refused here.
  func load(isValidated: Bool = true) throws -> Configuration {
    let configuration = try Self.load(file, state: state)
    if isValidated { try configuration.validate() }
    return configuration
  }

  static func load(_ file: String?, state: String?) throws -> Configuration {
    var configuration = Configuration()
    if let file { configuration = try Configuration(unvalidated: file) }
    if let state { configuration.state = state }
    return configuration
  }
}

struct Serve: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Run the server until SIGINT or SIGTERM.")

  @OptionGroup var options: ConfigurationOptions

  @Flag(help: "Let the page sign in with just a name, from loopback addresses alone.")
  var demo = false

  func run() async throws {
    let (file, state, demo) = (options.file, options.state, demo)
    try await Commands.serve {
      var configuration = try ConfigurationOptions.load(file, state: state)
      configuration.demo = demo
      if demo { configuration.guests = true }
      return configuration
    }
  }
}

struct Token: ParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Mint a token with the server's secret.")

  @OptionGroup var options: ConfigurationOptions

  @Option(help: "The user's id.")
  var user: String

  @Option(help: "The device's id; without it the client names its device.")
  var device: String?

  @Option(help: "The name that others see.")
  var name: String?

  @Option(help: "Seconds until the token expires.")
  var seconds = 86_400

  @Option(help: "The roles that the user has, separated by commas.")
  var roles: String?

  @Option(help: "The scopes of the token, separated by spaces: \"service\" is the app's back end.")
  var scope: String?

  @Flag(help: "The same as --scope service.")
  var service = false

  func run() throws {
    let token = try Commands.mintToken(
      configuration: options.load(), user: user, device: device, name: name,
      roles: roles?.split(separator: ",").map(String.init) ?? [], scope: service ? "service" : scope, seconds: seconds)
    print(token)
  }
}

struct Forget: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Delete all that is kept of a user, whether the server runs or not.")

  @OptionGroup var options: ConfigurationOptions

  @Option(help: "The user's id.")
  var user: String

  func run() throws {
    try Commands.forget(user: user, configuration: options.load())
    print("All that was kept of this user is deleted. A running server closes the user's connections within seconds.")
  }
}

struct Migrate: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Move calls, keys and history from the state folder's file into the configuration's database, or back.",
    discussion: "Stop the server before. A database or file that has something already is not touched.")

  @OptionGroup var options: ConfigurationOptions

  @Option(help: "Where to: postgresql, the database in the member store, or sqlite, the file in the state folder.")
  var to: String

  func validate() throws {
    guard Commands.StoreKind(rawValue: to) != nil else {
      throw ValidationError("--to: take one of \(Commands.StoreKind.allCases.map(\.rawValue).joined(separator: ", "))")
    }
  }

  func run() throws {
    guard let kind = Commands.StoreKind(rawValue: to) else { return }
    print(try Commands.migrate(options.load(), to: kind))
  }
}

struct ShowVersion: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "version", abstract: "Say which version this is, and the commit of a package.")

  func run() {
    let commit = String(cString: ccommit())
    let origin = commit.isEmpty ? "" : " (commit \(commit))"
    print("conclave \(Server.version)\(origin)")
  }
}

struct CheckConfig: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check-config",
    abstract:
      "Say whether a server could start with a configuration, or all that is wrong: files, certificate and ports too.")

  @OptionGroup var options: ConfigurationOptions

  func run() async throws {
    print(try await Commands.check(options.load(isValidated: false)))
  }
}

struct CheckTURN: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check-turn",
    abstract: "Allocate through each TURN server of the configuration as a client would, and say what is wrong.",
    discussion: "Ends with 0 when all are good, with 2 when one is not, and with 1 when there is none to try.")

  @OptionGroup var options: ConfigurationOptions

  @Option(help: "PEM file of authorities to trust besides the system's.")
  var trust: String?

  func run() async throws {
    let results = try await Commands.checkTURN(options.load(), trust: trust)
    for result in results { print(result.line) }
    if !results.allSatisfy(\.isGood) { throw ExitCode(2) }
  }
}

struct ConfigSchema: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "config-schema", abstract: "Print the JSON Schema of the configuration, for editors.")

  func run() { print(Configuration.schemaText) }
}
