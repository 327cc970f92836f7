import Contract
import Foundation
import JSON
import MediaModel
import Seeded
import Testing

@testable import CallMessages

/// The messages between people and calls as JSON, and the numbers that restore their order. `Golden/letters.json` has
/// an example of each. A change there cannot be read by earlier servers, so it needs a higher `LetterVersion.current`.
@Suite(.timeLimit(.minutes(5))) struct LetterTests {
  // MARK: JSON

  @Test func everyMessageIsReadAndWrittenAsItStands() throws {
    var names: Set<String> = []
    for (label, text) in try golden("toCalls") {
      let letter = try JSONCoding.decode(Letter<ToCalls>.self, from: text)
      #expect(try object(try JSONCoding.encode(letter)) == object(text), "\(label)")
      names.insert(name(of: letter.message))
    }
    #expect(names.count == 14)
    names = []
    for (label, text) in try golden("toPeople") {
      let letter = try JSONCoding.decode(Letter<ToPeople>.self, from: text)
      #expect(try object(try JSONCoding.encode(letter)) == object(text), "\(label)")
      names.insert(name(of: letter.message))
    }
    #expect(names.count == 19)
  }

  /// A new message needs an example: add its name here, and to the counts above.
  private func name(of message: ToCalls) -> String {
    switch message {
    case .request: "request"
    case .offer: "offer"
    case .history: "history"
    case .greet: "greet"
    case .readTopic: "readTopic"
    case .signaling: "signaling"
    case .hold: "hold"
    case .acknowledged: "acknowledged"
    case .ringAcknowledged: "ringAcknowledged"
    case .pushed: "pushed"
    case .devicesChanged: "devicesChanged"
    case .voidLinks: "voidLinks"
    case .remove: "remove"
    case .forget: "forget"
    }
  }

  private func name(of message: ToPeople) -> String {
    switch message {
    case .reply: "reply"
    case .checked: "checked"
    case .report: "report"
    case .history: "history"
    case .speaks: "speaks"
    case .greeting: "greeting"
    case .topic: "topic"
    case .removed: "removed"
    case .news(.made, _, _): "made"
    case .news(.event, _, _): "event"
    case .news(.ring, _, _): "ring"
    case .news(.ringEnvelopesSuperseded, _, _), .news(.envelopesSuperseded, _, _): "superseded"
    case .news(.participantGone, _, _): "participantGone"
    case .news(.member, _, _): "member"
    case .news(.pushOver, _, _): "pushOver"
    case .news(.over, _, _): "over"
    case .news(.guestRemoved, _, _): "guestRemoved"
    case .news(.linkOpened, _, _): "linkOpened"
    case .news(.linksVoid, _, _): "linksVoid"
    }
  }

  @Test(arguments: [0, 2, -1, Int.max]) func anotherVersionIsRefused(version: Int) throws {
    let text = Array(#"{"version":\#(version),"number":1,"message":{"forget":{"_0":"alice"}}}"#.utf8)
    let error = #expect(throws: JSONError.self) { try JSONCoding.decode(Letter<ToCalls>.self, from: text) }
    #expect("\(error!)".contains("run one release on all servers"))
  }

  /// Bytes of another node are not trusted: each damaged letter is read or refused, without a trap.
  @Test func hostileBytesAreAnErrorAndNoTrap() throws {
    var random = SeededGenerator(seed: 33)
    var (read, refused) = (0, 0)
    func take<Message: Codable & Sendable>(_ type: Message.Type, _ bytes: [UInt8]) {
      guard let letter = try? JSONCoding.decode(Letter<Message>.self, from: bytes) else {
        refused += 1
        return
      }
      read += 1
      _ = try? JSONCoding.encode(letter)
    }
    let numbers = ["-1", "0", "1e400", "9223372036854775807", "18446744073709551616", "null", "\"\"", "[]", "{}"]
    for side in ["toCalls", "toPeople"] {
      for (_, text) in try golden(side) {
        for _ in 0..<60 {
          var bytes = text
          switch Int.random(in: 0..<4, using: &random) {
          case 0: bytes.removeLast(Int.random(in: 1..<bytes.count, using: &random))
          case 1: bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
          case 2:
            let start = Int.random(in: 0..<bytes.count, using: &random)
            bytes.removeSubrange(start..<min(bytes.count, start + Int.random(in: 1...20, using: &random)))
          default:
            // Another value instead of a number, `true` or `false`.
            let places = bytes.indices.dropFirst().filter {
              bytes[$0 - 1] == UInt8(ascii: ":") && ![UInt8(ascii: "\""), UInt8(ascii: "{")].contains(bytes[$0])
            }
            guard let start = places.randomElement(using: &random) else { continue }
            let end = bytes[start...].firstIndex { [UInt8(ascii: ","), UInt8(ascii: "}")].contains($0) } ?? bytes.count
            bytes.replaceSubrange(start..<end, with: Array(numbers.randomElement(using: &random)!.utf8))
          }
          if side == "toCalls" { take(ToCalls.self, bytes) } else { take(ToPeople.self, bytes) }
        }
      }
    }
    #expect(read > 100 && refused > 1_000, "\(read) read, \(refused) refused")
  }

  // MARK: numbers

  private func letters(_ count: Int) -> [Letter<Int>] {
    var sender = OutgoingLink()
    return (1...count).map { sender.letter($0) }
  }

  @Test func messagesInOrderPass() {
    var receiver = IncomingLink<Int>()
    for letter in letters(3) {
      guard case .next([letter.message]) = receiver.take(letter) else {
        Issue.record("\(letter)")
        return
      }
    }
    #expect(receiver.waiting == 0)
  }

  @Test func aRepeatIsDropped() {
    var receiver = IncomingLink<Int>()
    let letters = letters(3)
    _ = receiver.take(letters[0])
    guard case .repeated = receiver.take(letters[0]) else {
      Issue.record("one that was handled")
      return
    }
    _ = receiver.take(letters[2])
    guard case .repeated = receiver.take(letters[2]) else {
      Issue.record("one that waits")
      return
    }
    guard case .repeated = receiver.take(Letter(number: 0, message: 9)) else {
      Issue.record("no sender uses such numbers")
      return
    }
    #expect(receiver.waiting == 1)
  }

  @Test func aGapIsReportedUntilItIsFilled() {
    var receiver = IncomingLink<Int>()
    let letters = letters(4)
    for early in [letters[3], letters[1]] {
      guard case .gap(missing: 1) = receiver.take(early) else {
        Issue.record("\(early)")
        return
      }
    }
    guard case .next([1, 2]) = receiver.take(letters[0]), case .next([3, 4]) = receiver.take(letters[2]) else {
      Issue.record("the order is restored")
      return
    }
    #expect(receiver.waiting == 0)
  }

  @Test func fewerMessagesWaitThanASenderMaySend() {
    var receiver = IncomingLink<Int>()
    let capacity = IncomingLink<Int>.capacity
    let letters = letters(capacity + 10)
    for letter in letters.dropFirst() { _ = receiver.take(letter) }
    #expect(receiver.waiting == capacity)
    guard case .next(let messages) = receiver.take(letters[0]) else {
      Issue.record("the first")
      return
    }
    #expect(messages == Array(1...capacity + 1), "those that had no room are missing")
    guard case .next = receiver.take(letters[capacity + 1]) else {
      Issue.record("they are taken when they come again")
      return
    }
  }

  // MARK: fixtures

  private func golden(_ side: String) throws -> [(label: String, text: [UInt8])] {
    let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "Golden/letters.json")
    let all = try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: [String: Any]]
    return try (all?[side] ?? [:]).sorted { $0.key < $1.key }.map {
      ($0.key, Array(try JSONSerialization.data(withJSONObject: $0.value, options: [.sortedKeys])))
    }
  }

  /// Independent of the order of members.
  private func object(_ text: [UInt8]) throws -> Data {
    let value = try JSONSerialization.jsonObject(with: Data(text))
    return try JSONSerialization.data(withJSONObject: value, options: [.sortedKeys])
  }
}
