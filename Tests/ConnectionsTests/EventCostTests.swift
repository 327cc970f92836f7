import CallMessages
import Contract
import Foundation
import JSON
import MediaModel
import Testing

/// An event is charged as no fewer bytes than are written for it.
struct EventCostTests {
  private struct Event: Decodable {
    let message: EventMessage

    init(from decoder: any Decoder) throws {
      let name = try #require(decoder.userInfo[.name] as? EventName)
      message = try EventMessage(name, from: decoder)
    }
  }

  /// The examples have each member that an event can have.
  @Test func noExampleOfAnEventIsLongerThanItsCost() throws {
    let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    let file = try Data(contentsOf: tests.appending(path: "ContractTests/Golden/events.json"))
    let examples = try #require(try JSONSerialization.jsonObject(with: file) as? [String: Any])
    #expect(examples.count == EventName.allCases.count)
    for (name, body) in examples {
      let decoder = JSONDecoder()
      decoder.userInfo[.name] = EventName(rawValue: name)
      let message = try decoder.decode(Event.self, from: JSONSerialization.data(withJSONObject: body)).message
      let size = try JSONCoding.encode(message).count
      #expect(message.body.cost >= size, "\(name)")
    }
  }

  /// A user chooses bodies, names, metadata and ciphertexts, and can make them long.
  @Test func longContentsAreCharged() throws {
    let long = Base64Bytes([UInt8](repeating: 255, count: 4_000))
    let alice = Device(user: UserID("alice")!, device: DeviceID("phone")!)
    let envelope = Envelope(
      epoch: 1, to: alice, from: alice, key: Base64Bytes([UInt8](repeating: 1, count: 32)), alg: "x", ciphertext: long,
      sigAlg: "x", signature: long)
    let name = String(repeating: "\"", count: 2_000)
    let member = MemberState(user: alice.user, name: name, state: .joined, participants: [])
    let bodies: [EventBody] = [
      .envelope(envelope), .message(CallMessage(from: 1, body: long)),
      .pairing(PairingMessage(from: alice.device, body: long)),
      .member(MemberChange(member: member, cause: .joined)),
      .members(MemberChanges(members: [MemberChange(member: member, cause: .joined)])),
      .ring(
        Ring(
          from: alice.user, media: .audio, members: [member], waiting: false, expiresAt: Timestamp(milliseconds: 1),
          metadata: long, envelope: envelope, list: nil)),
    ]
    for body in bodies {
      let size = try JSONCoding.encode(EventMessage(at: Timestamp(milliseconds: 1), call: CallID("c"), body: body))
        .count
      #expect(body.cost >= size && body.cost < 2 * size, "\(body.name)")
    }
  }
}

extension CodingUserInfoKey {
  fileprivate static let name = CodingUserInfoKey(rawValue: "name")!
}
