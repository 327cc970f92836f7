import ArgumentParser
import ConclaveServer

/// The commands that ask a running server by its admin socket.
struct AdminOptions: ParsableArguments {
  @OptionGroup var options: ConfigurationOptions

  @Flag(help: "Print JSON instead of a table.")
  var json = false

  func ask(_ request: AdminRequest) throws {
    print(try Commands.administer(request, configuration: options.load(), asJSON: json))
  }

  func ask(_ command: AdminRequest.Command, about call: String) throws {
    try ask(AdminRequest(command, call: Commands.call(call, configuration: options.load())))
  }
}

struct Status: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Say how a running server is doing.",
    discussion: "The exit status is 2 while the server is not ready, or drains, as the page /readyz says.")

  @OptionGroup var admin: AdminOptions

  func run() throws {
    let (text, isReady) = try Commands.status(configuration: admin.options.load(), asJSON: admin.json)
    print(text)
    if !isReady { throw ExitCode(2) }
  }
}

struct ListCalls: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "calls", abstract: "List the calls of a running server, the newest first.")

  @OptionGroup var admin: AdminOptions

  func run() throws { try admin.ask(AdminRequest(.calls)) }
}

struct ShowCall: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "call", abstract: "Show a call: who is in it, with which connections, keys and quality.")

  @OptionGroup var admin: AdminOptions

  @Argument(help: "The call's id. The first characters are enough if no other running call's id begins like this.")
  var call: String

  func run() throws { try admin.ask(.call, about: call) }
}

struct ListRooms: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rooms", abstract: "List the rooms of clients of Janus. `conclave end` takes their names, too.")

  @OptionGroup var admin: AdminOptions

  func run() throws { try admin.ask(AdminRequest(.rooms)) }
}

struct Users: ParsableCommand {
  static let configuration = CommandConfiguration(abstract: "List the users that are connected.")

  @OptionGroup var admin: AdminOptions

  func run() throws { try admin.ask(AdminRequest(.users)) }
}

struct Reports: ParsableCommand {
  static let configuration = CommandConfiguration(abstract: "List the abuse reports, the newest first.")

  @OptionGroup var admin: AdminOptions

  @Option(help: "Leave out older ones: a day (2026-11-25), a time (2026-11-25T14:55:00Z), or 90m, 24h, 7d.")
  var since: String?

  func run() throws {
    var request = AdminRequest(.reports)
    if let since { request.since = try Commands.moment(since) }
    try admin.ask(request)
  }
}

struct ShowReport: ParsableCommand {
  static let configuration = CommandConfiguration(commandName: "report", abstract: "Show an abuse report.")

  @OptionGroup var admin: AdminOptions

  @Argument(help: "The report's id.")
  var report: String

  func run() throws { try admin.ask(AdminRequest(.report, report: try Commands.reportID(report))) }
}

struct RecordingCommands: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "recordings", abstract: "List the recordings of a running server, or delete one.",
    subcommands: [ShowRecordings.self, RemoveRecording.self], defaultSubcommand: ShowRecordings.self)
}

struct ShowRecordings: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the newest recordings, with their owners and sizes.")

  @OptionGroup var admin: AdminOptions

  @Option(help: "Only those of this user.")
  var user: String?

  func run() throws {
    var request = AdminRequest(.recordings)
    if let user { request.user = try Commands.userID(user) }
    try admin.ask(request)
  }
}

struct RemoveRecording: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "delete", abstract: "Delete a recording for everybody.",
    discussion: "Its owner and its readers are told that it is gone. A reader who kept it, or its key, still has that.")

  @OptionGroup var admin: AdminOptions

  @Argument(help: "The recording's id.")
  var recording: String

  func run() throws {
    try admin.ask(AdminRequest(.deleteRecording, recording: try Commands.recordingID(recording)))
  }
}

struct End: ParsableCommand {
  static let configuration = CommandConfiguration(abstract: "End a call for all.")

  @OptionGroup var admin: AdminOptions

  @Argument(help: "The call's id. The first characters are enough if no other running call's id begins like this.")
  var call: String

  func run() throws { try admin.ask(.end, about: call) }
}

struct Disconnect: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Take a user out of all calls and close the user's connections.",
    discussion: "A client with a valid token may come back: let the app's back end issue none to keep a user out.")

  @OptionGroup var admin: AdminOptions

  @Argument(help: "The user's id.")
  var user: String

  func run() throws { try admin.ask(AdminRequest(.disconnect, user: try Commands.userID(user))) }
}

struct Drain: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Take no new calls, and end the server with the last call.")

  @OptionGroup var admin: AdminOptions

  func run() throws { try admin.ask(AdminRequest(.drain)) }
}
