import CallMessages
import Contract
import JSON
import Listening
import Logging
import MediaModel
import NIOCore
import Testing
import WireClients

@testable import Connections

struct StateTextsTests {
  private func state(of members: Int, id: String = "c1") -> CallState {
    CallState(
      id: CallID(id)!, state: .active, media: .audio, initiator: UserID("u0")!, startedAt: Timestamp(milliseconds: 1),
      epoch: 3, policy: Policy(),
      members: (0..<members).map {
        MemberState(user: UserID("u\($0)")!, name: "Name \($0)", state: .joined, participants: [])
      }, metadata: nil)
  }

  private func bytes(_ output: EventEncoder.Output?) throws -> [UInt8] {
    switch output {
    case .ready(.event(let event, _, _)): return Array(event.body.readableBytesView)
    case .ready(.reply(_, let reply)): return reply.body
    default: throw CancellationError()
    }
  }

  /// Everybody comes back after a restart: each connection gets the state, then rejoins and gets it again in the reply
  /// and as an event.
  @Test func aRestartOfALargeCallEncodesEachChangeOfAMemberOnce() throws {
    let texts = StateTexts()
    var encoder = EventEncoder(log: LimitedLog(Logger(label: "test", factory: { _ in LogLines() })), texts: texts)
    var state = state(of: 1000)
    for i in 0..<100 {
      let session = SessionID(rawValue: UInt64(i + 1))
      func expectEvent() throws {
        let message = EventMessage(at: Timestamp(milliseconds: Int64(i)), call: state.id, body: .state(state))
        let event = EventDelivery(seq: 1, redelivered: false, messageID: UInt64(1000 + i), message: message)
        #expect(try bytes(encoder.output(.event(session, event))) == JSONCoding.encode(message))
      }
      try expectEvent()
      state.members[i].state = .left
      let joined = Joined(call: state, participant: 7, ice: ICE())
      #expect(try bytes(encoder.output(.reply(session, id: "1", .ok(.joined(joined))))) == JSONCoding.encode(joined))
      #expect(try bytes(encoder.output(.reply(session, id: "2", .ok(.state(state))))) == JSONCoding.encode(state))
    }
    #expect(texts.encodings == 1100)
  }

  @Test func onlySomeLargeCallsAreRemembered() throws {
    let texts = StateTexts()
    for round in 0..<2 {
      for i in 0..<StateTexts.maximumCalls + 1 {
        let state = state(of: StateTexts.fewest, id: "c\(i)")
        #expect(
          try texts.encode(state, of: state.id, members: state.members.count) == JSONCoding.encode(state), "\(round)")
      }
    }
    #expect(texts.encodings == StateTexts.maximumCalls * StateTexts.fewest)
    let small = state(of: StateTexts.fewest - 1, id: "small")
    #expect(try texts.encode(small, of: small.id, members: small.members.count) == JSONCoding.encode(small))
    #expect(texts.encodings == StateTexts.maximumCalls * StateTexts.fewest, "a small call is not remembered")
  }

  /// A ring to many devices: each has its own envelope, but the same members and the same list.
  @Test func theListOfARingIsEncodedOnceForAllItsDevices() throws {
    let texts = StateTexts()
    var encoder = EventEncoder(log: LimitedLog(Logger(label: "test", factory: { _ in LogLines() })), texts: texts)
    for call in 1...2 {
      let list = (0..<256).map {
        ListEntry(
          user: UserID("u\($0)")!, device: DeviceID("phone")!, participant: 0, joinId: nil, joinKey: nil,
          fingerprint: Base64Bytes([UInt8](repeating: UInt8(call), count: 31) + [UInt8($0)]))
      }
      let members = state(of: 100 + call).members
      for device in 0..<255 {
        let envelope = Envelope(
          epoch: 1, to: list[device].address, from: nil, key: Base64Bytes([]), alg: "x",
          ciphertext: Base64Bytes([UInt8(device)]), sigAlg: nil, signature: nil)
        let ring = Ring(
          from: UserID("u0")!, media: .audio, members: members, waiting: false, expiresAt: Timestamp(milliseconds: 9),
          metadata: nil, envelope: envelope, list: list)
        let message = EventMessage(at: Timestamp(milliseconds: 5), call: CallID("c\(call)"), body: .ring(ring))
        let event = EventDelivery(seq: 1, redelivered: false, messageID: UInt64(call << 8 + device), message: message)
        let text = try bytes(encoder.output(.event(SessionID(rawValue: UInt64(device)), event)))
        #expect(try text == JSONCoding.encode(message))
        #expect(message.body.cost >= text.count && message.body.cost < 2 * text.count, "what it is charged as")
      }
      #expect(texts.encodings == 2 * call)
    }
  }

  /// People join a large call one after another: each gets the whole key list and the devices of those before it.
  @Test func eachDeviceOfAListIsEncodedOnce() throws {
    let texts = StateTexts()
    var encoder = EventEncoder(log: LimitedLog(Logger(label: "test", factory: { _ in LogLines() })), texts: texts)
    let key = DeviceKey(use: .wrap, alg: "x", publicKey: Base64Bytes([1, 2, 3]))
    func fingerprint(_ number: Int) -> Base64Bytes { Base64Bytes([UInt8(number >> 8), UInt8(number & 255)]) }
    let entries = (0..<300).map {
      ListEntry(
        user: UserID("u\($0)")!, device: DeviceID("phone")!, participant: UInt32($0 + 1), joinId: nil, joinKey: nil,
        fingerprint: fingerprint($0))
    }
    let devices = (0..<300).map {
      DeviceEntry(
        user: UserID("u\($0)")!, device: DeviceID("phone")!, name: nil, keys: [key], fingerprint: fingerprint($0),
        registeredAt: Timestamp(milliseconds: 1))
    }
    let empty = Base64Bytes([])
    for count in 100...300 {
      let session = SessionID(rawValue: UInt64(count))
      // Newcomers may be anywhere in the order of users.
      let list = (0..<count).map { entries[$0 * 7 % count] }
      let rotation = Rotate(
        epoch: UInt32(count), mode: .ratchet, leader: 1, previous: empty, listHash: empty, list: list)
      let message = EventMessage(at: Timestamp(milliseconds: 5), call: CallID("c1"), body: .rotate(rotation))
      let event = EventDelivery(seq: 1, redelivered: false, messageID: UInt64(count), message: message)
      #expect(try bytes(encoder.output(.event(session, event))) == JSONCoding.encode(message))
      let reply = KeyList(
        epoch: 1, mode: .fresh, previous: empty, listHash: empty, list: list, links: [], confirmed: [])
      #expect(try bytes(encoder.output(.reply(session, id: "1", .ok(.keyList(reply))))) == JSONCoding.encode(reply))
      let found = Devices(devices: (0..<count).map { devices[$0 * 7 % count] })
      #expect(try bytes(encoder.output(.reply(session, id: "2", .ok(.devices(found))))) == JSONCoding.encode(found))
    }
    #expect(texts.encodings == 600)
  }
}
