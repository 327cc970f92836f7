import Testing

@testable import ConclaveClient

@Suite(.timeLimit(.minutes(5)))
struct UnreadQueueTests {
  private func read(_ queue: UnreadQueue<CallUpdate>) async -> [CallUpdate] {
    var updates: [CallUpdate] = []
    for await update in queue.stream { updates.append(update) }
    return updates
  }

  /// An app that was away for a thousand changes reads the newest state of each kind once, and every message.
  @Test func onlyTheNewestOfAStateWaits() async {
    let queue = UnreadQueue<CallUpdate>()
    for number in 1...1_000 {
      queue.yield(.changed)
      queue.yield(.need(audio: number, video: 0))
      queue.yield(.keyChanged(epoch: UInt32(number)))
      if number % 500 == 0 { queue.yield(.message(from: 1, body: [1], isPrivate: false)) }
    }
    queue.yield(.ended(reason: "left"))
    queue.finish()
    queue.yield(.changed)
    let message = CallUpdate.message(from: 1, body: [1], isPrivate: false)
    #expect(
      await read(queue) == [
        message, .changed, .need(audio: 1_000, video: 0), .keyChanged(epoch: 1_000), message, .ended(reason: "left"),
      ])
  }

  @Test func eventsAreBounded() async {
    let queue = UnreadQueue<CallUpdate>()
    for number in 1...UnreadQueue<CallUpdate>.limit + 10 { queue.yield(.keyWaiting(participant: UInt32(number))) }
    queue.finish()
    let updates = await read(queue)
    #expect(updates.count == UnreadQueue<CallUpdate>.limit && updates.first == .keyWaiting(participant: 11))
  }

  @Test func aReaderWaitsForWhatComesAndForTheEnd() async {
    let queue = UnreadQueue<CallUpdate>()
    let reader = Task { await read(queue) }
    queue.yield(.restartMedia)
    await Task.yield()
    queue.yield(.rejoining)
    queue.finish()
    #expect(await reader.value == [.restartMedia, .rejoining])
    // A cancelled reader does not wait forever.
    let other = Task { await read(UnreadQueue<CallUpdate>()) }
    other.cancel()
    #expect(await other.value.isEmpty)
  }
}
