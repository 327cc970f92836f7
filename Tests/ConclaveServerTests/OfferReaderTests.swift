import CallMessages
import Contract
import MediaModel
import NIOPosix
import Testing

@testable import ConclaveServer

/// SDPs are parsed outside the loop, and their user's commands wait.
@Suite(.timeLimit(.minutes(5))) struct OfferReaderTests {
  @Test func anOfferComesBackBeforeWhatItsUserSentLater() async throws {
    let threads = NIOThreadPool(numberOfThreads: 1)
    threads.start()
    let inbox = CommandInbox()
    let session = SessionID(rawValue: 1)
    let device = Device(user: UserID(unchecked: "alice"), device: DeviceID(unchecked: "phone"))
    #expect(inbox.append(.connect(session, Identity(device: device, name: nil))))
    _ = inbox.next(takesAll: true, goesOn: false)
    let (told, telling) = AsyncStream.makeStream(of: Void.self)
    inbox.start { telling.yield() }
    let reader = OfferReader(threads: threads, inbox: inbox)
    reader.read(
      MediaRequest(sdp: "nonsense", tracks: []), of: CallID(unchecked: "c"), for: session, id: "m")
    #expect(inbox.append(.request(session, id: "later", .listCalls)))
    var commands: [NodeCommand] = []
    for await _ in told {
      while let command = inbox.next(takesAll: true, goesOn: false) { commands.append(command) }
      if commands.count == 2 { break }
    }
    guard case .offer(session, "m", CallID(unchecked: "c"), .failure(let error), _) = commands[0] else {
      return #expect(Bool(false), "\(commands[0])")
    }
    #expect(error.code == .mediaSDPInvalid && error.field == "sdp")
    guard case .request(session, "later", .calls(.list)) = commands[1] else {
      return #expect(Bool(false), "\(commands[1])")
    }
    try await threads.shutdownGracefully()
  }
}
