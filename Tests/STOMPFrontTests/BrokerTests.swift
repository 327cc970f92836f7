import CallMessages
import Listening
import MediaModel
import NIOCore
import Seeded
import STOMP
import Testing

@testable import STOMPFront

/// An app's own topics and queues, without connections.
@Suite struct BrokerTests {
  private static let queue = Broker.Address.queue("/queue/jobs")
  private static let topic = Broker.Address.topic("/topic/news")
  private var broker = Broker(loops: 2)

  private func subscriber(_ session: UInt64, key: UInt64 = 1, loop: Int = 0) -> Broker.Subscriber {
    Broker.Subscriber(session: SessionID(rawValue: session), key: key, loop: loop)
  }

  private func message(_ text: String) -> SharedMessage {
    SharedMessage(destination: "/x", headers: [:], body: ByteBuffer(string: text))
  }

  /// The delivered messages, as `session:text`, with `!` for a redelivery.
  private func words(_ output: Broker.Output) -> [String] {
    output.loops.joined().flatMap { batch in
      batch.subscribers.map {
        "\($0.session.rawValue):\(String(buffer: batch.message.body))\(batch.redelivered ? "!" : "")"
      }
    }
  }

  @discardableResult
  private mutating func perform(_ operations: Broker.Operation..., now: UInt64 = 0) -> [String] {
    words(broker.perform(operations, now: now))
  }

  @Test mutating func aTopicReachesEachSubscriptionOnItsLoop() {
    perform(.subscribe(subscriber(1), Self.topic), .subscribe(subscriber(1, key: 2), Self.topic))
    perform(.subscribe(subscriber(2, loop: 1), Self.topic))
    let output = broker.perform([.send(message("a"), Self.topic), .send(message("b"), Self.topic)], now: 0)
    #expect(output.loops.map(\.count) == [2, 2])
    #expect(words(output) == ["1:a", "1:a", "1:b", "1:b", "2:a", "2:b"])
    #expect(perform(.unsubscribe(subscriber(1), Self.topic), .send(message("c"), Self.topic)) == ["1:c", "2:c"])
    perform(.unsubscribe(subscriber(1, key: 2), Self.topic), .unsubscribe(subscriber(2, loop: 1), Self.topic))
    #expect(broker.audienceCount == 0)
    #expect(broker.perform([.send(message("d"), Self.topic)], now: 0).drops == [.nobodySubscribed: 1])
  }

  @Test mutating func aUsersQueueIsNobodyElses() throws {
    let alice = Broker.Address.user(try #require(UserID("alice")), "news")
    let bob = Broker.Address.user(try #require(UserID("bob")), "news")
    perform(.subscribe(subscriber(1), alice), .subscribe(subscriber(2), alice), .subscribe(subscriber(3), bob))
    #expect(perform(.send(message("a"), alice)) == ["1:a", "2:a"])
  }

  @Test mutating func aQueueGivesEachMessageToWhoHasLeastToDo() {
    perform(.subscribe(subscriber(1), Self.queue), .subscribe(subscriber(2), Self.queue))
    #expect(
      perform(.send(message("a"), Self.queue), .send(message("b"), Self.queue), .send(message("c"), Self.queue))
        == ["1:a", "2:b", "1:c"])
    perform(.settle(subscriber(1), Self.queue, number: 1, accepted: true))
    perform(.settle(subscriber(1), Self.queue, number: 3, accepted: true))
    #expect(perform(.send(message("d"), Self.queue)) == ["1:d"])
  }

  @Test mutating func messagesWaitForASubscriberInOrder() {
    perform(.send(message("a"), Self.queue), .send(message("b"), Self.queue))
    #expect(perform(.subscribe(subscriber(1), Self.queue)) == ["1:a", "1:b"])
    perform(
      .settle(subscriber(1), Self.queue, number: 1, accepted: true),
      .settle(subscriber(1), Self.queue, number: 2, accepted: true), .unsubscribe(subscriber(1), Self.queue))
    #expect(broker.queueCount == 0 && broker.bytes == 0)
  }

  @Test mutating func aNackGoesToAnotherAndNeverStraightBack() {
    perform(.subscribe(subscriber(1), Self.queue))
    #expect(perform(.send(message("a"), Self.queue)) == ["1:a"])
    #expect(perform(.settle(subscriber(1), Self.queue, number: 1, accepted: false)) == [])
    // The message behind it does not wait.
    #expect(perform(.send(message("b"), Self.queue)) == ["1:b"])
    #expect(perform(.subscribe(subscriber(2), Self.queue)) == ["2:a!"])
  }

  @Test mutating func aLostConnectionsMessagesGoToAnotherInTheirOrder() {
    perform(.subscribe(subscriber(1), Self.queue))
    for text in ["a", "b", "c"] { perform(.send(message(text), Self.queue)) }
    perform(.settle(subscriber(1), Self.queue, number: 2, accepted: true))
    #expect(perform(.unsubscribe(subscriber(1), Self.queue), .send(message("d"), Self.queue)) == [])
    #expect(perform(.subscribe(subscriber(2), Self.queue)) == ["2:a!", "2:c!", "2:d"])
    // An ACK of the first subscriber comes too late.
    perform(.settle(subscriber(1), Self.queue, number: 1, accepted: true))
    #expect(perform(.unsubscribe(subscriber(2), Self.queue), .subscribe(subscriber(3), Self.queue)).count == 3)
  }

  @Test mutating func aMessageThatNobodyKeepsIsDropped() {
    perform(.subscribe(subscriber(1), Self.queue), .subscribe(subscriber(2), Self.queue))
    perform(.send(message("a"), Self.queue))
    var drops: UInt64 = 0
    for attempt in 0..<20 {
      let refuser = subscriber(attempt % 2 == 0 ? 1 : 2)
      let output = broker.perform([.settle(refuser, Self.queue, number: 1, accepted: false)], now: 0)
      drops += output.drops[.queueRefused, default: 0]
    }
    #expect(drops == 1 && broker.bytes == 0)
  }

  @Test mutating func aFullQueueLosesItsOldest() {
    for index in 0..<1_001 { perform(.send(message("\(index)"), Self.queue)) }
    let first = perform(.subscribe(subscriber(1), Self.queue))
    #expect(first.first == "1:1" && first.count == 100, "delivered only as far as acknowledged")
    let large = message(String(repeating: "x", count: 300 << 10))
    let other = Broker.Address.queue("/queue/large")
    let output = broker.perform(Array(repeating: .send(large, other), count: 4), now: 0)
    #expect(output.drops == [.queueFull: 1])
  }

  @Test mutating func aSubscriberThatAcknowledgesGetsMore() {
    for index in 0..<150 { perform(.send(message("\(index)"), Self.queue)) }
    #expect(perform(.subscribe(subscriber(1), Self.queue)).count == 100)
    #expect(perform(.settle(subscriber(1), Self.queue, number: 1, accepted: true)) == ["1:100"])
  }

  @Test mutating func messagesAreKeptTenMinutes() {
    perform(.send(message("a"), Self.queue), now: 0)
    perform(.send(message("b"), Self.queue), now: 1)
    #expect(broker.expire(now: 599_999_999_999).drops.isEmpty)
    #expect(broker.expire(now: 600_000_000_000).drops == [.queueExpired: 1])
    #expect(perform(.subscribe(subscriber(1), Self.queue), now: 600_000_000_000) == ["1:b"])
  }

  @Test mutating func equalsTakeTurnsAndWhoIsFullTakesNone() {
    for session in UInt64(1)...3 { perform(.subscribe(subscriber(session), Self.queue)) }
    let words = (0..<300).flatMap { perform(.send(message("\($0)"), Self.queue)) }
    #expect(words.enumerated().allSatisfy { $1 == "\($0 % 3 + 1):\($0)" })
    #expect(perform(.send(message("waits"), Self.queue)) == [], "each has 100")
    #expect(perform(.settle(subscriber(2), Self.queue, number: 2, accepted: true)) == ["2:waits"])
  }

  @Test mutating func aMessageGoesPastItsRefuserToTheNextWithRoom() {
    for session in UInt64(1)...3 { perform(.subscribe(subscriber(session), Self.queue)) }
    #expect(perform(.send(message("a"), Self.queue)) == ["1:a"])
    #expect(perform(.settle(subscriber(1), Self.queue, number: 1, accepted: false)) == ["2:a!"])
    #expect(perform(.settle(subscriber(2), Self.queue, number: 1, accepted: false)) == ["3:a!"])
  }

  /// The attack: many consumers that are full, and a thousand messages that the only one with room has refused. Both
  /// once made each SEND check all of them.
  @Test func aSendCostsNoMoreForConsumersThatAreFullAndMessagesThatWereRefused() {
    func cost(full consumers: UInt64) -> Duration {
      var limits = Broker.Limits()
      limits.unacknowledged = 1
      var broker = Broker(loops: 1, limits: limits)
      for session in 0..<consumers {
        _ = broker.perform([.subscribe(subscriber(session + 2), Self.queue), .send(message("x"), Self.queue)], now: 0)
      }
      _ = broker.perform([.subscribe(subscriber(1), Self.queue)], now: 0)
      var number = consumers
      for _ in 0..<900 {
        number += 1
        _ = broker.perform(
          [.send(message("y"), Self.queue), .settle(subscriber(1), Self.queue, number: number, accepted: false)], now: 0
        )
      }
      let batch = (0..<50).flatMap { index in
        [
          Broker.Operation.send(message("z"), Self.queue),
          .settle(subscriber(1), Self.queue, number: number + UInt64(index) + 1, accepted: true),
        ]
      }
      return ContinuousClock().measure { _ = broker.perform(batch, now: 0) }
    }
    // The minimum of several runs, since the machine may do something else meanwhile.
    let few = (0..<9).map { _ in cost(full: 4) }.min() ?? .zero
    let many = (0..<9).map { _ in cost(full: 4_000) }.min() ?? .zero
    #expect(many < few * 20, "\(many) with 4,000 full consumers, \(few) with 4")
  }

  @Test func allQueuesTogetherAreBounded() {
    var limits = Broker.Limits()
    limits.queues = 2
    limits.bytes = 2_000
    var broker = Broker(loops: 1, limits: limits)
    let sends = (0..<3).map { Broker.Operation.send(message("a"), .queue("/queue/\($0)")) }
    #expect(broker.perform(sends, now: 0).drops == [.queuesFull: 1])
    let large = message(String(repeating: "x", count: 2_000))
    #expect(broker.perform([.send(large, .queue("/queue/1"))], now: 0).drops == [.queuesFull: 1])
  }

  @Test(arguments: [1, 2, 3] as [UInt64])
  func nothingIsLostTwiceGivenOrLeaked(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var broker = Broker(loops: 1)
    var given: [UInt64: Broker.Subscriber] = [:]
    var subscribed: Set<Broker.Subscriber> = []
    var drops: UInt64 = 0
    var (sent, done) = (0, 0)
    func note(_ output: Broker.Output) {
      drops += output.drops.values.reduce(0, +)
      for batch in output.loops[0] {
        #expect(given[batch.number] == nil && subscribed.contains(batch.subscribers[0]), "seed \(seed)")
        given[batch.number] = batch.subscribers[0]
      }
    }
    for _ in 0..<2_000 {
      let who = subscriber(UInt64.random(in: 1...5, using: &random))
      switch Int.random(in: 0..<10, using: &random) {
      case 0 where !subscribed.contains(who):
        subscribed.insert(who)
        note(broker.perform([.subscribe(who, Self.queue)], now: 0))
      case 1:
        subscribed.remove(who)
        given = given.filter { $0.value != who }
        note(broker.perform([.unsubscribe(who, Self.queue)], now: 0))
      case 2...5:
        guard let (number, holder) = given.randomElement(using: &random) else { continue }
        let accepted = Int.random(in: 0..<4, using: &random) > 0
        given[number] = nil
        if accepted { done += 1 }
        note(broker.perform([.settle(holder, Self.queue, number: number, accepted: accepted)], now: 0))
      default:
        sent += 1
        note(broker.perform([.send(message("x"), Self.queue)], now: 0))
      }
    }
    // Waiting messages go to a subscriber that acknowledges all.
    for who in subscribed {
      given = given.filter { $0.value != who }
      subscribed.remove(who)
      note(broker.perform([.unsubscribe(who, Self.queue)], now: 0))
    }
    given = [:]
    let last = subscriber(9)
    subscribed = [last]
    note(broker.perform([.subscribe(last, Self.queue)], now: 0))
    while let number = given.keys.first {
      given[number] = nil
      done += 1
      note(broker.perform([.settle(last, Self.queue, number: number, accepted: true)], now: 0))
    }
    #expect(sent == done + Int(drops) && broker.bytes == 0, "seed \(seed)")
  }
}
